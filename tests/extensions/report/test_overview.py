"""First screen: its sentences and counts are those of the run, and it comes first."""

from __future__ import annotations

import pytest
from helpers.change_runs import curved_run
from helpers.pages import assert_inert, open_contents, page_of, values_of
from helpers.tables import HOSTILE, make_table

from brittle.analysis.overview import overview
from brittle.analysis.overview_text import how_brittle, how_sure, where
from brittle.extensions.report.chapters.overview import CHAPTER, PICTURED


@pytest.mark.usefixtures("nothing_drawn")
@pytest.mark.parametrize("recipe", [{}, {"labels": False}, {"classes": 2}, {"broken": 5}, {"points": 1}], ids=str)
def test_groups_and_bars_hold_every_point_with_a_number_once(recipe: dict[str, int]) -> None:
    table = make_table(**recipe)
    run, screen = overview(table), values_of(CHAPTER, table)
    rated = run.points - run.without_number
    assert sum(int(group["points"].replace(",", "")) for group in screen["groups"]) == rated
    assert {group["kind"] for group in screen["groups"]} <= ({"no label"} if not run.labelled else {"right", "wrong"})
    for bar in screen["bars"]:
        ends = [start + width for _, _, start, width in bar["parts"]]
        assert ends[-1] == pytest.approx(100.0, abs=0.02)
    if screen["bars"]:
        assert sum(points for bar in screen["bars"] for _, points, _, _ in bar["parts"]) == rated
    assert (screen["brittle"], screen["where"], screen["sure"]) == (how_brittle(run), where(run), how_sure(run))


@pytest.mark.usefixtures("nothing_drawn")
def test_it_comes_first_and_its_bars_have_descriptions() -> None:
    page = page_of(make_table(class_names=HOSTILE[:10]))
    assert_inert(page)
    sections = [attributes["id"] for tag, attributes in page.elements if tag == "section" and "id" in attributes]
    assert sections[:2] == ["overview", "explore"]
    assert sections.index("classes") < sections.index("scored")
    spoken = [
        str(attrs.get("aria-label")) for tag, attrs in page.elements if tag == "svg" and attrs.get("role") == "img"
    ]
    assert sum("holds " in words and "breaks " in words for words in spoken) >= 2


@pytest.mark.parametrize("scores", [("monte_carlo",), ("moments", "input_margin"), ("input_margin",)], ids=str)
def test_pictures_show_the_least_safe_and_most_suspicious_points(
    scores: tuple[str, ...],
) -> None:
    """Every point is at its place; beside its image is that of the nearest counterexample, if the run holds it."""
    table = make_table(points=90, scores=scores, sigmas=(0.1,), budgets=(100,))
    column = table.columns[0]
    safety = column.p_robust if column.is_probability else column.value
    points = table.points.to_pandas().set_index("point").assign(safety=safety).sort_values("safety", kind="stable")
    correct, wrong = points[points["correct"].eq(True)], points[points["correct"].eq(False)].iloc[::-1]
    wrong = wrong.sort_values("label_probability", kind="stable")
    places = {point: place for place, point in enumerate(table.points["point"].to_pylist())}
    pictures = values_of(CHAPTER, table)["pictures"]
    assert len(pictures) == 2
    for kind, expected in zip(pictures, (correct, wrong), strict=True):
        assert [entry["place"] for entry in kind["points"]] == [places[point] for point in expected.index[:PICTURED]]
        assert all(len(entry["images"]) == 1 + ("input_margin" in scores) for entry in kind["points"])
    assert all("labelled" in entry["notes"][0] for entry in pictures[1]["points"])


def test_pictures_need_images_and_two_lists_need_labels() -> None:
    assert values_of(CHAPTER, make_table(images=False))["pictures"] == []
    (picture_list,) = values_of(CHAPTER, make_table(labels=False))["pictures"]
    assert len(picture_list["points"]) == PICTURED


def test_a_run_without_flip_probabilities_has_no_states() -> None:
    screen = values_of(CHAPTER, make_table(points=5, scores=("logit_margin",)))
    assert "No point has a p_robust" in screen["brittle"]
    assert (screen["groups"], screen["bars"], screen["sure"]) == ([], [], "")
    changes, _ = curved_run(points=5)
    assert CHAPTER.summarize(open_contents(changes)) is None
