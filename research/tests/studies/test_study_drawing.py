"""Pictures of the studies are legible on a phone, in the dark, and with more data sets than there are colours."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
from helpers.colours import contrast

from brittle.extensions.report.charts import INK, MUTED
from studies.drawing import COLOURS, DARK, GROUND, by_data
from studies.pages import DOCS

PHONE = 358
"""Pixels between the margins of a page on a phone that is 390 wide."""


@pytest.mark.parametrize("turned", [{}, DARK], ids=["light", "dark"])
def test_marks_and_words_stand_out_from_the_ground(turned: dict[str, str]) -> None:
    against = {
        colour: contrast(turned.get(colour, colour), turned.get(GROUND, GROUND)) for colour in (*COLOURS, INK, MUTED)
    }
    assert min(against.values()) >= 3
    assert min(against[INK], against[MUTED]) >= 4.5


@pytest.mark.parametrize("path", sorted((DOCS / "images" / "studies").glob("*.svg")), ids=lambda path: path.stem)
def test_words_are_legible_on_a_phone_and_turn_in_the_dark(path: Path) -> None:
    picture = ElementTree.parse(path).getroot()
    words = [word for word in picture.findall(".//{*}text") if word.text]
    size = min(float(word.get("font-size", picture.get("font-size", "")).removesuffix("px")) for word in words)
    assert size * min(1, PHONE / float(picture.attrib["width"])) >= 9
    assert {word.get("fill") for word in words} <= {*DARK}


def scale_of(names: list[str]) -> dict[str, Any]:
    """Return the colours of data sets."""
    encoding: Any = by_data(pd.DataFrame({"dataset": names})).to_dict()
    return encoding["scale"]


def test_a_data_set_has_one_colour_however_many_there_are() -> None:
    names = [f"data {place:02}" for place in range(3 * len(COLOURS))]
    repeated, single = (scale_of(chosen) for chosen in (names, names[:1]))
    assert len(repeated["range"]) == len(names)
    assert repeated["range"][:1] == single["range"]
