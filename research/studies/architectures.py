"""Networks of papers in their CIFAR shape, whose weights have the names of the checkpoints that papers publish.

From pixels in [0, 1], `[B, 3, 32, 32]`, to class scores, `[B, 10]`. Nothing is normalised within: where the authors
did, give `--mean` and `--std`, or let the checkpoint say it. Each is a function without arguments:

    brittle score ./research/studies/architectures.py:wide_resnet_28_10 DATA --weights FILE
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from torch import Tensor, nn

UNUSED = "sub_block1."
"""A block of TRADES' wide networks that is saved and that nothing goes through."""


def _convolution(inside: int, outside: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inside, outside, size, stride, size // 2, bias=False)


class WideBlock(nn.Module):
    """Two normalised and activated 3x3 convolutions around a shortcut; where widths differ, a 1x1 convolution of the
    activated input.

    Source: Zagoruyko, Komodakis, Wide residual networks (BMVC 2016), figure 1.
    """

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(inside), _convolution(inside, outside, 3, stride)
        self.bn2, self.conv2 = nn.BatchNorm2d(outside), _convolution(outside, outside, 3)
        self.convShortcut = None if inside == outside else _convolution(inside, outside, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        activated = self.bn1(x).relu()
        shortcut = x if self.convShortcut is None else self.convShortcut(activated)
        return shortcut + self.conv2(self.bn2(self.conv1(activated)).relu())


class WideResNet(nn.Module):
    """A 3x3 stem of 16 channels, three groups of `(depth - 4) / 6` blocks of 16, 32 and 64 times `widen` channels, and
    the mean over places.

    Source: Zagoruyko, Komodakis (BMVC 2016), table 1; names of weights as in TRADES (Zhang et al., ICML 2019).
    """

    def __init__(self, depth: int, widen: int, classes: int = 10) -> None:
        super().__init__()
        widths = [16, *(16 * widen << group for group in range(3))]
        self.conv1 = _convolution(3, 16, 3)
        for group, (inside, outside) in enumerate(pairwise(widths), start=1):
            blocks = [WideBlock(inside, outside, 1 if group == 1 else 2)]
            blocks += [WideBlock(outside, outside, 1) for _ in range((depth - 4) // 6 - 1)]
            self.add_module(f"block{group}", nn.ModuleDict({"layer": nn.Sequential(*blocks)}))
        self.bn1, self.fc = nn.BatchNorm2d(widths[-1]), nn.Linear(widths[-1], classes)
        self.register_load_state_dict_pre_hook(_leave_out)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(x)
        for group in ("block1", "block2", "block3"):
            x = self.get_submodule(f"{group}.layer")(x)
        return self.fc(self.bn1(x).relu().mean(dim=(2, 3)))


def _leave_out(module: nn.Module, state: dict[str, Any], prefix: str, *_: object) -> None:
    """Take out of saved weights those that nothing goes through."""
    for name in [name for name in state if name.startswith(prefix + UNUSED)]:
        del state[name]


class ResNet(nn.Module):
    """ResNet-18 for images of 32x32: a 3x3 stem without pooling, and eight blocks of 64 to 512 channels.

    Source: He, Zhang, Ren, Sun, Deep residual learning for image recognition (CVPR 2016), table 1.
    """

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.conv1, self.bn1 = _convolution(3, 64, 3), nn.BatchNorm2d(64)
        _add_layers(self, Block)
        self.linear = nn.Linear(512, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(_through_layers(self, self.bn1(self.conv1(x)).relu()).mean(dim=(2, 3)))


class Block(nn.Module):
    """Two 3x3 convolutions, each normalised, around a shortcut, and an activation at the end (CVPR 2016, figure 2)."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _convolution(inside, outside, 3, stride), nn.BatchNorm2d(outside)
        self.conv2, self.bn2 = _convolution(outside, outside, 3), nn.BatchNorm2d(outside)
        resized = (_convolution(inside, outside, 1, stride), nn.BatchNorm2d(outside)) if inside != outside else ()
        self.shortcut = nn.Sequential(*resized)

    def forward(self, x: Tensor) -> Tensor:
        return (self.bn2(self.conv2(self.bn1(self.conv1(x)).relu())) + self.shortcut(x)).relu()


class PreActResNet(nn.Module):
    """ResNet-18 with normalisation and activation before each convolution, for images of 32x32.

    Source: He, Zhang, Ren, Sun, Identity mappings in deep residual networks (ECCV 2016), figure 1b.

    Args:
        classes: how many there are.
        normalised: whether the last features are normalised and activated, as in the paper; the weights are then `bn`.
        activated: whether a shortcut that changes the width takes the activated input of its block, as in the paper, or
            the input itself. The weights have the same names either way.
    """

    def __init__(self, classes: int = 10, *, normalised: bool, activated: bool) -> None:
        super().__init__()
        self.conv1 = _convolution(3, 64, 3)
        _add_layers(self, PreActBlock)
        for block in self.modules():
            if isinstance(block, PreActBlock):
                block.activated = activated
        self.bn = nn.BatchNorm2d(512) if normalised else None
        self.linear = nn.Linear(512, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = _through_layers(self, self.conv1(x))
        return self.linear((x if self.bn is None else self.bn(x).relu()).mean(dim=(2, 3)))


class PreActBlock(nn.Module):
    """Two normalised and activated 3x3 convolutions around a shortcut (ECCV 2016, figure 4e)."""

    activated = True

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(inside), _convolution(inside, outside, 3, stride)
        self.bn2, self.conv2 = nn.BatchNorm2d(outside), _convolution(outside, outside, 3)
        self.shortcut = nn.Sequential(_convolution(inside, outside, 1, stride)) if inside != outside else None

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn1(x).relu()
        shortcut = x if self.shortcut is None else self.shortcut(out if self.activated else x)
        return shortcut + self.conv2(self.bn2(self.conv1(out)).relu())


def _add_layers(module: nn.Module, block: type[nn.Module]) -> None:
    """Four layers of two blocks each, of which the first halves the side, but in the first layer."""
    for layer in range(4):
        inside, outside = 64 << max(layer - 1, 0), 64 << layer
        blocks = (block(inside, outside, 2 if layer else 1), block(outside, outside, 1))
        module.add_module(f"layer{layer + 1}", nn.Sequential(*blocks))


def _through_layers(module: nn.Module, x: Tensor) -> Tensor:
    for layer in range(1, 5):
        x = module.get_submodule(f"layer{layer}")(x)
    return x


def wide_resnet_28_10() -> nn.Module:
    """WideResNet-28-10."""
    return WideResNet(28, 10)


def wide_resnet_34_10() -> nn.Module:
    """WideResNet-34-10."""
    return WideResNet(34, 10)


def resnet_18() -> nn.Module:
    """ResNet-18."""
    return ResNet()


def preact_resnet_18() -> nn.Module:
    """PreActResNet-18 that ends with `bn`, its shortcuts from activated inputs."""
    return PreActResNet(normalised=True, activated=True)


def preact_resnet_18_raw() -> nn.Module:
    """PreActResNet-18 that ends with `bn`, its shortcuts from the inputs of blocks as they are."""
    return PreActResNet(normalised=True, activated=False)


def preact_resnet_18_without_bn() -> nn.Module:
    """PreActResNet-18 without `bn` at the end, its shortcuts from activated inputs."""
    return PreActResNet(normalised=False, activated=True)
