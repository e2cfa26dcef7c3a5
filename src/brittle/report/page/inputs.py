"""The inputs of points that are no images, as the page's script reads them."""

from __future__ import annotations

import numpy as np

from brittle.analysis.features import feature_names, kept_counterexamples, kept_inputs
from brittle.report.contents import Contents
from brittle.report.page.packed import packed

MAX_INPUT_NUMBERS = 2_000_000
"""Numbers of inputs that a page holds; of more, it holds none."""


def page_inputs(contents: Contents) -> dict[str, object] | None:
    """Names and values of all features, and the nearest inputs with another prediction; None where no input is kept."""
    kept = contents.points["input"]
    if kept.null_count == len(kept):
        return None
    values = kept_inputs(contents)
    if values.size > MAX_INPUT_NUMBERS:
        return None
    searched = contents.counterexamples["input"]
    others = None if searched.null_count == len(searched) else kept_counterexamples(contents)
    return {
        "names": feature_names(contents.record.data),
        "values": packed(values, "f4"),
        "others": None if others is None or np.isnan(others).all() else packed(others, "f4"),
    }
