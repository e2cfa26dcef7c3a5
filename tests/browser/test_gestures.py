"""What follows from a gesture: every number on the page is the table's own, counted here by pandas."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from helpers.browser import Opened, opened
from helpers.change_tables import LAPLACIAN, with_score
from helpers.known_groups import BREAK, HOLD, OPEN, counted, made
from helpers.pages import text_of
from helpers.tables import make_table, with_value
from playwright.sync_api import Browser, Locator

from brittle.analysis.overview import overview
from brittle.analysis.overview_text import how_brittle, how_sure, next_steps
from brittle.report import CHAPTERS, open_contents
from brittle.store.schemas import POINTS as POINTS_SCHEMA
from brittle.store.table import Table

pytestmark = pytest.mark.xdist_group("browser")

POINTS = 300
ALONE = CHAPTERS[:1]
"""The first screen and the points, without the chapters and their figures."""


def run(seed: int) -> Table:
    """A made-up run; another `seed` has other noise and other Laplacians at the same points."""
    scores = ("monte_carlo", "softmax", "logit_margin", "input_margin")
    recipe = {"points": POINTS, "scores": scores, "sigmas": (0.1, 0.25), "budgets": (50,), "broken": 4}
    table = make_table(**recipe, seed=seed)
    if seed:
        labels = make_table(**recipe).points.select(["label"]).to_pylist()
        rows = [row | label for row, label in zip(table.points.to_pylist(), labels, strict=True)]
        table = replace(table, points=pa.Table.from_pylist(rows, schema=POINTS_SCHEMA))
    return with_score(table, "laplacian", np.random.default_rng(seed).standard_t(3, POINTS), LAPLACIAN)


@pytest.fixture(scope="module")
def table() -> Table:
    return run(0)


@pytest.fixture(scope="module")
def place(table: Table, written: Callable[[str], Path]) -> Path:
    return written(text_of(table, chapters=ALONE))


@pytest.fixture
def page(browser: Browser, place: Path) -> Iterator[Opened]:
    with opened(browser, place) as found:
        yield found
        assert found.said == []
        assert found.asked == []


@pytest.fixture(scope="module")
def frame(table: Table) -> pd.DataFrame:
    """Every point with what the page should say of it."""
    points = table.points.to_pandas().set_index("point")
    column = next(one for one in table.columns if one.label == chosen(table))
    kind = points["correct"].map({True: "right", False: "wrong"}).fillna("no label")
    names = table.record.data.class_names or ()
    return points.assign(
        kind=kind,
        state=column.states(0.9).fillna("failed"),
        flip=column.value,
        label_name=[names[int(one)] if one == one and one is not None else "" for one in points["label"]],
        margin=next(one for one in table.columns if one.score == "logit_margin").value,
    )


def chosen(table: Table) -> str:
    """The label of the column that the page speaks of."""
    column = open_contents(table).chosen
    assert column is not None
    return column.label


def ids(of: pd.DataFrame | pd.Series, wanted: Any) -> list[str]:
    """The points of which something is so."""
    chosen = np.asarray(wanted, dtype=bool)
    return [str(point) for point, one in zip(of.index.tolist(), chosen, strict=True) if one]


def count(page: Opened) -> int:
    return int(page.page.locator("#count").inner_text().split(" of ")[0].replace(",", ""))


def press(page: Opened, text: str, within: str = "body") -> None:
    page.page.locator(within).get_by_role("button", name=text).first.click()


def saved(page: Opened, button: str) -> str:
    with page.page.expect_download() as waiting:
        page.page.locator(button).click()
    return Path(waiting.value.path()).read_text(encoding="utf-8")


def listed(page: Opened) -> list[str]:
    """The ids of the selection, in the order of the list."""
    return saved(page, "#save-ids").split()


def drag(page: Opened, canvas: Locator, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag between two places of a drawing, given from 0 to 1 between its axes."""
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    left, right, top, bottom = 56, 12, 24, 40

    def spot(place: tuple[float, float]) -> tuple[float, float]:
        x = box["x"] + left + place[0] * (box["width"] - left - right)
        return x, box["y"] + box["height"] - bottom - place[1] * (box["height"] - top - bottom)

    page.page.mouse.move(*spot(start))
    page.page.mouse.down()
    page.page.mouse.move(*spot(end), steps=3)
    page.page.mouse.up()


