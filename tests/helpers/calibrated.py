"""Tables with margins of known points, and detectors fitted to them."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.problems import inputs, linear_network
from helpers.tables import with_score
from torch import Tensor, nn

import brittle
from brittle.errors import DetectorFormatError
from brittle.extensions.detector.detector import Detector
from brittle.extensions.detector.network import READINGS
from brittle.intervals import clopper_pearson
from brittle.scores import Entropy, FeatureMargin, LogitMargin, MaxProbability, ProbabilityMargin, Softmax
from brittle.store.table import Table

SIMPLE = [name for name in READINGS if name != "pseudo_margin"]
FORWARD = [LogitMargin(), MaxProbability(), ProbabilityMargin(), Entropy(), Softmax(), FeatureMargin("linf")]


COUNTED = {"draws": 10_000, "limit": 0.9, "sigma": 0.1}
"""Parameters of a flip probability that was counted until it was decided."""


def with_margins(table: Table, margins, status=None, norm: str = "linf", parameters=None) -> Table:
    """Return `table` with input margins, as a run with attacks would have recorded them."""
    status = status or ["not_found" if math.isinf(margin) else "ok" for margin in margins]
    label, parameters = f"input_margin(norm={norm})", parameters or {"norm": norm}
    return with_score(table, "input_margin", margins, parameters, ends=(0.0, margins), status=status, label=label)


def with_kept(table: Table, low, high=None, parameters=None) -> Table:
    """Return `table` with counted flips: intervals of `p_robust` from `low` to `high`, NaN where there is none."""
    low, high = np.asarray(low, dtype=float), np.asarray(low if high is None else high, dtype=float)
    ends = (1.0 - high, 1.0 - low)
    return with_score(table, "monte_carlo", 1.0 - (low + high) / 2.0, parameters or COUNTED, ends=ends)


def counted(run: Table, kept: np.ndarray, sigma: float, seed: int, draws: int = 200) -> Table:
    """Return `run` with counts of copies that keep the prediction with these probabilities."""
    flips = np.random.default_rng(seed).binomial(draws, 1.0 - kept)
    parameters = {"draws": draws, "sigma": sigma}
    return with_score(run, "monte_carlo", flips / draws, parameters, ends=clopper_pearson(flips, draws, 0.99))


def classifier(seed: int = 0) -> brittle.Classifier:
    return brittle.Classifier(linear_network(3, 6, seed, torch.float32), mean=0.4, std=0.3)


def points(count: int, seed: int = 0) -> Tensor:
    return inputs(count, (6,), seed)


def exported(wrapped: nn.Module, x: Tensor) -> nn.Module:
    """Export the network with its detector as a program for batches of any size."""
    shapes = {"inputs": {0: torch.export.Dim("batch")}}
    return torch.export.export(wrapped, (x,), dynamic_shapes=shapes, strict=False).module()


def lenient(detector: Detector, score: str, network: nn.Module, outputs: str = "logits") -> Detector:
    """Return a detector of `network` that calls as few points brittle as possible."""
    identity = brittle.extensions.detector.identity.Identity(
        brittle.model.digest.state_digest(network), (-2.0, 2.0), None, None, outputs
    )
    return below_all(replace(detector, model=identity), score)


def below_all(detector: Detector, score: str = "logit_margin") -> Detector:
    """Return a detector whose threshold every finite score reaches, which no file can hold, to test the other rules."""
    changed = copy.copy(detector)
    for name, value in (("score", score), ("threshold", -1e300)):
        object.__setattr__(changed, name, value)
    return changed


def refused(folder: Path, content: bytes | str) -> str:
    path = folder / "bad.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DetectorFormatError, match="is not a detector") as caught:
        Detector.load(path)
    assert caught.value.exit_code == 6
    return str(caught.value)
