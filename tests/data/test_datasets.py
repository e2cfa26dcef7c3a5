"""Data sets and loaders of PyTorch: the points of their arrays, read once and in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.data_files import only, refused
from helpers.problems import inputs, small_classifier
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, Subset, TensorDataset

import brittle
from brittle.data import array_points, dataset_points, open_points
from brittle.scores import LogitMargin, Moments

COUNT = 10
X, Y = inputs(COUNT), torch.arange(COUNT) % 4


class Items(Dataset[Any]):
    """A map-style data set of these items, which counts how often each is read."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items
        self.read: list[int] = []

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int) -> Any:
        self.read.append(place)
        item = self.items[place]
        if isinstance(item, Exception):
            raise item
        return item


class Stream(IterableDataset[Any]):
    """An iterable data set of these items."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)


PAIRS = list(zip(X, Y.tolist(), strict=True))
SOURCES: dict[str, Callable[[], Any]] = {
    "TensorDataset": lambda: TensorDataset(X, Y),
    "items": lambda: Items(PAIRS),
    "lists": lambda: Items([list(pair) for pair in PAIRS]),
    "NumPy": lambda: Items([(x.numpy(), np.int64(y)) for x, y in PAIRS]),
    "more than two": lambda: Items([(x, y, "path") for x, y in PAIRS]),
    "dictionaries": lambda: Items([{"label": y, "image": x, "path": "p"} for x, y in PAIRS]),
    "a part": lambda: Subset(TensorDataset(X.flip(0), Y.flip(0)), range(COUNT - 1, -1, -1)),
    "a loader": lambda: DataLoader(TensorDataset(X, Y), batch_size=3),
    "a loader of one batch": lambda: DataLoader(TensorDataset(X, Y), batch_size=64),
    "a loader of dictionaries": lambda: DataLoader(Items([{"pixel_values": x, "labels": y} for x, y in PAIRS]), 4),
    "a loader without batches": lambda: DataLoader(TensorDataset(X, Y), batch_size=None),
}
each_source = pytest.mark.parametrize("name", SOURCES)


@each_source
def test_points_of_a_data_set_are_those_of_its_arrays(name: str) -> None:
    points, expected = dataset_points(SOURCES[name]()), array_points(X, Y)
    assert points.provenance == expected.provenance
    batch, truth = only(points), only(expected)
    assert (batch.ids, batch.labels, batch.rows) == (truth.ids, truth.labels, truth.rows)
    assert torch.equal(batch.inputs, truth.inputs)


def test_a_run_over_a_data_set_is_resumed(tmp_path: Path) -> None:
    scores = [Moments(sigma=0.1, draws=4)]
    over_arrays = brittle.score(small_classifier(), (X, Y), scores)
    data = Items(PAIRS)
    for _ in range(2):
        table = brittle.score(small_classifier(), data, scores, out=tmp_path / "run", resume=True)
        assert table.scores.equals(over_arrays.scores)
    assert data.read == 2 * list(range(COUNT))
    refused(
        "other_run", "data.sha256", brittle.score, small_classifier(), Items(PAIRS[::-1]), scores,
        out=tmp_path / "run", resume=True,
    )  # fmt: skip


@each_source
def test_a_limit_reads_no_further(name: str) -> None:
    expected = array_points(X[:5], Y[:5]).provenance
    assert dataset_points(SOURCES[name](), limit=5).provenance == expected | {"limit": 5}


def test_names_of_classes_are_those_that_torchvision_keeps() -> None:
    data = Items(PAIRS)
    data.classes = ["ant", "bee", "cow", "dog"]  # type: ignore[attr-defined]
    assert dataset_points(data).class_names == dataset_points(DataLoader(data, 4)).class_names
    assert dataset_points(data).class_names == ("ant", "bee", "cow", "dog")
    assert dataset_points(data, class_names=list("abcd")).class_names == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    "options",
    [
        {"shuffle": True},
        {"sampler": RandomSampler(TensorDataset(X))},
        {"sampler": [7, 2, 9]},
        {"batch_sampler": [[7, 2], [9, 7]]},
        {"batch_size": None, "shuffle": True},
    ],
)
def test_a_shuffling_loader_is_refused(options: dict[str, Any]) -> None:
    loader = DataLoader(TensorDataset(X, Y), **options)
    refused("shuffled", "TensorDataset.*shuffle=False", dataset_points, loader)
    refused("shuffled", "shuffles", brittle.score, small_classifier(), loader, [Moments(sigma=0.1)])


SMALL, WIDE = torch.zeros(3, 4), torch.zeros(3, 5)
UNLIKE = [SMALL, SMALL, SMALL, WIDE, torch.zeros(2)]


@pytest.mark.parametrize(
    ("data", "code", "match"),
    [
        (Items(UNLIKE), "shape", r"item 0 has shape \(3, 4\) of float32 .*item 3 has shape \(3, 5\) of"),
        (DataLoader(Items(UNLIKE), 2), "shape", "batch 1"),
        (DataLoader(Items(UNLIKE[:4]), 3), "shape", r"item 0 has shape \(3, 4\) .* item 3 has shape \(3, 5\)"),
        (Items([SMALL, SMALL.double()]), "shape", "item 0 .* of float32 .*item 1 .* of float64"),
        (Items([]), "empty_dataset", "the data set Items holds no items"),
        (Items([(SMALL, 1), RuntimeError("no such\nfile")]), "dataset", "item 1 of .* RuntimeError: file"),
        (Items([*PAIRS[:2], StopIteration()]), "dataset", "item 2"),
        (Items([(SMALL, 1), SMALL]), "shape", "item 0 has .* a label .* and item 1 has .* no label"),
        (Items([(SMALL, 1), (SMALL, [1, 2])]), "shape", r"label of shape \(\), and item 1 .* \(2,\)"),
        (Items([{"pixels": SMALL, "y": 1}]), "dataset", "item 0 of .* has the keys pixels, y; expected one of"),
        (Items([dict.fromkeys(("x", "image", "y"), SMALL)]), "dataset", "item 0 .*x, image, y"),
        (Items([dict.fromkeys(("x", "y", "label"), SMALL)]), "dataset", "item 0 .*y, label"),
        (Items([()]), "dataset", "item 0 .* is empty"),
        (Items([("path.png", 1)]), "dataset", "item 0 .* holds a str as its input"),
        (Items([(np.array(["a"]), 1)]), "dtype", "item 0 .* has type <U1"),
        (Items([SMALL.to_sparse()]), "dtype", "item 0 .* sparse"),
        (Items([np.ma.masked_equal(SMALL.numpy(), 0)]), "dtype", "hides 12 of 12"),
        (Items([(SMALL, "ant")]), "labels", r"item 0 .* label of type str \('ant'\); expected a class index"),
        (Items([(SMALL, {"boxes": 1})]), "labels", "label of type dict"),
        (Items([(SMALL, 0.5)]), "labels", "y holds 0.5 in row 0; class indices are whole numbers"),
        (Items([torch.tensor(1.0)]), "shape", "expected .points, ...."),
        (DataLoader(Items(PAIRS), 4, collate_fn=lambda pairs: (X, Y[:2])), "dataset", "batch 0 .* a label each"),
    ],
)  # fmt: skip
def test_items_of_another_form_get_one_sentence(data: Any, code: str, match: str) -> None:
    refused(code, match, dataset_points, data)


class CustomLoader(DataLoader[Any]):
    def __iter__(self) -> Any:
        return iter([(X, Y)])


@pytest.mark.parametrize("wrap", [lambda data: data, lambda data: DataLoader(data, 3)])
def test_streams_and_custom_loaders_are_refused(wrap: Callable[[Any], Any]) -> None:
    refused("dataset", "Stream is a stream", dataset_points, wrap(Stream(PAIRS)))
    refused("shuffled", "way of its own", dataset_points, CustomLoader(Items(PAIRS)))
    assert dataset_points(list(Stream(PAIRS))).provenance == array_points(X, Y).provenance


def test_a_limit_reads_no_more_items() -> None:
    data = Items(PAIRS)
    dataset_points(data, limit=3)
    assert data.read == [0, 1, 2]


COLOURS = np.random.default_rng(3).integers(0, 256, (5, 9, 12, 3), dtype="uint8")
PICTURES = [Image.fromarray(levels) for levels in COLOURS]


class Untransformed(Dataset[tuple[Image.Image, int]]):
    """Images as torchvision gives them without a transform."""

    classes = ("ant", "bee")

    def __len__(self) -> int:
        return len(PICTURES)

    def __getitem__(self, place: int) -> tuple[Image.Image, int]:
        return PICTURES[place], place % 2


@pytest.mark.parametrize(
    "options",
    [{}, {"mode": "L"}, {"resize": (6, 8)}, {"resize": (6,), "center_crop": (4, 5)}, {"bounds": (-1.0, 3.0)}],
    ids=str,
)
def test_images_in_memory_are_the_points_of_their_files(tmp_path: Path, options: dict[str, Any]) -> None:
    for number, picture in enumerate(PICTURES):
        picture.save(tmp_path / f"{number}.png")
    file_inputs = only(open_points(tmp_path, **options)).inputs
    for data in (PICTURES, Untransformed()):
        assert torch.equal(only(dataset_points(data, **options)).inputs, file_inputs)


def test_an_untransformed_data_set_keeps_labels_and_names() -> None:
    classifier = brittle.Classifier(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(324, 2)), bounds=(0, 1))
    table = brittle.score(classifier, Untransformed(), [LogitMargin()])
    assert table.points["label"].to_pylist() == [0, 1, 0, 1, 0]
    assert list(table.record.data.class_names or ()) == ["ant", "bee"]
    image_table = brittle.score(classifier, PICTURES, [LogitMargin()])
    assert image_table.scores["value"].equals(table.scores["value"])


def test_unusable_images_are_refused() -> None:
    refused("dataset", "item 1 .* colour mode CMYK", dataset_points, [PICTURES[0], Image.new("CMYK", (9, 9))])
    refused("dataset", "item 0 .* 12 x 9 pixels", dataset_points, PICTURES, center_crop=(20, 20))
    refused("shape", "item 1 has shape", dataset_points, [PICTURES[0], Image.new("RGB", (3, 3))])
    closed_image = Image.new("RGB", (9, 9))
    closed_image.close()
    refused("dataset", "item 0 .* ValueError", dataset_points, [closed_image])
