"""A small network trained on real data for trials: scikit-learn's handwritten digits."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from brittle.errors import UsageError
from brittle.store.writing import check_target, make_folder, replacing

TEST_POINTS = 500  # digits held out from training and scored

EPOCHS = 30


def load_digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return `(x_train, y_train, x_test, y_test)`: 1,797 grey images of 8x8 pixels in [0, 1], `[N, 1, 8, 8]`."""
    try:
        from sklearn import datasets, model_selection
    except ModuleNotFoundError as error:
        raise UsageError("the demo needs scikit-learn; install with: pip install 'brittle[demo]'") from error
    images, labels = datasets.load_digits(return_X_y=True)
    images = (images.reshape(-1, 8, 8) / 16.0).astype(np.float32)[:, None]
    parts = model_selection.train_test_split(
        images, labels.astype(np.int64), test_size=TEST_POINTS, random_state=0, stratify=labels
    )
    x_train, x_test, y_train, y_test = (torch.from_numpy(part) for part in parts)
    return x_train, y_train, x_test, y_test


def train(x: Tensor, y: Tensor, seed: int = 0) -> nn.Module:
    """Train a convolutional network of 19,000 weights for a few seconds; the global generator keeps its state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(512, 28),
            nn.ReLU(),
            nn.Linear(28, 10),
        )
        optimiser = torch.optim.Adam(network.parameters(), lr=2e-3)
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(x)).split(64):
                loss = nn.functional.cross_entropy(network(x[rows]), y[rows])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
    return network.eval()


def prepare(folder: Path) -> tuple[Path, Path]:
    """Train the network and write `digits.pt2` and `digits.npz` (the test points) into `folder`."""
    model, data = folder / "digits.pt2", folder / "digits.npz"
    for path in (model, data):
        check_target(path)
    x_train, y_train, x_test, y_test = load_digits()
    network = train(x_train, y_train)
    make_folder(folder)
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(network, (x_test[:2],), dynamic_shapes=({0: batch},))
    with replacing(model) as file:
        torch.export.save(program, file)
    with replacing(data) as file:
        np.savez(file, x=x_test.numpy(), y=y_test.numpy())
    return model, data
