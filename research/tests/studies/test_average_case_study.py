"""The study of average-case robustness, on networks and problems whose answers are known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

from studies.__main__ import main
from studies.average_case.constants import needed
from studies.average_case.curvature import FIRST, SECOND, SHIFT, bounds, counterexample, curvatures
from studies.average_case.estimating import MMSE_, SOFTMAX, TAYLOR, TAYLOR_MVS, TAYLOR_SCALED, estimates
from studies.average_case.measures import SIZES
from studies.average_case.pictures import pictures
from studies.average_case.read import Results, times_as_long
from studies.average_case.sigmoid import SCALE, multivariate_sigmoid, normal_integral
from studies.average_case.summary import errors
from studies.average_case.timing import COUNTING, LIBRARY, PAPER_COPIES, PAPER_DRAWS, PRINTED, SMALL, runtimes
from studies.pages import page_of
from studies.study import all_studies
from studies.tables import Frame, frames_of, read_tables


def line(slope: float = 2.0) -> nn.Linear:
    """Two classes, whose margin is `slope * x`."""
    network = nn.Linear(1, 2, bias=False)
    network.weight.data = torch.tensor([[slope], [0.0]])
    return network


def test_estimators_of_a_linear_network_are_closed_forms() -> None:
    x, sigma = torch.tensor([[0.05], [0.1], [0.4]]), 0.1
    rows: Frame = estimates(line(), x, (sigma,), (2,), 0)
    p_robust = rows.set_index("estimator")["p_robust"]
    places = x.abs()[:, 0].numpy() / sigma
    assert p_robust[TAYLOR].to_numpy() == pytest.approx(stats.norm.cdf(places), abs=1e-6)
    assert p_robust[TAYLOR_MVS].to_numpy() == pytest.approx(1 / (1 + np.exp(-places)), rel=1e-6)
    assert p_robust[TAYLOR_SCALED].to_numpy() == pytest.approx(1 / (1 + np.exp(-SCALE * places)), rel=1e-6)
    assert p_robust[SOFTMAX].to_numpy() == pytest.approx(1 / (1 + np.exp(-2 * sigma * places)), rel=1e-6)
    assert p_robust[MMSE_].between(0, 1).all()


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_the_sigmoid_and_the_integral_meet_at_zero(dimension: int) -> None:
    """With correlations of one half all competitors are as likely to be the largest as the predicted class."""
    correlation, place = np.full((dimension, dimension), 0.5) + 0.5 * np.eye(dimension), np.zeros(dimension)
    assert normal_integral(place, correlation) == pytest.approx(1 / (dimension + 1), abs=1e-4)
    assert multivariate_sigmoid(place[None])[0] == pytest.approx(1 / (dimension + 1))
    assert normal_integral(place, np.eye(dimension)) == pytest.approx(0.5**dimension)


def counted(flips: list[int], draws: int) -> pd.DataFrame:
    """Return counts at one sigma."""
    return pd.DataFrame({"sigma": 0.1, "point": range(len(flips)), "flips": flips, "draws": draws})


def test_errors_are_taken_from_the_count() -> None:
    keys = {"sigma": 0.1, "estimator": TAYLOR, "draws": 0, "point": range(3), "passes": 11}
    row = errors(counted([0, 500, 1000], 1000), pd.DataFrame({**keys, "p_robust": [1.0, 0.7, np.nan]})).iloc[0]
    assert (row["error"], row["bias"], row["missing"]) == pytest.approx((0.1, 0.1, 1 / 3))
    assert row["kept"] == 0.5
    assert row["floor"] == pytest.approx(np.sqrt(0.25 / 1000 * 2 / np.pi) / 3, rel=1e-3)


@pytest.mark.parametrize("dimension", [3, 30, 3000])
def test_the_counterexample_is_what_simulation_gives(dimension: int) -> None:
    """Within 5 standard errors of 200,000 draws; the product allows nothing, the sum enough."""
    expected, random = counterexample(dimension), np.random.default_rng(0)
    linear_draws, bent_draws = random.standard_normal((2, 200_000))
    remainder = random.chisquare(dimension - 2, 200_000)
    holds = (FIRST + linear_draws > 0) & (SECOND + bent_draws + SHIFT / dimension * (bent_draws**2 + remainder) > 0)
    assert expected["truth"] == pytest.approx(holds.mean(), abs=5 * holds.std() / math.sqrt(200_000))
    assert expected["product"] < abs(expected["truth"] - expected["taylor"]) < expected["sum"]


class Quadratic(nn.Module):
    """Margins `1 + u x + x^T A x`, `A` of largest eigenvalue 3 and `|u| = 5`, and `1 + u x`; their product is zero."""

    def forward(self, x: Tensor) -> Tensor:
        straight = 1 + x @ torch.tensor([3.0, 4.0, 0.0])
        bent = straight + x.square() @ torch.tensor([1.0, 0.5, 3.0])
        return torch.stack([0 * straight, -bent, -straight], 1)


def test_curvatures_of_a_quadratic_are_its_eigenvalues() -> None:
    """The mean of those of a diagonal matrix is exact for every direction of signs."""
    curvature = curvatures(Quadratic(), torch.zeros(2, 3), 0.1, 0)
    assert curvature.largest[:, 0].tolist() == pytest.approx([3, 3], rel=0.02)
    assert curvature.mean[:, 0].tolist() == pytest.approx([1.5, 1.5], rel=1e-3)
    assert curvature.largest[:, 1].tolist() == curvature.mean[:, 1].tolist() == pytest.approx([0, 0], abs=1e-4)
    assert curvature.length.flatten().tolist() == pytest.approx([5] * 4)
    bound = bounds(Quadratic(), torch.zeros(2, 3), 0.1, 0)
    assert bound["sum"].tolist() == pytest.approx([math.log10(0.1 * math.sqrt(3) * 3 / 5)] * 2, abs=0.02)
    assert bound["sum_mmse"].tolist() == pytest.approx([math.log10(0.1 * math.sqrt(3) * 1.5 / 5)] * 2, abs=0.03)
    assert (bound[["product", "product_mmse"]].to_numpy() < -4).all()
    assert bound["margins"].tolist() == [2, 2]


def asked(error: np.ndarray, **columns: object) -> pd.DataFrame:
    """Points at which Taylor says 1 and so many flip; MMSE is right."""
    same = {"margins": 2, "product": 0.0, "sum": 0.0, "product_mmse": 0.0, "sum_mmse": 0.0, "taylor": 1.0}
    flips = (10_000 * error).astype(int)
    return pd.DataFrame({**same, "mmse": 1 - flips / 10_000, "flips": flips, "draws": 10_000, **columns})


def of_taylor(frame: pd.DataFrame) -> pd.Series:
    return needed(frame).set_index("estimator").loc[TAYLOR]


def test_the_constant_that_a_bound_needs() -> None:
    """Errors of ten times the product: its constant spans no decade; points that do not tell are left out."""
    error = np.geomspace(0.05, 0.4, 8)
    frame = asked(error, product=np.log10(error / 10))
    safe = frame.assign(flips=0, mmse=1.0, product=5.0)
    constants = of_taylor(pd.concat([frame, safe]))
    assert (constants["points"], constants["product_middle"]) == (8, pytest.approx(1, abs=1e-3))
    assert constants["product_range"] == pytest.approx(0, abs=1e-3)
    assert constants["sum_range"] > 0.5
    assert constants["product_rank"] == pytest.approx(1)
    assert constants["product_zero"] == 0
    assert needed(frame).set_index("estimator").loc[MMSE_, "points"] == 0


def test_counting_is_timed_beside_each_estimator_round_by_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of 2, 4 and 1 seconds, of which the first is one of `PAPER_COPIES`: ratios, and the median over rounds."""
    seconds = {(COUNTING, PRINTED): 2.0, (TAYLOR, LIBRARY): 4.0, (MMSE_, LIBRARY): 1.0}
    monkeypatch.setattr("studies.average_case.timing.networks", lambda: {SMALL: nn.Linear(2, 2)})
    monkeypatch.setattr("studies.average_case.timing.tasks_of", lambda *_: seconds)
    monkeypatch.setattr("studies.average_case.timing.seconds_of", lambda seconds_taken: seconds_taken)
    frame = runtimes(3, 1)
    assert frame["round"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert frame["parameters"].unique().tolist() == [6]
    frame.loc[frame["round"] == 2, "seconds"] *= [100, 1, 1]
    assert times_as_long(frame, TAYLOR).to_dict() == {SMALL: PAPER_COPIES / 2}
    assert times_as_long(frame, MMSE_).to_dict() == {SMALL: PAPER_COPIES * 2}


def test_the_whole_study(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A linear network of three classes: Taylor is as near to the count as the count is to the truth."""
    monkeypatch.setattr("studies.average_case.images.STEPS", 3)
    monkeypatch.setattr(
        "studies.average_case.timing.resnet_18", lambda: nn.Sequential(nn.Flatten(), nn.Linear(3072, 10))
    )
    arguments = ["average_case", "--shared", str(shared), "--out", str(tmp_path), "--size", "tiny"]
    assert main(arguments) == 0
    tables = read_tables(tmp_path / "average_case" / "results")
    results = Results(tables)
    assert results.networks["network"].tolist() == ["linear"]
    taylor = results.errors(TAYLOR)
    assert len(taylor) == len(results.sigmas)
    assert (taylor["error"] <= 3 * taylor["floor"] + 1e-4).all()
    printed = results.frames["printed"].set_index(["estimator", "draws"])
    assert set(printed.index.get_level_values("draws")) == {0, PAPER_DRAWS, SIZES["tiny"].printed[1]}
    truth, printed_tables = (
        frames_of(read_tables(tmp_path / "average_case" / "steps" / "linear" / name)) for name in ("truth", "printed")
    )
    counted = truth["truth"].set_index(["sigma", "point"])
    rows = printed_tables["printed"][printed_tables["printed"]["estimator"] == TAYLOR]
    off = [abs(row.p_robust - 1 + counted.loc[(row.sigma, row.point), "flips"] / 200) for row in rows.itertuples()]
    assert len(off) == SIZES["tiny"].printed[0]
    assert results.printed(TAYLOR) == printed.loc[(TAYLOR, 0), "error"] == pytest.approx(np.mean(off))
    study = all_studies()["average_case"]
    assert "UNDEFINED" not in page_of(study, tables)
    assert study.headlines(tables)
    assert all(svg.startswith("<svg") and len(svg) < 100_000 for svg in pictures(tables).values())
