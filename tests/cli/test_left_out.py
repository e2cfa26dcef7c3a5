"""Advice to leave an option out names options that were given, each of them, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.commands import score


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
