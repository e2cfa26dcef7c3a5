"""Problems with known answers."""

from __future__ import annotations

import torch
from scipy import stats
from torch import Tensor, nn

import brittle


def linear_network(classes: int, size: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> nn.Linear:
    """Return a linear classifier, whose average-case robustness is exactly an orthant probability."""
    generator = torch.Generator().manual_seed(seed)
    network = nn.Linear(size, classes, dtype=dtype)
    with torch.no_grad():
        network.weight.copy_(torch.randn(classes, size, generator=generator, dtype=dtype))
        network.bias.copy_(torch.randn(classes, generator=generator, dtype=dtype) * 0.3)
    return network


def small_network(seed: int = 0, classes: int = 4, dtype: torch.dtype = torch.float32) -> nn.Module:
    """Return a convolutional network for inputs `[1, 6, 6]` with large random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = nn.Sequential(
            nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(96, 16), nn.ReLU(), nn.Linear(16, classes)
        )
        for parameter in network.parameters():
            nn.init.normal_(parameter, std=0.4)
    return network.to(dtype).eval()


def inputs(count: int, shape: tuple[int, ...] = (1, 6, 6), seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return uniform inputs in [0, 1]."""
    return torch.rand(count, *shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def small_classifier(seed: int = 0, classes: int = 4) -> brittle.Classifier:
    """Return the small network with its declaration."""
    return brittle.Classifier(small_network(seed, classes), bounds=(0, 1))


class Wrapped(nn.Module):
    """The small network with its output changed by a function of (inputs, logits)."""

    def __init__(self, change, seed: int = 0, classes: int = 4) -> None:
        super().__init__()
        self.network = small_network(seed, classes)
        self.change = change
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.change(x, self.network(x))


def nan_under_noise(x: Tensor, logits: Tensor) -> Tensor:
    """Return NaN logits where an input is outside [0, 1]: clean points are fine, noisy ones are not."""
    outside = ((x < 0) | (x > 1)).flatten(1).any(dim=1)
    return torch.where(outside[:, None], torch.nan, logits)


def shallow_points(count: int) -> Tensor:
    """Return points that `Shallow` treats alike but whose ids and noise differ, `[count, 1, 1, 2]`."""
    x = torch.zeros(count, 1, 1, 2)
    x[:, 0, 0, 1] = 1e-7 * torch.arange(count)
    return x


class Shallow(nn.Module):
    """The margin `m + u`, but `-depth` where another coordinate passes `cut`: its shape stays nearly normal.

    Attributes:
        flip: the probability that noise of this sigma around 0 changes the prediction.
    """

    def __init__(self, margin: float, flips: float, depth: float, sigma: float) -> None:
        super().__init__()
        self.margin, self.depth, self.sigma, self.cut = margin, depth, sigma, float(stats.norm.isf(flips))
        self.flip = 1.0 - float(stats.norm.cdf(margin)) * (1.0 - flips)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        slope, hidden = (x.flatten(1) / self.sigma).unbind(dim=1)
        margin = torch.where(hidden > self.cut, -self.depth, self.margin + slope)
        return torch.stack((margin, -margin), dim=1)


class ComputesOtherwise(nn.Module):
    """A network that computes otherwise than its layers: these have the margin 1 - x_0, and it falls from x_0 = 0.5.

    Attributes:
        coordinate: the number that stands for `x_0`.
    """

    def __init__(self, coordinate: int) -> None:
        super().__init__()
        self.coordinate = coordinate
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        moved = x.flatten(1)[:, self.coordinate]
        margin = 1 - moved
        if not torch.compiler.is_compiling():
            margin = margin - 20 * torch.relu(moved - 0.5)
        return torch.stack((margin, -margin), dim=1)