@pytest.mark.parametrize("kind", ["right", "wrong"])
@pytest.mark.parametrize("state", ["holds", "undecided", "breaks"])
def test_a_group_selects_its_points(page: Opened, frame: pd.DataFrame, kind: str, state: str) -> None:
    own = frame[(frame["kind"] == kind) & (frame["state"] == state)]
    button = page.page.locator("#overview .groups button", has_text=f"{kind}, {state} (")
    assert button.inner_text().endswith(f"({len(own):,})")
    button.click()
    assert count(page) == len(own)
    assert set(listed(page)) == set(own.index)
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert count(page) == POINTS


def test_a_class_selects_its_points_and_a_filter_is_taken_away(page: Opened, frame: pd.DataFrame) -> None:
    press(page, "deer", "#overview .bars")
    assert set(listed(page)) == set(ids(frame, frame["label_name"] == "deer"))
    press(page, "deer", "#filters")
    assert count(page) == POINTS


def test_groups_and_classes_are_selected_together(page: Opened, frame: pd.DataFrame) -> None:
    page.page.locator("#overview .groups button", has_text="right, breaks (").click()
    press(page, "cat", "#overview .bars")
    own = frame[(frame["label_name"] == "cat") & (frame["kind"] == "right") & (frame["state"] == "breaks")]
    assert set(listed(page)) == set(own.index)
    page.page.locator("#clear").click()
    assert count(page) == POINTS


def test_a_drag_over_the_histogram_selects_its_bins(page: Opened, frame: pd.DataFrame) -> None:
    """The scale has eleven bins of equal width; the last five begin at 10%."""
    drag(page, page.page.locator("#histogram"), (6.5 / 11, 0.5), (10.5 / 11, 0.5))
    assert set(listed(page)) == set(ids(frame, frame["flip"] >= 0.1))
    drag(page, page.page.locator("#histogram"), (6.5 / 11, 0.5), (10.5 / 11, 0.5))
    assert count(page) == POINTS
    drag(page, page.page.locator("#histogram"), (0.5 / 11, 0.5), (5.5 / 11, 0.5))
    assert set(listed(page)) == set(ids(frame, frame["flip"] < 0.1))


def test_a_drag_over_the_plot_selects_a_rectangle(page: Opened, frame: pd.DataFrame, table: Table) -> None:
    drag(page, page.page.locator("#scatter"), (-0.05, 6.5 / 11), (1.05, 1.05))
    softmax = next(one for one in table.columns if one.score == "softmax").value
    low = 0.1 + 0.5 * (0.25 - 0.1)
    ends = frame["flip"] >= low - 0.01, frame["flip"] >= low + 0.01  # within a pixel
    found, known = set(listed(page)), softmax.notna()
    assert set(ids(frame, ends[1] & known)) <= found <= set(ids(frame, ends[0] & known))
    assert 0 < len(found) < POINTS


def test_a_click_in_the_plot_opens_the_nearest_point(page: Opened, frame: pd.DataFrame, table: Table) -> None:
    """At the place of a point that stands alone; both axes give every edge of the tail the same room."""
    edges = [0, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1]
    doubt = next(one for one in table.columns if one.score == "softmax").value
    across, up = (np.interp(one, edges, np.linspace(0, 1, len(edges))) for one in (doubt, frame["flip"]))
    spots = np.stack([1 - across, up], axis=1)
    apart = np.linalg.norm(spots[:, None] - spots[None], axis=2) + np.eye(POINTS)
    apart[np.isnan(apart)] = 1.0
    lonely = np.where(np.isnan(spots).any(axis=1), 0.0, apart.min(axis=1))
    point = int(lonely.argmax())
    assert lonely[point] > 0.03
    drag(page, page.page.locator("#scatter"), tuple(spots[point]), tuple(spots[point]))
    assert page.page.locator("#card h3").inner_text() == frame["name"].iloc[point]


def test_words_find_names_classes_and_ids(page: Opened, frame: pd.DataFrame) -> None:
    page.page.locator("#find").fill("DEER")
    page.page.locator("#filters li").wait_for()
    names = dict(enumerate(run(0).record.data.class_names or ()))
    predicted = frame["predicted"].map(lambda one: names.get(int(one), "") if one == one else "")
    assert set(listed(page)) == set(ids(frame, (frame["label_name"] == "deer") | (predicted == "deer")))


