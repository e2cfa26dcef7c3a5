"""The networks: from pixels in [0, 1], `[B, C, H, W]`, to class scores; mean and deviation of the data are inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from studies.train.images import Dataset


class Standardise(nn.Module):
    """`(x - mean) / deviation`, channel by channel."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: Sequence[float], deviation: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean)[:, None, None])
        self.register_buffer("deviation", torch.tensor(deviation)[:, None, None])

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.deviation


def linear(data: Dataset, width: int) -> nn.Module:
    """One dense layer; `width` is not used. Source: Han et al. (ICML workshop 2023), appendix A.3."""
    return nn.Sequential(nn.Flatten(), nn.Linear(data.channels * data.side**2, data.classes))


def cnn(data: Dataset, width: int) -> nn.Module:
    """Two 5x5 convolutions of `width` and `2 width` channels, a dense layer of `5 width`, and the classes.

    Source: Han et al. (ICML workshop 2023), appendix A.3, with `width = 10`. The paper names neither activations nor
    pooling: ReLU, and the maximum of 2x2 places after each convolution, are this study's choice.
    """
    side = ((data.side - 4) // 2 - 4) // 2
    return nn.Sequential(
        nn.Conv2d(data.channels, width, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2 * width * side**2, 5 * width),
        nn.ReLU(),
        nn.Linear(5 * width, data.classes),
    )


def lenet_tanh(data: Dataset, width: int) -> nn.Module:
    """LeNet-5 with tanh after its three convolutions and linear dense layers; `width` (6) is that of the first.

    Smooth, so its Laplacian is that of the network and not of the softmax alone.

    Source: Yang, Liu, Bilgic (TMLR 2023), appendix A.3, after LeCun et al. (1998), figure 2.
    """
    padding = (32 - data.side) // 2  # LeNet-5 reads 32x32 pixels
    return nn.Sequential(
        nn.Conv2d(data.channels, width, 5, padding=padding),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(width, 16 * width // 6, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(16 * width // 6, 20 * width, 5),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(20 * width, 14 * width),
        nn.Linear(14 * width, data.classes),
    )


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions around a shortcut (He et al. 2016, figure 2), each with an activation after it."""

    def __init__(self, inside: int, outside: int, stride: int, activation: type[nn.Module] = nn.ReLU) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inside, outside, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outside),
            activation(),
            nn.Conv2d(outside, outside, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outside),
        )
        self.shortcut = nn.Sequential()
        if inside != outside:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))
        self.activation = activation()

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.body(x) + self.shortcut(x))


def resnet18(data: Dataset, width: int) -> nn.Module:
    """ResNet-18 for images of 32x32: a 3x3 stem without pooling, eight blocks of `width` to `8 width` channels.

    Source: He, Zhang, Ren, Sun, Deep residual learning for image recognition (CVPR 2016), table 1, with `width = 64`.
    """
    return _residual(data, [width << stage for stage in range(4)], blocks=2, activation=nn.ReLU)


def resnet3_prelu(data: Dataset, width: int) -> nn.Module:
    """Three residual blocks of `width` to `4 width` channels with PReLU.

    Source: Yang, Liu, Bilgic (TMLR 2023), appendix A.3, which does not say the width.
    """
    return _residual(data, [width << stage for stage in range(3)], blocks=1, activation=nn.PReLU)


def _residual(data: Dataset, widths: Sequence[int], blocks: int, activation: type[nn.Module]) -> nn.Module:
    """Return a stem, for each width so many blocks of which the first halves the side, and the mean over places."""
    inside = widths[0]
    layers = [nn.Conv2d(data.channels, inside, 3, 1, 1, bias=False), nn.BatchNorm2d(inside), activation()]
    for stage, outside in enumerate(widths):
        for block in range(blocks):
            layers.append(ResidualBlock(inside, outside, 2 if stage and not block else 1, activation))
            inside = outside
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, data.classes))


class AttentionBlock(nn.Module):
    """Attention over places and a GELU perceptron, each after a layer norm and around a shortcut.

    The attention is written out: fused kernels have no second derivative, which regularised gradients need.
    """

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dense = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (
            part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.mix(self.before(x)).chunk(3, dim=2)
        )
        weights = (query @ key.transpose(2, 3) / query.shape[-1] ** 0.5).softmax(dim=-1)
        x = x + self.out((weights @ value).transpose(1, 2).flatten(2))
        return x + self.dense(self.after(x))


class VisionTransformer(nn.Module):
    """Patches of 4x4 pixels with learned places, four blocks of attention, and the mean over all patches.

    Source: Dosovitskiy et al., An image is worth 16x16 words (ICLR 2021), equations 1 to 4, with the mean in the place
    of the class token.
    """

    def __init__(self, data: Dataset, width: int, patch: int = 4, depth: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(data.channels, width, patch, patch)
        self.places = nn.Parameter(0.02 * torch.randn(1, (data.side // patch) ** 2, width))
        self.blocks = nn.Sequential(*(AttentionBlock(width) for _ in range(depth)), nn.LayerNorm(width))
        self.last = nn.Linear(width, data.classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.blocks(self.patches(x).flatten(2).transpose(1, 2) + self.places).mean(dim=1))


ARCHITECTURES: dict[str, Callable[[Dataset, int], nn.Module]] = {
    "linear": linear,
    "cnn": cnn,
    "lenet_tanh": lenet_tanh,
    "resnet18": resnet18,
    "resnet3_prelu": resnet3_prelu,
    "vit": VisionTransformer,
}


def build(name: str, data: Dataset, width: int) -> nn.Module:
    """Return the architecture of this name for these data, its weights drawn from the global generator."""
    return nn.Sequential(Standardise(data.mean, data.deviation), ARCHITECTURES[name](data, width))
