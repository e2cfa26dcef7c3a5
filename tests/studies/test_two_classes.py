"""Every study on a data set of two classes: a linear network, one without a linear head, and one that gives NaN."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from studies.networks import find_networks
from studies.pages import page_of
from studies.running import run_study
from studies.study import Setting, all_studies
from studies.tables import RUNTIMES, TIMES

DATASET = "pneumoniamnist"


class Squashed(nn.Module):
    """A linear layer whose outputs are not the logits."""

    def __init__(self, last: str) -> None:
        super().__init__()
        self.layer, self.last = nn.Linear(64, 2), last

    def forward(self, x: Tensor) -> Tensor:
        found = self.layer(x.flatten(1))
        return 3 * found.tanh() if self.last == "tanh" else (found - 100).sqrt()


@pytest.fixture(scope="module")
def two_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, random = tmp_path_factory.mktemp("two"), np.random.default_rng(0)
    data = folder / "data" / DATASET
    data.mkdir(parents=True)
    images, labels = random.integers(0, 256, (60, 8, 8), dtype=np.uint8), random.integers(0, 2, (60, 1), dtype=np.uint8)
    parts: dict[str, Any] = {f"{part}_{name}": array for part in ("train", "val", "test") for name, array in
             (("images", images), ("labels", labels))}  # fmt: skip
    np.savez(data / f"{DATASET}.npz", **parts)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        networks = {
            "linear": nn.Sequential(nn.Flatten(), nn.Linear(64, 2)), "squashed": Squashed("tanh"),
            "broken": Squashed("root"),
        }  # fmt: skip
    for name, network in networks.items():
        path = folder / "models" / name
        path.mkdir(parents=True)
        rows = ({0: torch.export.Dim("rows", min=1)},)
        program = torch.export.export(network.eval(), (torch.rand(2, 1, 8, 8),), dynamic_shapes=rows)
        torch.export.save(program, path / "model.pt2")
        (path / "meta.json").write_text(json.dumps({"dataset": DATASET}))
    return folder


def test_a_network_that_gives_nan_is_left_out(two_classes: Path) -> None:
    said: list[str] = []
    assert [network.name for network in find_networks(two_classes, None, said.append)] == ["linear", "squashed"]
    assert said == ["broken is left out: its gradients are zero, or its scores NaN"]


SLOW = {"average_case"}
"""It takes a minute; what it computes is seen in the test of the whole study."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in sorted(all_studies())]
)
def test_two_classes_give_a_page_and_the_same_bytes_again(name: str, two_classes: Path, tmp_path: Path) -> None:
    """All but the tables of seconds; the second run is a whole one, too."""
    study, setting = all_studies()[name], Setting(two_classes, None, "tiny", 0)
    networks = find_networks(two_classes, None, lambda _: None)
    results = run_study(study, networks, setting, tmp_path / "first")
    assert page_of(study, results).startswith("# ")
    assert all(svg.startswith("<svg") for svg in study.pictures(results).values())
    run_study(study, networks, setting, tmp_path / "second")
    first, second = (sorted((tmp_path / run / name / "results").iterdir()) for run in ("first", "second"))
    assert [path.name for path in first] == [path.name for path in second]
    for one, other in zip(first, second, strict=True):
        assert one.stem in (TIMES, RUNTIMES) or one.read_bytes() == other.read_bytes(), one.name
