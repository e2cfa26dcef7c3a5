"""Images of Pillow in memory: the points of the same images in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.data_files import only, refused
from PIL import Image
from torch.utils.data import Dataset

import brittle
from brittle.data import dataset_points, open_points
from brittle.scores import LogitMargin

LEVELS = np.random.default_rng(3).integers(0, 256, (5, 9, 12, 3), dtype="uint8")
PICTURES = [Image.fromarray(one) for one in LEVELS]


class Untransformed(Dataset[tuple[Image.Image, int]]):
    """As torchvision gives images where no transform was named."""

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
def test_they_are_the_points_of_the_same_files(tmp_path: Path, options: dict[str, Any]) -> None:
    for number, picture in enumerate(PICTURES):
        picture.save(tmp_path / f"{number}.png")
    of_files = only(open_points(tmp_path, **options)).inputs
    for data in (PICTURES, Untransformed()):
        assert torch.equal(only(dataset_points(data, **options)).inputs, of_files)


def test_a_data_set_without_a_transform_is_scored_with_its_labels_and_names() -> None:
    classifier = brittle.Classifier(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(324, 2)), bounds=(0, 1))
    table = brittle.score(classifier, Untransformed(), [LogitMargin()])
    assert table.points["label"].to_pylist() == [0, 1, 0, 1, 0]
    assert list(table.record.data.class_names or ()) == ["ant", "bee"]
    alone = brittle.score(classifier, PICTURES, [LogitMargin()])
    assert alone.scores["value"].equals(table.scores["value"])


def test_images_that_cannot_be_used() -> None:
    refused("dataset", "item 1 .* is an image of mode CMYK", dataset_points, [PICTURES[0], Image.new("CMYK", (9, 9))])
    refused("shape", "item 0 .* 12 x 9 pixels", dataset_points, PICTURES, center_crop=(20, 20))
    refused("shape", "item 1 has shape", dataset_points, [PICTURES[0], Image.new("RGB", (3, 3))])
    shut = Image.new("RGB", (9, 9))
    shut.close()
    refused("dataset", "item 0 .* cannot be decoded: ValueError", dataset_points, [shut])
