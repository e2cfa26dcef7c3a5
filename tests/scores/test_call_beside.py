"""Scores and searches that are called on points of several tensors, beside runs and beside networks of one tensor."""

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
    """A reader with the other tensors of one point inside."""

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
    """More points than one batch holds, by tensors, by a mask of their own and by points."""
    column = run[score]
    mask = MASK.bool().numpy() if score.name == "laplacian" else "attention_mask"
    for found in (
        score(classifier(), X, extra_inputs=BESIDE, mask=mask),
        score(classifier(), points()),
    ):
        for name in ("value", "low", "high"):
            assert getattr(found, name).tolist() == pytest.approx(
                getattr(column, name).tolist(), rel=1e-12, nan_ok=True
            )
        assert found.passes.tolist() == column.passes.tolist()


def test_a_search_gives_what_a_run_and_a_network_of_one_tensor_give(run: brittle.Table) -> None:
    """With the other tensors of a point inside the network, whose every token exists, and its padding left out."""
    found = brittle.nearest(classifier(), X, norm="l2", effort="fast", extra_inputs=BESIDE, mask="attention_mask")
    again = brittle.nearest(classifier(), points(), norm="l2", effort="fast")
    assert torch.equal(found.points, again.points)
    assert found.distance.tolist() == pytest.approx(run["input_margin"].value.tolist(), rel=1e-12)
    assert torch.equal(found.points * (1 - MASK[:, :, None]), X * (1 - MASK[:, :, None]))
    with torch.no_grad():
        there = Reader()(found.points, **BESIDE)["logits"].argmax(dim=1)
        here = Reader()(X, **BESIDE)["logits"].argmax(dim=1)
    known = found.predicted >= 0
    assert bool(known.any())
    assert torch.equal(there[known], found.predicted[known])
    assert bool((there != here)[known].all())


def test_other_tensors_inside_the_network_give_the_same() -> None:
    """A linear score, counts and a search; the padding that the mask of the call leaves alone is cut off there."""
    row = 1
    tokens, own = int(MASK[row].sum()), slice(row, row + 1)
    cut = brittle.Classifier(Alone(MASK[own, :tokens], SHIFT[own]).eval(), bounds=(-3, 3))
    extra_inputs = {name: tensor[own] for name, tensor in BESIDE.items()}
    for score in (MonteCarlo(sigma=SIGMA, draws=20, limit=None), Taylor(sigma=SIGMA)):
        whole = score(classifier(), X[own], extra_inputs=extra_inputs, mask="attention_mask")
        assert float(whole.value) == pytest.approx(float(score(cut, X[own, :tokens]).value), rel=1e-9, abs=1e-12)
    near = brittle.nearest(
        classifier(), X[own], norm="l2", effort="fast", extra_inputs=extra_inputs, mask="attention_mask"
    )
    alone = brittle.nearest(cut, X[own, :tokens], norm="l2", effort="fast")
    assert float(near.distance) == pytest.approx(float(alone.distance), rel=1e-5)  # searches round otherwise


def test_what_does_not_fit_is_refused() -> None:
    score = Taylor(sigma=SIGMA)
    for call in (score, brittle.nearest):
        with pytest.raises(DataError, match=r"shift \(extra_inputs=\) has shape"):
            call(classifier(), X, extra_inputs=BESIDE | {"shift": SHIFT[:2]})  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="the points have their own; leave extra_inputs out"):
            call(classifier(), points(), extra_inputs=BESIDE)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="leave ids out"):
        score(classifier(), points(), ids=range(len(X)))
