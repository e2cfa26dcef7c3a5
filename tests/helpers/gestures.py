"""Gestures on the page of a report on a made-up run, and the page's answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from helpers.browser import Opened
from helpers.change_runs import LAPLACIAN
from helpers.tables import make_table, with_score
from playwright.sync_api import Locator

from brittle.extensions.report.render import CHAPTERS, open_contents
from brittle.store.schemas import POINTS as POINTS_SCHEMA
from brittle.store.table import Table

POINTS = 300

ALONE = [*CHAPTERS.values()][:1]
"""The first screen and the points, without the chapters and their figures."""


def run(seed: int) -> Table:
    """Return a made-up run; another `seed` has other noise and other Laplacians at the same points."""
    scores = ("monte_carlo", "softmax", "logit_margin", "input_margin")
    recipe = {"points": POINTS, "scores": scores, "sigmas": (0.1, 0.25), "budgets": (50,), "broken": 4}
    table = make_table(**recipe, seed=seed)
    if seed:
        labels = make_table(**recipe).points.select(["label"]).to_pylist()
        rows = [row | label for row, label in zip(table.points.to_pylist(), labels, strict=True)]
        table = replace(table, points=pa.Table.from_pylist(rows, schema=POINTS_SCHEMA))
    return with_score(table, "laplacian", np.random.default_rng(seed).standard_t(3, POINTS), LAPLACIAN)


def chosen(table: Table) -> str:
    """Return the label of the column that the page shows."""
    column = open_contents(table).chosen
    assert column is not None
    return column.label


def ids(of: pd.DataFrame | pd.Series, mask: Any) -> list[str]:
    """Return the ids of the points in the mask."""
    chosen = np.asarray(mask, dtype=bool)
    return [str(point) for point, is_chosen in zip(of.index.tolist(), chosen, strict=True) if is_chosen]


def count(page: Opened) -> int:
    return int(page.page.locator("#count").inner_text().split(" of ")[0].replace(",", ""))


def saved(page: Opened, button: str) -> str:
    with page.page.expect_download() as waiting:
        page.page.locator(button).click()
    return Path(waiting.value.path()).read_text(encoding="utf-8")


def listed(page: Opened) -> list[str]:
    """Return the ids of the selection, in the order of the list."""
    return saved(page, "#save-ids").split()


def drag(page: Opened, canvas: Locator, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag between two places of a drawing, in shares of its axes."""
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    left_margin, right_margin, top, bottom = 56, 12, 24, 40

    def spot(place: tuple[float, float]) -> tuple[float, float]:
        x = box["x"] + left_margin + place[0] * (box["width"] - left_margin - right_margin)
        return x, box["y"] + box["height"] - bottom - place[1] * (box["height"] - top - bottom)

    page.page.mouse.move(*spot(start))
    page.page.mouse.down()
    page.page.mouse.move(*spot(end), steps=3)
    page.page.mouse.up()
