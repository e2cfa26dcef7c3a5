"""The most fragile predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from brittle.analysis.extremes import ranked
from brittle.estimate import Evidence
from brittle.report import wording
from brittle.report.chapter import Chapter, Text, files_beside
from brittle.report.contents import Contents
from brittle.report.parts import Grid
from brittle.report.thumbnails import embedded
from brittle.report.wording import plural, short, show, small_percent
from brittle.store.columns import Row

MOST_FRAGILE = 20
"""Rows in the table."""

FACES = 12
"""Points shown as images."""

HEAD = ("Row", "Name", "Id", "Label", "Predicted", "p_robust", "Flip probability", "Interval", "Evidence", "Status")

FILES = files_beside(__name__)


@dataclass(frozen=True)
class Face:
    """A fragile point with its image.

    Attributes:
        name: what the data call it.
        image: base64 of a PNG.
        flips: how often noise flips its prediction.
        predicted: the predicted class.
        label: the class that the data say; empty where it is the predicted one, or unknown.
    """

    name: str
    image: str
    flips: str
    predicted: str
    label: str

    @property
    def text(self) -> str:
        """The image in words."""
        kind = (
            f"{self.label}, wrongly predicted as {self.predicted}" if self.label else f"predicted as {self.predicted}"
        )
        return f"{kind}, flips {self.flips}"


@dataclass(frozen=True)
class Fragile:
    """The most fragile points: the first as images where there are any, more as a table, and how they are ordered."""

    faces: tuple[Face, ...]
    grid: Grid
    note: str


class FragileChapter(Chapter[Fragile]):
    """The most fragile predictions."""

    name: ClassVar[str] = "fragile"
    title: ClassVar[str] = "The most fragile predictions"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"
    style: ClassVar[Text] = FILES / "style.css"
    begins_part: ClassVar[bool] = False

    def summarize(self, contents: Contents) -> Fragile | None:
        """The first points by robustness; None where no point has one."""
        order = ranked(contents, contents.chosen)
        if contents.chosen is None or order.empty:
            return None
        words = contents.points.select(["row", "target", "decided"]).to_pandas()
        first = order.head(MOST_FRAGILE).merge(words, on="row", how="left")
        rows = tuple(_row(contents, row) for row in first.to_dict("records"))
        grid = Grid(HEAD, (True, False, False, False, False, True, True, True, False, False), rows)
        ties = contents.ties_text(contents.chosen)
        faces = _faces(contents, order.head(FACES).to_dict("records"))
        note = f"{len(faces) or len(rows)} of {plural(len(order), 'point')}, by {show(contents.chosen.shown)}. {ties}"
        return Fragile(faces, grid, note.strip())


def _faces(contents: Contents, rows: Sequence[Row]) -> tuple[Face, ...]:
    """Those of the points that have an image."""
    images = dict(zip(contents.points["row"].to_pylist(), contents.points["image"].to_pylist(), strict=True))
    faces = (_face(contents, row, embedded(images[row["row"]])) for row in rows)
    return tuple(face for face in faces if face.image)


def _face(contents: Contents, row: Row, image: str) -> Face:
    wrong = row["label"] == row["label"] and row["label"] is not None and row["label"] != row["predicted"]
    return Face(
        name=show(row["name"], 80) if isinstance(row["name"], str) else f"row {row['row']}",
        image=image,
        flips=_flip_text(contents, row) if _is_extrapolated(row) else small_percent(row["flip_probability"]),
        predicted=contents.class_text(row["predicted"]),
        label=contents.class_text(row["label"]) if wrong else "",
    )


def _row(contents: Contents, row: Row) -> tuple[str, ...]:
    return (
        f"{row['row']:,}",
        show(row["name"], 48),
        show(row["point"], 16),
        contents.answer_text(row["label"], row["target"]),
        contents.answer_text(row["predicted"], row["decided"]),
        wording.p_robust(row["flip_probability"], row["high"] if _is_extrapolated(row) else None),
        _flip_text(contents, row),
        wording.flip_interval(row["low"], row["high"]),
        show(row["evidence"]),
        show(row["status"]),
    )


def _flip_text(contents: Contents, row: Row) -> str:
    """A flip probability; where a model alone says it, the bound that it gives."""
    flip = row["flip_probability"]
    if _is_extrapolated(row) and contents.chosen is not None:
        return wording.extrapolated(flip, row["high"], contents.chosen.model)
    return short(flip, 3)


def _is_extrapolated(row: Row) -> bool:
    return row["evidence"] == Evidence.EXTRAPOLATED.slug
