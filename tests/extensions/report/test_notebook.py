"""Reports in an inert frame of a notebook, and tables in a few readable lines."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from helpers.pages import Page
from helpers.tables import HOSTILE, make_table, with_model, with_scores

import brittle
from brittle.analysis.overview import overview
from brittle.analysis.overview_text import how_brittle
from brittle.errors import ParameterError, StorageError
from brittle.extensions.report.notebook import ReportPage
from brittle.extensions.report.wording import show
from brittle.store.table import Table

SMALL = {"scores": ("moments", "monte_carlo", "logit_margin"), "sigmas": (0.1,), "budgets": (100,), "images": False}

RECIPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "no point": {"points": 0},
    "one point": {"points": 1},
    "all failed": {"broken": 60},
    "no score": {"scores": ()},
    "no noise": {"scores": ("logit_margin", "entropy")},
    "many columns": {"scores": ("moments", "mmse", "taylor"), "sigmas": (0.05, 0.1, 0.2), "budgets": (10, 20, 40)},
}


def is_short(text: str, limit: int = 5) -> bool:
    """Return whether the text is a few lines of readable characters."""
    lines = text.split("\n")
    return len(lines) <= limit and all(line.isprintable() and len(line) < 240 for line in lines)


every_recipe = pytest.mark.parametrize("recipe", RECIPES.values(), ids=[*RECIPES])


def make_small(recipe: dict[str, Any]) -> Table:
    return make_table(**SMALL | recipe)


@every_recipe
def test_a_table_is_short_and_has_the_sentence_of_the_overview(recipe: dict[str, Any]) -> None:
    table = make_small(recipe)
    text = repr(table)
    assert how_brittle(overview(table)) in text or not len(table.points)
    assert is_short(text, 3)
    count, columns = len(table.points), len(table.record.scores)
    plural = "" if count == 1 else "s"
    assert text.startswith(f"Table of {count} point{plural} and {columns} column")
    assert "models:cnn on cifar10-test.npz (test)" in text


@pytest.mark.parametrize("start", range(0, len(HOSTILE), 8))
def test_text_from_a_user_is_text(start: int) -> None:
    """Names of the model, the data, the split, the classes and the columns."""
    texts = [HOSTILE[(start + step) % len(HOSTILE)] for step in range(4)]
    table = with_model(make_small({"classes": 2}), spec=f"x/{texts[0]}")
    data = replace(table.record.data, path=f"/data/{texts[1]}", split=texts[2], class_names=(texts[3], texts[0]))
    scores = [replace(entry, label=texts[number]) for number, entry in enumerate(table.record.scores)]
    hostile = with_scores(replace(table, record=replace(table.record, data=data)), scores)
    assert show(texts[2], 40) in repr(hostile)
    assert is_short(repr(hostile))


@pytest.mark.parametrize(
    "change", [{"points": pa.table({})}, {"scores": pa.table({"value": [1.0]})}, {"record": None}], ids=str
)
def test_a_broken_table_is_still_shown(change: dict[str, Any]) -> None:
    broken = replace(make_small({}), **change)
    assert repr(broken).startswith("Table that cannot be read: ")
    assert is_short(repr(broken), 1)


def test_columns_are_named_by_their_differences() -> None:
    """Also where the difference is at the end of a long name."""
    line = repr(make_table(points=9, scores=("shrinkage",), sigmas=(0.125, 0.25), budgets=(10,))).splitlines()[-1]
    assert line == "  columns: shrinkage[sigma=0.125], shrinkage[sigma=0.25]"
    noises = [f"a_noise_with_a_name_that_is_long_{number}" for number in range(3)]
    table = make_small({})
    score = table.record.scores[0]
    records = [replace(score, label=f"{score.score}({name})", parameters={"noise": name}) for name in noises]
    names = repr(replace(table, record=replace(table.record, scores=tuple(records)))).splitlines()[-1].split(", ")
    assert len(set(names)) == 3
    assert max(map(len, names)) < 60


@pytest.fixture
def page(nothing_drawn: None) -> Table:
    run = make_table(points=12, scores=("monte_carlo", "logit_margin"), sigmas=(0.1,), budgets=(100,), images=False)
    return with_model(run, spec=f"models:{HOSTILE[0]}")


def frame(page: ReportPage) -> dict[str, str | None]:
    """Return the attributes of the frame, the only element."""
    parsed = Page(page._repr_html_())
    ((tag, attributes),) = parsed.elements
    assert (tag, parsed.text, parsed.open, parsed.unbalanced) == ("iframe", "", [], [])
    return attributes


def test_the_frame_holds_the_written_page_without_rights(page: Table, tmp_path: Path) -> None:
    report = page.report(tmp_path / "report.html", height=300)
    written = (tmp_path / "report.html").read_text(encoding="utf-8")
    attributes = frame(report)
    assert report.html == written
    assert (attributes["srcdoc"] or "").replace('href="about:srcdoc#', 'href="#') == written
    assert attributes["height"] == "300"
    assert set((attributes["sandbox"] or "").split()) == {"allow-scripts", "allow-downloads"}
    assert set(attributes) == {"title", "width", "height", "style", "sandbox", "srcdoc"}
    assert "Content-Security-Policy" in written


def test_links_within_the_page_stay_in_the_frame() -> None:
    """An address that is a fragment alone would be one of the notebook."""
    html = '<a class="x" href="#here">a</a> <a href="data:,">b</a> <use href="#shape"/> href="#text'
    source = frame(ReportPage(html))["srcdoc"] or ""
    assert re.findall(r'href="([^"]*)', source) == ["about:srcdoc#here", "data:,", "#shape", "#text"]
    code = f"<style>{html}</style><script>{html}</script>"
    assert frame(ReportPage(code))["srcdoc"] == code
    assert repr(ReportPage(html)).startswith("Report, 0.0 MB")


def test_a_saved_run_gives_the_same_page(page: Table, tmp_path: Path) -> None:
    report = page.report()
    assert '.save("report.html")' in repr(report)
    assert report.save(tmp_path / "report.html").read_text(encoding="utf-8") == report.html
    with pytest.raises(StorageError, match="unwritable"):
        report.save(tmp_path / "none" / "report.html")
    page.save(tmp_path / "run")
    reread = brittle.read_table(tmp_path / "run")
    assert reread.report(against={"b": page}) == page.report(against={"b": reread})


def test_the_top_of_a_table_is_its_least_robust_points(page: Table) -> None:
    frame, top = page.frame(), page.top(5)
    assert list(top["p_robust"]) == sorted(frame["p_robust"])[:5]
    assert list(page.top(3, by="logit_margin")["logit_margin"]) == sorted(frame["logit_margin"])[:3]


def test_a_notebook_shows_the_images_of_the_top() -> None:
    """Also of a part of it, beside text that is escaped; where there are none it is a frame as any other."""
    table = make_table(points=30, scores=("moments",), images=True)
    name = "<b>\u202e</b>"
    points = table.points.set_column(
        table.points.column_names.index("name"), "name", pa.array([name] * 30, table.points.schema.field("name").type)
    )
    top = replace(table, points=points).top(5)
    for rows, count in ((top, 5), (top.head(2), 2), (top[top["p_robust"] < 2], 5)):
        html: Any = rows._repr_html_()  # pyright: ignore[reportCallIssue]
        images = dict(zip(table.points["point"].to_pylist(), table.points["image"].to_pylist(), strict=True))
        pngs = [base64.b64decode(image) for image in re.findall(r"data:image/png;base64,([^\"]+)", html)]
        assert pngs == [images[point] for point in rows["point"]]
        assert len(pngs) == count
        assert "<b>" not in html
        assert "\u202e" not in html
    assert "<img" not in str(top[["p_robust"]]._repr_html_())  # pyright: ignore[reportCallIssue]
    for wide in (pd.concat([top, top], axis=1), top.assign(image=1)):
        assert "image/png" not in str(wide._repr_html_())  # pyright: ignore[reportCallIssue]
    assert "<script" not in str(top.rename(columns={"p_robust": "<script>"})._repr_html_())  # pyright: ignore[reportCallIssue]
    assert len(table.top(0)) == 0
    assert type(make_table(points=9, scores=("moments",), images=False).top(5)) is pd.DataFrame


def test_refusals(page: Table, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="read_table"):
        page.report(against={"b": str(tmp_path)})  # pyright: ignore[reportArgumentType] that is the mistake
    for height in (0, -1, 2.5, True, "300"):
        with pytest.raises(ParameterError, match="height"):
            page.report(height=height)  # pyright: ignore[reportArgumentType] that is the mistake
    with pytest.raises(ParameterError, match="epsilon"):
        page.report(epsilon=-1.0)
