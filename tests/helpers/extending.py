"""The code of the page on extending, written to files and imported."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import numpy as np
from helpers.documents import blocks
from helpers.problems import inputs

PAGE = "docs/how-to/extending.md"

FILES = ("mine.py",)
"""Files of the first blocks of the page."""

NETWORK = """
import torch
def make():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
"""

INSTALLED = """
import sys
from brittle import registry
sys.path.insert(0, sys.argv[1])
for function in vars(registry).values():
    getattr(function, "cache_clear", lambda: None)()
"""
"""Beginning of a fork (`helpers.forks`) that is to find the packages of a folder, its argument."""


def write_page(folder: Path) -> Path:
    """Write the files of the page to a folder, `mynet.py` and `mydata.npz`."""
    for name, content in zip(FILES, blocks(PAGE, "python"), strict=False):
        (folder / name).write_text(content)
    (folder / "mynet.py").write_text(NETWORK)
    x, y = inputs(16).numpy(), np.arange(16) % 4
    np.savez(folder / "mydata.npz", x=x, y=y)
    return folder


@contextmanager
def imported(folder: Path) -> Iterator[ModuleType]:
    """Import the module `mine` of that folder for the length of the block."""
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module("mine")
    finally:
        sys.path.remove(str(folder))
        for name in FILES:
            sys.modules.pop(Path(name).stem, None)
