"""Odd data sets, built by mistake or only odd to look at, each with the rows that it means.

`brittle` may refuse a data set by a code on its list. Else every point has the label, the prediction and the logit
margin of the row that its id names. A data set with an empty list must be scored.
"""

from __future__ import annotations

import io
import random
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from helpers.odd_parts import BOUNDS, seeded
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

import brittle
from brittle.data import array_points
from brittle.errors import BrittleError
from brittle.scores import LogitMargin

COUNT, SIZE = 24, 6
X = (torch.rand(COUNT, SIZE, generator=torch.Generator().manual_seed(1)) * 128).round() / 64 - 1
"""The rows that all data sets mean, in [-1, 1]; half precision holds them."""
Y = torch.arange(COUNT) % 3
PAIRS = list(zip(X, Y.tolist(), strict=True))

ITEM, SHUFFLED = "dataset", "shuffled"

Rows = Callable[[Any, Sequence[str]], Iterable[int]]
"""Function from the data and the ordered ids of the points to the rows that they should be."""


def by_id(_: Any, ids: Sequence[str]) -> Iterable[int]:
    return map(int, ids)


def in_order(order: Sequence[int]) -> Rows:
    return lambda data, ids: [order[int(id_)] for id_ in ids]


@dataclass(frozen=True)
class OddData:
    """An odd data set.

    Attributes:
        name: its oddity.
        make: makes the data as `brittle.score` takes them.
        refused: codes by which it may be refused.
        rows: the rows that its points should be.
    """

    name: str
    make: Callable[[], Any]
    refused: tuple[str, ...] = ()
    rows: Rows = by_id


# What they are made of.


class Items(Dataset[Any]):
    """Items that a function returns by their place."""

    def __init__(self, item: Callable[[int], Any], count: int = COUNT) -> None:
        self.item, self.count = item, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, place: int) -> Any:
        return self.item(place)


class Stream(IterableDataset[Any]):
    """The pairs, in no order that can be repeated."""

    def __iter__(self) -> Iterator[Any]:
        return iter(PAIRS)


class OwnWay(DataLoader[Any]):
    """A loader with its own order of the items."""

    def __iter__(self) -> Any:
        order = random.sample(range(COUNT), COUNT)
        return iter([(X[rows], Y[rows]) for rows in (order[:10], order[10:])])


def written(as_tensors: bool = True, kind: Callable[[Any, Any], Any] = lambda x, y: (x, y)) -> Callable[[int], Any]:
    """Return a function that writes each item over the previous one, in tensors or in arrays."""
    x, y = np.zeros(SIZE, np.float32), np.zeros((), np.int64)
    shown = kind(torch.from_numpy(x), torch.from_numpy(y)) if as_tensors else kind(x, y)

    def item(place: int) -> Any:
        x[:], y[...] = X[place], int(Y[place])
        return shown

    return item


def collated() -> Callable[[list[Any]], Any]:
    """Return a function that writes each batch over the previous one."""
    x, y = torch.zeros(COUNT, SIZE), torch.zeros(COUNT, dtype=torch.long)

    def collate(pairs: list[Any]) -> Any:
        x[: len(pairs)] = torch.stack([row for row, _ in pairs])
        y[: len(pairs)] = torch.tensor([label for _, label in pairs])
        return x[: len(pairs)], y[: len(pairs)]

    return collate


def refilled(x: Any) -> Any:
    """Return points of an array that is overwritten before they are scored."""
    points = array_points(x, Y, bounds=BOUNDS)
    x[:] = 0
    return points


def memory_map() -> Any:
    with tempfile.NamedTemporaryFile() as file:
        mapped = np.memmap(file.name, np.float32, "w+", shape=(COUNT, SIZE))
    mapped[:] = X.numpy()
    return mapped


def image(**options: Any) -> Any:
    """Return an image that Pillow opened from a file."""
    file = io.BytesIO()
    Image.fromarray(np.zeros((99, 99, 3), np.uint8)).save(file, format="PNG", **options)
    return Image.open(io.BytesIO(file.getvalue()[: None if options else -60]))


ITEMS = Items(PAIRS.__getitem__)
TWO: Any = {"batch_size": 4, "num_workers": 2}
HALVES = [PAIRS[at] for at in (*range(COUNT), *range(COUNT))]

ODD_DATA = [
    OddData("a tensor written over", lambda: Items(written())),
    OddData("arrays written over", lambda: Items(written(as_tensors=False))),
    OddData("a dictionary written over", lambda: Items(written(kind=lambda x, y: {"image": x, "label": y}))),
    OddData("a loader without batches, of one tensor", lambda: DataLoader(Items(written()), batch_size=None)),
    OddData("batches into one tensor", lambda: DataLoader(ITEMS, 5, collate_fn=collated())),
    OddData("a tensor filled again", lambda: refilled(X.clone())),
    OddData("a memory map filled again", lambda: refilled(memory_map())),
    OddData("each point twice, by design", lambda: DataLoader(Items(HALVES.__getitem__, 2 * COUNT), **TWO),
            rows=in_order([*range(COUNT), *range(COUNT)])),
    OddData("a stream", Stream, (ITEM,)),
    OddData("a loader of a stream, with two workers", lambda: DataLoader(Stream(), **TWO), (ITEM,)),
    OddData("a loader with a way of its own", lambda: OwnWay(ITEMS, 5), (SHUFFLED,)),
    OddData("a column-major array", lambda: (np.asfortranarray(X.numpy()), Y)),
    OddData("a transposed tensor", lambda: (X.T.contiguous().T, Y)),
    OddData("big-endian, in reverse", lambda: (X.numpy().astype(">f8")[::-1], Y.numpy().astype(">i2")[::-1]),
            rows=in_order(range(COUNT)[::-1])),
    OddData("half precision", lambda: (X.half(), Y.bfloat16())),
    OddData("huge ids", lambda: array_points(X, Y, ids=[2**70 + row for row in range(COUNT)], bounds=BOUNDS),
            rows=lambda _, ids: [int(id_) - 2**70 for id_ in ids]),
    OddData("an image of two frames",
            lambda: [image(save_all=True, append_images=[Image.new("RGB", (99, 99), "white")])], (ITEM,)),
    OddData("an image that is cut short", lambda: [image()], (ITEM,)),
]  # fmt: skip
"""All data sets."""


# The law.


def network() -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Linear(SIZE, 16), nn.ReLU(), nn.Linear(16, 3)), gain=2.0)


def wrong(odd: OddData) -> tuple[str, list[str]]:
    """Score a data set, and return the outcome in words and the breaches of the law."""
    data = odd.make()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch of a stream's length, and notes
            table = brittle.score(brittle.Classifier(network(), bounds=BOUNDS), data, [LogitMargin()])
    except BrittleError as error:
        return f"refused: {error}", [] if error.code in odd.refused else [f"refused as {error.code}"]
    except Exception as error:  # noqa: BLE001 - the law is that nothing else is raised
        return "raised", [f"{type(error).__name__}: {error}"]
    if odd.refused:
        return "scored", ["it was scored"]
    points = table.points.select(["point", "label", "predicted"]).to_pydict()
    rows = list(odd.rows(data, points["point"]))
    with torch.no_grad():
        logits = network()(X[rows])
    winner, second = logits.topk(2).values.unbind(1)
    same = {
        "label": points["label"] == Y[rows].tolist(),
        "prediction": points["predicted"] == logits.argmax(1).tolist(),
        "margin": np.allclose(table["logit_margin"].value, winner - second, atol=1e-5),
    }
    return f"scored: {len(rows)} points", [
        f"the {name} is that of other rows" for name, good in same.items() if not good
    ]
