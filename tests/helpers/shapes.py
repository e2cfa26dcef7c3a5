"""Images of made-up shapes, and tiny networks that find their pixels and the boxes around them."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

SIDE, CELL = 16, 4
SQUARE, CROSS = 1, 2


def shapes(count: int, seed: int) -> tuple[Tensor, Tensor, list[list[tuple[int, int, int]]]]:
    """Return images `[N, 1, 16, 16]`, the class of each pixel `[N, 16, 16]`, and class, row and column of each shape.

    A shape has 4 x 4 pixels inside one of four quarters.
    """
    generator = torch.Generator().manual_seed(seed)
    images = 0.1 * torch.rand(count, 1, SIDE, SIDE, generator=generator, dtype=torch.float64)
    pixels = torch.zeros(count, SIDE, SIDE, dtype=torch.int64)
    shapes_by_image: list[list[tuple[int, int, int]]] = []
    for at in range(count):
        shapes_by_image.append([])
        for quarter in range(4):
            kind = int(torch.randint(4, (), generator=generator))
            row, column = torch.randint(5, (2,), generator=generator).tolist()
            row, column = row + 8 * (quarter // 2), column + 8 * (quarter % 2)
            form = torch.ones(4, 4, dtype=torch.bool)
            if kind == CROSS:
                form = torch.eye(4, dtype=torch.bool) | torch.eye(4, dtype=torch.bool).flip(1)
            if kind in (SQUARE, CROSS):
                shapes_by_image[-1].append((kind, row, column))
                patch = pixels[at, row : row + 4, column : column + 4]
                patch[form] = kind
                images[at, 0, row : row + 4, column : column + 4][form] += 0.7
    return images, pixels, shapes_by_image


class Pixels(nn.Module):
    """Class scores of pixels, in the form of torchvision."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 12, 5, padding=2), nn.ReLU(), nn.Conv2d(12, 3, 5, padding=2))

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        return {"out": self.layers(images)}


class Quarters(nn.Module):
    """At most one box for each quarter of an image, in the form of torchvision."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 5))

    def read(self, images: Tensor) -> Tensor:
        """Return logits of no shape, a square and a cross, and the corner of the shape per quarter, `[B, 4, 5]`."""
        parts = images.unfold(2, 8, 8).unfold(3, 8, 8).reshape(-1, 64)
        return self.layers(parts).view(len(images), 4, 5)

    def forward(self, images: Tensor) -> list[dict[str, Tensor]]:
        read = self.read(images)
        scores, labels = read[..., :3].softmax(dim=2)[..., 1:].max(dim=2)
        starts = read[..., 3:] + images.new_tensor([[0, 0], [0, 8], [8, 0], [8, 8]])
        boxes = torch.cat((starts.flip(2), starts.flip(2) + CELL), dim=2)
        return [
            {"boxes": corners, "labels": label + 1, "scores": score}
            for corners, label, score in zip(boxes, labels, scores, strict=True)
        ]


@cache
def pixel_network() -> Pixels:
    """Train a network that gets 99% of pixels right."""
    torch.manual_seed(0)
    images, pixels, _ = shapes(40, seed=1)
    network = Pixels().double()
    optimizer = torch.optim.Adam(network.parameters(), 0.03)
    for _ in range(25):
        optimizer.zero_grad()
        cross_entropy(network(images)["out"], pixels).backward()
        optimizer.step()
    return network.eval()


@cache
def box_network() -> Quarters:
    """Train a network that finds most shapes within a pixel."""
    torch.manual_seed(0)
    images, _, shapes_by_image = shapes(500, seed=2)
    kinds, starts = torch.zeros(500, 4, dtype=torch.int64), torch.zeros(500, 4, 2, dtype=torch.float64)
    for at, shapes_of_image in enumerate(shapes_by_image):
        for kind, row, column in shapes_of_image:
            quarter = 2 * (row // 8) + column // 8
            kinds[at, quarter] = kind
            starts[at, quarter] = torch.tensor([row % 8, column % 8])
    network = Quarters().double()
    optimizer = torch.optim.Adam(network.parameters(), 0.01)
    for _ in range(150):
        optimizer.zero_grad()
        read = network.read(images)
        off = ((read[..., 3:] - starts).square().sum(dim=2) * (kinds > 0)).mean()
        (cross_entropy(read[..., :3].flatten(0, 1), kinds.flatten()) + off).backward()
        optimizer.step()
    return network.eval()
