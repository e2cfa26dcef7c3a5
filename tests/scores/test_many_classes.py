"""With very many classes the competitors that can win are kept, however far they lie; others are accounted for."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import brittle
from brittle.estimate import Status
from brittle.measure.forward import ALL_CLASSES_UP_TO, KEPT_CLASSES
from brittle.scores import Moments, Score, Shrinkage

CLASSES, SIZE, POINTS = 150, 40, 6
BEYOND = KEPT_CLASSES + 5
"""Number of competitors that are near and do not move; competitors that can win follow in the order of the logits."""


def network(steep: int) -> brittle.Classifier:
    """Make a linear network: class 0 wins everywhere near 0.5; classes 1 to `BEYOND` lie 1 below it and move with it;
    then `steep` classes lie 2 below and move by 1 for 0.1 in a separate coordinate; all others lie 50 below."""
    weight, bias = torch.zeros(CLASSES, SIZE), torch.full((CLASSES,), -50.0)
    bias[0], bias[1 : 1 + BEYOND] = 0.0, -1.0
    for number in range(steep):
        weight[1 + BEYOND + number, number], bias[1 + BEYOND + number] = 10.0, -2.0 - 5.0
    layer = nn.Linear(SIZE, CLASSES)
    layer.weight.data, layer.bias.data = weight, bias
    return brittle.Classifier(layer, bounds=None)


def points() -> Tensor:
    return torch.full((POINTS, SIZE), 0.5)


@pytest.mark.parametrize(
    "score", [Moments(0.1, draws=100), Shrinkage(0.1, draws=200, limit=None), Shrinkage(0.1, draws=8, limit=None)]
)
@pytest.mark.parametrize("steep", [1, 8])
def test_competitors_that_can_win_are_kept(score: Score, steep: int) -> None:
    """The flip probability is `1 - Phi(2)^steep`; kept by logits alone it would be 0."""
    assert CLASSES > ALL_CLASSES_UP_TO
    flips = score(network(steep), points())
    truth = 1 - torch.special.ndtr(torch.tensor(2.0, dtype=torch.float64)) ** steep
    assert not {Status.CLASSES_KEPT, Status.CONTRADICTED} & set(flips.status.tolist())
    assert float(flips.value.mean()) == pytest.approx(float(truth), rel=0.5)
    assert bool(((flips.low <= truth) & (truth <= flips.high)).all()), "6 intervals of 99%, the seed is fixed"


def test_classes_left_out_have_a_status_if_they_often_win() -> None:
    """More classes can win than are kept: the four left out win in 0.09 of the copies."""
    flips = Moments(0.1, draws=100)(network(KEPT_CLASSES + 4), points())
    assert set(flips.status.tolist()) == {int(Status.CLASSES_KEPT)}


def test_classes_left_out_have_a_status_beyond_all_copies() -> None:
    """A hundred classes at 4 standard deviations, 20 of them kept: 0.003 together, 0.0006 from those kept."""
    weight, bias = torch.zeros(CLASSES, 120), torch.full((CLASSES,), -50.0)
    bias[0] = 0.0
    for number in range(100):
        weight[1 + number, number], bias[1 + number] = 10.0, -4.0 - 5.0
    layer = nn.Linear(120, CLASSES)
    layer.weight.data, layer.bias.data = weight, bias
    flips = Moments(0.1, draws=100)(brittle.Classifier(layer, bounds=None), torch.full((POINTS, 120), 0.5))
    truth = 1 - float(torch.special.ndtr(torch.tensor(4.0, dtype=torch.float64))) ** 100
    short = flips.value < 0.5 * truth
    assert short.any()
    assert (flips.status[short] == int(Status.CLASSES_KEPT)).all()
    assert bool(((flips.low <= truth) & (truth <= flips.high)).all()), "6 intervals of 99%, the seed is fixed"


def test_the_classes_kept_depend_on_no_batch_or_other_score() -> None:
    scores: list[Score] = [Moments(0.1, draws=100), Shrinkage(0.1, draws=200, limit=None)]
    alone = [brittle.score(network(8), points(), [score], skip_doctor=True).scores.to_pandas() for score in scores]
    more_scores: list[Score] = [*scores, Moments(0.1, draws=4), Moments(0.1, draws=12)]
    for size in (7, 512):
        beside = brittle.score(network(8), points(), more_scores, batch_size=size, skip_doctor=True)
        for score, table in zip(scores, alone, strict=True):
            rows = beside[score.label].rows.reset_index()
            assert (rows["status"] == table["status"]).all()
            assert rows["value"].to_numpy() == pytest.approx(table["value"].to_numpy(), rel=1e-6)
