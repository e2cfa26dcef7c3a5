"""Strict JSON: what other readers pass over is refused by name."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from brittle.store.strict_json import MOST_BYTES, Count, FormatProblem, Share, parse, parse_json


@dataclass(frozen=True)
class Noise:
    """A record with numbers in a range and parameters of several types."""

    limit: Share
    parameters: dict[str, int | tuple[int, ...] | str]
    seed: Count | None = None


@pytest.mark.parametrize(
    ("text", "said"),
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
def test_what_is_no_strict_json_is_refused(text: str, said: str) -> None:
    with pytest.raises(FormatProblem, match=said):
        parse_json(text)


@pytest.mark.parametrize("value", ["a\nb", "x" * 1001, "x" * MOST_BYTES])
def test_a_file_that_decides_something_holds_short_printable_strings(value: str) -> None:
    with pytest.raises(FormatProblem, match="characters"):
        parse(Noise, f'{{"limit": 0.5, "seed": null, "parameters": {{"x": "{value}"}}}}'.replace("\n", "\\n"))
