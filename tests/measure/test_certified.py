"""Certified radii: exact for linear models, never beyond what an attack finds, and silent where they know nothing."""

from __future__ import annotations

import pytest
import torch
from helpers.problems import inputs, linear_network, small_network
from torch import Tensor, nn

import brittle
from brittle.measure.certified import Certified, CertifiedRadius
from brittle.measure.certified.crown import Region, logit_bounds, margin_bounds
from brittle.measure.certified.graph import Network, UnsupportedLayer, build_network
from brittle.measure.certified.intervals import Interval, interval_bounds
from brittle.measure.certified.radius import ACCURACY
from brittle.measure.certified.relaxations import relax
from brittle.measure.forward import look

NORMS = ("linf", "l2")


class Residual(nn.Module):
    """Two branches that meet, one of them subtracted, with batch normalisation and average pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.body = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, groups=2), nn.ReLU(inplace=True), nn.Dropout())
        self.shortcut = nn.Conv2d(4, 4, 1, dilation=1, bias=False)
        self.head = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem((x - 0.5) / 0.25)
        x = torch.relu(self.body(x) - 0.5 * self.shortcut(x) + x)
        return self.head(nn.functional.avg_pool2d(x, 2).mean((2, 3)))


def lively(network: nn.Module, seed: int) -> nn.Module:
    """`network` with random weights and running statistics, in evaluation mode."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.copy_(0.3 * torch.randn(4, generator=generator))  # type: ignore[union-attr]
                module.running_var.copy_(0.5 + torch.rand(4, generator=generator))  # type: ignore[union-attr]
    return network.eval()


def perceptron(activation: type[nn.Module]) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(36, 12), activation(), nn.Linear(12, 12), activation(), nn.Linear(12, 4)
    )


FAMILIES = {
    "perceptron": lambda: perceptron(nn.ReLU),
    "leaky": lambda: perceptron(nn.LeakyReLU),
    "sigmoid": lambda: perceptron(nn.Sigmoid),
    "tanh": lambda: perceptron(nn.Tanh),
    "convolution": lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 4)
    ),
    "pooled": lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 4)
    ),
    "residual": Residual,
}

NETWORKS = [(family, seed) for family in FAMILIES for seed in range(3)]


def classifier_of(family: str, seed: int, dtype: torch.dtype = torch.float32) -> brittle.Classifier:
    return brittle.Classifier(lively(FAMILIES[family](), seed).to(dtype), bounds=(0, 1))


def certified(
    classifier: brittle.Classifier, points: Tensor, norm: str = "linf", bounded: bool = True
) -> CertifiedRadius:
    return Certified(norm, bounded)(classifier, look(classifier, points, [str(row) for row in range(len(points))], 0))


def traced(classifier: brittle.Classifier, points: Tensor) -> Network:
    with classifier.evaluating():
        return build_network(classifier, points)


def sizes(displacements: Tensor, norm: str) -> Tensor:
    return torch.linalg.vector_norm(displacements.flatten(1), ord=torch.inf if norm == "linf" else 2, dim=1)


def on_sphere(directions: Tensor, radii: Tensor, norm: str) -> Tensor:
    """Displacements of length `radii`: corners of the cube for `linf`."""
    directions = directions.sign() if norm == "linf" else directions
    return directions * (radii / sizes(directions, norm).clamp_min(1e-30)).view(-1, 1, 1, 1)


def attacked(network: Network, points: Tensor, radii: Tensor, norm: str, bounded: bool, steps: int = 15) -> Tensor:
    """Smallest margin of the clean class that random points, corners and projected gradient steps find, `[B]`."""
    generator = torch.Generator().manual_seed(7)
    points, clean = points.double(), network(points)
    target = clean.argmax(dim=1, keepdim=True)
    worst = torch.full((len(points),), torch.inf, dtype=torch.float64)
    displacement = on_sphere(torch.randn(points.shape, generator=generator, dtype=torch.float64), radii, norm)
    for step in range(3 * steps):
        moved = points + displacement
        moved = (moved.clamp(0, 1) if bounded else moved).requires_grad_(True)
        logits = network(moved)
        others = logits.scatter(1, target, -torch.inf)
        margin = logits.gather(1, target)[:, 0] - others.max(dim=1).values
        worst = worst.minimum(margin.detach())
        if step % steps == steps - 1:
            displacement = torch.randn(points.shape, generator=generator, dtype=torch.float64)
            displacement = on_sphere(displacement, radii, norm)
            continue
        gradient = torch.autograd.grad(margin.sum(), moved)[0]
        displacement = displacement - on_sphere(gradient, 0.3 * radii, norm)
        scale = (radii / sizes(displacement, norm).clamp_min(1e-30)).clamp(max=1).view(-1, 1, 1, 1)
        displacement = (
            displacement.clamp(-radii.view(-1, 1, 1, 1), radii.view(-1, 1, 1, 1))
            if norm == "linf"
            else (displacement * scale)
        )
    return worst


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_linear_model_has_its_exact_margin(norm: str, classes: int, dtype: torch.dtype) -> None:
    network = linear_network(classes, 20, dtype=dtype)
    points = inputs(8, (20,), dtype=dtype)
    logits, weight = network(points).detach().double(), network.weight.detach().double()
    top = logits.argmax(dim=1)
    gaps = logits.gather(1, top[:, None]) - logits
    slopes = torch.linalg.vector_norm(weight[top][:, None] - weight, ord=1 if norm == "linf" else 2, dim=2)
    exact = (gaps / slopes).nan_to_num(torch.inf).min(dim=1).values
    found = certified(brittle.Classifier(network), points, norm, bounded=False).radius
    assert (found < exact).all()
    assert (found > 0.998 * exact).all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("family", "seed"), NETWORKS)
