"""Which draws of noise does a score read? Equal texts mean equal draws."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass

from brittle.estimate import parameters_json
from brittle.noise import Noise
from brittle.scores import Score

LENGTH = 16
"""Characters of a digest."""


def draws_of(score: Score) -> dict[str, int]:
    """How many draws `score` reads of each source of noise, by the digest of what keys these; empty without noise."""
    found: dict[str, int] = {}
    for need in score.needs:
        draws = getattr(need, "draws", None)
        if isinstance(draws, int):
            source = hashlib.sha256(_text(need.noise_source).encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]
            found[source] = max(draws, found.get(source, 0))
    return found


def _text(value: object) -> str:
    """`value` in words that are the same in every process; what has none is told by its kind alone."""
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    kind = _text(type(value))
    if isinstance(value, Noise):
        return f"{kind}{parameters_json(value.parameters)}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    if is_dataclass(value):
        own = (f"{one.name}={_text(getattr(value, one.name))}" for one in fields(value) if one.compare)
        return f"{kind}({', '.join(own)})"
    return repr(value) if isinstance(value, str | int | float | None) else kind
