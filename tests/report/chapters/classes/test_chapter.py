"""Robustness by class."""

from __future__ import annotations

from helpers.pages import result_of
from helpers.tables import make_table

from brittle.report.chapters.classes import ClassesChapter


def test_classes_of_one_name_stay_apart() -> None:
    result = result_of(ClassesChapter(), make_table(points=40, classes=3, class_names=("cat", "cat", "dog")))
    assert set(result.frame["name"]) == {"cat (0)", "cat (1)", "dog"}
