"""The study of estimators: truth, printed estimators and errors where the answer is known; and all of it, small."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from torch import nn

import brittle
from brittle.scores import Taylor, TaylorMVS
from studies.__main__ import main
from studies.counting import count_flips, equal_copies, error_of_counting
from studies.estimators.errors import errors_of
from studies.estimators.printed import mmse_family, taylor, taylor_mvs
from studies.over_networks import mean_interval, over_networks


def halfspace(weight: float = 2.0) -> nn.Module:
    """Two classes in one dimension: `p_robust = Phi(|x| / sigma)`."""
    network = nn.Linear(1, 2, bias=False)
    network.weight.data = torch.tensor([[weight], [0.0]])
    return network


def linear_network(classes: int = 4, size: int = 6) -> nn.Linear:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return nn.Linear(size, classes)


POINTS = torch.rand(7, 6, generator=torch.Generator().manual_seed(1))


def test_flips_are_counted() -> None:
    """Three points of known flip probability, within 5 standard errors; the seed is fixed."""
    x, draws = torch.tensor([[0.05], [-0.1], [0.4]]), 20_000
    flips = count_flips(halfspace(), x, 0.1, draws, 0).double() / draws
    truth = stats.norm.sf(x.abs()[:, 0] / 0.1)
    assert (np.abs(flips.numpy() - truth) < 5 * np.sqrt(truth * (1 - truth) / draws) + 1e-12).all()


@pytest.mark.parametrize("draws", [1, 7, 40])
def test_the_error_of_counting_is_that_of_its_law(draws: int) -> None:
    flip, reference = np.array([0.0, 0.013, 0.25, 0.5, 1.0]), 10**12
    counts = np.arange(draws + 1)
    expected = [(stats.binom.pmf(counts, draws, p) * np.abs(counts / draws - p)).sum() for p in flip]
    assert error_of_counting(flip, draws, reference) == pytest.approx(np.mean(expected), abs=1e-9)


def test_copies_of_equal_error() -> None:
    """Measured against the same reference; to the steps of a binomial law at whole numbers of copies."""
    flip, reference = np.array([0.2, 0.4, 0.5]), 3000
    for ratio in (0.4, 1.0, 2.0):
        copies = equal_copies(ratio, 400, reference)
        expected = ratio * error_of_counting(flip, 400, reference)
        assert error_of_counting(flip, copies, reference) == pytest.approx(expected, rel=0.02)
    assert error_of_counting(flip, 3000, 3000) == pytest.approx(
        2**0.5 * error_of_counting(flip, 3000, 10**12), rel=1e-6
    )
    assert equal_copies(0.1, 400, reference) == math.inf


def test_printed_linear_estimators_are_exact_on_linear_networks() -> None:
    """Beside a count of 40,000 copies at each point, within 5 standard errors; and beside the library, to its error."""
    network, sigma, draws = linear_network(), 0.4, 40_000
    counted = 1 - count_flips(network, POINTS, sigma, draws, 0).double() / draws
    p_robust = taylor(network, POINTS, sigma, 0, torch.Generator())
    assert ((p_robust - counted).abs() < 5 * (counted * (1 - counted) / draws).sqrt() + 1e-3).all()
    classifier = brittle.Classifier(network, bounds="none")
    assert torch.allclose(p_robust, 1 - Taylor(sigma)(classifier, POINTS).value, atol=1e-3)
    sigmoid = taylor_mvs(network, POINTS, sigma, 0, torch.Generator())
    assert torch.allclose(sigmoid, 1 - TaylorMVS(sigma)(classifier, POINTS).value, atol=1e-6)
    for _, integral, _ in mmse_family(network, POINTS, sigma, (2000,), torch.Generator().manual_seed(0)):
        assert torch.allclose(integral, p_robust, atol=0.05)


def estimates(values: list[float], low: list[float], high: list[float]) -> pd.DataFrame:
    names = {"origin": "library", "estimator": "mine", "budget": 5, "passes": 6.0}
    return pd.DataFrame({**names, "point": range(len(values)), "p_robust": values, "low": low, "high": high})


def test_errors_are_those_of_the_numbers_that_are_there() -> None:
    """Truths 1, 0.9, 0.5 and 0.2 of 1,000 copies; one estimate is missing, one interval misses, one just does not."""
    flips = np.array([0, 100, 500, 800])
    nan = math.nan
    row = errors_of(estimates([1.0, 0.8, nan, 0.4], [0.9, 0.7, nan, 0.24], [1.0, 0.86, nan, 0.5]), flips, 1000).iloc[0]
    assert (row["points"], row["intervals"], row["missed"], row["outside"]) == (3, 3, 1, 2)
    assert row["error"] == pytest.approx((0 + 0.1 + 0.2) / 3)
    assert row["bias"] == pytest.approx((0 - 0.1 + 0.2) / 3)
    assert row["width"] == pytest.approx((0.1 + 0.16 + 0.26) / 3)
    assert row["kendall"] == row["spearman"] == pytest.approx(1)
    assert row["ratio"] == pytest.approx(0.1 / error_of_counting(np.array([0, 0.1, 0.8]), 6 - 1, 1000))


def test_means_over_networks() -> None:
    """One of nine has no error; the geometric mean of the ratios is 2 to the power of 1.5."""
    errors, ratios = [1.0, 2, math.nan, 6, 1, 2, 6, 2, 4], [1, 2, 4, 8, *[2**1.5] * 5]
    frame = pd.DataFrame({"network": list("abcdefghi"), "level": "small", "error": errors, "ratio": ratios})
    (row,) = over_networks(frame, ["level"], ["error"], ["ratio"], 0).to_dict("records")
    assert row["networks"] == 9
    assert row["error"] == 3
    assert row["ratio"] == pytest.approx(2**1.5)
    assert 1 <= row["error_low"] < 3 < row["error_high"] <= 6
    assert mean_interval(np.array([1.0, 2.0]), 0)[0] == 1.5
    assert np.isnan(mean_interval(np.array([1.0, 2.0]), 0)[1:]).all()


def test_the_whole_study(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It leaves out what it cannot measure, finds Taylor exact on a linear network, and measures a user's estimator."""
    monkeypatch.chdir(tmp_path)
    code = "import torch\ndef half(network, points, sigma, draws, generator):\n    network(points)\n"
    (tmp_path / "mine.py").write_text(
        code + "    p = torch.full((len(points),), 0.5)\n    return p, p - 0.5, p + 0.5\n"
    )
    arguments = ["estimators", "--shared", str(shared), "--out", str(tmp_path), "--size", "tiny"]
    assert main([*arguments, "--estimator", "mine.py:half"]) == 0
    output = capsys.readouterr().out
    assert "steps is left out: its gradients are zero" in output
    assert "others is left out: there is no folder of data" in output
    frame = pd.read_parquet(tmp_path / "estimators" / "results" / "estimators.parquet")
    linear = frame[(frame["origin"] == "library") & (frame["estimator"] == "taylor")].set_index("level")
    assert linear["error"].max() < 0.05  # the reference has 200 copies of 12 points
    assert (linear["passes"] == 4).all()
    assert frame["points"].max() == 12
    users = frame.query("origin == 'of a user'")
    assert set(users["estimator"]) == {"mine.py:half"}
    assert set(users["budget"]) == {5, 10}
    assert (users["passes"] == 1).all()
    assert (users["width"] == 1).all()
