"""Fixtures of the studies' tests: a folder of data and networks, like a user's."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn


def exported(folder: Path, network: nn.Module, dataset: str) -> None:
    folder.mkdir(parents=True)
    rows = ({0: torch.export.Dim("rows", min=1)},)
    program = torch.export.export(network.eval(), (torch.rand(2, 1, 8, 8),), dynamic_shapes=rows)
    torch.export.save(program, folder / "model.pt2")
    (folder / "meta.json").write_text(json.dumps({"dataset": dataset, "way": "pgd"}))


class Sign(nn.Module):
    """Steps alone: no gradient."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.sign(x.flatten(1)[:, :3] - 0.5)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of 8x8 pixels under the name of MNIST, and networks."""
    folder, random = tmp_path_factory.mktemp("shared"), np.random.default_rng(0)
    (folder / "data" / "mnist").mkdir(parents=True)
    images, labels = random.integers(0, 256, (40, 8, 8), dtype=np.uint8), random.integers(0, 3, 40, dtype=np.uint8)
    for name, array in (("images-idx3", images), ("labels-idx1", labels)):
        head = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
        (folder / "data" / "mnist" / f"t10k-{name}-ubyte.gz").write_bytes(gzip.compress(head + array.tobytes()))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        exported(folder / "models" / "linear", nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), "mnist")
    exported(folder / "models" / "steps", Sign(), "mnist")
    exported(folder / "models" / "others", Sign(), "speech")
    return folder
