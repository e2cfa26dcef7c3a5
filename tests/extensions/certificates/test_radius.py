"""Certified radii: exact for linear models, never beyond an attack's distance, and 0 without a proof."""

from __future__ import annotations

import pytest
import torch
from helpers.attacked import linear_margin
from helpers.bounded_networks import CASES, HEAVY, NORMS, certified, classifier_of, lively
from helpers.problems import inputs, linear_network, small_network
from torch import Tensor, nn

import brittle
from brittle.extensions.certificates.proof import ACCURACY


@pytest.mark.every_other
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_linear_model_has_its_exact_margin(norm: str, classes: int, dtype: torch.dtype) -> None:
    network = linear_network(classes, 20, dtype=dtype)
    points = inputs(8, (20,), dtype=dtype)
    exact = linear_margin(network, points, norm)
    radius = certified(brittle.Classifier(network), points, norm, bounded=False).radius
    assert (radius < exact).all()
    assert (radius > 0.998 * exact).all()


@pytest.mark.every_other
@pytest.mark.parametrize(("family", "seed", "norm"), CASES)
def test_no_attack_inside_the_radius_succeeds(family: str, seed: int, norm: str) -> None:
    classifier, points = classifier_of(family, seed), inputs(1 if family in HEAVY else 3, seed=seed)
    certificate = certified(classifier, points, norm, bounded=seed != 1)
    assert certificate.unsupported is None
    assert (certificate.radius > 0).all()
    nearest = brittle.nearest(classifier, points, norm=norm, effort="fast", bounded=seed != 1)
    assert (certificate.radius <= nearest.distance).all()


@pytest.mark.parametrize("norm", NORMS)
def test_bounds_make_no_radius_smaller(norm: str) -> None:
    classifier, points = classifier_of("convolution", 1), inputs(6).round()
    free, clipped = (certified(classifier, points, norm, bounded, "fast") for bounded in (False, True))
    assert (clipped.radius >= 0.997 * free.radius).all()
    assert (clipped.radius > 1.05 * free.radius).any()


def test_a_constant_prediction_is_certified_over_all_inputs() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(36, 2))
    nn.init.zeros_(network[1].weight)  # type: ignore[arg-type]
    network[1].bias.data = torch.tensor([1.0, 0.0])
    certificate = certified(brittle.Classifier(network, bounds=(0, 2)), inputs(2))
    torch.testing.assert_close(certificate.radius, torch.full((2,), 2.0, dtype=torch.float64), rtol=1e-5, atol=0)


@pytest.mark.parametrize("norm", NORMS)
def test_radii_have_the_units_of_the_input(norm: str) -> None:
    model, points = small_network(), inputs(1)
    unit = certified(brittle.Classifier(model), points, norm, proof="fast")
    classifier = brittle.Classifier(model, bounds=(0, 255), mean=0.0, std=255.0)
    scaled = certified(classifier, 255 * points, norm, proof="fast")
    torch.testing.assert_close(scaled.radius, 255 * unit.radius, rtol=3e-3, atol=0)


@pytest.mark.parametrize(
    ("family", "dtype"),
    [
        ("perceptron", torch.float32),
        ("residual", torch.float64),
    ],
)
def test_a_point_does_not_depend_on_its_batch(family: str, dtype: torch.dtype) -> None:
    """But for the rounding of the classifier's scores, which a proof allows for: another batch may round otherwise.

    What is allowed for at a point is `SLACK` times the rounding seen there. In double precision that is nothing, and
    nothing else in the search depends on the batch. In single precision a radius moves with it, by the inverse of the
    margin's slope, unless the prediction hangs by a hair, and no farther than the search resolves.
    """
    classifier, points = classifier_of(family, 2, dtype), inputs(2, dtype=dtype)
    together = certified(classifier, points)
    alone = [certified(classifier, points[row : row + 1]) for row in range(2)]
    tolerance = 1e-9 if dtype == torch.float64 else ACCURACY
    torch.testing.assert_close(torch.cat([single.radius for single in alone]), together.radius, rtol=tolerance, atol=0)
    if dtype == torch.float64:
        assert torch.cat([single.passes for single in alone]).tolist() == together.passes.tolist()


