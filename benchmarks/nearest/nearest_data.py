"""MNIST and CIFAR-10 from the files that they are published in, as pixels in [0, 1]."""

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


def read(data: Path, name: str, part: str, count: int) -> tuple[Tensor, Tensor]:
    """The first `count` images `[count, C, H, W]` of `part` (`train` or `test`) and their labels `[count]`.

    Raises:
        ValueError: a data set that is neither `mnist` nor `cifar10`.
    """
    if name == "mnist":
        stem = {"train": "train", "test": "t10k"}[part]
        images = read_idx(data / "mnist" / f"{stem}-images-idx3-ubyte.gz")[:count, None]
        labels = read_idx(data / "mnist" / f"{stem}-labels-idx1-ubyte.gz")[:count]
    elif name == "cifar10":
        rows = pq.read_table(data / "cifar10" / f"{part}.parquet", columns=["img", "label"]).slice(0, count).to_pylist()
        images = np.stack([np.asarray(Image.open(io.BytesIO(row["img"]["bytes"]))) for row in rows])
        images, labels = images.transpose(0, 3, 1, 2), np.array([row["label"] for row in rows])
    else:
        raise ValueError(f"the data set must be mnist or cifar10; found {name!r}")
    return torch.from_numpy(images.copy()).float() / 255, torch.from_numpy(labels.astype(np.int64))


def read_idx(path: Path) -> np.ndarray:
    """An IDX file of bytes: four bytes of which the last is the number of sizes, the sizes, the values."""
    raw = gzip.decompress(path.read_bytes())
    start = HEADER * (1 + raw[3])
    sizes = np.frombuffer(raw[HEADER:start], ">u4").astype(int)
    return np.frombuffer(raw[start:], np.uint8).reshape(sizes)
