"""The command that trains the networks: what it leaves, what it leaves out, what it refuses."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from helpers.data_files import idx_bytes

from brittle.errors import UsageError
from studies.train.__main__ import main
from studies.train.images import DATASETS, read
from studies.train.loop import Training
from studies.train.measured import attacked_accuracy
from studies.train.stored import CHECKPOINTS

LINEAR = "mnist_linear_plain"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a little of something like MNIST: a class is where the light is."""
    folder = tmp_path / "data" / "mnist"
    folder.mkdir(parents=True)
    for stem, count in (("train", 200), ("t10k", 50)):
        labels = (np.arange(count) % 10).astype(np.uint8)
        pixels = np.random.default_rng(0).integers(0, 60, (count, 28, 28)).astype(np.uint8)
        for image, label in zip(pixels, labels, strict=True):
            image[2 * label : 2 * label + 2] = 255
        (folder / f"{stem}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(pixels)))
        (folder / f"{stem}-labels-idx1-ubyte").write_bytes(idx_bytes(labels))
    return tmp_path / "data"


def run(data: Path, out: Path, *more: str) -> int:
    read.cache_clear()
    return main(["--size", "cpu", "--data", str(data), "--out", str(out), "--only", LINEAR, *more])


def test_a_network_is_trained_stored_and_listed(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert run(data, out) == 0
    meta = json.loads((out / LINEAR / "meta.json").read_text())
    expected = {"name": LINEAR, "dataset": "mnist", "way": "plain", "strength": None, "epochs": 5, "seed": 0}
    assert meta.items() >= (expected | {"training_points": 200, "size": "cpu", "threads": 1}).items()
    network = torch.export.load(out / LINEAR / "model.pt2").module()
    x, y = read(data / "mnist", DATASETS["mnist"], "test", None)
    assert meta["accuracy"] == float((network(x).argmax(dim=1) == y).double().mean()) > 0.5
    assert 0 <= meta["accuracy_pgd10"] <= meta["accuracy"]
    table = pd.read_parquet(out / "networks.parquet")
    assert table.to_dict("records") == [{**meta, "strength": None}]
    assert list((out / CHECKPOINTS).glob("*.pt")) == []
    assert re.search(rf"{LINEAR} +5 +200 ", capsys.readouterr().out)

    monkeypatch.setattr(Training, "epoch", lambda self: pytest.fail("it is trained again"))
    for pattern in (LINEAR, "cifar10_*"):
        assert run(data, out, "--only", pattern) == 0
        assert LINEAR in capsys.readouterr().out
        assert len(pd.read_parquet(out / "networks.parquet")) == 1
    assert run(data, out, "--seed", "1") == UsageError.exit_code
    assert f"{LINEAR} was trained from seed 0" in capsys.readouterr().err


def test_absent_data_and_networks_are_said(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(data, tmp_path / "out", "--only", "cifar10_cnn_*") == 0
    said = capsys.readouterr().out
    assert said == (
        f"there is no folder {data / 'cifar10'}; left out because of that: 11 of 11 networks\nno network is there\n"
    )
    with pytest.raises(SystemExit, match="2"):
        run(data, tmp_path / "out", "--only", "mnist_forest")
    assert "no network of the size cpu is called mnist_forest" in capsys.readouterr().err


def test_an_attack_finds_what_a_linear_network_gets_wrong_in_the_ball() -> None:
    """Two classes and pixels in the middle: right under attack where the margin is above `epsilon ||w||_1`."""
    weight = torch.tensor([[1.0, -2.0, 0.5, 0.0]])
    last = torch.nn.Linear(4, 2, bias=False)
    network = torch.nn.Sequential(torch.nn.Flatten(), last)
    with torch.no_grad():
        last.weight.copy_(torch.cat([weight, torch.zeros(1, 4)]))
    x = 0.3 + 0.4 * torch.rand(1200, 1, 2, 2, generator=torch.Generator().manual_seed(0))
    margin = x.flatten(1) @ weight[0]
    y = (margin < 0).long()
    y[::10] = 1 - y[::10]
    right = network(x).argmax(dim=1) == y
    found = attacked_accuracy(network, x, y, 0.05)
    assert found == float((right & (margin.abs() > 0.05 * 3.5)).double().mean())
