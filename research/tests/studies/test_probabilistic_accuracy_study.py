"""The study of probabilistic robust accuracy, where the flip probability of every point is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from torch import nn

from studies.__main__ import main
from studies.probabilistic_accuracy.blocks import COPIES, flips_by_block
from studies.probabilistic_accuracy.summary import RHOS, accuracies


def drawn(flip: np.ndarray, blocks: int) -> np.ndarray:
    """Draw counts of points of these flip probabilities."""
    return np.random.default_rng(0).binomial(COPIES, flip[:, None], (len(flip), blocks))


def test_flips_are_counted_in_blocks() -> None:
    """Three points of known flip probability, within 5 standard errors; every block has draws of its own."""
    network = nn.Linear(1, 2, bias=False)
    network.weight.data = torch.tensor([[2.0], [0.0]])
    x, blocks = torch.tensor([[0.05], [-0.1], [0.4]]), 100
    flips = flips_by_block(network, x, 0.1, blocks, 0).numpy()
    truth = stats.norm.sf(x.abs()[:, 0] / 0.1)
    draws = blocks * COPIES
    assert (np.abs(flips.sum(axis=1) / draws - truth) < 5 * np.sqrt(truth * (1 - truth) / draws) + 1e-12).all()
    assert len(set(flips[0].tolist())) > 5
    assert flips_by_block(network, x[:1], 0.1, blocks, 0)[0].tolist() == flips[0].tolist()


@pytest.mark.parametrize("rho", RHOS)
def test_the_truth_and_the_usual_estimate_of_known_points(rho: float) -> None:
    """Points at a tenth of the limit, at three times it, and at a tenth again that are predicted wrongly.

    The usual estimate is the mean of `(1 - p)^100`, within 5 standard errors over 400 blocks; the seed is fixed.
    """
    limit = 1 - rho
    flip = np.repeat([0.1 * limit, 3 * limit, 0.1 * limit], [60, 30, 10])
    correct = np.arange(100) < 90
    row = accuracies(correct, drawn(flip, 400), rho)
    assert (row["right"], row["truth_low"], row["truth_high"]) == (0.9, 0.6, 0.6)
    passing = (1 - flip) ** COPIES * correct
    spread = np.sqrt((passing * (1 - passing)).sum() / 400) / len(flip)
    assert row["usual"] == pytest.approx(passing.mean(), abs=5 * spread)
    assert row["usual_least"] <= row["usual"] <= row["usual_most"]
    expected = passing[60:90].sum() / passing.sum()
    assert row["false"] == pytest.approx(expected, abs=0.005)
    assert row["doubted"] == pytest.approx(1 - passing[:60].mean(), abs=0.02)


def test_the_whole_study(shared: Path, tmp_path: Path) -> None:
    """Twelve points of a linear network; the truth of 400 copies and the library's answer meet at every limit."""
    arguments = ["probabilistic_accuracy", "--shared", str(shared), "--out", str(tmp_path), "--size", "tiny"]
    assert main(arguments) == 0
    frame = pd.read_parquet(tmp_path / "probabilistic_accuracy" / "results" / "accuracy.parquet")
    assert frame["network"].unique().tolist() == ["linear"]
    assert len(frame) == 2 * len(RHOS)
    assert ((frame["lower"] <= frame["truth_high"]) & (frame["truth_low"] <= frame["upper"])).all()
    assert (frame["draws"] == 4 * COPIES).all()
