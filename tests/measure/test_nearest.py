"""Laws of the search for the nearest input with another prediction, over every attack and norm."""

from __future__ import annotations

import itertools
import warnings

import pytest
import torch
from helpers import problems
from helpers.laws import RESOLVED, check_alike
from scipy.optimize import linprog
from torch import Tensor, nn

import brittle
from brittle.errors import ParameterError
from brittle.measure.forward import Clean, look
from brittle.measure.nearest import ATTACKS, EFFORTS, Nearest, NearestPoint
from brittle.measure.nearest.norms import NORMS

PAIRS = [(attack, norm) for attack in ("best", *ATTACKS) for norm in NORMS if norm == "l2" or attack != "ddn"]
GUIDED = [pair for pair in PAIRS if pair[0] not in ("segments", "rays")]


def run(classifier: brittle.Classifier, points: Tensor, **options) -> NearestPoint:
    return Nearest(**options)(classifier, clean_pass(classifier, points))


def clean_pass(classifier: brittle.Classifier, points: Tensor, rows: int | None = None) -> Clean:
    return look(classifier, points, [str(number) for number in range(len(points))], 0, rows=rows)


def linear_margin(network: nn.Linear, points: Tensor, norm: str) -> Tensor:
    """`min_j g_j / ||w_t - w_j||_q`, without a box."""
    logits = network(points).detach()
    predicted = logits.argmax(dim=1)
    gaps = logits.gather(1, predicted[:, None]) - logits
    slopes = (network.weight[predicted][:, None] - network.weight).detach().norm(p=1 if norm == "linf" else 2, dim=2)
    return (gaps / slopes).scatter(1, predicted[:, None], torch.inf).amin(dim=1)


class Counting(nn.Module):
    """A network that counts the rows it sees, forward and backward, by the point they came from."""

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


