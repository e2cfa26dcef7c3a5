"""Advice to leave an option out names options that were given, each of them, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.commands import score
from helpers.text_models import LABELS, TEXTS, Model, Tokenizer, pretend, text_folder
from sklearn.linear_model import LogisticRegression

import brittle
from brittle.cli import main
from brittle.errors import ParameterError

FOREST = """
import numpy as np
from sklearn.linear_model import LogisticRegression
def make():
    x = np.random.default_rng(0).normal(size=(60, 6))
    return LogisticRegression().fit(x, x[:, 0] > 0)
"""


def advised(said: str) -> set[str]:
    """The options that a refusal says to leave out."""
    return set(re.findall(r"--[a-z0-9-]+", said.partition("leave out ")[2]))


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ("--radius 1 --sigma 0.1", "--sigma"),
        ("--radius 1 --noise uniform", "--noise"),
        ("--radius 1 --noise uniform --sigma 0.1", "--noise --sigma"),
        ("--noise rotation:15 --sigma 0.1", "--sigma"),
        ("--noise rotation --sigma 15", "--sigma"),
        ("--split test", "--split"),
        ("--layout nhwc", "--layout"),
        ("--scale-uint8", "--scale-uint8"),
        ("--decision top:2 --outputs binary-logit", "--decision --outputs"),
    ],
)
def test_of_a_command(place: Path, capsys: pytest.CaptureFixture[str], options: str, wrong: str) -> None:
    np.savez(place / "data.npz", x=torch.rand(8, 6).numpy(), y=np.arange(8) % 3)
    assert score(*options.split()) != 0
    assert advised(capsys.readouterr().err) == set(wrong.split())


@pytest.mark.parametrize("options", ["--bounds 0 2", "--mean 0.1", "--mean 0.1 --std 2"])
def test_of_a_model_of_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: str
) -> None:
    monkeypatch.chdir(tmp_path)
    pretend(monkeypatch, Model(), Tokenizer())
    text_folder(tmp_path / "bert")
    rows = [f"{text},{label}" for text, label in zip(TEXTS, LABELS, strict=True)]
    Path("reviews.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    assert main(["score", "bert", "reviews.csv", "--out", "run", "--noise", "relative:0.5", *options.split()]) == 2
    assert advised(capsys.readouterr().err) == {one for one in options.split() if one.startswith("--")}


@pytest.mark.parametrize("options", ["--decision one-logit", "--outputs binary-logit"])
def test_of_an_estimator(place: Path, capsys: pytest.CaptureFixture[str], options: str) -> None:
    (place / "forest.py").write_text(FOREST)
    assert main(["score", "./forest.py:make", "data.npz", "--out", "run", *options.split()]) == 3
    assert advised(capsys.readouterr().err) == {options.split()[0]}
    option, value = options.removeprefix("--").split()
    fitted = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ParameterError) as caught:
        brittle.Classifier(fitted, **{option: value})  # pyright: ignore[reportArgumentType] one of two words
    assert f"({option}=)" in str(caught.value)
