"""Calls of scores and searches on points of several tensors agree with runs and with networks of one tensor."""

from __future__ import annotations

import pytest
import torch
from helpers.several import Reader, texts
from torch import Tensor, nn

import brittle
from brittle.errors import DataError, ParameterError
from brittle.scores import InputMargin, Laplacian, MonteCarlo, Score, Shrinkage, Taylor

pytestmark = pytest.mark.usefixtures("short_search")

SIGMA = 0.4
SCORES: list[Score] = [
    Shrinkage(sigma=SIGMA, draws=40, limit=None),
    Laplacian(),
    InputMargin(norm="l2", effort="fast"),
]
X, MASK, SHIFT = texts(points=40)
BESIDE = {"attention_mask": MASK, "shift": SHIFT}


class Alone(nn.Module):
    """A reader that holds the other tensors of one point."""

    def __init__(self, mask: Tensor, shift: Tensor) -> None:
        super().__init__()
        self.reader, self.mask, self.shift = Reader(), mask, shift

    def forward(self, inputs: Tensor) -> Tensor:
        rows = len(inputs)
        return self.reader(inputs, self.mask.expand(rows, -1), self.shift.expand(rows))["logits"]


def classifier() -> brittle.Classifier:
    return brittle.Classifier(Reader().eval(), bounds=(-3, 3), perturb="inputs_embeds")


def points() -> brittle.data.Points:
    return brittle.data.array_points(X, extra_inputs=BESIDE, mask="attention_mask", bounds=(-3, 3))


@pytest.fixture(scope="module")
def run() -> brittle.Table:
    return brittle.score(classifier(), points(), SCORES, skip_doctor=True)


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.name)
def test_a_call_gives_what_a_run_gives(run: brittle.Table, score: Score) -> None:
    """For more points than a batch holds, by tensors, by a separate mask and by points."""
    column = run[score]
    mask = MASK.bool().numpy() if score.name == "laplacian" else "attention_mask"
    for result in (
        score(classifier(), X, extra_inputs=BESIDE, mask=mask),
        score(classifier(), points()),
    ):
        for name in ("value", "low", "high"):
            assert getattr(result, name).tolist() == pytest.approx(
                getattr(column, name).tolist(), rel=1e-12, nan_ok=True
            )
        assert result.passes.tolist() == column.passes.tolist()


def test_a_search_gives_what_a_run_gives(run: brittle.Table) -> None:
    """The padding stays as it is, and the prediction changes."""
    nearest = brittle.nearest(classifier(), X, norm="l2", effort="fast", extra_inputs=BESIDE, mask="attention_mask")
    again = brittle.nearest(classifier(), points(), norm="l2", effort="fast")
    assert torch.equal(nearest.points, again.points)
    assert nearest.distance.tolist() == pytest.approx(run["input_margin"].value.tolist(), rel=1e-12)
    assert torch.equal(nearest.points * (1 - MASK[:, :, None]), X * (1 - MASK[:, :, None]))
    with torch.no_grad():
        predicted_there = Reader()(nearest.points, **BESIDE)["logits"].argmax(dim=1)
        predicted_here = Reader()(X, **BESIDE)["logits"].argmax(dim=1)
    reached = nearest.predicted >= 0
    assert bool(reached.any())
    assert torch.equal(predicted_there[reached], nearest.predicted[reached])
    assert bool((predicted_there != predicted_here)[reached].all())


def test_other_tensors_inside_the_network_give_the_same() -> None:
    """For a linear score, counts and a search; that network gets no padding."""
    row = 1
    tokens, point = int(MASK[row].sum()), slice(row, row + 1)
    cut = brittle.Classifier(Alone(MASK[point, :tokens], SHIFT[point]).eval(), bounds=(-3, 3))
    extra_inputs = {name: tensor[point] for name, tensor in BESIDE.items()}
    for score in (MonteCarlo(sigma=SIGMA, draws=20, limit=None), Taylor(sigma=SIGMA)):
        flips = score(classifier(), X[point], extra_inputs=extra_inputs, mask="attention_mask")
        assert float(flips.value) == pytest.approx(float(score(cut, X[point, :tokens]).value), rel=1e-9, abs=1e-12)
    near = brittle.nearest(
        classifier(), X[point], norm="l2", effort="fast", extra_inputs=extra_inputs, mask="attention_mask"
    )
    alone = brittle.nearest(cut, X[point, :tokens], norm="l2", effort="fast")
    assert float(near.distance) == pytest.approx(float(alone.distance), rel=1e-5)  # searches round differently


def test_tensors_that_do_not_fit_are_refused() -> None:
    score = Taylor(sigma=SIGMA)
    for call in (score, brittle.nearest):
        with pytest.raises(DataError, match=r"shift \(extra_inputs=\) has shape"):
            call(classifier(), X, extra_inputs=BESIDE | {"shift": SHIFT[:2]})  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="the points have their own; leave extra_inputs out"):
            call(classifier(), points(), extra_inputs=BESIDE)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="leave ids out"):
        score(classifier(), points(), ids=range(len(X)))
