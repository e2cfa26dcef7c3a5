"""Strict JSON: what other readers pass over is refused by name."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from brittle.store.strict_json import Count, FormatProblem, Limits, Share, convert, parse_json, plain


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_is_refused(text: str) -> None:
    for content in (text, f"[{text}]", f'{{"x": {text}}}'):
        with pytest.raises(FormatProblem, match=f"^{text} is not a number$"):
            parse_json(content)


def test_a_key_that_stands_twice_is_refused() -> None:
    with pytest.raises(FormatProblem, match="the key 'x' stands twice"):
        parse_json('{"x": 1, "y": {"x": 1}, "x": 2}')


def test_deep_brackets_and_large_numbers_are_refused() -> None:
    text = "[" * 100_000
    assert parse_json(f'{{"x": "{text}"}}', Limits(characters=100_000)) == {"x": text}
    for content in (text, text + "]" * 100_000, "1e999", str(2**63), '"a\\nb"', '"' + "x" * 1001 + '"'):
        with pytest.raises(FormatProblem):
            parse_json(content)


@dataclass(frozen=True)
class Noise:
    """A record with numbers in a range and parameters of several types."""

    limit: Share
    parameters: dict[str, int | tuple[int, ...]]
    seed: Count | None = None


def test_a_record_is_read_as_it_is_written_and_nothing_else() -> None:
    good = {"limit": 0.5, "parameters": {"draws": 2, "sizes": [1, 2]}, "seed": 3}
    assert convert(Noise, good) == Noise(0.5, {"draws": 2, "sizes": (1, 2)}, 3)
    assert plain(convert(Noise, good)) == good
    for changes in ({"limit": 1}, {"limit": "0.5"}, {"seed": 1.5}, {"seed": -1}, {"more": 1}, {"parameters": [1]}):
        with pytest.raises(FormatProblem, match=next(iter(changes))):
            convert(Noise, good | changes)
    with pytest.raises(FormatProblem, match="lacks the key 'seed'"):
        convert(Noise, {"limit": 0.5, "parameters": {}})
    for other in ({}, None, 1, []):
        with pytest.raises(FormatProblem):
            convert(Noise, other)


@dataclass(frozen=True)
class Size:
    """A record of one number."""

    size: float


def test_a_whole_number_that_a_fraction_rounds_is_refused() -> None:
    assert convert(Size, {"size": 2**53}) == Size(2.0**53)
    with pytest.raises(FormatProblem, match=f"size: {2**53 + 1}"):
        convert(Size, {"size": 2**53 + 1})
