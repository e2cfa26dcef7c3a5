"""Strict JSON: leniencies of other readers are refused by name."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from brittle.store.strict_json import MOST_BYTES, Count, FormatProblem, Share, convert, parse, parse_json, plain


@dataclass(frozen=True)
class Noise:
    """A record with numbers in a range and parameters of several types."""

    limit: Share
    parameters: dict[str, int | tuple[int, ...] | str]
    seed: Count | None = None


GOOD = {"limit": 0.5, "parameters": {"draws": 2, "sizes": [1, 2]}, "seed": 3}


def test_a_record_is_read_as_it_is_written_and_nothing_else() -> None:
    assert convert(Noise, GOOD) == Noise(0.5, {"draws": 2, "sizes": (1, 2)}, 3)
    assert plain(convert(Noise, GOOD)) == GOOD
    for changes in ({"limit": 1}, {"limit": "0.5"}, {"seed": 1.5}, {"seed": -1}, {"more": 1}, {"parameters": [1]}):
        with pytest.raises(FormatProblem, match=next(iter(changes))):
            convert(Noise, GOOD | changes)
    with pytest.raises(FormatProblem, match="lacks the key 'seed'"):
        convert(Noise, {"limit": 0.5, "parameters": {}})
    for not_a_record in ({}, None, 1, [], GOOD | {"\ud800": 1}):
        with pytest.raises(FormatProblem):
            convert(Noise, not_a_record)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("NaN", "NaN is not a number"),
        ('{"x": [-Infinity]}', "-Infinity is not a number"),
        ("1e999", "1e999"),
        (str(2**63), "larger than"),
        ('{"x": 1, "y": {"x": 1}, "x": 2}', "the key 'x' stands twice"),
        ("[" * 100_000 + "]" * 100_000, "not valid JSON"),
    ],
    ids=range(6),
)
def test_lenient_json_is_refused(text: str, problem: str) -> None:
    with pytest.raises(FormatProblem, match=problem):
        parse_json(text)


@pytest.mark.parametrize("value", ["a\nb", "x" * 1001, "x" * MOST_BYTES])
def test_records_hold_short_printable_strings_only(value: str) -> None:
    with pytest.raises(FormatProblem, match="characters"):
        parse(Noise, f'{{"limit": 0.5, "seed": null, "parameters": {{"x": "{value}"}}}}'.replace("\n", "\\n"))
