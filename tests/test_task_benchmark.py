"""The reference of `benchmarks/tasks`, which every printed error is taken from, where it is known."""

from __future__ import annotations

import importlib
import math
import runpy
import sys

import pytest
import torch
from helpers.documents import ROOT

FOLDER = ROOT / "benchmarks" / "tasks"


def test_the_reference_is_the_known_answer_of_a_linear_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 draws at two points, within 5 standard errors: fails once in a million runs, and the seed is fixed."""
    monkeypatch.syspath_prepend(str(FOLDER))
    tasks = runpy.run_path(str(FOLDER / "__main__.py"))
    errors, network = importlib.import_module("task_errors"), torch.nn.Linear(3, 1)
    points = torch.tensor([[0.1, 0.0, 0.2], [0.3, -0.1, 0.0]])
    setting = errors.Setting("", network, None, points, tasks["normal"](0.5), tasks["near"], {})
    found = errors.reference(setting, 20_000)
    spread = 0.5 * float(network.weight.detach().norm())
    truth = math.erfc(tasks["TOLERANCE"] / spread / math.sqrt(2))
    assert (found - truth).abs().max() < 5 * math.sqrt(truth * (1 - truth) / 20_000)
    for name in [name for name in sys.modules if name.startswith("task_")]:
        sys.modules.pop(name)