def test_no_attack_inside_the_radius_succeeds(family: str, seed: int, norm: str) -> None:
    classifier, points = classifier_of(family, seed), inputs(3, seed=seed)
    network = traced(classifier, points)
    bounded = seed != 1
    found = certified(classifier, points, norm, bounded)
    assert found.unsupported is None
    assert (found.radius > 0).all()
    assert (attacked(network, points, found.radius, norm, bounded) > 0).all()


def test_the_attack_of_these_tests_finds_what_there_is() -> None:
    classifier, points = classifier_of("perceptron", 0), inputs(4)
    radii = 8 * certified(classifier, points, bounded=False).radius
    assert (attacked(traced(classifier, points), points, radii, "linf", bounded=False) < 0).any()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("family", "seed"), NETWORKS)
def test_bounds_hold_all_logits_and_relaxation_is_the_tighter(family: str, seed: int, norm: str) -> None:
    points = inputs(3, seed=seed).double()
    network = traced(classifier_of(family, seed), points)
    radii = torch.full((3,), 0.1 if norm == "linf" else 0.5, dtype=torch.float64)
    ball = Region.around(points, radii, norm, (0.0, 1.0))
    boxes = interval_bounds(network, Interval(points + ball.box.lower, points + ball.box.upper))
    crown = logit_bounds(network, ball)
    # Where relaxation gains nothing, both are the same sum, added up in another order.
    assert (crown.lower >= boxes.lower - 1e-12 * boxes.lower.abs()).all()
    assert (crown.upper <= boxes.upper + 1e-12 * boxes.upper.abs()).all()
    share = 1.0 if family == "pooled" else 0.9
    assert (crown.upper - crown.lower).mean() < share * (boxes.upper - boxes.lower).mean()
    margins = margin_bounds(network, ball, network(points).argmax(dim=1)).lower
    generator = torch.Generator().manual_seed(seed)
    for _ in range(50):
        directions = torch.randn(points.shape, generator=generator, dtype=torch.float64)
        logits = network((points + on_sphere(directions, radii, norm)).clamp(0, 1))
        assert (logits >= crown.lower - 1e-9).all()
        assert (logits <= crown.upper + 1e-9).all()
        own = logits.gather(1, network(points).argmax(dim=1, keepdim=True))
        assert ((own - logits >= margins - 1e-9) | margins.isinf()).all()


@pytest.mark.parametrize("operator", ["relu", "leaky_relu", "sigmoid", "tanh"])
def test_lines_lie_around_their_function(operator: str) -> None:
    generator = torch.Generator().manual_seed(0)
    ends = 4 * torch.randn(2000, 2, generator=generator, dtype=torch.float64)
    ends[:20, 1] = ends[:20, 0]
    interval = Interval(ends.min(dim=1).values, ends.max(dim=1).values)
    lines = relax(operator, interval, (0.1,) if operator == "leaky_relu" else ())
    function = {"leaky_relu": lambda y: nn.functional.leaky_relu(y, 0.1)}.get(operator, getattr(torch, operator, None))
    for share in torch.linspace(0, 1, 101, dtype=torch.float64):
        values = interval.lower + share * (interval.upper - interval.lower)
        assert (lines.lower.at(values) <= function(values) + 1e-9).all()
        assert (lines.upper.at(values) >= function(values) - 1e-9).all()


@pytest.mark.parametrize("norm", NORMS)
def test_bounds_make_no_radius_smaller(norm: str) -> None:
    classifier, points = classifier_of("convolution", 1), inputs(6).round()
    free, clipped = certified(classifier, points, norm, bounded=False), certified(classifier, points, norm)
    assert (clipped.radius >= 0.997 * free.radius).all()
    assert (clipped.radius > 1.05 * free.radius).any()


def test_a_prediction_that_never_changes_is_certified_over_all_inputs() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(36, 2))
    nn.init.zeros_(network[1].weight)  # type: ignore[arg-type]
    network[1].bias.data = torch.tensor([1.0, 0.0])
    found = certified(brittle.Classifier(network, bounds=(0, 2)), inputs(2))
    torch.testing.assert_close(found.radius, torch.full((2,), 2.0, dtype=torch.float64), rtol=1e-5, atol=0)


