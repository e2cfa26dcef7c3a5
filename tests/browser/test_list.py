"""The list of points: its order, what is saved of it, and the address that brings it back."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.browser import Opened, opened
from helpers.gestures import drag, ids, listed, saved
from playwright.sync_api import Browser

from brittle.store.table import Table

pytestmark = pytest.mark.xdist_group("browser")


def test_heads_sort_both_ways_and_points_without_a_number_come_last(page: Opened, frame: pd.DataFrame) -> None:
    numbered = pd.Series(frame["flip"]).dropna()
    falling = numbered.sort_values(ascending=False, kind="stable").index.tolist()
    rest = ids(frame, frame["flip"].isna())
    assert listed(page) == falling + rest
    page.page.locator("#head").get_by_role("button", name="Sort by flip probability").click()
    assert listed(page) == numbered.sort_values(kind="stable").index.tolist() + rest
    page.page.locator("#head").get_by_role("button", name="Sort by point").click()
    assert listed(page) == frame.index.tolist()


def test_the_csv_is_the_selection(page: Opened, frame: pd.DataFrame, table: Table) -> None:
    page.page.locator("#overview .groups button", has_text="right, breaks (").click()
    rows = list(csv.DictReader(io.StringIO(saved(page, "#save-csv"))))
    assert [row["point"] for row in rows] == listed(page)
    columns = {column.label: column for column in table.columns}
    for row in rows:
        own = frame.loc[row["point"]]
        assert (row["name"], row["label"], row["state"]) == (own["name"], own["label_name"], own["state"])
        for label, column in columns.items():
            value: float = column.value.to_dict()[row["point"]]
            heading = f"{label}.flip_probability" if column.is_probability else label
            assert row[heading] == "" if np.isnan(value) else float(row[heading]) == value
            assert {heading, f"{label}.low", f"{label}.high", f"{label}.status"} <= set(table.wide().columns)
            assert row[f"{label}.status"] == column.status.to_dict()[row["point"]]


def test_the_address_brings_everything_back(browser: Browser, place: Path, page: Opened) -> None:
    page.page.locator("#overview .groups button", has_text="right, breaks (").click()
    drag(page, page.page.locator("#histogram"), (7.5 / 11, 0.5), (8.5 / 11, 0.5))
    page.page.locator("#limit").fill("0.8")
    page.page.locator("#head").get_by_role("button", name="Sort by label").click()
    page.page.locator("#rows .row").first.click()
    before = listed(page), page.page.locator("#card h3").inner_text()
    with opened(browser, place) as again:
        again.page.goto(place.as_uri() + page.page.evaluate("location.hash"))
        assert (listed(again), again.page.locator("#card h3").inner_text()) == before
        again.page.reload()
        assert (listed(again), again.page.locator("#card h3").inner_text()) == before
        assert again.page.locator("#limit").input_value() == "0.8"
        assert again.said == []
