"""Stand-ins leave the values of a network as they are, and their gradients find inputs that other attacks miss."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import pytest
import torch
from helpers import problems
from helpers.attacked import run
from torch import Tensor, nn

import brittle
from brittle.extensions.more_attacks.straight_through import StandIns
from brittle.measure.nearest import ATTACKS
from brittle.measure.nearest.norms import NORMS

GENERATOR = torch.Generator().manual_seed(0)
INTO, OUT = torch.randn(6, 12, generator=GENERATOR), torch.randn(12, 4, generator=GENERATOR)
POINTS = torch.rand(8, 6, generator=GENERATOR)

Step = Callable[[Tensor], Tensor]


def _changed_in_place(hidden: Tensor) -> Tensor:
    stepped = torch.sign(hidden)
    stepped += 0.25
    return stepped.mul_(2)


def _arguments_changed(hidden: Tensor) -> Tensor:
    copy = hidden * 1
    chosen = torch.where(hidden > 0, copy, -copy)
    copy.add_(1)
    return chosen


STEPS: dict[str, Step] = {
    "sign": torch.sign,
    "heaviside": lambda hidden: torch.heaviside(hidden, torch.tensor(1.0)),
    "where": lambda hidden: torch.where(hidden > 0, 1.0, -1.0),
    "comparison to numbers": lambda hidden: (hidden >= 0).float(),
    "bipolar": lambda hidden: (2 * (hidden > 0).int() - 1).float(),
    "masked": lambda hidden: (hidden > 0) * torch.ones_like(hidden),
    "round": lambda hidden: torch.round(3 * hidden) / 3,
    "ceil and trunc": lambda hidden: torch.ceil(hidden) + torch.trunc(hidden),
    "cast": lambda hidden: (3 * hidden).int().float(),
    "in place": _changed_in_place,
    "arguments change": _arguments_changed,
    "saturated": lambda hidden: torch.tanh(1e5 * hidden) + torch.sigmoid(1e5 * hidden),
    "aten": lambda hidden: torch.ops.aten.sign.default(hidden),
    "a number too large": lambda hidden: torch.where(hidden > 0, torch.inf, hidden).clamp(max=1e30).sign(),
}


class Stepped(nn.Module):
    """A step between two linear layers; its probabilities underflow."""

    def __init__(self, name: str, sharp: float = 1.0) -> None:
        super().__init__()
        self.step, self.sharp = STEPS[name], sharp

    def forward(self, x: Tensor) -> Tensor:
        scores = self.step((x - 0.5) @ INTO) @ OUT
        return scores if self.sharp == 1 else torch.softmax(self.sharp * scores, dim=1)


def bytes_of(values: Tensor) -> bytes:
    return values.detach().contiguous().numpy().tobytes()


@pytest.mark.parametrize("name", STEPS)
def test_values_stay_bit_for_bit(name: str) -> None:
    for sharp in (1.0, 1e4):
        network, points = Stepped(name, sharp), POINTS.clone().requires_grad_()
        plain = network(points)
        with StandIns(0.3) as mode:
            replaced = network(points)
        assert mode.replaced
        assert bytes_of(plain) == bytes_of(replaced)
        assert replaced.dtype == plain.dtype


@pytest.mark.parametrize("name", [name for name in STEPS if name != "a number too large"])
def test_gradients_pass_steps(name: str) -> None:
    points = POINTS.clone().requires_grad_()
    with StandIns(0.3):
        scores = Stepped(name)(points)
    (gradient,) = torch.autograd.grad(scores[:, 0].sum(), points)
    assert gradient.isfinite().all()
    assert (gradient.abs().amax(dim=1) > 0).sum() >= 6


def test_exported_programs_have_stand_ins_too() -> None:
    module = torch.export.export(Stepped("sign"), (POINTS,)).module()
    points = POINTS.clone().requires_grad_()
    with StandIns(0.3) as mode:
        replaced = module(points)
    assert mode.replaced == 1
    assert bytes_of(replaced) == bytes_of(Stepped("sign")(POINTS))
    (gradient,) = torch.autograd.grad(replaced[:, 0].sum(), points)
    assert gradient.abs().sum() > 0


@pytest.mark.parametrize("norm", NORMS)
def test_the_boundary_of_one_step_is_found(norm: str) -> None:
    """`z_0 = sign(w x - b)`, `z_1 = 0`: another class wins beyond `|w x - b| / norm(w)`, in the dual norm."""
    weight, points = INTO[:, 0].double(), POINTS[:4]
    level = float((POINTS.double() @ weight).mean())
    network = brittle.Classifier(
        lambda x: torch.sign(x.double() @ weight - level)[:, None] * torch.tensor([1.0, -1.0]), bounds="none"
    )
    exact = (points.double() @ weight - level).abs() / NORMS[norm].dual(weight[None])
    nearest = run(network, points, norm=norm, attack="straight_through", effort="fast", bounded=False)
    assert (nearest.distance >= exact * (1 - 1e-5)).all()
    assert nearest.distance.tolist() == pytest.approx(exact.tolist(), rel=2e-3, abs=1e-6)


def test_a_binarised_network_is_searched_better_than_by_signs() -> None:
    torch.manual_seed(0)
    into, deep, out = torch.randn(100, 64), torch.randn(64, 64), torch.randn(64, 5)
    network = brittle.Classifier(lambda x: torch.sign(torch.sign((x - 0.5) @ into) @ deep) @ out, bounds=(0, 1))
    points = torch.rand(6, 100)
    guided, blind = (run(network, points, attack=attack, effort="fast") for attack in ("straight_through", "rays"))
    assert float(guided.distance.mean()) < 0.8 * float(blind.distance.mean())
    assert int(guided.passes.max()) < int(blind.passes.min())


@pytest.mark.parametrize("norm", NORMS)
def test_a_network_with_gradients_loses_and_spends_nothing(norm: str) -> None:
    points = problems.inputs(3)
    nearest = run(problems.small_classifier(), points, norm=norm, effort="fast")
    other_attacks = {name: attack for name, attack in ATTACKS.items() if name != "straight_through"}
    with patch("brittle.measure.nearest.nearest.ATTACKS", other_attacks):
        before = run(problems.small_classifier(), points, norm=norm, effort="fast")
    assert bytes_of(nearest.points) == bytes_of(before.points)
    assert torch.equal(nearest.passes, before.passes)
    assert nearest.by_attack["straight_through"].isinf().all()
