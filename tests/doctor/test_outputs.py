"""The outputs are checked against every declaration."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.examined import COUNT, codes, examined
from helpers.problems import Wrapped, inputs
from sklearn.tree import DecisionTreeClassifier
from torch import Tensor

import brittle
from brittle import doctor
from brittle.decisions import SameTop
from brittle.errors import ModelError
from brittle.scores import MonteCarlo, Softmax, Taylor

MASKS = (-1e2, -3e38)


def subject_of(
    change: Callable[[Tensor], Tensor], outputs: str = "logits", labels: Tensor | None = None, count: int = COUNT
) -> doctor.Subject:
    network = Wrapped(lambda x, z: change(z))
    return examined(network, [Softmax(), Taylor(0.2)], inputs(count), labels, outputs=outputs)


def add_mask(value: float, *, filled: bool) -> Callable[[Tensor], Tensor]:
    """Return a change that adds two masked classes: their logits are replaced, or a number is added to them."""
    if filled:
        return lambda z: torch.cat((z, torch.full_like(z[:, :2], value)), dim=1)
    return lambda z: torch.cat((z, z[:, :2].flip(1) + value), dim=1)


@pytest.mark.parametrize("filled", [True, False], ids=["replaced", "added to"])
@pytest.mark.parametrize("value", MASKS)
def test_masked_classes_are_no_defect(value: float, filled: bool) -> None:
    """`helpers/odd_networks.py` has masks that hide something."""
    assert codes(subject_of(add_mask(value, filled=filled))) == {}


def test_saturated_gradients_are_found_beside_a_mask() -> None:
    """Rounded logits have no gradient; the last digits of the mask have none, either."""
    defects = codes(subject_of(lambda z: add_mask(-1e9, filled=True)(z.round())))
    assert defects["gradients"] == "masked_gradient"


@pytest.mark.parametrize("error", [KeyError, ZeroDivisionError])
def test_any_error_of_a_model_is_reported(error: type[Exception]) -> None:
    def fail(z: Tensor) -> Tensor:
        raise error("out of order")

    assert codes(subject_of(fail))["forward"] == "model_failed"


def test_a_mask_of_minus_infinity_is_named() -> None:
    def mask(logits: Tensor) -> Tensor:
        return logits.index_fill(1, torch.tensor([1, 3]), -torch.inf)

    with pytest.raises(ModelError, match="-inf for class 1, 3") as caught:
        brittle.score(brittle.Classifier(Wrapped(lambda x, z: mask(z))), inputs(COUNT), [Softmax()])
    assert caught.value.code == "nonfinite_logits"


def one_logit(z: Tensor) -> Tensor:
    return z[:, :1] - z[:, 1:2]


DECLARED: dict[str, tuple[str, Callable[[Tensor], Tensor], str | None]] = {
    "logits as logits": ("logits", lambda z: z, None),
    "probabilities as logits": ("logits", lambda z: z.softmax(1), "outputs"),
    "[1 - p, p] as logits": (
        "logits",
        lambda z: torch.cat((1 - one_logit(z).sigmoid(), one_logit(z).sigmoid()), 1),
        "outputs",
    ),
    "sigmoids as logits": ("logits", lambda z: z.sigmoid(), "outputs"),
    "log-probabilities as logits": ("logits", lambda z: z.log_softmax(1), None),
    "one logit as logits": ("logits", one_logit, "output_shape"),
    "probabilities as probs": ("probs", lambda z: z.softmax(1), None),
    "logits as probs": ("probs", lambda z: z, "outputs"),
    "log-probabilities as probs": ("probs", lambda z: z.log_softmax(1), "outputs"),
    "sigmoids as probs": ("probs", lambda z: z.sigmoid(), "outputs"),
    "one probability as probs": ("probs", lambda z: one_logit(z).sigmoid(), "output_shape"),
    "one logit as binary-logit": ("binary-logit", one_logit, None),
    "one probability as binary-logit": ("binary-logit", lambda z: one_logit(z).sigmoid(), "outputs"),
    "its logarithm as binary-logit": ("binary-logit", lambda z: one_logit(z).sigmoid().log(), "outputs"),
    "logits as binary-logit": ("binary-logit", lambda z: z, "output_shape"),
    "probabilities as binary-logit": ("binary-logit", lambda z: z.softmax(1), "output_shape"),
}


@pytest.mark.parametrize("name", list(DECLARED))
def test_every_declaration_is_checked(name: str) -> None:
    outputs, change, code = DECLARED[name]
    defects = set(codes(subject_of(change, outputs, torch.arange(COUNT) % 2)).values())
    assert defects == ({code} if code else set())


def two_shares(z: Tensor) -> Tensor:
    return torch.cat((1 - one_logit(z).sigmoid(), one_logit(z).sigmoid()), 1)


def classes(z: Tensor) -> Tensor:
    return torch.nn.functional.one_hot(z.argmax(1), z.shape[1]).to(z)


ADVISED: dict[str, tuple[str, Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "probabilities": ("logits", lambda z: z.softmax(1), lambda z: z.softmax(1)),
    "[1 - p, p]": ("logits", two_shares, two_shares),
    "classes": ("logits", classes, classes),
    "one class": ("logits", lambda z: (one_logit(z) > 0).to(z)[:, 0], lambda z: classes(two_shares(z))),
    "one probability": ("logits", lambda z: one_logit(z).sigmoid(), two_shares),
    "one probability for one logit": ("binary-logit", lambda z: one_logit(z).sigmoid(), two_shares),
    "one class for one logit": ("binary-logit", lambda z: (one_logit(z) > 0).to(z), lambda z: classes(two_shares(z))),
}


@pytest.mark.parametrize("name", list(ADVISED))
def test_the_advice_of_a_refusal_is_accepted(name: str) -> None:
    """A model that follows the advice is accepted, under the outputs that the refusal names last."""
    outputs, before, after = ADVISED[name]
    with pytest.raises(ModelError, match="--outputs") as caught:
        brittle.score(brittle.Classifier(Wrapped(lambda x, z: before(z)), outputs=outputs), inputs(COUNT), [Softmax()])
    outputs_advice = re.findall(r"outputs='([\w-]+)'", str(caught.value))[-1]
    assert not {"outputs", "output_shape"} & {*codes(subject_of(after, outputs_advice)).values()}


@pytest.mark.parametrize("count", [1, 20])
def test_few_points_show_a_probability(count: int) -> None:
    assert codes(subject_of(lambda z: one_logit(z).sigmoid(), "binary-logit", count=count))["class scores"] == "outputs"


def test_a_number_added_to_all_logits_makes_no_probabilities() -> None:
    assert codes(subject_of(lambda z: z + 1e6)) == {}


NARROW = (torch.float16, torch.bfloat16)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_scores_in_16_bits_are_no_probabilities(dtype: torch.dtype, offset: float) -> None:
    """Sums of positive scores that are equal in 16 bits prove nothing."""
    defects = codes(subject_of(lambda z: (3 * z + offset).to(dtype)))
    assert set(defects.values()) <= {"low_precision"}


@pytest.mark.parametrize("dtype", NARROW)
def test_defects_show_in_16_bits(dtype: torch.dtype) -> None:
    """A batch that is repeated gives the same logits, however coarse they are."""

    def drop(z: Tensor) -> Tensor:
        return (torch.nn.functional.dropout(z, 0.3, training=True) + 100).to(dtype)

    assert codes(subject_of(lambda z: (3 * z).softmax(1).to(dtype)))["class scores"] == "outputs"
    assert codes(subject_of(drop))["repeatable"] == "nondeterministic_model"


class Step(torch.nn.Module):
    """Two levels, with a step where the sum of the inputs is `at`; inputs below it get equal logits."""

    def __init__(self, at: float) -> None:
        super().__init__()
        self.at = at

    def forward(self, x: Tensor) -> Tensor:
        above = (x.flatten(1).sum(dim=1, keepdim=True) > self.at).float()
        return torch.cat((3 * above, 2 - above), dim=1)


@pytest.mark.parametrize("bounds", ["none", (0, 1)])
@pytest.mark.parametrize(("at", "code"), [(4.0, None), (1e9, "constant_output")])
def test_a_step_that_no_row_crosses_is_no_constant(bounds: Any, at: float, code: str | None) -> None:
    """Rows of a file sorted by class may lie on one side of a step that noisy copies cross."""
    x = torch.rand(20, 6, generator=torch.Generator().manual_seed(1)) / 10
    classifier = brittle.Classifier(Step(at), bounds=bounds)
    caught = None
    try:
        brittle.score(classifier, x, [MonteCarlo(1.0, draws=20, limit=None)])
    except ModelError as error:
        caught = error.code
    assert caught == code


@pytest.mark.parametrize("rows", [1, 5])
def test_one_point_without_bounds_is_no_constant(rows: int) -> None:
    """No noise moves the point, and other inputs get other scores."""
    classifier = brittle.Classifier(torch.nn.Linear(3, 4), bounds=None)
    table = brittle.score(classifier, torch.ones(rows, 3), [Softmax()])
    assert table.frame()["status"].eq("ok").all()
    with pytest.raises(ModelError, match="constant_output"):
        brittle.score(
            brittle.Classifier(lambda x: 0 * x[:, :3] + torch.arange(3.0), None), torch.rand(9, 3), [Softmax()]
        )


def test_the_largest_probabilities_are_no_logits() -> None:
    score = [MonteCarlo(0.1, draws=20, limit=None)]
    likely = brittle.Classifier(Wrapped(lambda x, z: z.softmax(1)), decision=SameTop(2))
    with pytest.raises(ModelError) as caught:
        brittle.score(likely, inputs(COUNT), score)
    assert caught.value.code == "outputs"
    logits = brittle.Classifier(Wrapped(lambda x, z: z), decision=SameTop(2))
    assert len(brittle.score(logits, inputs(COUNT), score).points) == COUNT


def test_a_tree_whose_rows_lie_in_one_leaf_is_no_constant() -> None:
    """Noisy copies stay in the leaf; inputs far away leave it."""
    tree = DecisionTreeClassifier(max_depth=1).fit([[0.0], [100.0]], [0, 1])
    x = torch.linspace(0, 40, COUNT)[:, None]
    table = brittle.score(brittle.Classifier(tree, bounds="none"), x, [MonteCarlo(0.1, draws=20, limit=None)])
    assert table.scores["value"].to_pylist() == [0.0] * COUNT
