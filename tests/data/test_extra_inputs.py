"""Points of several tensors; a single one varies, under a mask of the coordinates that exist."""

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

pytestmark = pytest.mark.usefixtures("short_search")

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
    x, mask, shift = (tensor[rows] for tensor in texts(tokens=tokens))
    extra_inputs = {"attention_mask": mask, "shift": shift}
    return brittle.data.array_points(x, extra_inputs=extra_inputs, mask="attention_mask", bounds=(-3, 3))


def values(table: brittle.Table, score: Score) -> list[float]:
    return table[score].value.tolist()


class Alone(nn.Module):
    """A reader with the shift of one point inside, all of whose tokens exist."""

    def __init__(self, shift: Tensor) -> None:
        super().__init__()
        self.reader, self.shift = Reader(), shift

    def forward(self, inputs: Tensor) -> Tensor:
        mask = torch.ones(len(inputs), inputs.shape[1], dtype=torch.int64)
        return self.reader(inputs, mask, self.shift.expand(len(inputs)))["logits"]


def test_scores_match_a_network_of_one_tensor() -> None:
    """A network that holds the other tensors of a point, without its padding, gives the same numbers point by point.
    Draws are keyed by the place of a coordinate, so the noise of the tokens is the same."""
    x, mask, shift = texts()
    scores = [*SCORES[:4], Laplacian(method="exact")]  # by default `auto` is exact for points of few tokens
    table = brittle.score(classifier(), points(), scores)
    for row in range(len(x)):
        tokens = x[row : row + 1, : int(mask[row].sum())]

        single_classifier = brittle.Classifier(Alone(shift[row]), bounds=(-3, 3), head="reader.out")
        point = brittle.data.array_points(tokens, ids=[str(row)], bounds=(-3, 3))
        single_table = brittle.score(single_classifier, point, scores, skip_doctor=True)
        for score in scores:
            (single_value,), value = values(single_table, score), values(table, score)[row]
            assert single_value == pytest.approx(value, rel=1e-6, abs=1e-9), score.label


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.label)
def test_more_padding_changes_no_score(score: Score) -> None:
    """Twice as many tokens, the additional ones padding, give the same numbers to 1e-6, and to 1e-3 where a descent
    amplifies the rounding of sums, as in every batch (docs/explanation/attacks.md)."""
    tolerance = 1e-3 if isinstance(score, InputMargin) else 1e-6
    short, long = (brittle.score(classifier(), points(tokens), [score]) for tokens in (TOKENS, 2 * TOKENS))
    assert values(long, score) == pytest.approx(values(short, score), rel=tolerance, abs=1e-9)


def test_an_attack_leaves_the_padding_alone() -> None:
    """Flipped points have another class, with the other tensors of the same point."""
    x, mask, shift = texts()
    score = InputMargin(norm="l2", effort="fast")
    table = brittle.score(classifier(), points(), [score])
    flips = {int(flip["point"]): flip for flip in table.counterexamples.to_pylist()}
    assert len(flips) == len(x)
    network = Reader()
    for row, flip in flips.items():
        end = torch.frombuffer(bytearray(flip["input"]), dtype=torch.float64)[-TOKENS * WIDTH :].view(1, TOKENS, WIDTH)
        assert torch.equal(end[0][mask[row] == 0], x[row][mask[row] == 0])
        with torch.no_grad():
            prediction = int(network(end, mask[row : row + 1], shift[row : row + 1])["logits"].argmax())
        assert prediction == flip["predicted"]


def test_transforms_leave_masked_coordinates_unchanged() -> None:
    """A transform that moves everything flips nothing where no coordinate exists but one, which the network hardly
    reads."""
    network = nn.Linear(3, 2).double()
    with torch.no_grad():
        network.weight[:, 0] = 1e-9
    x = torch.rand(4, 3, dtype=torch.float64)
    mask = torch.tensor([[1, 0, 0]]).expand(4, 3)
    data = brittle.data.array_points(x, mask=mask)
    move = Transform(lambda inputs, generator: inputs + 9 * torch.rand(inputs.shape, generator=generator), name="move")
    for score in (MonteCarlo(noise=move, draws=20, limit=None), MonteCarlo(sigma=5.0, draws=20, limit=None)):
        assert values(brittle.score(brittle.Classifier(network), data, [score]), score) == [0.0] * 4


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"extra_inputs": {"shift": torch.zeros(5)}}, DataError, "for 6 points"),
        ({"mask": "attention_mask"}, ParameterError, "there: none"),
        ({"mask": torch.ones(6, 4)}, DataError, "the mask has shape"),
        ({"mask": torch.ones(6)}, DataError, "the mask has shape"),
        ({"mask": torch.zeros(6, TOKENS)}, DataError, "the mask of row 0 holds no 1"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(options, error, match: str) -> None:
    with pytest.raises(error, match=match):
        brittle.data.array_points(texts()[0], bounds=(-3, 3), **options)


def test_chosen_points_keep_their_extra_inputs() -> None:
    full_table = brittle.score(classifier(), points(), SCORES[:1])
    chosen_table = brittle.score(classifier(), brittle.data.choose_points(points(), ["4", "1"]), SCORES[:1])
    assert values(chosen_table, SCORES[0]) == [values(full_table, SCORES[0])[row] for row in (1, 4)]


def test_other_tensors_are_another_run(tmp_path: Path) -> None:
    brittle.score(classifier(), points(), SCORES[:1], out=tmp_path / "run")
    x, mask, shift = texts()
    shifted_points = brittle.data.array_points(
        x, extra_inputs={"attention_mask": mask, "shift": shift + 1}, mask="attention_mask", bounds=(-3, 3)
    )
    with pytest.raises(ResumeError, match="sha256"):
        brittle.score(classifier(), shifted_points, SCORES[:1], out=tmp_path / "run", resume=True)
