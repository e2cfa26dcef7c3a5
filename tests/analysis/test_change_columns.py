"""Which columns of a table say what of the expected change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from helpers.change_tables import change, curved_run, with_score
from helpers.pages import page_of
from helpers.problems import inputs
from torch import Tensor, nn

import brittle
from brittle.analysis import expected_change_table, format_expected_change
from brittle.analysis.expected_change import NOT_ISOTROPIC
from brittle.noise import Noise, identity
from brittle.scores import Laplacian, ProbabilityChange, Score
from brittle.store.record import NoiseRecord


def test_which_columns_speak() -> None:
    """The exact Laplacian of the predicted class; the mean change, not clipped rather, of most draws."""
    table, curvature = curved_run(sigmas=())
    table = with_score(table, "laplacian", np.zeros(60), {"method": "exact", "target": 3})
    table = with_score(table, "laplacian", 2.0 * curvature, {"method": "exact"})
    for draws, factor in ((100, 7.0), (1000, 2.0)):
        table = with_score(table, "probability_change", factor * curvature, change(1.0, draws))
    table = with_score(table, "probability_change", 5.0 * curvature, change(1.0, 5000, clip=True))
    table = with_score(table, "probability_change", 5.0 * curvature, change(1.0, 5000) | {"statistic": "absolute"})
    frame = expected_change_table(table)
    assert len(frame) == 1
    row = frame.iloc[0]
    assert (row["laplacian"], row["draws"], row["clipped"]) == ("laplacian(method=exact)", 1000, False)
    assert row["slope"] == pytest.approx(2.0)
    only_clipped = with_score(curved_run(sigmas=())[0], "probability_change", curvature, change(1.0, clip=True))
    assert expected_change_table(only_clipped)["clipped"].tolist() == [True]
    assert "clipped copies" in format_expected_change(expected_change_table(only_clipped), pd.DataFrame())


def test_noise_that_is_not_alike_in_all_directions_predicts_nothing() -> None:
    table, curvature = curved_run(sigmas=(0.1,))
    table = with_score(table, "probability_change", curvature, change(1.0, noise="diagonal_gaussian", scale="abc"))
    frame = expected_change_table(table)
    assert frame["points"].tolist() == [60, 0]
    assert frame["reason"].isna().tolist() == [True, False]
    assert "not alike in all directions" in format_expected_change(frame, pd.DataFrame())


@dataclass(frozen=True)
class Coins(Noise):
    """A family from outside: every coordinate goes up or down by sigma."""

    name: ClassVar[str] = "coins"
    fixed_length: ClassVar[bool] = True
    explanation: ClassVar[str] = "Up or down by sigma"
    covariance = identity

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        return 2.0 * torch.randint(2, (size,), generator=generator, device=generator.device).float() - 1.0


@dataclass(frozen=True)
class UncertainCoins(Coins):
    """The same with no word on its covariance beside its draws."""

    name: ClassVar[str] = "uncertain_coins"

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        return super().draw(generator, size)


def test_a_family_from_outside_is_read_by_its_covariance_and_not_by_its_name() -> None:
    torch.manual_seed(0)
    scores: list[Score] = [
        Laplacian(),
        ProbabilityChange(noise=Coins(0.05)),
        ProbabilityChange(noise=UncertainCoins(0.1)),
    ]
    network = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.Tanh(), nn.Linear(8, 4))
    smooth = brittle.Classifier(network, bounds=(0.0, 1.0))
    table = brittle.score(smooth, inputs(6), scores)
    frame = expected_change_table(table)
    assert frame["noise"].tolist() == ["coins", "uncertain_coins"]
    assert frame["points"].tolist() == [6, 0]
    assert frame["reason"].tolist()[1] == NOT_ISOTROPIC
    own, unsaid = (column.noise for column in table.columns[1:])
    assert own == NoiseRecord(explanation="Up or down by sigma", isotropic=True, fixed_length=True)
    assert unsaid == NoiseRecord(explanation="Up or down by sigma", isotropic=None, fixed_length=False)
    page = page_of(table).text
    assert "Up or down by sigma" in page
