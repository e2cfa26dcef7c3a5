"""`--bounds`: two numbers, none, or a file of those per feature."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.commands import score

import brittle
from brittle.cli.commands import main
from brittle.cli.options import bounds_of
from brittle.errors import UsageError

FAST = ("--scores", "logit_margin", "--quiet")


def shape() -> tuple[int, ...]:
    return np.load("data.npz")["x"].shape[1:]


def save_feature_bounds() -> None:
    lower, upper = np.zeros(shape()), np.ones(shape())
    upper.flat[0], lower.flat[1] = np.inf, -2.0
    np.save("bounds.npy", np.stack([lower, upper]))


@pytest.mark.parametrize("how", [("none",), ("-inf", "inf")], ids=str)
def test_no_bounds(place: Path, how: tuple[str, ...]) -> None:
    np.savez("far.npz", x=1e3 * np.load("data.npz")["x"] - 300, y=np.load("data.npz")["y"])
    assert score(*FAST, data="far.npz") != 0
    assert score("--bounds", *how, *FAST, data="far.npz") == 0
    model = brittle.read_table("run").record.model
    assert (model.bounds, model.lower, model.upper) == (None, None, None)


def test_a_file_of_the_bounds_of_each_feature(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_feature_bounds()
    assert score("--bounds", "bounds.npy", *FAST) == 0
    model = brittle.read_table("run").record.model
    assert model.bounds is None
    assert model.bounds_shape == shape()
    assert (model.upper or ())[:2] == (None, 1.0)
    assert (model.lower or ())[:2] == (0.0, -2.0)
    data = dict(np.load("data.npz"))
    data["x"][3].flat[2] = 1.5
    np.savez("outside.npz", **data)
    assert score("--bounds", "bounds.npy", *FAST, data="outside.npz", out="other") != 0
    place_of_value = "the first of them row 3, which holds 1.5 at the feature in place 2, outside [0, 1]"
    assert f"in 1 of 8 rows, {place_of_value}" in capsys.readouterr().err


def test_without_a_common_range_sigma_is_required(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_feature_bounds()
    for number, bounds in enumerate(("none", "bounds.npy")):
        assert score("--bounds", bounds, "--quiet", out=f"run{number}") == 2
        assert "--noise per-feature --sigma 0.1" in capsys.readouterr().err
        assert score("--bounds", bounds, "--quiet", "--sigma", "0.1", out=f"run{number}") == 0


def test_invalid_bounds_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("no array")
    np.save(tmp_path / "odd.npy", np.zeros((3, 4)))
    files = [(str(tmp_path / f"{name}.npy"),) for name in ("text", "odd", "absent")]
    for words in (("a", "b"), ("none", "1"), ("0",), ("0", "1", "2"), *files):
        with pytest.raises(UsageError, match="bounds"):
            bounds_of(words)


def test_model_and_data_must_come_before_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "--bounds", "0", "1", "net.py:make", "data.npz"]) == 2
    message = capsys.readouterr().err
    assert "MODEL" in message
    assert "before the options" in message
