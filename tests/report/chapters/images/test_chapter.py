"""The least and the most robust points of each class."""

from __future__ import annotations

import pytest
from helpers.pages import page_of
from helpers.tables import make_table

from brittle.analysis import extremes
from brittle.report.chapters.images import ImagesChapter

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def test_every_class_shows_its_images() -> None:
    full = make_table(points=120, scores=("moments",), sigmas=(0.1,), budgets=(10,), broken=3)
    page = page_of(full, chapters=(ImagesChapter(),))
    known = set(full.points["name"].to_pylist())
    told = [str(attributes["alt"]) for tag, attributes in page.elements if tag == "img"]
    assert len(told) == len(extremes(full)) > 80
    assert not known & set(told)
    assert all(" flips" in text or "undecided" in text for text in told)
