"""Strict JSON: what other readers pass over is refused by name."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from brittle.store.files.strict_json import FormatProblem, Limits, convert, parse_json


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
class Near:
    """One of two objects that may stand in a place."""

    epsilon: float


@dataclass(frozen=True)
class Noisy:
    """The other one."""

    limit: float
    noise: dict[str, int | tuple[int, ...]]


@dataclass(frozen=True)
class Holder:
    """What holds one of them."""

    one: Near | Noisy


def test_objects_that_may_stand_in_a_place_are_told_apart_by_their_keys() -> None:
    """What is wrong with the one that was meant is said, in whatever order they are declared."""
    assert convert(Holder, {"one": {"epsilon": 1}}) == Holder(Near(1.0))
    both = {"one": {"limit": 0.5, "noise": {"draws": 2, "sizes": [1, 2]}}}
    assert convert(Holder, both) == Holder(Noisy(0.5, {"draws": 2, "sizes": (1, 2)}))
    with pytest.raises(FormatProblem, match="one lacks noise"):
        convert(Holder, {"one": {"limit": 0.5}})
    with pytest.raises(FormatProblem, match=r"^one\.epsilon"):
        convert(Holder, {"one": {"epsilon": "1"}})
    for other in ({}, None, 1, [], {"epsilon": 1, "limit": 0.5}):
        with pytest.raises(FormatProblem):
            convert(Holder, {"one": other})