class Signs(nn.Module):
    """A network with sign activations: its gradients are zero everywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.network = problems.small_network()

    def forward(self, x: Tensor) -> Tensor:
        return self.network[3:](torch.sign(self.network[:3](x) - 0.3))


def constant(x: Tensor) -> Tensor:
    """A model that never changes its mind."""
    return x.flatten(1)[:, :1] * 0 + torch.tensor([0.0, 1.0, -1.0])


# Known answers


@pytest.mark.parametrize(("attack", "norm"), GUIDED)
@pytest.mark.parametrize("classes", [2, 10])
def test_linear_models_are_exact(attack: str, norm: str, classes: int) -> None:
    network = problems.linear_network(classes, 12, seed=classes, dtype=torch.float32)
    points = torch.randn(200, 12, generator=torch.Generator().manual_seed(1))
    found = run(brittle.Classifier(network), points, attack=attack, norm=norm, bounded=False)
    exact = linear_margin(network, points, norm).double()
    assert (found.distance >= exact * (1 - 1e-5) - 1e-6).all()
    assert (found.distance <= exact * 1.001 + 1e-6).all()
    assert not found.masked.any()


@pytest.mark.parametrize("norm", NORMS)
def test_projection_inside_the_box_is_the_nearest_point(norm: str) -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(50, 6, generator=generator, dtype=torch.float64)
    gradient = torch.randn(50, 6, generator=generator, dtype=torch.float64)
    room = torch.where(gradient > 0, points, 1 - points)
    drop = torch.rand(50, generator=generator, dtype=torch.float64) * (gradient.abs() * room).sum(dim=1)
    projected = NORMS[norm].onto_plane(points, gradient, drop, 0.0, 1.0)
    assert ((projected >= 0) & (projected <= 1)).all()
    torch.testing.assert_close(((points - projected) * gradient).sum(dim=1), drop)
    length = NORMS[norm].length(projected - points)
    for row in range(50):
        oracle = {"linf": _oracle_linf, "l2": _oracle_l2}[norm](points[row], gradient[row], drop[row])
        assert float(length[row]) == pytest.approx(oracle, rel=1e-6)


def _oracle_linf(point: Tensor, gradient: Tensor, drop: Tensor) -> float:
    """Minimise `r` over `(d, r)` with `|d| <= r`, `gradient . d = -drop`, `0 <= point + d <= 1`."""
    size = len(point)
    eye = torch.eye(size, dtype=torch.float64)
    below = torch.cat((torch.cat((eye, -eye)), -torch.ones(2 * size, 1, dtype=torch.float64)), dim=1)
    equal = torch.cat((gradient, torch.zeros(1, dtype=torch.float64)))[None]
    limits = [(-float(value), 1 - float(value)) for value in point]
    cost = [0.0] * size + [1.0]
    found = linprog(cost, below.numpy(), [0.0] * 2 * size, equal.numpy(), [-float(drop)], [*limits, (0, None)])
    return float(found.fun)


def _oracle_l2(point: Tensor, gradient: Tensor, drop: Tensor) -> float:
    """Bisection on the multiplier: `d = clip(-l gradient)` falls by more, the larger `l` is."""
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        moved = (point - middle * gradient).clamp(0, 1)
        low, high = (middle, high) if float((point - moved) @ gradient) < float(drop) else (low, middle)
    return float(((point - high * gradient).clamp(0, 1) - point).norm())


@pytest.mark.parametrize("norm", NORMS)
def test_projection_out_of_reach_is_the_corner(norm: str) -> None:
    points, gradient = torch.tensor([[0.25, 0.5]]), torch.tensor([[1.0, -2.0]])
    projected = NORMS[norm].onto_plane(points, gradient, torch.tensor([9.0]), 0.0, 1.0)
    assert projected.tolist() == [[0.0, 1.0]]
    still = NORMS[norm].onto_plane(points, 0 * gradient, torch.tensor([9.0]), 0.0, 1.0)
    assert still.tolist() == points.tolist()


@pytest.mark.parametrize(("attack", "norm"), PAIRS)
def test_a_box_in_the_way_is_respected_and_counted(attack: str, norm: str) -> None:
    """`z_1 - z_0 = 4 x_1 + x_2 - 3`; at (0.9, 0.1, 0.5) the box stops `x_1` before the boundary in no norm."""
    network = nn.Linear(3, 2)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[0.0, 0.0, 0.0], [4.0, 1.0, 0.0]]))
        network.bias.copy_(torch.tensor([0.0, -4.5]))
    found = run(brittle.Classifier(network), torch.tensor([[0.9, 0.1, 0.5]]), attack=attack, norm=norm)
    exact = 0.4 if norm == "linf" else (0.1**2 + 0.4**2) ** 0.5
    assert float(found.distance) >= exact * (1 - 1e-5)
    if attack not in ("segments", "rays"):
        assert float(found.distance) == pytest.approx(exact, rel=2e-3)


@pytest.mark.filterwarnings("ignore")
def test_ddn_is_as_near_as_foolbox() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import foolbox
    network, points = problems.small_network(), problems.inputs(24)
    labels = network(points).argmax(dim=1)
    theirs = foolbox.attacks.DDNAttack(steps=200)
    _, moved, success = theirs(foolbox.PyTorchModel(network, (0, 1), device="cpu"), points, labels, epsilons=None)
    rival = torch.where(success, (moved - points).flatten(1).norm(dim=1), torch.inf).double()
    found = run(problems.small_classifier(), points, attack="ddn", norm="l2", effort="thorough")
    assert success.any()
    assert float((found.distance / rival)[success].median()) <= 1.02
    assert float(found.distance[success].sum() / rival[success].sum()) <= 1.02


# Laws


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize(("attack", "norm"), PAIRS)
def test_the_result_is_what_it_says(attack: str, norm: str, bounded: bool) -> None:
    classifier, points = problems.small_classifier(), problems.inputs(9)
    clean = clean_pass(classifier, points)
    found = Nearest(norm, attack, "fast", bounded)(classifier, clean)
    known = found.distance.isfinite()
    assert known.any()
    for point, predicted in zip(found.points[known], found.predicted[known], strict=True):
        assert int(classifier(point[None]).argmax()) == int(predicted)
    assert (found.predicted[known] != clean.predicted[known]).all()
    length = NORMS[norm].length(found.points.double().flatten(1) - points.double().flatten(1))
    torch.testing.assert_close(found.distance[known], length[known], rtol=0, atol=0)
    assert found.points.dtype == points.dtype
    assert found.points.shape == points.shape
    if bounded:
        assert ((found.points >= 0) & (found.points <= 1)).all()
    assert (found.distance <= torch.stack(list(found.by_attack.values())).amin(dim=0) * 1.002).all()


@pytest.mark.parametrize(("attack", "norm"), PAIRS)
def test_a_point_does_not_depend_on_its_batch(attack: str, norm: str) -> None:
    """But for the points where rounding decides which way a step goes."""
    classifier = brittle.Classifier(problems.small_network(dtype=torch.float64))
    points = problems.inputs(16, dtype=torch.float64)
    whole, again = (run(classifier, points, attack=attack, norm=norm, effort="fast") for _ in range(2))
    assert whole.points.numpy().tobytes() == again.points.numpy().tobytes()
    for size in (1, 5):
        parts = [run(classifier, part, attack=attack, norm=norm, effort="fast") for part in points[:8].split(size)]
        check_alike(torch.cat([part.distance for part in parts]), whole.distance[:8])


@pytest.mark.parametrize(("attack", "norm"), PAIRS)
def test_every_pass_is_counted_on_its_point(attack: str, norm: str) -> None:
    network = Counting(problems.small_network())
    classifier = brittle.Classifier(network, bounds=(0, 1))
    found = run(classifier, problems.inputs(5), attack=attack, norm=norm, effort="fast")
    assert int(found.passes.sum()) == network.rows == classifier.passes
    alone = Counting(problems.small_network())
    first = run(brittle.Classifier(alone), problems.inputs(5)[:1], attack=attack, norm=norm, effort="fast")
    assert int(first.passes) == alone.rows
    assert abs(int(found.passes[0]) - alone.rows) <= 5


@pytest.mark.parametrize("norm", NORMS)
def test_more_effort_is_no_worse(norm: str) -> None:
    results = [run(problems.small_classifier(), problems.inputs(5), norm=norm, effort=effort) for effort in EFFORTS]
    for cheap, dear in itertools.pairwise(results):
        assert float(dear.distance.sum()) <= float(cheap.distance.sum()) * 1.001
        assert (dear.passes > cheap.passes).all()


@pytest.mark.parametrize("norm", NORMS)
def test_best_is_no_farther_than_any_attack(norm: str) -> None:
    best = run(problems.small_classifier(), problems.inputs(5), norm=norm)
    for attack, of_norm in PAIRS:
        if of_norm == norm:
            alone = run(problems.small_classifier(), problems.inputs(5), norm=norm, attack=attack)
            assert float(best.distance.sum()) <= float(alone.distance.sum()) * 1.01


# Points without a nearest input, and points that mislead


@pytest.mark.parametrize(("attack", "norm"), PAIRS)
@pytest.mark.parametrize("bounded", [True, False])
def test_not_found_is_infinite(attack: str, norm: str, bounded: bool) -> None:
    points = problems.inputs(3)
    found = run(brittle.Classifier(constant), points, attack=attack, norm=norm, effort="fast", bounded=bounded)
    assert found.distance.tolist() == [torch.inf] * 3
    assert found.predicted.tolist() == [-1] * 3
    assert torch.equal(found.points, points)


@pytest.mark.parametrize(("attack", "norm"), PAIRS)
def test_broken_rows_leave_the_others_alone(attack: str, norm: str) -> None:
    def broken(x: Tensor, logits: Tensor) -> Tensor:
        marked = x[:, 0, 0, :1]
        return torch.where(marked == 0.125, torch.nan, torch.where(marked == 0.25, 0 * logits, logits))

    points = problems.inputs(4)
    points[1, 0, 0, 0], points[2, 0, 0, 0] = 0.125, 0.25
    classifier = brittle.Classifier(problems.Wrapped(broken))
    found = run(classifier, points, attack=attack, norm=norm, effort="fast")
    assert found.distance[[1, 2]].tolist() == [torch.inf, 0.0]
    assert torch.equal(found.points[1:3], points[1:3])
    assert found.predicted[[1, 2]].tolist() == [-1, -1]
    assert found.passes[[1, 2]].tolist() == [1, 1]
    alone = run(classifier, points[[0, 3]], attack=attack, norm=norm, effort="fast")
    torch.testing.assert_close(found.distance[[0, 3]], alone.distance, rtol=RESOLVED, atol=0)


@pytest.mark.parametrize("norm", NORMS)
def test_networks_without_gradients_are_masked(norm: str) -> None:
    points = problems.inputs(6)
    found = run(brittle.Classifier(Signs()), points, norm=norm, effort="fast")
    assert found.masked.all()
    assert found.distance.isfinite().any()
    assert found.by_attack["fab"].isinf().all()
    assert (found.by_attack["rays"] <= found.by_attack["segments"]).all()
    assert not run(problems.small_classifier(), points, norm=norm).masked.any()


def test_a_model_that_cannot_be_differentiated_is_masked() -> None:
    network = problems.small_network()
    classifier = brittle.Classifier(lambda x: network(x.detach()).detach(), bounds=(0, 1))
    found = run(classifier, problems.inputs(3), effort="fast")
    assert found.masked.all()
    assert found.distance.isfinite().any()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"norm": "l1"}, "norm"),
        ({"attack": "pgd"}, "attack"),
        ({"effort": "heroic"}, "effort"),
        ({"attack": "ddn", "norm": "linf"}, "attack"),
    ],
)
def test_unknown_names_are_refused(options: dict[str, str], code: str) -> None:
    with pytest.raises(ParameterError, match=next(iter(options.values()))) as refused:
        Nearest(**options)
    assert refused.value.code == code


@pytest.mark.parametrize("norm", list(NORMS))
def test_the_inputs_are_those_of_the_score(norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever number of points is searched together."""
    monkeypatch.setattr("brittle.measure.forward.ROWS", 10)
    classifier, points = problems.small_classifier(), problems.inputs(12)
    found = brittle.nearest(classifier, points, norm=norm, effort="fast")
    margins = brittle.score(classifier, points, [brittle.scores.InputMargin(norm, effort="fast")]).wide()
    assert (
        found.distance.tolist() == margins.iloc[:, margins.columns.str.startswith("input_margin(")].iloc[:, 0].tolist()
    )
    assert found.points.shape == points.shape
    for one, predicted in zip(found.points, found.predicted.tolist(), strict=True):
        assert int(classifier(one[None]).argmax()) == predicted


@pytest.mark.parametrize(
    ("points", "options", "sentence"),
    [
        (problems.inputs(3) * 255, {}, r"3 of 3 inputs leave the declared range \[0, 1\]"),
        (problems.inputs(3)[:0], {}, "with B at least 1"),
        (problems.inputs(3), {"norm": "l1"}, "norm must be one of"),
        (problems.inputs(3), {"attack": "ddn"}, "ddn knows norm='l2' only"),
    ],
)
def test_what_cannot_be_searched(points: Tensor, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(brittle.errors.BrittleError, match=sentence):
        brittle.nearest(problems.small_classifier(), points, **options)
