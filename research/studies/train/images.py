"""The image data sets of the papers, read with the library's own readers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from brittle.data import Points, open_points
from brittle.errors import DataError

CHUNK = 1000
"""Images that are read at a time."""


@dataclass(frozen=True)
class Dataset:
    """Facts of a data set that networks need before training.

    Attributes:
        channels: of an image.
        side: height and width of an image.
        classes: how many there are.
        mean: of each channel over the training images, pixels in [0, 1].
        deviation: standard deviation of each channel.
        epsilon: radius of the Linf ball, in pixels, of adversarial training and of the attack that tests all networks.
        sigma: standard deviation of the noise that networks are trained with.
        label_column: of the table of images, where several columns hold classes; else None.
        test_stride: for undivided images, one row in so many is for tests, from the first on, and the others are for
            training; None for divided ones.
    """

    channels: int
    side: int
    classes: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    epsilon: float
    sigma: float
    label_column: str | None = None
    test_stride: int | None = None


DATASETS = {
    "mnist": Dataset(1, 28, 10, (0.1307,), (0.3081,), epsilon=0.15, sigma=0.2),
    "fashion_mnist": Dataset(1, 28, 10, (0.2860,), (0.3530,), epsilon=0.05, sigma=0.1),
    "fashion_mnist_900": Dataset(
        1, 28, 10, (0.2860,), (0.3530,), epsilon=0.05, sigma=0.1, test_stride=3
    ),
    "cifar10": Dataset(3, 32, 10, (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616), epsilon=8 / 255, sigma=0.1),
    "cifar10_lossless_854": Dataset(
        3, 32, 10, (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616), epsilon=8 / 255, sigma=0.1, test_stride=1
    ),
    "cifar100": Dataset(
        3, 32, 100, (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762), epsilon=8 / 255, sigma=0.1,
        label_column="fine_label",
    ),
    "pneumoniamnist": Dataset(1, 28, 2, (0.5719,), (0.1684,), epsilon=4 / 255, sigma=0.05),
}  # fmt: skip
"""Name, which is also that of the folder. Mean and deviation are the usual ones of their training images."""


def open_images(folder: Path, data: Dataset, split: str, limit: int | None = None) -> Points:
    """Images with pixels in [0, 1], in a folder, or in the one `.npz` file of that folder, as MedMNIST has them.

    Where the images are not divided the split and the limit are passed over, and channels come last.

    Raises:
        DataError: there is no such split, or a file is damaged.
    """
    arrays = [*folder.glob("*.npz")]
    if data.test_stride is not None:
        return open_points(arrays[0], layout="nhwc", scale_uint8=True) if arrays else open_points(folder)
    if len(arrays) == 1:
        return open_points(arrays[0], split=split, limit=limit, scale_uint8=True)
    return open_points(folder, split=split, limit=limit, label_column=data.label_column)


@cache
def read(folder: Path, data: Dataset, split: str, limit: int | None) -> tuple[Tensor, Tensor]:
    """Read the first `limit` images `[N, C, H, W]`, pixels in [0, 1], and their classes `[N]`, once in a process.

    Raises:
        DataError: there is no such split, a file is damaged, or the images have no labels.
    """
    points = open_images(folder, data, split, limit)
    if points.labels is None:
        raise DataError(
            "no_labels", f"the {split} images in {folder} have no labels; networks are trained on a column called label"
        )
    images = torch.cat([batch.inputs for batch in points.batches(CHUNK)]).float()
    labels = torch.tensor([int(label) for label in points.labels])
    if data.test_stride is None:
        return images, labels
    tests = torch.zeros(len(images), dtype=torch.bool)
    tests[:: data.test_stride] = True
    rows = tests if split == "test" else ~tests
    return images[rows][:limit], labels[rows][:limit]