class Shared(nn.Module):
    """A value that three functions see, one of which is bent where few points have numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(36, 12), nn.Linear(12, 12), nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.middle(torch.relu(self.first(x.flatten(1))))
        return self.last(torch.relu(hidden) + nn.functional.hardtanh(hidden, -2.0, 2.0) + nn.functional.relu6(hidden))


def test_an_input_of_several_layers_is_bounded_point_by_point() -> None:
    """A neighbour for which a number has to be bounded again costs the others nothing."""
    classifier = brittle.Classifier(lively(Shared(), 2).double(), bounds=(0, 1))
    points = inputs(2, dtype=torch.float64)
    together = certified(classifier, points)
    alone = [certified(classifier, points[row : row + 1]) for row in range(2)]
    assert torch.cat([single.passes for single in alone]).tolist() == together.passes.tolist()
    torch.testing.assert_close(torch.cat([single.radius for single in alone]), together.radius, rtol=1e-9, atol=0)
    assert (together.radius > 0).all()


def test_ties_and_broken_rows_have_radius_zero() -> None:
    classifier, points = classifier_of("perceptron", 0, torch.float64), inputs(3, dtype=torch.float64)
    broken = points.clone()
    broken[1] = torch.nan
    broken_radii, radii = certified(classifier, broken).radius, certified(classifier, points).radius
    assert broken_radii[1] == 0
    torch.testing.assert_close(broken_radii[[0, 2]], radii[[0, 2]], rtol=1e-9, atol=0)
    tied = nn.Sequential(nn.Flatten(), nn.Linear(36, 2))
    nn.init.zeros_(tied[1].weight)  # type: ignore[arg-type]
    nn.init.zeros_(tied[1].bias)  # type: ignore[arg-type]
    assert certified(brittle.Classifier(tied.double()), points).radius.tolist() == [0.0] * 3


def test_one_logit_has_the_margin_of_two() -> None:
    one_logit, two_logits = linear_network(1, 6, dtype=torch.float32), linear_network(2, 6, dtype=torch.float32)
    with torch.no_grad():
        two_logits.weight.copy_(torch.cat((torch.zeros(1, 6), one_logit.weight)))
        two_logits.bias.copy_(torch.cat((torch.zeros(1), one_logit.bias)))
    single = certified(brittle.Classifier(one_logit, outputs="binary-logit"), inputs(4, (6,)))
    double = certified(brittle.Classifier(two_logits), inputs(4, (6,)))
    # The search resolves the radius to 4e-3.
    torch.testing.assert_close(single.radius, double.radius, rtol=5e-3, atol=0)


@pytest.mark.every_other
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("distance", [1e-4, 3e-4, 1e-3])
def test_a_point_beside_the_boundary_has_its_radius(norm: str, distance: float) -> None:
    """Alone in its batch, so near that the first radius that is tried may be larger than the second."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        last = nn.Linear(8, 2)
        network = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 8), nn.Sigmoid(), last).eval()
        samples = torch.rand(500, 2)

    def margin(x: Tensor) -> Tensor:
        return network(x)[:, 0] - network(x)[:, 1]

    with torch.no_grad():
        for parameter in network.parameters():
            parameter *= 2
        last.bias[0] -= margin(samples).median()
        inside, outside = samples[margin(samples) > 0][:1], samples[margin(samples) < 0][:1]
        near, far = 0.0, 1.0
        for _ in range(60):
            middle = (near + far) / 2
            near, far = (middle, far) if margin(inside + (outside - inside) * middle) > 0 else (near, middle)
        x = inside + (outside - inside) * near + distance * (inside - outside) / (inside - outside).norm()
    score = brittle.scores.InputMargin(norm=norm, effort="fast", certify=True)
    estimate = score(brittle.Classifier(network, bounds=None), x)
    assert 0.9 * float(estimate.high) < float(estimate.low) <= float(estimate.high)
