"""Runs with several processes, on this machine or a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from brittle.cli.commands import main

NETWORK = """
import os, signal
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(12, 3)

    def forward(self, x):
        poisoned = (x.flatten(1)[:, 0] == 0.123).any()
        if poisoned and "POISON" in os.environ and "spawn_main" in open("/proc/self/cmdline").read():
            os.kill(os.getpid(), signal.SIGSEGV)
        return self.layer(x.flatten(1))


def make():
    print("a model that talks")
    return Net().eval()
"""

COUNT = 700
"""Points: eleven shards."""

POISONED = 303
"""The row that kills a worker."""


def prepare(place: Path, points: int = COUNT, network: str = NETWORK) -> Path:
    (place / "net.py").write_text(network)
    x = np.random.default_rng(0).random((points, 12), dtype=np.float32)
    x[POISONED:, 0][:1] = 0.123
    np.savez(place / "data.npz", x=x, y=np.arange(points) % 3)
    return place


def line(project: Path, name: str, *options: str) -> list[str]:
    model, data = f"{project / 'net.py'}:make", str(project / "data.npz")
    scores = ["--scores", "moments", "logit_margin", "--draws", "4", "--quiet"]
    return ["score", model, data, "--out", str(project / name), *scores, *options]


def run(project: Path, name: str, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    arguments = line(project, name, *options)
    monkeypatch.setattr(sys, "argv", ["brittle", *arguments])
    return main(arguments)
