"""Strict JSON: what other readers pass over is refused by name."""

from __future__ import annotations

import pytest

from brittle.store.files.strict_json import FormatProblem, parse_json


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_is_refused(text: str) -> None:
    for content in (text, f"[{text}]", f'{{"x": {text}}}'):
        with pytest.raises(FormatProblem, match=f"^{text} is not a number$"):
            parse_json(content)


def test_a_key_that_stands_twice_is_refused() -> None:
    with pytest.raises(FormatProblem, match="the key 'x' stands twice"):
        parse_json('{"x": 1, "y": {"x": 1}, "x": 2}')


def test_brackets_in_strings_are_no_brackets() -> None:
    text = "[" * 1000
    assert parse_json(f'{{"x": "{text}"}}') == {"x": text}
    with pytest.raises(FormatProblem, match="brackets are nested 1000 deep"):
        parse_json(text + "]" * 1000)
