"""The columns of the tables of a run."""

from __future__ import annotations

import pyarrow as pa

POINTS = pa.schema(
    [
        pa.field("point", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("label", pa.int64()),
        pa.field("predicted", pa.int64()),
        pa.field("target", pa.string()),
        pa.field("decided", pa.string()),
        pa.field("correct", pa.bool_()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("detail", pa.string()),
        pa.field("passes", pa.int64(), nullable=False),
        pa.field("image", pa.binary()),
        pa.field("input", pa.binary()),
    ]
)
"""One row per point: its id, position and name in the data, label and predicted class; where the decision is no class,
what the data say and what was decided in words (several labels are a class, too: a number whose bits they are); whether
both agree, what was wrong with it if anything, all passes spent on it, a PNG thumbnail where the input is an image, and
the input itself where it is none and small (`brittle.store.inputs`)."""

SCORES = pa.schema(
    [
        pa.field("point", pa.string(), nullable=False),
        pa.field("score", pa.string(), nullable=False),
        pa.field("parameters", pa.string(), nullable=False),
        pa.field("value", pa.float64()),
        pa.field("low", pa.float64()),
        pa.field("high", pa.float64()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("detail", pa.string()),
        pa.field("passes", pa.int64(), nullable=False),
        pa.field("evidence", pa.string()),
        pa.field("counted_low", pa.float64()),
        pa.field("counted_high", pa.float64()),
    ]
)
"""One row per point, score and parameters (a JSON object with sorted keys). Probability scores hold the flip
probability `1 - p_robust` as `value`, what stands behind it as `evidence` (`counted`, `modelled`, `extrapolated`,
`sampled`), and in `counted_low` and `counted_high` the interval by the votes of the noisy copies that they looked
at."""

COUNTEREXAMPLES = pa.schema(
    [
        pa.field("point", pa.string(), nullable=False),
        pa.field("score", pa.string(), nullable=False),
        pa.field("parameters", pa.string(), nullable=False),
        pa.field("predicted", pa.int64()),
        pa.field("decided", pa.string()),
        pa.field("image", pa.binary()),
        pa.field("difference", pa.binary()),
        pa.field("input", pa.binary()),
    ]
)
"""One row per point and score that found an input with another prediction: the class there, or what is
decided there in words (as for points), and, where inputs are
images, PNG thumbnails of it and of the difference, magnified to the full range around mid-grey; that input itself where
inputs are no images and small."""

KINDS = {"points": POINTS, "scores": SCORES, "counterexamples": COUNTEREXAMPLES}
"""The kinds of shard file."""
