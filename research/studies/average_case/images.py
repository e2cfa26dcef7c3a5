"""Classifiers that distinguish the most robust images from the most vulnerable ones, and pictures of both."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

import brittle
from brittle.analysis import point_list
from brittle.analysis.columns import class_of
from brittle.scores import Score
from studies.tables import Frame

SIDES = ("least", "most")

READERS = ("linear", "cnn")
"""Kinds of classifiers of images."""

FOLDS = 4
STEPS, RATE, DECAY = 100, 5e-3, 1e-2


def sides(table: brittle.Table, score: Score, count: int) -> Frame:
    """Return the `count` most and least robust points of each class by a score: `row`, `class`, `side`, `rank`.

    The most robust are those whose flip probability is surely small: ordered by the upper end of its interval. A class
    with fewer than `2 * count` points is split in halves, so that no point is on both sides.
    """
    column = table[score]
    points = point_list(table, column).dropna(subset="value")
    points = points.join(class_of(table)[1].rename("class"), on="point").join(column.high.rename("end"), on="point")
    parts = []
    for _, group in points.groupby("class"):
        lowest = group.head(min(count, (len(group) + 1) // 2))
        highest = group.iloc[len(lowest) :][::-1].sort_values("end", kind="stable", na_position="last")
        for side, chosen in (("least", lowest), ("most", highest.head(min(count, len(group) // 2)))):
            parts.append(chosen.assign(side=side, rank=np.arange(1, len(chosen) + 1)))
    return pd.concat(parts, ignore_index=True)[["row", "class", "side", "rank"]]


def reader(kind: str, shape: torch.Size) -> nn.Module:
    """Return a classifier of two kinds of images of this shape."""
    if kind == READERS[0]:
        return nn.Sequential(nn.Flatten(), nn.Linear(shape.numel(), 1))
    body = nn.Sequential(
        nn.Conv2d(shape[0], 8, 5, stride=2, padding=2), nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(),
    )  # fmt: skip
    return nn.Sequential(body, nn.Linear(body(torch.zeros(1, *shape)).shape[1], 1))


def told_apart(kind: str, x: Tensor, y: Tensor, seed: int) -> float:
    """Return the accuracy on held-out images: each is in one of the folds, with both sides in equal shares.

    Args:
        kind: one of `READERS`.
        x: images, `[B, *shape]`.
        y: 1 for the most robust, 0 for the least robust, `[B]`.
        seed: of the folds, and of the weights at the start.
    """
    correct, folds = 0, torch.zeros(len(y), dtype=torch.int64)
    for side in (0, 1):
        rows = (y == side).nonzero()[:, 0]
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed + side))
        folds[rows[order]] = torch.arange(len(rows)) % FOLDS
    for fold in range(FOLDS):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = reader(kind, x.shape[1:])
        held = folds == fold
        middle, spread = x[~held].mean(0), x[~held].std()
        fit(network, (x[~held] - middle) / spread, y[~held])
        with torch.no_grad():
            correct += int(((network((x[held] - middle) / spread)[:, 0] > 0) == (y[held] == 1)).sum())
    return correct / len(y)


def fit(network: nn.Module, x: Tensor, y: Tensor) -> None:
    """Adam on all images at once, with a decay of the weights."""
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    for _ in range(STEPS):
        optimiser.zero_grad()
        functional.binary_cross_entropy_with_logits(network(x)[:, 0], y.float()).backward()
        optimiser.step()


def separability(x: Tensor, chosen: dict[str, Frame], seed: int) -> pd.DataFrame:
    """Return how well each classifier separates the sides: rows `by`, `reader`, `images`, `accuracy`."""
    rows = []
    for by, frame in chosen.items():
        places, is_robust = torch.tensor(frame["row"].to_numpy()), torch.tensor((frame["side"] == SIDES[1]).to_numpy())
        for kind in READERS:
            share = told_apart(kind, x[places], is_robust.long(), seed)
            rows.append({"by": by, "reader": kind, "images": len(frame), "accuracy": share})
    return pd.DataFrame(rows)


def small_pictures(x: Tensor, chosen: dict[str, Frame], value: Callable[[str, int], float]) -> pd.DataFrame:
    """Return the first of each class and side, as a PNG or JPEG: `by`, `side`, `class`, `value`, `picture`."""
    rows = []
    for by, frame in chosen.items():
        for example in frame[frame["rank"] == 1].to_dict("records"):
            levels = (255 * x[example["row"]]).round().clamp(0, 255).to(torch.uint8).permute(1, 2, 0).numpy()
            facts = {"by": by, "side": example["side"], "class": example["class"], "value": value(by, example["row"])}
            rows.append({**facts, "picture": encoded(levels)})
    return pd.DataFrame(rows)


def encoded(levels: NDArray[np.uint8]) -> bytes:
    """Return an image of `[H, W, 1]` or `[H, W, 3]` levels in a file."""
    image, files = Image.fromarray(levels[..., 0] if levels.shape[2] == 1 else levels), []
    for kind, options in (("PNG", {"optimize": True}), ("JPEG", {"quality": 85})):
        stream = io.BytesIO()
        image.save(stream, kind, **options)
        files.append(stream.getvalue())
    return min(files, key=len)
