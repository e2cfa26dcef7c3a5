"""Ways of training: what each minimises, against formulas that share no code with it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import rel_entr, softmax
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import brittle
from brittle.scores import TaylorMVS
from studies.train.ways.ascent import ascend_loss
from studies.train.ways.fgsm import FGSM
from studies.train.ways.gradient_norm import penalty
from studies.train.ways.mart import Mart, boosted
from studies.train.ways.sigmoid import Sigmoid

CLASSES, SHAPE = 3, (1, 2, 3)
RADIUS = 0.1


def smooth(seed: int = 0) -> nn.Sequential:
    """Return a small network with tanh, in double precision."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = nn.Sequential(nn.Flatten(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, CLASSES)).double()
        for weights in network.parameters():
            nn.init.normal_(weights)
    return network


def linear(classes: int = CLASSES) -> nn.Sequential:
    """Return a linear network, whose margins and their gradients are known."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(6, classes)).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weights in network.parameters():
            weights.copy_(torch.randn(weights.shape, generator=generator))
    return network


def images(count: int = 4) -> tuple[Tensor, Tensor]:
    """Images with pixels well inside [0, 1], and classes."""
    generator = torch.Generator().manual_seed(2)
    x = 0.2 + 0.6 * torch.rand(count, *SHAPE, generator=generator, dtype=torch.float64)
    return x, torch.arange(count) % CLASSES


def jacobian(network: nn.Module, x: Tensor, step: float = 1e-5) -> np.ndarray:
    """Return the Jacobian of the logits by central differences, one pixel at a time, `[B, K, 6]`."""
    columns = []
    for pixel in torch.eye(6, dtype=torch.float64).view(6, *SHAPE):
        with torch.no_grad():
            columns.append((network(x + step * pixel) - network(x - step * pixel)) / (2 * step))
    return torch.stack(columns, dim=2).numpy()


def test_the_gradient_norm_is_that_of_finite_differences() -> None:
    network, (x, _) = smooth(), images()
    x.requires_grad_(True)
    truth = (jacobian(network, x.detach()) ** 2).sum(axis=(1, 2))
    signs = [
        torch.tensor(corner, dtype=torch.float64).expand(len(x), -1) for corner in itertools.product((-1, 1), repeat=3)
    ]
    mean = torch.stack([penalty(network(x), x, corner) for corner in signs]).mean(dim=0)
    assert mean.detach().numpy() == pytest.approx(truth, rel=1e-8)


def test_mart_is_its_formula() -> None:
    """Without a ball, where the adversarial example is the image and nothing diverges; and with it, part by part."""
    network, (x, y) = smooth(), images()
    assert torch.allclose(Mart(0.0, 3).loss(network, x, y), boosted(network(x), y).mean())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        moved = ascend_loss(network, x, y, RADIUS, 3)
        torch.manual_seed(0)
        loss = float(Mart(RADIUS, 3, weight=2.0).loss(network, x, y).detach())
    clean, attacked = (softmax(network(images_).detach().numpy(), axis=1) for images_ in (x, moved))
    losses = []
    for p, q, label in zip(clean, attacked, y.tolist(), strict=True):
        bce = -np.log(q[label]) - np.log(1 - np.delete(q, label).max())
        losses.append(bce + 2.0 * rel_entr(p, q).sum() * (1 - p[label]))
    assert loss == pytest.approx(np.mean(losses), rel=1e-9)


def weight_of(network: nn.Module) -> Tensor:
    """Return the weight of a linear network, `[K, 6]`."""
    return next(network.parameters()).detach()


@pytest.mark.parametrize("epsilon", [0.1, 0.9])
def test_ascent_finds_the_worst_corner_of_a_linear_network(epsilon: float) -> None:
    network, (x, y) = linear(classes=2), images()
    y = y % 2
    weight = weight_of(network)
    truth = (x + epsilon * (weight[1 - y] - weight[y]).view_as(x).sign()).clamp(0, 1)
    with torch.random.fork_rng(devices=[]):
        assert torch.allclose(ascend_loss(network, x, y, epsilon, 4), truth)
        single = FGSM(epsilon).example(network, x, y, epsilon)
    assert ((single - x).abs() <= epsilon + 1e-12).all()
    assert ((single >= 0) & (single <= 1)).all()
    gained = cross_entropy(network(single), y, reduction="none") - cross_entropy(network(x), y, reduction="none")
    assert (gained > -1e-9).all()


@pytest.mark.parametrize("make", [smooth, linear])
def test_the_sigmoid_is_that_of_the_library(make: Any) -> None:
    network, (x, _) = make().eval(), images(8)
    y = network(x).argmax(dim=1)
    odds = Sigmoid(0.1, classes=CLASSES - 1).odds(network(x.requires_grad_(True)), x, y)
    scored = TaylorMVS(sigma=0.1)(brittle.Classifier(network.requires_grad_(False), bounds=(0, 1)), x.detach())
    assert torch.sigmoid(odds).tolist() == pytest.approx(scored.value.tolist(), rel=1e-6)
