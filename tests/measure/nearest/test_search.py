"""Results of a search for every point: found, not found, masked or broken, and its cost."""

from __future__ import annotations

import pytest
import torch
from helpers import problems
from helpers.attacked import ONE_NORM, PAIRS, clean_pass, run
from helpers.laws import RESOLVED, check_alike
from torch import Tensor, nn

import brittle
from brittle.measure.nearest import ATTACKS, EFFORTS, Nearest
from brittle.measure.nearest.norms import NORMS
from brittle.measure.nearest.search import Search


class Counting(nn.Module):
    """A network that counts the rows it sees, forward and backward."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.rows = 0

    def forward(self, x: Tensor) -> Tensor:
        self.rows += len(x)
        logits = self.network(x)
        if logits.requires_grad:
            logits.register_hook(self._backward)
        return logits

    def _backward(self, gradient: Tensor) -> None:
        self.rows += len(gradient)


def constant(x: Tensor) -> Tensor:
    """Return the same scores for every input."""
    return x.flatten(1)[:, :1] * 0 + torch.tensor([0.0, 1.0, -1.0])


@pytest.mark.every_other
@pytest.mark.parametrize(
    ("attack", "norm", "bounded"), [*((*pair, True) for pair in PAIRS), *((*pair, False) for pair in ONE_NORM)]
)
@pytest.mark.usefixtures("few_queries")
def test_the_model_confirms_the_result(attack: str, norm: str, bounded: bool) -> None:
    classifier, points = problems.small_classifier(), problems.inputs(6)
    clean = clean_pass(classifier, points)
    nearest = Nearest(norm, attack, "fast", bounded)(classifier, clean)
    is_found = nearest.distance.isfinite()
    assert is_found.any() or attack == "straight_through"  # it does not search smooth networks
    for point, predicted in zip(nearest.points[is_found], nearest.predicted[is_found], strict=True):
        assert int(classifier(point[None]).argmax()) == int(predicted)
    assert (nearest.predicted[is_found] != clean.predicted[is_found]).all()
    length = NORMS[norm].length(nearest.points.double().flatten(1) - points.double().flatten(1))
    torch.testing.assert_close(nearest.distance[is_found], length[is_found], rtol=0, atol=0)
    assert nearest.points.dtype == points.dtype
    assert nearest.points.shape == points.shape
    if bounded:
        assert ((nearest.points >= 0) & (nearest.points <= 1)).all()
    assert (nearest.distance <= torch.stack(list(nearest.by_attack.values())).amin(dim=0) * 1.002).all()


@pytest.mark.every_other
@pytest.mark.parametrize(("attack", "norm"), ONE_NORM)
@pytest.mark.usefixtures("few_queries")
def test_a_point_does_not_depend_on_its_batch(attack: str, norm: str) -> None:
    """Except for points where rounding decides the direction of a step."""
    classifier = brittle.Classifier(problems.small_network(dtype=torch.float64))
    points = problems.inputs(6, dtype=torch.float64)
    together, again = (run(classifier, points, attack=attack, norm=norm, effort="fast") for _ in range(2))
    assert together.points.numpy().tobytes() == again.points.numpy().tobytes()
    for size, count in ((1, 2), (4, 6)):
        parts = [run(classifier, part, attack=attack, norm=norm, effort="fast") for part in points[:count].split(size)]
        check_alike(torch.cat([part.distance for part in parts]), together.distance[:count])


@pytest.mark.parametrize(("attack", "norm"), ONE_NORM)
@pytest.mark.usefixtures("few_queries")
def test_every_pass_is_counted_on_its_point(attack: str, norm: str) -> None:
    network = Counting(problems.small_network())
    classifier = brittle.Classifier(network, bounds=(0, 1))
    nearest = run(classifier, problems.inputs(5), attack=attack, norm=norm, effort="fast")
    assert int(nearest.passes.sum()) == network.rows == classifier.passes
    alone = Counting(problems.small_network())
    single = run(brittle.Classifier(alone), problems.inputs(5)[:1], attack=attack, norm=norm, effort="fast")
    assert int(single.passes) == alone.rows
    assert abs(int(nearest.passes[0]) - alone.rows) <= 5


@pytest.mark.parametrize(("attack", "norm"), ONE_NORM)
def test_not_found_is_infinite(attack: str, norm: str) -> None:
    points = problems.inputs(3)
    nearest = run(brittle.Classifier(constant), points, attack=attack, norm=norm, effort="fast", bounded=norm != "l2")
    assert nearest.distance.tolist() == [torch.inf] * 3
    assert nearest.predicted.tolist() == [-1] * 3
    assert torch.equal(nearest.points, points)


@pytest.mark.every_other
@pytest.mark.parametrize(("attack", "norm"), ONE_NORM)
@pytest.mark.usefixtures("few_queries")
def test_broken_rows_leave_the_others_alone(attack: str, norm: str) -> None:
    def broken(x: Tensor, logits: Tensor) -> Tensor:
        marked = x[:, 0, 0, :1]
        return torch.where(marked == 0.125, torch.nan, torch.where(marked == 0.25, 0 * logits, logits))

    points = problems.inputs(4)
    points[1, 0, 0, 0], points[2, 0, 0, 0] = 0.125, 0.25
    classifier = brittle.Classifier(problems.Wrapped(broken))
    nearest = run(classifier, points, attack=attack, norm=norm, effort="fast")
    assert nearest.distance[[1, 2]].tolist() == [torch.inf, 0.0]
    assert torch.equal(nearest.points[1:3], points[1:3])
    assert nearest.predicted[[1, 2]].tolist() == [-1, -1]
    assert nearest.passes[[1, 2]].tolist() == [1, 1]
    alone = run(classifier, points[[0, 3]], attack=attack, norm=norm, effort="fast")
    torch.testing.assert_close(nearest.distance[[0, 3]], alone.distance, rtol=RESOLVED, atol=0)


@pytest.mark.parametrize("norm", NORMS)
def test_settled_points_stay_while_gradients_are_judged(norm: str) -> None:
    """An input that failed in a batch of one is evaluated again in a larger batch, where rounding may let it pass."""
    classifier = problems.small_classifier()
    search = Search(classifier, clean_pass(classifier, problems.inputs(4)), NORMS[norm], True)
    ATTACKS["segments"].propose(search, search.best, EFFORTS["fast"], search.open)
    settled = search.settle()
    before = settled.points.clone()
    guided = "sparse_descent" if norm == "l1" else "apgd"
    ATTACKS[guided].propose(search, search.best, EFFORTS["fast"], search.open)
    assert (search.best.distance < settled.distance).any()
    assert torch.equal(settled.points, before)


@pytest.mark.every_other
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.usefixtures("few_queries")
@pytest.mark.parametrize("place", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_more_effort_never_ends_farther_away(place: int, norm: str) -> None:
    efforts = list(EFFORTS)[place : place + 2]
    cheap, dear = (run(problems.small_classifier(), problems.inputs(3), norm=norm, effort=effort) for effort in efforts)
    assert (dear.distance <= cheap.distance).all()
    assert (dear.passes > cheap.passes).all()
    assert all((dear.by_attack[attack] <= cheap.by_attack[attack]).all() for attack in cheap.by_attack)
