"""The option `--noise` with families that have levels of their own, learn from the data, or are functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.commands import score

import brittle
from brittle import registry
from brittle.extensions.workers.join import join

pytestmark = pytest.mark.usefixtures("nothing_drawn")  # words are what counts here

LIGHT = """
import torch
class Chosen: pass
def light(x, generator):
    return x + {most} * torch.rand(1, generator=generator)
def one(x):
    return x
"""


def labels() -> list[str]:
    return [entry.label for entry in brittle.read_table("run").record.scores]


@pytest.mark.parametrize(
    ("noise", "settings"),
    [
        ("rotation:5,15", ["rotation 5 degrees", "rotation 15 degrees"]),
        ("decibels:20", ["20 dB"]),
        ("swap:0.1", ["swap 0.1 of the coordinates"]),
        ("gaussian-blur:1", ["gaussian_blur 1 pixels"]),
        ("sphere:0.5", ["sigma 0.0833333, sphere"]),
    ],
    ids=str,
)
def test_levels_follow_a_colon(place: Path, noise: str, settings: list[str]) -> None:
    assert score("--quiet", "--scores", "shrinkage", "--noise", noise, "--draws", "10") == 0
    assert [str(column.setting) for column in brittle.read_table("run").columns] == settings


def test_categories_are_unchanged_and_named(place: Path) -> None:
    draw = np.random.default_rng(0)
    rows = [",".join(map(str, (*draw.random(4).round(4), number % 2))) for number in range(8)]
    Path("data.csv").write_text("\n".join(["a,b,c,d,label", *rows]))
    Path("net.py").write_text("import torch\ndef make():\n    torch.manual_seed(0)\n    return torch.nn.Linear(4, 2)\n")
    options = ["--quiet", "--scores", "taylor", "--noise", "per-feature", "--sigma", "0.1"]
    assert score(*options, "--categories", "b", "d", data="data.csv") == 0
    noise = brittle.read_table("run").record.scores[0].noise
    assert noise is not None
    assert "b, d unchanged" in noise.explanation


@pytest.mark.every_other
@pytest.mark.parametrize("noise", ["per-feature", "swap:0.3"])
@pytest.mark.parametrize("selection", [["--points", "5"], ["--sample", "6"], ["--ids", "open.csv"]], ids=str)
def test_noise_of_chosen_points_is_learned_from_all(place: Path, noise: str, selection: list[str]) -> None:
    """Their numbers are those of a run over all points, so that a later run over some can be joined to it."""
    draw = np.random.default_rng(0)
    rows = [",".join(map(str, (*(draw.random(4) * (1 + number)).round(4), number % 2))) for number in range(20)]
    Path("data.csv").write_text("\n".join(["a,b,c,d,label", *rows]))
    Path("net.py").write_text("import torch\ndef make():\n    torch.manual_seed(0)\n    return torch.nn.Linear(4, 2)\n")
    Path("open.csv").write_text("point\n3\n17\n")
    options = ["--quiet", "--scores", "monte_carlo", "--noise", noise, "--draws", "40"]
    options += ["--sigma", "0.5"] if noise == "per-feature" else []
    assert score(*options, data="data.csv") == 0
    assert score(*options, *selection, data="data.csv", out="some") == 0
    (part,), (population,) = (brittle.read_table(run).columns for run in ("some", "run"))
    assert part.label == population.label
    assert 0 < len(part.value) < 20
    assert part.value.tolist() == population.value[part.value.index].tolist()
    assert join("all", ["run", "some"]).account.points == 20


def test_a_function_in_a_file_is_noise_with_recorded_code(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(LIGHT.format(most=0.2))
    options = ["--quiet", "--scores", "shrinkage", "--noise", "./mine.py:light", "--draws", "10"]
    assert score(*options) == 0
    assert [str(column.setting) for column in brittle.read_table("run").columns] == ["light()"]
    assert set(brittle.read_table("run").record.scores[0].code or {}) == {"mine.py"}
    assert score(*options, "--resume") == 0
    Path("mine.py").write_text(LIGHT.format(most=0.3))
    assert score(*options, "--resume") != 0
    assert "another run" in capsys.readouterr().err


def test_noise_of_a_missing_extension_names_it(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(registry.PARTS, "noise.gone", "vanished.noise:GONE")
    for noise in ("gone", "gone:0.1", "gone:FILE.json"):
        assert score("--noise", noise) != 0
        assert "gone is of the extension vanished" in capsys.readouterr().err
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--noise", "rotation"], "--noise rotation:15"),
        (["--noise", "rotation:x"], "needs a level"),
        (["--noise", "per-feature"], "needs --sigma"),
        (["--noise", "relative"], "needs --sigma"),
        (["--categories", "a"], "--categories is for"),
        (["--noise", "per-feature", "--sigma", "0.1", "--categories", "zz"], "no feature is called 'zz'"),
        (["--noise", "rotation", "--sigma", "15"], "behind a colon, such as --noise rotation:15; leave out --sigma"),
        (["--noise", "rotate:5"], "no noise is called 'rotate'; did you mean rotation?"),
        (["--noise", "pink"], "there are gaussian, uniform, laplace, sphere, ball, per_feature, relative, "),
        (["--noise", "relative:-1"], "--noise relative:-1 needs a level above 0; found -1"),
        (["--noise", "sphere:0"], "--noise sphere:0 needs a level above 0; found 0"),
        (["--noise", "rotation:200"], "at most 180"),
        (["--noise", "rotation:15", "--scores", "taylor"], "taylor needs noise that is added"),
        (["--noise", "./mine.py:one"], "noise is a function (x, generator)"),
        (["--noise", "decibels:20", "--scores", "softmax"], "for scores under noise"),
    ],
    ids=str,
)
def test_contradictory_options_are_refused(
    place: Path, capsys: pytest.CaptureFixture[str], options, message: str
) -> None:
    Path("mine.py").write_text(LIGHT.format(most=0.2))
    assert score(*options) != 0
    assert message in " ".join(capsys.readouterr().err.split())
    assert not Path("run").exists()
