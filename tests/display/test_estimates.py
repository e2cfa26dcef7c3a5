"""An estimate in a notebook and in a terminal: inert, short, with the counts of its fields, for every score."""

from __future__ import annotations

import html
from collections import Counter
from dataclasses import replace

import pytest
import torch
from helpers.inputs import EXAMPLES
from helpers.laws import estimate
from helpers.problems import inputs, small_classifier
from helpers.shown import grids, parsed, short_text
from helpers.tables import HOSTILE

from brittle.estimate import Estimate, Status
from brittle.report.wording import show
from brittle.scores import Score


def made(codes: list[int], value: float = 0.25) -> Estimate:
    """An estimate with these statuses."""
    status = torch.tensor(codes, dtype=torch.int64)
    numbers = torch.where(status < Status.NONFINITE_INPUT, value, torch.nan).double()
    return Estimate(numbers, numbers - 0.125, numbers + 0.125, status, torch.ones_like(status))


def statuses(found: Estimate) -> Counter[str]:
    return Counter(Status(code).slug for code in found.status.tolist())


@pytest.mark.parametrize("score", {type(one): one for one in reversed(EXAMPLES)}.values(), ids=lambda one: one.label)
def test_every_score_is_shown(score: Score) -> None:
    x = inputs(4)
    x[1] = torch.nan
    found = estimate(small_classifier(), x, score)
    shown, truth = found._repr_html_(), statuses(found)
    parsed(shown)
    rows, counts = grids(shown)
    assert {name: int(count) for name, count, _ in counts[1:]} == truth
    assert [row[1] == "–" for row in rows[1:]] == found.value.isnan().tolist()
    said = repr(found)
    assert short_text(said)
    assert all(f"{count} {name}" in said for name, count in truth.items())


@pytest.mark.parametrize("count", [0, 1, 3, 4, 11, 2000])
def test_the_first_points_are_shown_and_the_others_counted(count: int) -> None:
    found = made([0] * count)
    page = parsed(found._repr_html_())
    assert f"Estimate of {count:,} point{'' if count == 1 else 's'}" in page.text
    assert page.text.count("0.125 to 0.375") == min(count, 10)
    assert (f"and {count - 10:,} point" in page.text) == (count > 10)
    said = repr(found)
    assert short_text(said)
    assert said.count("0.25 [0.125, 0.375] ok") == min(count, 3)
    assert (f"and {count - 3:,} more" in said) == (count > 3)


def test_points_without_a_number_have_none() -> None:
    found = made([int(Status.DECODE_ERROR)] * 3)
    assert grids(found._repr_html_())[0][1:] == [
        [str(point), "–", "–", Status.DECODE_ERROR.sentence] for point in range(3)
    ]
    assert repr(found).split("\n  ")[1:] == ["no number: decode_error"] * 3


def test_many_statuses_are_summed_up_in_a_terminal_and_listed_in_a_notebook() -> None:
    found = made([int(one) for one in Status])
    assert f"{len(Status) - 3} others" in repr(found)
    counts = grids(found._repr_html_())[1][1:]
    assert [(name, html.unescape(said)) for name, _, said in counts] == [(one.slug, one.sentence) for one in Status]


def test_infinite_distances_and_statuses_of_another_version() -> None:
    found = made([0, 999], torch.inf)
    assert "Status 999, which this version does not know." in parsed(found._repr_html_()).text
    assert grids(found._repr_html_())[0][1][1] == "∞"
    assert "1 status 999" in repr(found)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_was_found_is_text(text: str) -> None:
    found = replace(made([0]), detail=(text,))
    page = parsed(found._repr_html_())
    assert " ".join(f"Found: {show(text)}"[:100].split()) in page.text


@pytest.mark.parametrize("field", ["value", "low", "status"])
@pytest.mark.parametrize("wrong", [None, 1.0, torch.zeros(()), "<script>"], ids=str)
def test_an_estimate_that_is_none_is_shown_all_the_same(field: str, wrong: object) -> None:
    broken = replace(made([0, 0]), **{field: wrong})
    assert repr(broken).startswith("Estimate whose fields are no tensors")
    assert short_text(repr(broken), 1)
    assert parsed(broken._repr_html_()).text.startswith("Estimate that cannot be read: ")