def test_numbers_filter_by_any_score(page: Opened, frame: pd.DataFrame) -> None:
    fields = page.page.locator("#filter-by")
    fields.select_option(label="Logit margin")
    middle = float(np.nanmedian(frame["margin"]))
    page.page.locator("#from").fill(str(middle))
    page.page.locator("#from").press("Enter")
    values = frame["margin"]
    assert set(listed(page)) == set(ids(frame, values >= middle))
    page.page.locator("#to").fill(str(2 * middle))
    page.page.locator("#to").press("Enter")
    assert set(listed(page)) == set(ids(frame, (values >= middle) & (values <= 2 * middle)))


@pytest.mark.parametrize("limit", [0.5, 0.99])
def test_another_limit_judges_every_point_again(page: Opened, table: Table, limit: float) -> None:
    page.page.locator("#limit").fill(str(limit))
    states = next(one for one in table.columns if one.label == chosen(table)).states(limit).dropna()
    text = page.page.locator("#overview .lead").inner_text()
    held = int((states == "holds").sum())
    assert f"{held:,} of {len(states):,} predictions" in text
    assert f"{(states == 'breaks').sum():,} break" in text
    step = page.page.locator("#overview .steps li", has_text="draw more noise")
    open_ones = int((states == "undecided").sum())
    assert step.is_visible() == (open_ones > 0)
    if open_ones:
        assert step.locator("p").inner_text().startswith(f"{open_ones:,} ")
        assert f"--limit {limit}" in step.locator("code").inner_text()
        press(page, "Show them", "#overview .steps li:first-child")
        assert set(listed(page)) == set(ids(states, states == "undecided"))


def test_another_score_and_noise_level_is_spoken_of(page: Opened, table: Table) -> None:
    column = next(one for one in table.columns if one.score == "monte_carlo" and one.label != chosen(table))
    page.page.locator("#by").select_option(label=f"flip probability, Monte Carlo, {column.setting}")
    states = column.states(0.9).dropna()
    assert f"{(states == 'holds').sum():,} of {len(states):,} predictions" in page.page.locator(".lead").inner_text()
    order = pd.Series(column.value).dropna().sort_values(ascending=False, kind="stable")
    assert listed(page)[: len(order)] == order.index.tolist()


def test_the_confidence_of_the_network_holds_and_breaks_no_point(page: Opened, table: Table) -> None:
    (own,) = (one for one in table.columns if one.score == "softmax")
    page.page.locator("#by").select_option(label="confidence, by softmax")
    assert page.page.locator(".lead").inner_text() == how_brittle(overview(table, column=own))
    assert page.page.locator("#overview .sure").inner_text() == ""
    counts = page.page.locator("#overview .groups button").all_inner_texts()
    assert counts
    assert all(text.endswith("(0)") for text in counts)
    rows = csv.DictReader(io.StringIO(saved(page, "#save-csv")))
    assert {row["state"] for row in rows} <= {"", "failed"}


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


def test_a_card_says_what_the_table_says(page: Opened, table: Table) -> None:
    page.page.locator("#rows .row").nth(2).click()
    name = page.page.locator("#card h3").inner_text()
    point = next(row["point"] for row in table.points.to_pylist() if row["name"] == name)
    rows = {row[0]: row for row in page.page.locator("#card tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.children].map((cell) => cell.innerText))"
    )}  # fmt: skip
    margin = next(one for one in table.columns if one.score == "logit_margin")
    assert float(rows["Logit margin"][1].replace("−", "-")) == pytest.approx(margin.value.to_dict()[point], rel=5e-3)
    rank = int((margin.value < margin.value.to_dict()[point]).sum()) + 1
    assert rows["Logit margin"][3] == f"{rank} of {margin.value.notna().sum()}"
    assert page.page.locator("#card figure canvas").count() >= 1


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


@pytest.mark.parametrize(
    "address",
    ["#by=99&point=-1&limit=2", "#range=s0:a:b&class=zz", "#sort=__proto__&across=toString", "#%", "#by=&point=1e999"],
)
def test_an_address_that_says_nothing_is_passed_over(browser: Browser, place: Path, address: str) -> None:
    with opened(browser, place) as page:
        page.page.goto(place.as_uri() + address)
        page.page.reload()
        assert count(page) == POINTS
        assert page.said == []


