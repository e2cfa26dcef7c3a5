"""The inputs of points that are no images, as the page's script reads them."""

from __future__ import annotations

import numpy as np

from brittle.analysis.features import feature_names, kept_counterexamples, kept_inputs
from brittle.estimate import parameters_json
from brittle.report.contents import Contents
from brittle.report.page.packed import packed
from brittle.store.columns import Column

MAX_INPUT_NUMBERS = 2_000_000
"""Numbers of inputs that a page holds; of more, it holds none."""


def page_inputs(contents: Contents) -> dict[str, object] | None:
    """Names and values of all features, and of each point the first input with another prediction that was found.

    None where no input is kept.
    """
    kept = contents.points["input"]
    if kept.null_count == len(kept):
        return None
    values = kept_inputs(contents)
    if values.size > MAX_INPUT_NUMBERS:
        return None
    others = np.full(values.shape, np.nan)
    for column in searching(contents):
        found = kept_counterexamples(contents, column)
        others = np.where(np.isnan(others).all(axis=1, keepdims=True), found, others)
    return {
        "names": feature_names(contents.record.data),
        "values": packed(values, "f8"),
        "others": None if np.isnan(others).all() else packed(others, "f8"),
    }


def searching(contents: Contents) -> list[Column]:
    """The scores that found inputs with another prediction and kept them, in the order of the run."""
    rows = contents.counterexamples.select(["score", "parameters", "input"]).to_pylist()
    found = {(row["score"], row["parameters"]) for row in rows if row["input"] is not None}
    return [one for one in contents.columns if (one.score, parameters_json(one.parameters)) in found]
