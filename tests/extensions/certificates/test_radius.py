"""Certified radii: exact for linear models, never beyond what an attack finds, and silent where they know nothing."""

from __future__ import annotations

import pytest
import torch
from helpers.attacked import linear_margin
from helpers.bounded_networks import CASES, HEAVY, NORMS, certified, classifier_of, lively
from helpers.problems import inputs, linear_network, small_network
from torch import Tensor, nn

import brittle
from brittle.extensions.certificates.proof import ACCURACY


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_linear_model_has_its_exact_margin(norm: str, classes: int, dtype: torch.dtype) -> None:
    network = linear_network(classes, 20, dtype=dtype)
    points = inputs(8, (20,), dtype=dtype)
    exact = linear_margin(network, points, norm)
    found = certified(brittle.Classifier(network), points, norm, bounded=False).radius
    assert (found < exact).all()
    assert (found > 0.998 * exact).all()


@pytest.mark.every_other
@pytest.mark.parametrize(("family", "seed", "norm"), CASES)
def test_no_attack_inside_the_radius_succeeds(family: str, seed: int, norm: str) -> None:
    classifier, points = classifier_of(family, seed), inputs(1 if family in HEAVY else 3, seed=seed)
    found = certified(classifier, points, norm, bounded=seed != 1)
    assert found.unsupported is None
    assert (found.radius > 0).all()
    nearest = brittle.nearest(classifier, points, norm=norm, effort="fast", bounded=seed != 1)
    assert (found.radius <= nearest.distance).all()


@pytest.mark.parametrize("norm", NORMS)
def test_bounds_make_no_radius_smaller(norm: str) -> None:
    classifier, points = classifier_of("convolution", 1), inputs(6).round()
    free, clipped = (certified(classifier, points, norm, bounded, "fast") for bounded in (False, True))
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
    torch.testing.assert_close(torch.cat([one.radius for one in alone]), together.radius, rtol=tolerance, atol=0)
    if dtype == torch.float64:
        assert torch.cat([one.passes for one in alone]).tolist() == together.passes.tolist()


class Shared(nn.Module):
    """A value that three functions see, one of which is bent where few points have numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(36, 12), nn.Linear(12, 12), nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        seen = self.middle(torch.relu(self.first(x.flatten(1))))
        return self.last(torch.relu(seen) + nn.functional.hardtanh(seen, -2.0, 2.0) + nn.functional.relu6(seen))


def test_what_several_layers_see_is_bounded_for_each_point_alone() -> None:
    """A neighbour for which a number has to be bounded again costs the others nothing."""
    classifier = brittle.Classifier(lively(Shared(), 2).double(), bounds=(0, 1))
    points = inputs(3, dtype=torch.float64)
    together = certified(classifier, points)
    alone = [certified(classifier, points[row : row + 1]) for row in range(3)]
    assert torch.cat([one.passes for one in alone]).tolist() == together.passes.tolist()
    torch.testing.assert_close(torch.cat([one.radius for one in alone]), together.radius, rtol=1e-9, atol=0)
    assert (together.radius > 0).all()


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
    one, two = linear_network(1, 6, dtype=torch.float32), linear_network(2, 6, dtype=torch.float32)
    with torch.no_grad():
        two.weight.copy_(torch.cat((torch.zeros(1, 6), one.weight)))
        two.bias.copy_(torch.cat((torch.zeros(1), one.bias)))
    single = certified(brittle.Classifier(one, outputs="binary-logit"), inputs(4, (6,)))
    both = certified(brittle.Classifier(two), inputs(4, (6,)))
    torch.testing.assert_close(single.radius, both.radius, rtol=5e-3, atol=0)  # what the search for the radius resolves


@pytest.mark.every_other
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("distance", [1e-4, 3e-4, 1e-3])
def test_a_point_beside_the_boundary_has_its_radius(norm: str, distance: float) -> None:
    """Alone in its batch, so near that the first radius that is tried may be larger than the second."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        last = nn.Linear(8, 2)
        network = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 8), nn.Sigmoid(), last).eval()
        some = torch.rand(500, 2)

    def margin(x: Tensor) -> Tensor:
        return network(x)[:, 0] - network(x)[:, 1]

    with torch.no_grad():
        for parameter in network.parameters():
            parameter *= 2
        last.bias[0] -= margin(some).median()
        one, other = some[margin(some) > 0][:1], some[margin(some) < 0][:1]
        near, far = 0.0, 1.0
        for _ in range(60):
            middle = (near + far) / 2
            near, far = (middle, far) if margin(one + (other - one) * middle) > 0 else (near, middle)
        x = one + (other - one) * near + distance * (one - other) / (one - other).norm()
    score = brittle.scores.InputMargin(norm=norm, effort="fast", certify=True)
    found = score(brittle.Classifier(network, bounds=None), x)
    assert 0.9 * float(found.high) < float(found.low) <= float(found.high)
