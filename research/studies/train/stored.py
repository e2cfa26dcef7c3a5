"""Trained networks on the disk: a folder each, which is there whole or not at all, and the table of all of them."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

from brittle.store.writing import replacing
from studies.networks import META, MODEL

TABLE = "networks.parquet"
CHECKPOINTS = ".checkpoints"
"""Folder of what is not finished."""


def digest(network: nn.Module) -> str:
    """SHA-256 of all weights and buffers with their names, types and shapes."""
    sha256 = hashlib.sha256()
    for name, value in network.state_dict().items():
        sha256.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        sha256.update(value.detach().cpu().contiguous().numpy().tobytes())
    return sha256.hexdigest()


def store(network: nn.Module, example: Tensor, meta: Mapping[str, Any], folder: Path) -> None:
    """Write `model.pt2`, which takes any number of rows, and `meta.json` into a new folder.

    Args:
        network: in evaluation mode.
        example: two images or more.
        meta: facts of the network.
        folder: does not exist; the folder above it does.
    """
    making = folder.with_name(f".{folder.name}.making")
    if making.exists():
        shutil.rmtree(making)
    making.mkdir()
    shapes = ({0: torch.export.Dim("rows", min=1)},)
    program = torch.export.export(network.cpu(), (example.cpu(),), dynamic_shapes=shapes)
    with replacing(making / MODEL) as file:
        torch.export.save(program, file)
    with replacing(making / META) as file:
        file.write((json.dumps(meta, indent=1) + "\n").encode())
    making.rename(folder)


def load_meta(folder: Path) -> dict[str, Any] | None:
    """Return the facts of the network in a folder; None without a network."""
    path = folder / META
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def write_table(out: Path, names: Sequence[str]) -> pd.DataFrame:
    """Write `networks.parquet`, a row for each of these networks that is there, in this order; and give it."""
    rows = [meta for name in names if (meta := load_meta(out / name)) is not None]
    table = pa.Table.from_pylist(rows)
    with replacing(out / TABLE) as file:
        pq.write_table(table, file)
    return table.to_pandas()
