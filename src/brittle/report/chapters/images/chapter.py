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
from brittle.report.contents import Contents, ends
from brittle.report.thumbnails import embedded
from brittle.report.wording import fixed, plural, short, show
from brittle.store.columns import Column, Row

MAX_GALLERIES = 12
"""Classes whose images are shown; of more, the least and the most robust."""

PER_SIDE = 5
"""Images per class and side."""

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
    """

    name: str
    image: str
    robustness: str
    predicted: str
    wrong: bool


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
        """A gallery for each class; None where the page does not speak of robustness under noise."""
        if not contents.tells_robustness:
            return None
        bias = contents.bias
        if bias is None:
            return Images((), "No point has both a robustness and a class.")
        kept = sorted(ends(bias.classes["class"].tolist(), MAX_GALLERIES))
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
        robustness=_robustness(row, column),
        predicted=contents.class_text(row["predicted"]),
        wrong=bool(pd.notna(row["label"]) and row["label"] != row["predicted"]),
    )


def _robustness(row: Row, column: Column) -> str:
    """A robustness for a caption: `p 0.873`, or the flip probability where that would round to 1."""
    flip, high = row["flip_probability"], row["high"]
    if row["evidence"] == Evidence.EXTRAPOLATED.slug and flip < wording.NEAR_ONE:
        return wording.extrapolated(flip, high, column.model)
    if flip == 0.0 and high > 0.0:
        return f"flip < {wording.at_most(high)}"
    return f"flip {short(flip)}" if flip < wording.NEAR_ONE else f"p {fixed(1.0 - flip)}"


def _note(contents: Contents, bias: ClassBias, galleries: Sequence[Gallery]) -> str:
    images = any(point.image for gallery in galleries for point in (*gallery.least, *gallery.most))
    left = len(bias.classes) - len(galleries)
    return " ".join(
        part
        for part in (
            f"Read from {show(bias.column.label)}.",
            contents.ties_text(bias.column),
            "" if images else "The run holds no images, so the points are named.",
            f"Shown are the least and the most robust classes; {plural(left, 'class')} between them left out."
            if left
            else "",
        )
        if part
    )