@pytest.mark.parametrize("norm", NORMS)
def test_radii_have_the_units_of_the_input(norm: str) -> None:
    model, points = small_network(), inputs(4)
    unit = certified(brittle.Classifier(model), points, norm)
    scaled = certified(brittle.Classifier(model, bounds=(0, 255), mean=0.0, std=255.0), 255 * points, norm)
    torch.testing.assert_close(scaled.radius, 255 * unit.radius, rtol=3e-3, atol=0)


def test_a_module_and_its_exported_program_agree() -> None:
    model, points = lively(Residual(), 0), inputs(5)
    dynamic = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(model, (points,), dynamic_shapes=dynamic).module()
    found = certified(brittle.Classifier(model), points).radius
    # The program may round its scores otherwise; see `test_a_point_does_not_depend_on_its_batch`.
    torch.testing.assert_close(certified(brittle.Classifier(program), points).radius, found, rtol=ACCURACY, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("family", ["perceptron", "sigmoid", "convolution", "residual"])
def test_a_point_does_not_depend_on_its_batch(family: str, dtype: torch.dtype) -> None:
    """But for the rounding of the classifier's scores, which a proof allows for: another batch may round otherwise.

    What is allowed for at a point is `SLACK` times the rounding seen there. In double precision that is nothing, and
    nothing else in the search depends on the batch. In single precision a radius moves with it, by the inverse of the
    margin's slope, unless the prediction hangs by a hair, and no farther than the search resolves.
    """
    classifier, points = classifier_of(family, 2, dtype), inputs(4, dtype=dtype)
    together = certified(classifier, points)
    alone = [certified(classifier, points[row : row + 1]) for row in range(4)]
    tolerance = 1e-9 if dtype == torch.float64 else ACCURACY
    torch.testing.assert_close(torch.cat([one.radius for one in alone]), together.radius, rtol=tolerance, atol=0)
    if dtype == torch.float64:
        assert torch.cat([one.passes for one in alone]).tolist() == together.passes.tolist()


class Mixing(nn.Module):
    """Rows that depend on each other."""

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        return x - x.mean(0, keepdim=True)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(36, 4), nn.Softmax(1)), "softmax"),
        (nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.GELU(), nn.Linear(8, 4)), "gelu"),
        (nn.Sequential(nn.Flatten(), nn.LayerNorm(36), nn.Linear(36, 4)), "layer_norm"),
        (nn.Sequential(nn.MaxPool2d(2, padding=1), nn.Flatten(), nn.Linear(16, 4)), "max_pool2d"),
        (Mixing(), "reproduce"),
        (lambda x: x.flatten(1), "Module"),
    ],
)
def test_what_cannot_be_bounded_is_named(model: nn.Module, words: str) -> None:
    found = certified(brittle.Classifier(model), inputs(3))
    assert found.unsupported is not None
    assert words in found.unsupported
    assert found.radius.tolist() == [0.0] * 3


def test_products_of_two_varying_values_are_refused() -> None:
    class Square(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x * x).flatten(1)

    with pytest.raises(UnsupportedLayer, match="mul of two values that both depend on the input"):
        traced(brittle.Classifier(Square()), inputs(2))


def test_ties_and_broken_rows_have_radius_zero_and_spoil_no_other() -> None:
    classifier, points = classifier_of("perceptron", 0, torch.float64), inputs(3, dtype=torch.float64)
    broken = points.clone()
    broken[1] = torch.nan
    found, whole = certified(classifier, broken).radius, certified(classifier, points).radius
    assert found[1] == 0
    torch.testing.assert_close(found[[0, 2]], whole[[0, 2]], rtol=1e-9, atol=0)
    tied = nn.Sequential(nn.Flatten(), nn.Linear(36, 2))
    nn.init.zeros_(tied[1].weight)  # type: ignore[arg-type]
    nn.init.zeros_(tied[1].bias)  # type: ignore[arg-type]
    assert certified(brittle.Classifier(tied.double()), points).radius.tolist() == [0.0] * 3


def test_one_logit_has_the_margin_of_two() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        one, two = nn.Linear(6, 1), nn.Linear(6, 2)
    with torch.no_grad():
        two.weight.copy_(torch.cat((torch.zeros(1, 6), one.weight)))
        two.bias.copy_(torch.cat((torch.zeros(1), one.bias)))
    points = inputs(4, (6,))
    single = certified(brittle.Classifier(one, outputs="binary-logit"), points)
    both = certified(brittle.Classifier(two), points)
    torch.testing.assert_close(single.radius, both.radius, rtol=5e-3, atol=0)  # what the search for the radius resolves


def test_an_unknown_norm_is_refused() -> None:
    with pytest.raises(brittle.errors.ParameterError, match="no norm is called 'l1'; there are linf, l2"):
        Certified("l1")
