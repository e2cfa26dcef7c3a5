"""MNIST, CIFAR-10, 900 images of Fashion-MNIST and the digits of scikit-learn, as pixels in [0, 1]."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from PIL import Image
from torch import Tensor

HEADER = 4
FOR_TRAINING = {"fashion": 600, "digits": 1000}
"""Number of training images of the small data sets, after the same shuffle each time; the others are for tests."""


def read(data: Path, name: str, part: str, count: int) -> tuple[Tensor, Tensor]:
    """Read the first `count` images `[count, C, H, W]` of `part` (`train` or `test`) and their labels `[count]`."""
    images, labels = READERS[name](data, part, count)
    return torch.from_numpy(images[:count].copy()).float() / 255, torch.from_numpy(labels[:count].astype(np.int64))


def read_mnist(data: Path, part: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    stem = {"train": "train", "test": "t10k"}[part]
    images = read_idx(data / "mnist" / f"{stem}-images-idx3-ubyte.gz")[:count, None]
    return images, read_idx(data / "mnist" / f"{stem}-labels-idx1-ubyte.gz")


def read_cifar10(data: Path, part: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    rows = pq.read_table(data / "cifar10" / f"{part}.parquet", columns=["img", "label"]).slice(0, count).to_pylist()
    images = np.stack([np.asarray(Image.open(io.BytesIO(row["img"]["bytes"]))) for row in rows])
    return images.transpose(0, 3, 1, 2), np.array([row["label"] for row in rows])


def read_fashion(data: Path, part: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    stem = data / "fashion_mnist_900" / "sprite900"
    images, labels = (read_idx(Path(f"{stem}-{kind}-ubyte.gz")) for kind in ("images-idx3", "labels-idx1"))
    return shuffled("fashion", images[:, None], labels, part)


def read_digits(data: Path, part: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    images, labels = map(np.asarray, load_digits(return_X_y=True))
    return shuffled("digits", images.reshape(-1, 1, 8, 8) * (255 / 16), labels, part)


def shuffled(name: str, images: np.ndarray, labels: np.ndarray, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return either part of the images and their labels."""
    order, cut = np.random.default_rng(0).permutation(len(images)), FOR_TRAINING[name]
    chosen = order[:cut] if part == "train" else order[cut:]
    return images[chosen], labels[chosen]


READERS = {"mnist": read_mnist, "cifar10": read_cifar10, "fashion": read_fashion, "digits": read_digits}
"""Readers of the data sets, by name."""


def read_idx(path: Path) -> np.ndarray:
    """Read an IDX file of bytes: four bytes, the last being the number of sizes, then the sizes and the values."""
    raw = gzip.decompress(path.read_bytes())
    start = HEADER * (1 + raw[3])
    sizes = np.frombuffer(raw[HEADER:start], ">u4").astype(int)
    return np.frombuffer(raw[start:], np.uint8).reshape(sizes)