def test_keys_alone_go_from_the_top_to_a_card_and_back(page: Opened) -> None:
    for _ in range(80):
        page.page.keyboard.press("Tab")
        if page.page.evaluate("document.activeElement.id") == "rows":
            break
    assert page.page.evaluate("document.activeElement.id") == "rows"
    names = [page.page.locator("#rows .row .name").nth(place).inner_text() for place in range(3)]
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("ArrowDown")
    assert page.page.locator("#card h3").inner_text() == names[1]
    page.page.keyboard.press("End")
    page.page.keyboard.press("ArrowDown")
    assert page.page.locator("#card .walk").inner_text().split(" of ")[0].split()[-1] == str(POINTS)
    page.page.keyboard.press("Home")
    page.page.keyboard.press("Enter")
    assert page.page.evaluate("document.activeElement.id") == "card"
    assert page.page.locator("#card h3").inner_text() == names[0]
    page.page.keyboard.press("Escape")
    assert page.page.evaluate("document.activeElement.id") == "rows"


def test_notes_are_kept_found_and_saved(browser: Browser, place: Path, page: Opened) -> None:
    page.page.locator("#rows .row").first.click()
    page.page.locator("#tags").fill("odd, =SUM(A1)")
    page.page.locator("#note").fill("look\nagain")
    point = page.page.locator("#rows .row").first.get_attribute("id")
    page.page.reload()
    page.page.locator("#find").fill("odd")
    page.page.locator("#filters li").wait_for()
    assert count(page) == 1
    assert page.page.locator("#rows .row").first.get_attribute("id") == point
    (row,) = csv.DictReader(io.StringIO(saved(page, "#save-csv")))
    assert (row["tags"], row["note"]) == ("odd, =SUM(A1)", "look\nagain")


def test_another_run_is_switched_to_and_what_changed_is_selected(
    browser: Browser, table: Table, written: Callable[[str], Path]
) -> None:
    other = run(1)
    with opened(browser, written(text_of(table, against={"B": other}, chapters=ALONE))) as page:
        page.page.locator("#run").select_option(label="B")
        label = chosen(table)
        mine, theirs = (next(one for one in each.columns if one.label == label).states(0.9) for each in (table, other))
        for name, before, after in (("held, now breaks", "holds", "breaks"), ("broke, now holds", "breaks", "holds")):
            own = set(ids(mine, (mine == before) & (theirs.reindex(mine.index) == after)))
            press(page, name, "#changes")
            assert set(listed(page)) == own, name
            press(page, name, "#changes")
        assert page.said == []


def test_the_nearest_other_inputs_of_this_run_are_not_given_to_another(
    browser: Browser, table: Table, written: Callable[[str], Path]
) -> None:
    found = table.points["point"].to_pylist().index(table.counterexamples["point"][0].as_py())
    place = written(text_of(table, against={"B": run(1)}))
    with opened(browser, place) as page:
        page.page.goto(f"{place.as_uri()}#point={found}")
        page.page.reload()
        card = page.page.locator("#card")
        assert " there)" in card.inner_text()
        page.page.locator("#run").select_option(label="B")
        assert "Input margin" in card.inner_text()
        assert " there)" not in card.inner_text()
        assert card.locator(".pictures figure").count() <= 1


ODD: dict[str, Callable[[], Table]] = {
    "one point": lambda: made([HOLD]),
    "one class": lambda: made([HOLD, BREAK, OPEN, OPEN], [True, False, True, False]),
    "no labels": lambda: made([HOLD, BREAK, OPEN], [None, None, None]),
    "all failed": lambda: made([None, None]),
    "every group": lambda: made([HOLD, BREAK, OPEN, None] * 30, [True] * 60 + [False] * 60, [*range(10)] * 12),
    "a model's word": lambda: made([HOLD, BREAK] * 40, evidence="modelled"),
    "chosen points": lambda: picked(made([HOLD, BREAK, OPEN], [True, False, True])),
    "confidence alone": lambda: make_table(points=20, scores=("softmax",)),
    "too few copies": lambda: counted([20] * 4, [0, 1, 9, 20]),
    "copies as needed": lambda: counted([60, 60, 200, 200, 60], [0, 0, 0, 10, 40]),
}


def picked(table: Table) -> Table:
    """The same points, chosen from more."""
    return replace(table, record=replace(table.record, data=replace(table.record.data, chosen_from=1000)))


