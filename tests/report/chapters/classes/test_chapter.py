"""Robustness by class."""

from __future__ import annotations

from helpers.pages import result_of
from helpers.tables import make_table, with_value

from brittle.report.chapters.classes import ClassesChapter


def test_classes_of_one_name_stay_apart() -> None:
    result = result_of(ClassesChapter(), make_table(points=40, classes=3, class_names=("cat", "cat", "dog")))
    assert set(result.frame["name"]) == {"cat (0)", "cat (1)", "dog"}


def test_no_class_is_named_before_the_classes_differ() -> None:
    label = "taylor(sigma=0.1)"
    table = make_table(points=150, classes=3, scores=("taylor",), sigmas=(0.1,), images=False)
    labels = table.points["label"].to_pylist()
    alike = result_of(ClassesChapter(), with_value(table, label, [0.2] * 150))
    assert alike.ends == ()
    assert "no class is named the least robust" in alike.test
    apart = result_of(ClassesChapter(), with_value(table, label, [(0.1, 0.5, 0.9)[one] for one in labels]))
    assert [number.value for number in apart.ends] == ["bird", "airplane"]
    assert all("Told apart from every other class." in number.note for number in apart.ends)
    assert "the classes differ" in apart.test
    pair = result_of(ClassesChapter(), with_value(table, label, [(0.1, 0.9, 0.9)[one] for one in labels]))
    assert "Not told apart from" in pair.ends[0].note
