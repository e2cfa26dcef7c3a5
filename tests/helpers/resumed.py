"""Small runs that are written shard by shard, and resume where they stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from helpers.problems import inputs, small_network

import brittle
from brittle.scores import Moments

SHARD = 8


def classifier(bounds: tuple[float, float] = (0, 1), **options: Any) -> brittle.Classifier:
    return brittle.Classifier(small_network(), bounds, **options)


def run(
    out: Path, *, model: brittle.Classifier | None = None, count: int = 20, data_seed: int = 0, **options: Any
) -> brittle.Table:
    data = (inputs(count, seed=data_seed), torch.arange(count) % 4)
    return brittle.score(
        model or classifier(), data, **({"scores": [Moments(0.1, draws=4)], "out": out, "resume": True} | options)
    )
