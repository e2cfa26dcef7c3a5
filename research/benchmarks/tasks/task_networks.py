"""Small networks for these data, trained from a seed, and gradient-boosted trees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from task_data import Split
from torch import Tensor, nn

TREES = '''"""Gradient-boosted trees of the census table, as `brittle score ./trees.py:make` takes them."""

from pathlib import Path

import skops.io


def make():
    path = Path(__file__).with_name("census-trees.skops")
    return skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
'''


class Columns(nn.Module):
    """Numbers with a mean of 0 and a deviation of 1, and a one for the value of each category."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, split: Split) -> None:
        super().__init__()
        counts = dict(split.categories)
        self.sizes = [counts.get(name, 0) for name in split.names]
        self.register_buffer("mean", torch.from_numpy(split.x.mean(0)))
        self.register_buffer("deviation", torch.from_numpy(split.x.std(0)))

    @property
    def width(self) -> int:
        """Return the number of outputs."""
        return sum(max(1, size) for size in self.sizes)

    def forward(self, x: Tensor) -> Tensor:
        numbers = (x - self.mean) / self.deviation
        parts = [
            (x[:, place, None] == torch.arange(size, device=x.device)).to(x.dtype) if size else numbers[:, place, None]
            for place, size in enumerate(self.sizes)
        ]
        return torch.cat(parts, dim=1)


class Waveform(nn.Module):
    """A convolutional network on the waveform, which is first brought to a root mean square of 1."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, 16, 64, stride=8), nn.ReLU(), nn.MaxPool1d(4),
            nn.Conv1d(16, 32, 8, stride=2), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(32, 48, 4), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Dropout(0.3),
        )  # fmt: skip
        self.head = nn.Linear(192, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x / (x.square().mean(-1, keepdim=True) + 1e-8).sqrt()))


def perceptron(inputs: int, outputs: int, width: int = 64) -> nn.Sequential:
    """Return two dense layers of `width`."""
    return nn.Sequential(
        nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs)
    )


def for_scene(split: Split) -> nn.Module:
    """Return a network with one number for each label."""
    return perceptron(split.x.shape[1], split.y.shape[1])


def for_diabetes(split: Split) -> nn.Module:
    """Return a network with one number."""
    return perceptron(split.x.shape[1], 1, width=16)


def for_census(split: Split) -> nn.Module:
    """Return a network with two classes."""
    columns = Columns(split)
    return nn.Sequential(columns, perceptron(columns.width, 2))


def for_sound(split: Split) -> nn.Module:
    """Return a network with ten classes."""
    return Waveform(int(split.y.max()) + 1)


def several(outputs: Tensor, y: Tensor) -> Tensor:
    """Return the loss of several labels."""
    return nn.functional.binary_cross_entropy_with_logits(outputs, y.float())


def number(outputs: Tensor, y: Tensor) -> Tensor:
    """Return the loss of a number."""
    return nn.functional.mse_loss(outputs[:, 0], y)


def train(
    make: Callable[[Split], nn.Module], split: Split, loss: Callable[[Tensor, Tensor], Tensor], rounds: int
) -> nn.Module:
    """Train a network for so many rounds over the data, with seed 0."""
    torch.manual_seed(0)
    network = make(split).train()
    x, y = torch.from_numpy(split.x), torch.from_numpy(split.y)
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=1e-2)
    for _ in range(rounds):
        for rows in torch.randperm(len(x)).split(64):
            optimiser.zero_grad()
            loss(network(x[rows]), y[rows]).backward()
            optimiser.step()
    return network.eval()


def trees(split: Split) -> Any:
    """Fit gradient-boosted trees, with seed 0."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    places: Any = [split.names.index(name) for name, _ in split.categories]
    return HistGradientBoostingClassifier(max_iter=60, categorical_features=places, random_state=0).fit(
        split.x, split.y
    )


def save(network: nn.Module, split: Split, path: Path) -> None:
    """Export the network with a free number of rows."""
    example = torch.from_numpy(split.x[:2])
    shapes = ({0: torch.export.Dim("rows")},)
    torch.export.save(torch.export.export(network, (example,), dynamic_shapes=shapes), path)


def save_trees(model: Any, folder: Path) -> None:
    """Write a file of skops, and the function that loads it."""
    import skops.io

    skops.io.dump(model, folder / "census-trees.skops")
    (folder / "trees.py").write_text(TREES, encoding="utf-8")


def save_points(split: Split, path: Path) -> None:
    """Write the test points, as `.npz` or as a table with the column `label`."""
    if path.suffix == ".npz":
        names: dict[str, Any] = {} if split.test_y.ndim == 1 else {"class_names": np.array(split.names)}
        np.savez_compressed(path, x=split.test_x, y=split.test_y, **names)
        return
    table = np.column_stack((split.test_x, split.test_y))
    rows = (",".join(f"{value:.9g}" for value in row) for row in table)
    path.write_text("\n".join((",".join((*split.names, "label")), *rows)) + "\n", encoding="utf-8")
