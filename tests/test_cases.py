"""Bad inputs that no room shows alone: pixels, logits, gradients, places that cannot be written, clocks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from helpers.problems import Wrapped, inputs, small_classifier
from torch import Tensor, nn

import brittle
from brittle.cli import main
from brittle.errors import BrittleError, DataError
from brittle.scores import LogitMargin, Moments, MonteCarlo, Softmax, Taylor

# Pixels unlike those that the model was trained on.


class Colours(nn.Module):
    """A network for colour images with pixels from 0 to 255, whose predictions hang on the scale and the channels."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.network = nn.Sequential(nn.Flatten(), nn.Linear(48, 32), nn.Tanh(), nn.Linear(32, 6))
            for parameter in self.parameters():
                nn.init.normal_(parameter)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.network((x - 127.5) / 64)


UNLIKE: dict[str, tuple[Callable[[Tensor], Tensor], tuple[float, float]]] = {
    "255 times too dark": (lambda x: x / 255, (0, 1)),
    "normalised twice": (lambda x: (x - 127.5) / 64, (-2, 2)),
    "blue before red": (lambda x: x.flip(1), (0, 255)),
}


@pytest.mark.parametrize("kind", UNLIKE)
def test_pixels_unlike_those_of_training_miss_the_accuracy(kind: str) -> None:
    """Labels are what the network says of the pixels as they should be, of which all are then right."""
    right = 255 * inputs(300, (3, 4, 4))
    labels = Colours()(right).argmax(1)
    change, bounds = UNLIKE[kind]
    options = {"scores": [Softmax()], "expected_accuracy": 0.9}
    sound = brittle.score(brittle.Classifier(Colours(), (0, 255)), (right, labels), **options)
    assert all(sound.points["correct"].to_pylist())
    with pytest.raises(DataError, match=r"300 labelled rows .* 0.9") as caught:
        brittle.score(brittle.Classifier(Colours(), bounds), (change(right), labels), **options)
    assert caught.value.code == "accuracy_guard"


# Logits and gradients.


def test_a_point_without_a_gradient_keeps_its_sampled_score() -> None:
    """One of 40, which is too few to stop the run; the other points have both numbers."""
    x = inputs(40).clamp_min(0.3)
    x[7, 0, 0, 0] = 0.0

    def flat_in_a_corner(x: Tensor, logits: Tensor) -> Tensor:
        return torch.where((x[:, 0, 0, 0] < 0.01)[:, None], logits.detach(), logits)

    table = brittle.score(brittle.Classifier(Wrapped(flat_in_a_corner)), (x, None), [Taylor(0.1), MonteCarlo(0.1)])
    lost = [(row["point"], row["score"], row["status"]) for row in table.scores.to_pylist() if row["value"] is None]
    assert lost == [("7", "taylor", "zero_gradient")]


# Parameters.


# Storage.


def run(out: Path, *, resume: bool = False) -> brittle.Table:
    data = (inputs(20), torch.arange(20) % 4)
    return brittle.score(small_classifier(), data, [Moments(0.1, draws=4), LogitMargin()], out=out, resume=resume)


@pytest.mark.parametrize("options", [[], ["--resume"]], ids=["new", "resumed"])
def test_an_unwritable_place_is_said_before_the_model_is_loaded(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model would take a minute; what is said names the place, and nothing is made."""
    (tmp_path / "net.py").write_text("import time\n\ntime.sleep(60)\n")
    (tmp_path / "file").write_text("")
    before = sorted(tmp_path.iterdir())
    started = time.monotonic()
    out = tmp_path / "file" / "deeper" / "run"
    assert main(["score", f"{tmp_path / 'net.py'}:make", "absent.npz", "--out", str(out), *options]) == 7
    assert time.monotonic() - started < 5
    said = capsys.readouterr().err
    assert said.startswith("brittle: unwritable: ")
    assert str(out) in said
    assert sorted(tmp_path.iterdir()) == before


def test_a_closed_folder_is_unwritable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system is made to say so, because nothing is closed to a superuser."""
    monkeypatch.setattr(os, "access", lambda place, mode: mode == os.F_OK and Path(place) == tmp_path)
    with pytest.raises(BrittleError, match=str(tmp_path)) as caught:
        run(tmp_path / "a" / "run")
    assert caught.value.code == "unwritable"
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_not_read(tmp_path: Path) -> None:
    whole = run(tmp_path)
    for name in (".scores-00001.parquet.tmp", "scores-00007.parquet", "points-00007.parquet", ".manifest.json.tmp"):
        (tmp_path / name).write_bytes(b"half")
    found = brittle.read_table(tmp_path)
    assert found.scores.equals(whole.scores)
    assert found.points.equals(whole.points)
