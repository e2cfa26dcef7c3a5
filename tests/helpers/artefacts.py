"""Models as files: factories, exported archives with edited records, and what would run if it were unpickled."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from brittle.errors import BrittleError

FACTORY = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 3)
        self.register_buffer("offset", torch.zeros(3))

    def forward(self, x):
        return self.linear(x.flatten(1)) + self.offset

def make():
    return Net()

network = Net()
number = 3

def wrong():
    return {"a": 1}

def needs(width):
    return Net()

def fails():
    raise RuntimeError("no weights here")
"""


class Small(nn.Module):
    """Enough kinds of tensors and operators to write a realistic archive."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.norm = nn.BatchNorm2d(1)
        self.linear = nn.Linear(4, 3)
        self.constant = torch.full((1, 1, 1), 2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear((self.norm(x) * self.constant).flatten(1))


def export(dynamic: bool) -> bytes:
    shapes = ({0: torch.export.Dim("batch", min=1, max=64)},) if dynamic else None
    program = torch.export.export(Small().eval(), (torch.rand(3, 1, 2, 2),), dynamic_shapes=shapes)
    file = io.BytesIO()
    torch.export.save(program, file)
    return file.getvalue()


def refused(code: str, match: str, function: Callable[..., Any], *args: Any, **options: Any) -> BrittleError:
    """Check that `function` raises the error `code` with a sentence that holds `match`."""
    with pytest.raises(BrittleError, match=match) as caught:
        function(*args, **options)
    assert caught.value.code == code
    return caught.value


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


Records = dict[str, bytes]


def edited(archive: bytes, edit: Callable[[Records], None], kind: int = zipfile.ZIP_STORED) -> bytes:
    """Return the archive after `edit` of its records, whose names are given without the first folder."""
    with zipfile.ZipFile(io.BytesIO(archive)) as read:
        root = read.namelist()[0].partition("/")[0]
        records = {name.removeprefix(f"{root}/"): read.read(name) for name in read.namelist()}
    edit(records)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as written:
        for name, content in records.items():
            written.writestr(f"{root}/{name}", content)
    return file.getvalue()


def pickled(value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()
