"""The least and the most robust points of each class."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from helpers.pages import page_of, result_of, text_of
from helpers.tables import make_table

from brittle.analysis import extremes
from brittle.report.chapters.images import ImagesChapter
from brittle.store.schemas import SCORES

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def test_every_class_shows_its_images() -> None:
    full = make_table(points=120, scores=("moments",), sigmas=(0.1,), budgets=(10,), broken=3)
    page = page_of(full, chapters=(ImagesChapter(),))
    known = set(full.points["name"].to_pylist())
    told = [str(attributes["alt"]) for tag, attributes in page.elements if tag == "img"]
    assert len(told) == len(extremes(full)) > 80
    assert not known & set(told)
    assert all(" flips" in text or "undecided" in text for text in told)


def test_the_most_robust_show_what_is_sure_of_them() -> None:
    """A bound instead of a tiny value, and none where the interval says nothing."""
    table = make_table(points=8, classes=1, scores=("taylor",), sigmas=(0.1,))
    rows = table.long()
    rows["value"] = [0.5, 0.4, 0.3, 0.2, 0.01, 1e-9, 0.03, 1e-20]
    rows["high"] = [0.6, 0.5, 0.4, 0.3, 0.0115, 1e-5, 0.04, 0.999999]
    made = replace(table, scores=pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False))
    (gallery,) = result_of(ImagesChapter(), made).galleries
    assert [one.robustness for one in gallery.least] == ["flips 50%", "flips 40%", "flips 30%", "flips 20%"]
    assert [one.robustness for one in gallery.most] == [
        "flips under 0.1%",
        "flips under 1.2%",
        "flips under 4%",
        "undecided",
    ]
    text = text_of(made, chapters=(ImagesChapter(),))
    assert "0.999999" not in text
    assert text.count("most robust first") == 1  # its heading stands with the images, on a phone too
