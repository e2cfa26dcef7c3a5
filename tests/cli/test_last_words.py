"""Commands in one process: failures inside PyTorch or onnxruntime print nothing on stderr; no idle imports."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.forks import forked
from helpers.onnx_files import file_of

NETWORKS = """
import torch
from torch import nn

def layers():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 4)).eval()

class Around(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.layers, self.change = layers(), change

    def forward(self, x):
        return self.change(self.layers, x)

def branch():
    return Around(lambda layers, x: layers(x) if x.mean() > -1 else layers(-x)).eval()

"""

RUN = """
import sys
from brittle.cli.commands import main

scores = ["--scores", "input_margin", "--effort", "fast"]
main(["score", "networks.py:layers", "data.npz", "--out", "first", *scores])
print(*sys.modules, flush=True)
scores += ["--set", "input_margin.certify=true"]
for number, name in enumerate(sys.argv[1:]):
    print("##", name, file=sys.stderr, flush=True)
    model = name if name.endswith(".onnx") else f"networks.py:{name}"
    command = ["doctor"] if name == "wrong.onnx" else ["score", "--out", f"run{number}"]
    main([*command, model, "data.npz", *scores])
"""

FAILING = ("branch", "wrong.onnx")
OURS = ("brittle: ", "scoring: ")

NOT_NEEDED = {"sympy", "scipy.ndimage", "scipy.optimize", "scipy.stats"}
"""Modules that take long to import, and that a run with the gradients of a network does not call."""

IMPORTED = "imported"


@pytest.fixture(scope="module")
def stderr_lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Run one process, and return its lines on stderr for each network, and its imports."""
    place = tmp_path_factory.mktemp("words")
    (place / "networks.py").write_text(NETWORKS)
    np.savez(place / "data.npz", x=np.random.default_rng(0).random((1, 1, 6, 6)).astype(np.float32))
    steps = [("Flatten", ["x"], ["f"], {}), ("MatMul", ["f", "w"], ["scores"], {})]
    weight = {"w": np.ones((20, 4), np.float32)}
    (place / "wrong.onnx").write_bytes(file_of(steps, weight, "rows", (1, "height", 6)))
    process = forked(RUN, *FAILING, cwd=place)
    assert process.returncode == 0, process.stderr
    parts = process.stderr.replace("\r", "\n").split("## ")[1:]
    parts.append("\n".join([IMPORTED, *process.stdout.splitlines()[0].split()]))
    return {part.partition("\n")[0]: [line for line in part.splitlines()[1:] if line.strip()] for part in parts}


@pytest.mark.parametrize("name", FAILING)
def test_only_our_own_sentences_are_on_stderr(stderr_lines: dict[str, list[str]], name: str) -> None:
    foreign = [line for line in stderr_lines[name] if not line.startswith(OURS)]
    assert foreign == []


def test_a_run_makes_no_slow_idle_import(stderr_lines: dict[str, list[str]]) -> None:
    assert "scipy.special" in stderr_lines[IMPORTED]
    assert NOT_NEEDED.isdisjoint(stderr_lines[IMPORTED])
