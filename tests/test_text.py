"""Plain text: columns line up whatever the cells hold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brittle.errors import ParameterError
from brittle.text import aligned, by_number, number, parse_epsilon, share_of, verb_of, with_interval


@settings(max_examples=40)
@given(st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9), st.text(max_size=9)), min_size=1, max_size=6))
def test_rows_are_of_one_length_and_can_be_read(rows: list[tuple[str, str, str]]) -> None:
    lines = aligned(rows)
    assert len({len(line) for line in lines}) == 1
    assert all(line.isprintable() and line.startswith("  ") for line in lines)


@pytest.mark.parametrize(("count", "words"), [(0, "points hold"), (1, "point holds"), (2, "points hold")])
def test_one_has_a_word_of_its_own(count: int, words: str) -> None:
    assert by_number(count, "point holds", "points hold") == words


@pytest.mark.parametrize(
    ("count", "total", "words"),
    [
        (0, 1, "0 of 1 point (0%) holds"),
        (1, 1, "1 of 1 point (100%) holds"),
        (0, 2, "0 of 2 points (0%) hold"),
        (1, 2, "1 of 2 points (50%) holds"),
        (2, 2, "2 of 2 points (100%) hold"),
    ],
)
def test_a_verb_follows_the_number_before_it(count: int, total: int, words: str) -> None:
    assert f"{share_of(count, total, 'point')} {verb_of(count, total, 'holds', 'hold')}" == words


@pytest.mark.parametrize(
    ("value", "words"), [(math.nan, "-"), (0.12345, "0.123"), (math.inf, "inf"), (1e-9, "1e-09"), (31234.5, "31200")]
)
def test_a_number_has_three_digits_that_count(value: float, words: str) -> None:
    assert number(value) == words
    row = {"x": value, "x_low": 0.0, "x_high": 1.0}
    assert with_interval(row, "x") == ("-" if math.isnan(value) else f"{words} [0, 1]")


@pytest.mark.parametrize(("text", "value"), [("8/255", 8 / 255), ("0.03", 0.03), (0.5, 0.5), ("0.5/2", 0.25), (1, 1.0)])
def test_parse_epsilon(text: float | str, value: float) -> None:
    assert parse_epsilon(text) == value


@pytest.mark.parametrize("text", ["", "8/", "/255", "8/0", "-1", "nan", "inf", "1e999", "0", "8/255/2", "x", math.nan])
def test_parse_epsilon_refuses(text: float | str) -> None:
    with pytest.raises(ParameterError, match="8/255"):
        parse_epsilon(text)
