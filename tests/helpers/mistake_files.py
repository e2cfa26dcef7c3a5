"""Files, networks and names for the mistakes of `docs/reference/mistakes.md`."""

from __future__ import annotations

import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import brittle
from brittle.scores import LogitMargin, Shrinkage

NETWORKS = """
import torch
from torch import nn

def make():
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 4))
    rows = torch.zeros(4, 4, 4)
    for own in range(4):
        rows[own, own] = 4.0
    network[1].weight.data = rows.reshape(4, 16)
    network[1].bias.data.zero_()
    return network

def untrained():
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 10))
    network[1].weight.data = torch.arange(160.0).reshape(10, 16).sin()
    network[1].bias.data = torch.arange(10.0)
    return network

def colours():
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    network[0].weight.data = torch.tensor([[4.0, 0, 0], [0, 4, 0], [0, 0, 4], [2, 2, 2]]).reshape(4, 3, 1, 1)
    network[0].bias.data.zero_()
    return network

def ten():
    network = nn.Sequential(colours(), nn.Linear(4, 10))
    network[1].weight.data = torch.eye(10)[:, [5, 7, 8, 9]]
    network[1].bias.data.zero_()
    return network

def grey():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())

def probabilities():
    return nn.Sequential(make(), nn.Softmax(1))

class Large(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = make()
    def forward(self, x):
        if len(x) > 8:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 40000000000 bytes.")
        return self.network(x)

def large():
    return Large()

def half():
    return make().half()

def of_size(size):
    return make()

def rule(texts):
    return [[0.0, 1.0] for text in texts]

class Classes(nn.Module):
    def forward(self, x):
        return nn.functional.one_hot(x[:, 0].sum(2).argmax(1), 4).float()

def classes():
    return Classes()

def nothing():
    return None
"""
"""A file of networks for 4 x 4 grey images of 4 classes, and what people name by mistake."""

CLASSES = ("ant", "bee", "cow", "dog")


def images(count: int = 40) -> tuple[Tensor, Tensor]:
    """Return grey images `[N, 1, 4, 4]` with one bright row, and the number of that row."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(count) % 4
    x = 0.4 * torch.rand(count, 1, 4, 4, generator=generator)
    x[torch.arange(count), 0, labels] += 0.6
    return x, labels


def lay_out(place: Path) -> None:
    """Write the files for these mistakes to the folder `place`."""
    (place / "net.py").write_text(NETWORKS)
    x, y = (part.numpy() for part in images())
    colours = np.random.default_rng(0).uniform(size=(40, 8, 8, 3)).astype("float32")
    files: dict[str, dict[str, Any]] = {
        "data": {},
        "shifted": {"y": (y + 1) % 4},
        "bytes": {"x": 255 * x},
        "levels": {"x": np.rint(255 * x).astype("uint8")},
        "normalised": {"x": (x - 0.5) / 0.25},
        "divided": {"x": x / 255},
        "one-image": {"x": x[0, 0], "y": y[:4]},
        "names": {"y": np.array(CLASSES)[y]},
        "one-hot": {"y": np.eye(4)[y]},
        "sorted": {"x": x[y.argsort(kind="stable")], "y": np.sort(y)},
        "short": {"y": y[:-1]},
        "empty": {"x": x[:0], "y": y[:0]},
        "repeated": {"ids": np.arange(40) // 2},
        "one-class": {"x": x[y == 0].repeat(2, 0), "y": y[y == 0].repeat(2, 0)},
        "last": {"x": colours},
        "hole": {"x": np.where(np.arange(40).reshape(-1, 1, 1, 1) == 3, np.nan, x).astype("float32")},
        "flat": {"x": x.reshape(40, 16)},
    }
    for name, arrays in files.items():
        held: dict[str, Any] = {"x": x, "y": y} | arrays
        np.savez(place / f"{name}.npz", **held)
    np.savez(place / "others.npz", data=x, target=y)
    frame = pd.DataFrame(x.reshape(40, 16)).assign(label=y)
    frame.to_csv(place / "indexed.csv")
    features = frame.drop(columns="label").add_prefix("pixel ")
    features.assign(size=100.0 * y).to_csv(place / "measured.csv", index=False)
    features.mul(100).to_csv(place / "table.csv", index=False)
    with tarfile.open(place / "dotted.tar", "w") as archive:
        archive.add(place / "table.csv", "img0.5.png")
    state = nn.Sequential(nn.Flatten(), nn.Linear(16, 4)).state_dict()
    save_file(state, place / "weights.safetensors")
    save_file({f"other_{name}": value for name, value in state.items()}, place / "other.safetensors")
    torch.save(state, place / "weights.pt")
    torch.save({"model": state, "ema": {name: 0.9 * value for name, value in state.items()}}, place / "averaged.pt")
    _folders(place)
    (place / "ids.txt").write_text("3\n99\n")
    (place / "classes.txt").write_text("Ant\nBee\nCow\nDog\n")
    (place / "notes.txt").write_text("hello")
    (place / "kept").mkdir()
    (place / "kept" / "mine.txt").write_text("mine")


def _folders(place: Path) -> None:
    """Write folders of colour images, of four classes and of two."""
    levels = np.random.default_rng(1).integers(0, 256, (8, 8, 8, 3), dtype="uint8")
    for folder, names in (("photos", CLASSES), ("two", CLASSES[:2])):
        for name in names:
            (place / folder / name).mkdir(parents=True)
            for number, pixels in enumerate(levels[:4] // 4):
                pixels[..., names.index(name) % 3] += 190
                Image.fromarray(pixels).save(place / folder / name / f"{number}.png")


class Growing(Dataset[tuple[Tensor, int]]):
    """Images that grow."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        return torch.zeros(1, 4, 4 + place), 0


def python_names() -> dict[str, Any]:
    """Return the names that the lines of Python use."""
    x, y = images()
    names: dict[str, Any] = {}
    exec(NETWORKS, names)
    network = names["make"]().eval()
    classifier = brittle.Classifier(network, bounds=(0, 1))
    scores = [Shrinkage(sigma=0.1, draws=20, limit=None)]
    return {
        "brittle": brittle,
        "torch": torch,
        "Image": Image,
        "DataLoader": DataLoader,
        "TensorDataset": TensorDataset,
        "Growing": Growing,
        "Shrinkage": Shrinkage,
        "x": x,
        "y": y,
        "network": network,
        "make": names["make"],
        "classifier": classifier,
        "scores": scores,
        "names": [CLASSES[label] for label in y],
        "batches": [(x, y)],
        "frame": pd.DataFrame(x.reshape(40, 16).numpy()).assign(label=y.numpy(), colour="red"),
        "table": brittle.score(classifier, (x, y), scores),
    }


def interrupt(place: Path) -> None:
    """Write a run in `place / "part"` that was interrupted in the middle."""

    def stop(done: int, total: int, passes: int) -> None:
        if done >= total // 2:
            raise KeyboardInterrupt

    classifier = brittle.Classifier(python_names()["network"], bounds=(0, 1))
    with suppress(KeyboardInterrupt):
        brittle.score(classifier, images(600), [LogitMargin()], out=place / "part", progress=stop)
