"""Coordinates without noise stay unchanged in every check, search and certificate of a run."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from helpers.odd_noises import NUMBERS, embedded, whole, with_categories

import brittle
from brittle import doctor
from brittle.data import array_points
from brittle.estimate import Estimate
from brittle.measure import Forward
from brittle.noise import DiagonalGaussian, FactorGaussian, Gaussian, Noise, PerFeature, Swap
from brittle.scores import FirstOrderMargin, InputMargin, MonteCarlo, Score, Shrinkage

X = with_categories(torch.rand(40, 4, generator=torch.Generator().manual_seed(1)) * 2 - 1)
PER_FEATURE = PerFeature(0.3, NUMBERS)


def score(scores: Sequence[Score], x: torch.Tensor = X) -> brittle.Table:
    return brittle.score(brittle.Classifier(embedded(whole)(), bounds="none"), x, scores)


def nearest_on_a_grid(x: torch.Tensor, reach: float, steps: int = 401) -> float:
    """Return the distance to the nearest input of another class, by the network, on a grid with the categories of
    `x`."""
    network, line = embedded(whole)(), torch.linspace(-reach, reach, steps)
    around = x.repeat(steps * steps, 1)
    around[:, :2] += torch.cartesian_prod(line, line)
    with torch.no_grad():
        flipped = network(around).argmax(1) != network(x[None]).argmax(1)
    lengths = (around - x)[:, :2].norm(dim=1)[flipped]
    return float(lengths.min()) if len(lengths) else float("inf")


def test_a_search_beside_partial_noise_moves_its_coordinates() -> None:
    """The network fails on invalid categories, and the distance is that of a fine grid up to its steps."""
    margin = InputMargin(effort="standard")
    table = score([Shrinkage(noise=PER_FEATURE, limit=None), margin, FirstOrderMargin()], X[:16])
    distances = table[margin].value.to_numpy()
    truth = np.array([nearest_on_a_grid(row, 4.0) for row in X[:16]])
    near = truth < 4.0
    assert near.sum() > 5
    assert (distances[near] <= truth[near] + 1e-6).all()
    assert (distances[near] >= truth[near] - 0.03).all()
    assert not table.scores.column("status").to_pylist().count("masked")


@pytest.mark.parametrize(
    "noise",
    [
        PER_FEATURE,
        DiagonalGaussian(0.3, NUMBERS),
        FactorGaussian(0.3, torch.diag(NUMBERS)[:, :2]),
        Swap(0.3, X, NUMBERS),
    ],
    ids=lambda noise: noise.name,
)
def test_noises_report_the_coordinates_that_they_move(noise: Noise) -> None:
    moves = noise.moves(4)
    assert moves is not None
    assert moves.tolist() == [True, True, False, False]


@dataclass(frozen=True)
class OpaqueScore(Score):
    """A score of a user, whose noise is invisible."""

    name: ClassVar[str] = "hidden"
    needs: ClassVar[tuple[Forward, ...]] = (Forward(),)  # type: ignore[misc]

    def estimate(self, measured: object, confidence: float) -> Estimate:
        raise NotImplementedError


def test_all_coordinates_vary_unless_every_noise_is_partial() -> None:
    points = array_points(X, bounds="none")
    batch = next(iter(points.batches(1)))
    still, moving = MonteCarlo(noise=PER_FEATURE, draws=4, limit=None), MonteCarlo(sigma=0.1, draws=4, limit=None)
    for scores in ([moving], [still, moving], [InputMargin()], [still, OpaqueScore()]):
        assert doctor.varying(points, batch, scores) is points
    assert doctor.varying(points, batch, [still, InputMargin()]) is not points
    assert Gaussian(0.1).moves(4) is None


# One sigma for features of very different scales.


def notes_of(x: torch.Tensor, noise: Noise, bounds: str | tuple[float, float] = "none") -> list[str]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(x[0].numel(), 3)).eval()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        brittle.score(brittle.Classifier(network, bounds=bounds), x, [MonteCarlo(noise=noise, draws=4, limit=None)])
    return [str(warning.message) for warning in caught if "one for all features" in str(warning.message)]


NORMAL = torch.randn(80, 6, generator=torch.Generator().manual_seed(2))
SCALES = torch.tensor([0.003, 0.5, 1.0, 20.0, 90.0, 517.0])


def test_one_sigma_for_very_different_scales_is_noted() -> None:
    (note,) = notes_of(NORMAL * SCALES, Gaussian(0.1))
    assert "feature 0" in note
    assert "feature 5" in note
    assert "--noise per-feature --sigma 0.1" in note


@pytest.mark.parametrize("kind", ["standardised", "per feature", "a category", "images", "pixels"])
def test_other_scales_are_not_noted(kind: str) -> None:
    pixels = (NORMAL.abs() * torch.tensor([0.001, 1.0, 0.3, 0.3, 0.3, 0.3])).clamp(0, 1).mul(255).round() / 255
    cases: dict[str, tuple[torch.Tensor, Noise]] = {
        "standardised": (NORMAL, Gaussian(0.1)),
        "per feature": (NORMAL * SCALES, PerFeature(0.1, SCALES)),
        "a category": (torch.cat((500 * NORMAL[:, :3], (NORMAL[:, 3:] > 0.5).float()), 1), Gaussian(0.1)),
        "images": ((NORMAL * SCALES).view(-1, 1, 2, 3), Gaussian(0.1)),
        "pixels": (pixels, Gaussian(0.1)),
    }
    assert notes_of(*cases[kind]) == []
