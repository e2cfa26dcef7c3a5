"""The perturbation size at which the chapter judges."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from brittle.report.chapters.worst_case.case import choose_epsilon

UNIT = (0.0, 1.0)


@pytest.mark.parametrize(
    ("middle", "norm", "bounds", "asked", "text", "reason"),
    [
        (0.03, "linf", UNIT, None, "8/255", "most benchmarks"),
        (0.6, "l2", UNIT, None, "0.5", "most benchmarks"),
        (0.001234, "linf", UNIT, None, "0.0012", "parts hardly any"),
        (77.7, "l2", UNIT, None, "78", "parts hardly any"),
        (0.03, "linf", (0.0, 255.0), None, "0.03", "do not range from 0 to 1"),
        (0.03, "linf", (-1.0, 1.0), None, "0.03", "do not range from 0 to 1"),
        (0.03, "linf", UNIT, 0.0125, "0.0125", "asked for"),
        (float("inf"), "linf", UNIT, None, "8/255", "no distance is known"),
    ],
)
def test_the_perturbation_size_is_chosen_and_explained(
    middle: float, norm: str, bounds: tuple[float, float], asked: float | None, text: str, reason: str
) -> None:
    spread = middle * np.linspace(0.5, 1.5, 101)
    chosen = choose_epsilon(pd.Series([*spread, float("inf"), float("nan")]), norm, bounds, asked)
    assert chosen.text == text
    assert reason in chosen.reason
    value = {"8/255": 8 / 255}.get(text)
    assert chosen.value == (float(text) if value is None else value)
