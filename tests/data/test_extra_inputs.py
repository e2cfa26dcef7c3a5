"""Points of several tensors, one of which varies, with a mask of the coordinates that exist."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from helpers.several import TOKENS, WIDTH, Reader, texts
from torch import Tensor, nn

import brittle
from brittle.errors import DataError, ParameterError, ResumeError
from brittle.noise import Relative, Transform
from brittle.scores import (
    FirstOrderMargin,
    InputMargin,
    Laplacian,
    MonteCarlo,
    ProbabilityChange,
    Score,
    Shrinkage,
    Taylor,
)

SIGMA = 0.4
SCORES: list[Score] = [
    MonteCarlo(sigma=SIGMA, draws=20, limit=None),
    Shrinkage(sigma=SIGMA, limit=None),
    Taylor(noise=Relative(SIGMA)),
    ProbabilityChange(sigma=SIGMA, draws=20),
    Laplacian(),
    FirstOrderMargin(),
    InputMargin(norm="l2", effort="fast"),
]


def classifier(**options) -> brittle.Classifier:
    return brittle.Classifier(Reader().eval(), bounds=(-3, 3), perturb="inputs_embeds", **options)


def points(tokens: int = TOKENS, rows: slice = slice(None)) -> brittle.data.Points:
    x, mask, shift = (one[rows] for one in texts(tokens=tokens))
    others = {"attention_mask": mask, "shift": shift}
    return brittle.data.array_points(x, extra_inputs=others, mask="attention_mask", bounds=(-3, 3))


def values(table: brittle.Table, score: Score) -> list[float]:
    return table[score].value.tolist()


class Alone(nn.Module):
    """A reader with the number of one point inside, of whose tokens all exist."""

    def __init__(self, shift: Tensor) -> None:
        super().__init__()
        self.reader, self.shift = Reader(), shift

    def forward(self, inputs: Tensor) -> Tensor:
        seen = torch.ones(len(inputs), inputs.shape[1], dtype=torch.int64)
        return self.reader(inputs, seen, self.shift.expand(len(inputs)))["logits"]


def test_every_score_is_that_of_a_network_of_one_tensor() -> None:
    """The other tensors of a point are put inside the network, and its padding left out: the same numbers, point by
    point. Draws are keyed by the place of a coordinate, so the noise of the tokens is the same."""
    x, mask, shift = texts()
    scores = [*SCORES[:4], Laplacian(method="exact")]  # of its own, `auto` takes points of few tokens exactly
    whole = brittle.score(classifier(), points(), scores)
    for row in range(len(x)):
        own = x[row : row + 1, : int(mask[row].sum())]

        alone = brittle.Classifier(Alone(shift[row]), bounds=(-3, 3), head="reader.out")
        one = brittle.data.array_points(own, ids=[str(row)], bounds=(-3, 3))
        found = brittle.score(alone, one, scores, skip_doctor=True)
        for score in scores:
            (there,), here = values(found, score), values(whole, score)[row]
            assert there == pytest.approx(here, rel=1e-6, abs=1e-9), score.label


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.label)
def test_more_padding_changes_no_score(score: Score) -> None:
    """Twice as many tokens, the others padding: the same numbers to 1e-6, and to 1e-3 where a descent amplifies what
    sums are rounded by, as it does of every batch (docs/explanation/attacks.md)."""
    share = 1e-3 if isinstance(score, InputMargin) else 1e-6
    short, long = (brittle.score(classifier(), points(tokens), [score]) for tokens in (TOKENS, 2 * TOKENS))
    assert values(long, score) == pytest.approx(values(short, score), rel=share, abs=1e-9)


def test_an_attack_leaves_the_padding_alone() -> None:
    """And ends at another class, with the other tensors of its own point."""
    x, mask, shift = texts()
    score = InputMargin(norm="l2", effort="fast")
    table = brittle.score(classifier(), points(), [score])
    met = {int(one["point"]): one for one in table.counterexamples.to_pylist()}
    assert len(met) == len(x)
    network = Reader()
    for row, one in met.items():
        there = torch.frombuffer(bytearray(one["input"]), dtype=torch.float64)[-TOKENS * WIDTH :].view(1, TOKENS, WIDTH)
        assert torch.equal(there[0][mask[row] == 0], x[row][mask[row] == 0])
        with torch.no_grad():
            found = int(network(there, mask[row : row + 1], shift[row : row + 1])["logits"].argmax())
        assert found == one["predicted"]


def test_what_does_not_vary_is_as_it_is_at_the_point_for_any_transform() -> None:
    """A transform that moves everything flips nothing where nothing of it exists: a mask of one coordinate that the
    network hardly reads."""
    network = nn.Linear(3, 2).double()
    with torch.no_grad():
        network.weight[:, 0] = 1e-9
    x = torch.rand(4, 3, dtype=torch.float64)
    mask = torch.tensor([[1, 0, 0]]).expand(4, 3)
    data = brittle.data.array_points(x, mask=mask)
    move = Transform(lambda own, generator: own + 9 * torch.rand(own.shape, generator=generator), name="move")
    for score in (MonteCarlo(noise=move, draws=20, limit=None), MonteCarlo(sigma=5.0, draws=20, limit=None)):
        assert values(brittle.score(brittle.Classifier(network), data, [score]), score) == [0.0] * 4


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"extra_inputs": {"shift": torch.zeros(5)}}, DataError, "for 6 points; expected a row each"),
        ({"mask": "attention_mask"}, ParameterError, "there: none"),
        ({"mask": torch.ones(6, 4)}, DataError, "expected their first axes"),
        ({"mask": torch.ones(6)}, DataError, "expected their first axes"),
        ({"mask": torch.zeros(6, TOKENS)}, DataError, "the mask of row 0 holds no 1"),
    ],
)
def test_what_does_not_fit_is_refused(options, error, said: str) -> None:
    with pytest.raises(error, match=said):
        brittle.data.array_points(texts()[0], bounds=(-3, 3), **options)


def test_chosen_points_keep_what_is_beside_them() -> None:
    whole = brittle.score(classifier(), points(), SCORES[:1])
    some = brittle.score(classifier(), brittle.data.choose_points(points(), ["4", "1"]), SCORES[:1])
    assert values(some, SCORES[0]) == [values(whole, SCORES[0])[row] for row in (1, 4)]


def test_other_tensors_are_another_run(tmp_path: Path) -> None:
    brittle.score(classifier(), points(), SCORES[:1], out=tmp_path / "run")
    x, mask, shift = texts()
    other = brittle.data.array_points(
        x, extra_inputs={"attention_mask": mask, "shift": shift + 1}, mask="attention_mask", bounds=(-3, 3)
    )
    with pytest.raises(ResumeError, match="sha256"):
        brittle.score(classifier(), other, SCORES[:1], out=tmp_path / "run", resume=True)
