"""AutoAttack's standard set as the study writes it, on networks whose robust accuracy is known."""

from __future__ import annotations

import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor, nn

from studies.margin_consistency.autoattack import standard
from studies.margin_consistency.autoattack.apgd import climb, cross_entropies, ratios_to
from studies.margin_consistency.autoattack.fab import across, nearest_across
from studies.margin_consistency.autoattack.squares import search_squares, side_of
from studies.margin_consistency.autoattack.standard import kinds, stands

EPSILON, STEPS = 0.05, 20


def linear(classes: int, seed: int = 0) -> nn.Sequential:
    """Return a linear network of 16 pixels."""
    last = nn.Linear(16, classes, bias=False)
    with torch.no_grad():
        last.weight.copy_(torch.randn(classes, 16, generator=torch.Generator().manual_seed(seed)))
    return nn.Sequential(nn.Flatten(), last)


def middle(count: int) -> Tensor:
    """Points from which no edge of [0, 1] is in reach."""
    return 0.3 + 0.4 * torch.rand(count, 1, 4, 4, generator=torch.Generator().manual_seed(1))


def distances(network: nn.Module, x: Tensor) -> Tensor:
    """To the nearest input of another class: `min_j (z_y - z_j) / ||w_y - w_j||_1`."""
    [weight] = [parameter.detach() for parameter in network.parameters()]
    logits = network(x).detach()
    predicted = logits.argmax(1)
    lengths = (weight[predicted][:, None] - weight[None]).abs().sum(2)
    gaps = logits.gather(1, predicted[:, None]) - logits
    return (gaps / lengths).masked_fill(lengths == 0, torch.inf).amin(1)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_of_a_linear_network_the_robust_accuracy_is_exact(classes: int) -> None:
    network, x = linear(classes), middle(200)
    with torch.no_grad():
        y = network(x).argmax(1)
    y[::7] = (y[::7] + 1) % classes
    truth = (distances(network, x) > EPSILON) & (network(x).argmax(1) == y)
    assert 20 < int(truth.sum()) < 171
    assert torch.equal(stands(network, x, y, EPSILON, STEPS, 50, 0), truth)


@pytest.mark.parametrize("kind", ["apgd-ce", "apgd-t", "fab-t", "square"])
def test_each_attack_alone_stays_in_the_ball_and_finds_flips(kind: str) -> None:
    """Gradients find all that lies within; random squares, which turn few pixels, what lies at half of the radius."""
    network, x = linear(10), middle(200)
    with torch.no_grad():
        logits = network(x)
    y, near = logits.argmax(1), distances(network, x)
    target = logits.topk(2, dim=1).indices[:, 1]
    generator = torch.Generator().manual_seed(0)
    moved = {
        "apgd-ce": lambda: climb(network, x, cross_entropies(y), EPSILON, STEPS, generator),
        "apgd-t": lambda: climb(network, x, ratios_to(y, target), EPSILON, STEPS, generator),
        "fab-t": lambda: nearest_across(network, x, y, target, EPSILON, STEPS),
        "square": lambda: search_squares(network, x, y, EPSILON, 300, generator),
    }[kind]()
    assert float((moved - x).abs().max()) <= EPSILON + 1e-6
    assert float(moved.min()) >= 0
    assert float(moved.max()) <= 1
    turned = network(moved).argmax(1) != y
    assert not turned[near > EPSILON].any()
    assert turned[near < EPSILON / 2].all()


def test_what_an_attack_says_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another class outside of the ball, or outside of [0, 1], breaks nothing."""
    network, x = linear(10), middle(50)
    with torch.no_grad():
        y = network(x).argmax(1)
    for moved in (1 - x, x + 2):
        assert bool((network(moved).argmax(1) != y).any())
        monkeypatch.setattr(standard, "kinds", lambda _: [("square", 0)])
        monkeypatch.setattr(standard, "search_squares", lambda *_, moved=moved: moved)
        assert bool(stands(network, x, y, 1e-4, STEPS, 10, 0).all())


def test_a_step_to_a_plane_is_as_short_as_a_linear_program_says() -> None:
    """`min t` with `|z - x| <= t`, `z` in [0, 1] and `w . z + b = 0`; where no such `z` is, all the way towards it."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(60, 6, generator=generator, dtype=torch.float64)
    w = torch.randn(60, 6, generator=generator, dtype=torch.float64)
    w[::5, 2] = 0
    b = 1.5 * torch.randn(60, generator=generator, dtype=torch.float64)
    ends, missed = across(x, w, b), 0
    for point, slope, offset, end in zip(x, w, b, ends, strict=True):
        rows = [[*(side * float(i == j) for j in range(6)), -1.0] for i in range(6) for side in (1, -1)]
        limits = [side * float(value) for value in point for side in (1, -1)]
        truth = linprog([0.0] * 6 + [1.0], rows, limits, [[*slope.tolist(), 0.0]], [-float(offset)],
                        [(0, 1)] * 6 + [(0, None)])  # fmt: skip
        value = float(slope @ end + offset)
        if truth.success:
            assert float((end - point).abs().max()) == pytest.approx(truth.fun, abs=1e-9)
            assert value == pytest.approx(0, abs=1e-9)
        else:
            missed += 1
            corner = (slope * torch.sign(-(slope @ point + offset)) > 0).double()
            assert value == pytest.approx(float((slope * torch.where(slope == 0, point, corner)).sum() + offset))
    assert 5 < missed < 55


def test_squares_shrink_and_attacks_are_the_published_twenty() -> None:
    assert [side_of(share, 28, 28) for share in (0, 0.0011, 0.006, 0.9)] == [25, 18, 13, 1]
    attacks = [*kinds(9)]
    assert [sum(kind == name for kind, _ in attacks) for name in ("apgd-ce", "apgd-t", "fab-t", "square")] == [
        1,
        9,
        9,
        1,
    ]
    assert len([*kinds(1)]) == 4