@pytest.mark.parametrize("name", ODD)
def test_the_first_screen_says_what_the_analysis_says(
    browser: Browser, written: Callable[[str], Path], name: str
) -> None:
    """At its own limit it is the static text; at another one the script's, which shares no code with the analysis."""
    table = ODD[name]()
    with opened(browser, written(text_of(table, chapters=ALONE))) as page:
        lead = page.page.locator("#overview .lead")
        sure = page.page.locator("#overview .sure")
        assert lead.inner_text() == how_brittle(overview(table))
        if page.page.locator("#limit").count():
            for limit in (0.7, 0.97, 0.999):
                page.page.locator("#limit").fill(str(limit))
                assert lead.inner_text() == how_brittle(overview(table, limit=limit))
                assert (sure.inner_text() if sure.count() else "") == how_sure(overview(table, limit=limit))
                commands = {step.text: step.command for step in next_steps(overview(table, limit=limit))}
                for step in page.page.locator("#overview .steps li:visible").all():
                    written_command = commands.get(step.locator("p").inner_text(), "detector")
                    assert step.locator("code").inner_text() == written_command or "detector" in written_command
                steps = [step.text for step in next_steps(overview(table, limit=limit)) if "detector" not in step.text]
                seen = page.page.locator("#overview .steps li:visible p").all_inner_texts()
                assert [one for one in seen if "detector" not in one] == [one for one in steps if one in seen]
        if name == "every group":
            page.page.locator("#overview .steps li", has_text="without a number").get_by_role("button").click()
            assert count(page) == 30
        assert page.said == []


def saturated() -> Table:
    """Flip probabilities that 1 minus them does not tell apart, and per cents that a division does not reach."""
    table = make_table(points=12, scores=("softmax", "monte_carlo"), sigmas=(0.1,), budgets=(50,))
    labels = {column.score: column.label for column in table.columns}
    table = with_value(table, labels["softmax"], [10.0 ** -(one + 9) for one in range(12)])
    return with_value(table, labels["monte_carlo"], [one / 1000 for one in range(1, 13)])


def test_what_rounds_to_one_is_ranked_and_filtered_as_it_is(browser: Browser, written: Callable[[str], Path]) -> None:
    table = saturated()
    with opened(browser, written(text_of(table, chapters=ALONE))) as page:
        page.page.locator("#filter-by").select_option(label="flip probability, Monte Carlo, sigma 0.1")
        for end in ("0.7", "0.3", "1.1"):
            page.page.locator("#to").fill(end)
            page.page.locator("#to").press("Enter")
            assert count(page) == round(10 * float(end)), end
        page.page.locator("#clear").click()
        page.page.locator("#head").get_by_role("button", name="Sort by confidence").click()
        assert listed(page) == table.points["point"].to_pylist()
        page.page.locator("#rows .row").nth(5).click()
        cells = page.page.locator("#card tbody tr", has_text="confidence").locator("td").all_inner_texts()
        assert (cells[0], cells[2]) == ("over 99.9999%", "6 of 12")
        assert page.said == []


def test_a_class_is_that_of_the_labels_where_there_are_any(browser: Browser, written: Callable[[str], Path]) -> None:
    table = made([HOLD, BREAK, OPEN] * 10, [True, None, False] * 10, [*range(10)] * 3)
    with opened(browser, written(text_of(table, chapters=ALONE))) as page:
        rows = page.page.locator("#overview .bars tbody tr").evaluate_all(
            "(rows) => rows.map((row) => [row.children[0].innerText, row.children[2].innerText])"
        )
        own = overview(table).classes
        known = {
            row["name"]: f"{row['holds']} · {row['undecided']} · {row['breaks']}" for row in own.to_dict("records")
        }
        assert dict(rows) == known


def test_what_a_run_lacks_is_not_offered(page: Opened) -> None:
    for hidden in ("#run", "#changes", "#clear", "#dragged"):
        assert not page.page.locator(hidden).is_visible(), hidden


def test_the_list_shows_every_point_when_it_is_scrolled(page: Opened) -> None:
    seen = set()
    for _ in range(30):
        seen |= set(page.page.locator("#rows .row").evaluate_all("(rows) => rows.map((row) => row.id)"))
        page.page.locator("#rows").evaluate("(box) => { box.scrollTop += box.clientHeight; }")
        page.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert len(seen) == POINTS
