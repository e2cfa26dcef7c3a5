"""The least and the most robust points of each class, as images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from brittle.analysis.class_bias import ClassBias
from brittle.analysis.extremes import extremes
from brittle.estimate import Evidence
from brittle.report import wording
from brittle.report.chapter import Chapter, Text, files_beside
from brittle.report.contents import Contents, extreme_classes
from brittle.report.thumbnails import embedded
from brittle.report.wording import plural, show, small_percent
from brittle.store.columns import Column, Row

MAX_GALLERIES = 12
"""Classes whose images are shown; of more, the least and the most robust."""

PER_SIDE = 5
"""Images per class and side."""

OPEN = 0.95
"""Upper end of an interval from which on it says nothing of a point."""

FILES = files_beside(__name__)


@dataclass(frozen=True)
class Portrait:
    """A point with its image.

    Attributes:
        name: what the data call it.
        image: base64 of a PNG, or empty.
        robustness: its robustness in short.
        predicted: the predicted class.
        wrong: whether the label is known and is another class.
        own: the class that the point belongs to.
    """

    name: str
    image: str
    robustness: str
    predicted: str
    wrong: bool
    own: str

    @property
    def text(self) -> str:
        """The image in words."""
        kind = f"{self.own}, predicted as {self.predicted}" if self.wrong else self.predicted
        return f"{kind}, {self.robustness}"


@dataclass(frozen=True)
class Gallery:
    """The least and the most robust points of a class, the extreme one first."""

    name: str
    least: tuple[Portrait, ...]
    most: tuple[Portrait, ...]


@dataclass(frozen=True)
class Images:
    """The least and the most robust points of each class, and what is shown of them."""

    galleries: tuple[Gallery, ...]
    note: str


class ImagesChapter(Chapter[Images]):
    """The least and the most robust points of each class."""

    name: ClassVar[str] = "images"
    title: ClassVar[str] = "The least and the most robust points of each class"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"
    style: ClassVar[Text] = FILES / "style.css"
    begins_part: ClassVar[bool] = False

    def summarize(self, contents: Contents) -> Images | None:
        """A gallery for each class; None where no point has both a robustness and a class."""
        bias = contents.bias
        if bias is None:
            return None
        kept = sorted(extreme_classes(bias, MAX_GALLERIES))
        points = extremes(contents, PER_SIDE, bias.column).to_dict("records")
        images = dict(zip(contents.points["row"].to_pylist(), contents.points["image"].to_pylist(), strict=True))
        galleries = tuple(_gallery(contents, number, points, images, bias.column) for number in kept)
        return Images(galleries, _note(contents, bias, galleries))


def _gallery(
    contents: Contents, number: int, points: list[Any], images: dict[int, bytes | None], column: Column
) -> Gallery:
    of_class = [row for row in points if row["class"] == number]
    least, most = (
        tuple(_portrait(contents, row, images, column) for row in of_class if row["side"] == side)
        for side in ("least", "most")
    )
    return Gallery(contents.class_text(number), least, most)


def _portrait(contents: Contents, row: Row, images: dict[int, bytes | None], column: Column) -> Portrait:
    return Portrait(
        name=show(row["name"], 80) if isinstance(row["name"], str) else f"row {row['row']}",
        image=embedded(images[row["row"]]),
        robustness=_surely(row) if row["side"] == "most" else _robustness(row, column),
        predicted=contents.class_text(row["predicted"]),
        wrong=bool(pd.notna(row["label"]) and row["label"] != row["predicted"]),
        own=contents.class_text(row["class"]),
    )


def _robustness(row: Row, column: Column) -> str:
    """How often the prediction flips, for a caption."""
    flip, high = row["flip_probability"], row["high"]
    if row["evidence"] == Evidence.EXTRAPOLATED.slug and flip < wording.NEAR_ONE:
        return f"flips: {wording.extrapolated(flip, high, column.model)}"
    return f"flips {small_percent(flip)}" if flip > 0.0 else _surely(row)


def _surely(row: Row) -> str:
    """The upper end of how often the prediction flips, by which the most robust points are ordered."""
    high = row["high"]
    if high != high:
        return f"flips {small_percent(row['flip_probability'])}"
    return f"flips {wording.under(high)}" if high < OPEN else "undecided"


def _note(contents: Contents, bias: ClassBias, galleries: Sequence[Gallery]) -> str:
    images = any(point.image for gallery in galleries for point in (*gallery.least, *gallery.most))
    left = len(bias.classes) - len(galleries)
    return " ".join(
        part
        for part in (
            f"Read from {show(bias.column.shown)}. The most robust are ordered by the upper end of their interval, "
            "which stands below them.",
            contents.ties_text(bias.column),
            "" if images else "The run holds no images, so the points are named.",
            f"Shown are the least and the most robust classes; {plural(left, 'class')} between them left out."
            if left
            else "",
        )
        if part
    )
