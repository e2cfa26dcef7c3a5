"""Regions of an image: a class for every pixel, or boxes around objects. Noisy copies are counted, and no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from brittle.decisions.base import Decision, as_numbers
from brittle.errors import ModelError, ParameterError, listed

SHOWN = 8
"""How many classes are named."""

MOST_BOXES = 300
"""Boxes of an image that are read, those with the largest scores."""

CELLS = 8
"""Rows and columns of the averages by which the doctor compares the outputs of a segmentation."""

NOT_ABOVE = 1e-9
"""By how much an overlap that is exactly the one asked for counts as below it; it is no tie."""


@dataclass(frozen=True)
class Regions(Decision):
    """What `Masks` and `Boxes` share: overlaps, which are counted above a threshold, and names of classes."""

    overlap: float = 0.5
    class_names: tuple[str, ...] = field(default=(), kw_only=True, repr=False, compare=False)

    linear: ClassVar[bool] = False
    has_margins: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.overlap, int | float) or not 0 <= self.overlap < 1:
            raise ParameterError(f"an overlap is at least 0 and below 1, as in {self.name}:0.5; found {self.overlap!r}")

    @property
    def label(self) -> str:
        return f"{self.name}:{self.overlap:g}"

    def named(self, names: Sequence[str] | None) -> Self:
        return replace(self, class_names=tuple(names)) if names else self

    def code_names(self, names: Sequence[str] | None, outputs: int) -> Sequence[str] | None:
        return None

    def _word(self, index: float) -> str:
        known = 0 <= index < len(self.class_names)
        return self.class_names[int(index)] if known else f"class {int(index)}"


@dataclass(frozen=True)
class Masks(Regions):
    """The class of each pixel (semantic segmentation): every mask stays where it is.

    The mask of a class is the set of the pixels that it wins. With `A_c` the mask of class `c` at the point and `B_c`
    that of a copy, the prediction is kept while `|A_c and B_c| / |A_c or B_c| > overlap` for every class that the point
    has, however few pixels; the background is a class like any other. The one margin is the smallest of these overlaps
    less `overlap`. It is a step function of the input, so only its sign is used.

    A model returns class scores `[B, K, H, W]`, alone, as `out` (torchvision) or as `logits` (transformers); overlaps
    are those of pixels `H x W` of the output. One channel is that of class 1, which a pixel has where it is positive.

    Attributes:
        overlap: above which a mask counts as the same, at least 0 and below 1.
        class_names: of the outputs, by which masks are called; a classifier sets them.

    Raises:
        ParameterError: the overlap is no such number.
    """

    name: ClassVar[str] = "masks"
    explanation: ClassVar[str] = "which pixels each class has"

    def decide(self, outputs: Tensor) -> Tensor:
        """The class of each pixel, `[B, H, W]`."""
        mask = outputs.argmax(dim=1) if outputs.shape[1] > 1 else outputs[:, 0] > 0
        return mask.to(torch.uint8 if outputs.shape[1] <= 256 else torch.int32)  # copies hold it once each

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """The smallest overlap less the one asked for, `[N, 1]`, float64; NaN where an output is not finite."""
        count, classes = len(outputs), max(2, outputs.shape[1])
        first = torch.arange(count, device=outputs.device)[:, None] * classes
        own, there = (first + mask.flatten(1) for mask in (self.decide(outputs), decided.to(outputs.device)))

        def pixels(of: Tensor) -> Tensor:
            return of.flatten().bincount(minlength=count * classes).view(count, classes)

        shared, present = pixels(own[own == there]), pixels(there)
        overlaps = shared.double() / (pixels(own) + present - shared).double()
        smallest = overlaps.where(present > 0, 1.0).amin(dim=1)
        margins = (smallest - self.overlap).where(smallest > self.overlap, (smallest - self.overlap) - NOT_ABOVE)
        return margins.where(outputs.flatten(1).isfinite().all(dim=1), torch.nan)[:, None]

    def described(self, decided: Tensor) -> list[str]:
        found = [[self._word(own) for own in mask.unique().tolist()] for mask in decided]
        return [f"masks of {listed(names, SHOWN)}" for names in found]

    def under_noise(self, margins: Sequence[float]) -> list[str]:
        return [f"the worst mask keeps an overlap of {own + self.overlap:.2f} on average" for own in margins]

    def numbers(self, outputs: Tensor) -> Tensor:
        """Averages of each channel over `CELLS x CELLS` parts of the image, `[B, K CELLS^2]`."""
        return as_numbers(adaptive_avg_pool2d(outputs, [min(CELLS, side) for side in outputs.shape[2:]]))

    def check(self, outputs: Tensor) -> None:
        if outputs.dim() != 4:
            raise ModelError(
                "output_shape",
                f"{len(outputs)} inputs gave a result of shape {list(outputs.shape)}; the decision {self.label} needs "
                f"class scores of pixels, [{len(outputs)}, classes, height, width]",
            )


@dataclass(frozen=True)
class Boxes(Regions):
    """The boxes around objects (detection): every box that is found at the point is found again.

    A box at the point is found again where a copy has a box of the same class with a larger intersection over union
    than `overlap`; each box of the copy finds one box at most, and as many are found as can be. Boxes that are new do
    not count. The one margin is `1/2` less the number of boxes that are lost. It is a step function of the input, so
    only its sign is used. An image without boxes has none to lose.

    A model returns for each image a mapping with `boxes` `[n, 4]` (corners), `labels` `[n]` and `scores` `[n]`
    (torchvision); or `logits` `[B, Q, K + 1]` with "no object" last, and `pred_boxes` `[B, Q, 4]` (centre, width and
    height), as DETR in transformers. Where `config.num_labels` of the model is the last size of `logits`, these are
    taken for sigmoids without "no object". The score of a box is that of its likeliest class. The `MOST_BOXES` boxes
    with the largest scores are read; a box without area is none.

    Attributes:
        overlap: above which a box counts as found again, at least 0 and below 1.
        score: a box counts from this score on, above 0 and at most 1.
        class_names: of the outputs, by which boxes are called; a classifier sets them.

    Raises:
        ParameterError: one of both is no such number.
    """

    score: float = 0.5

    name: ClassVar[str] = "boxes"
    explanation: ClassVar[str] = "which boxes are found"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.score, int | float) or not 0 < self.score <= 1:
            raise ParameterError(f"a score is above 0 and at most 1, as in boxes:0.5,0.7; found {self.score!r}")

    @property
    def label(self) -> str:
        return super().label + (f",{self.score:g}" if self.score != Boxes.score else "")

    def decide(self, outputs: Tensor) -> Tensor:
        """The boxes that count, `[B, MOST_BOXES, 6]`: corners, class and score each; 0 in the place of others."""
        return outputs.where(outputs[..., 5:] >= self.score, 0.0)

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """`1/2` less the number of boxes that are lost, `[N, 1]`, float64; NaN where an output is not finite."""
        there, own = (_first(boxes.double()) for boxes in (decided.to(outputs.device), self.decide(outputs)))
        low = torch.maximum(there[:, :, None, :2], own[:, None, :, :2])
        high = torch.minimum(there[:, :, None, 2:4], own[:, None, :, 2:4])
        shared = (high - low).clamp_min(0.0).prod(dim=-1)
        areas = [(boxes[..., 2:4] - boxes[..., :2]).prod(dim=-1) for boxes in (there, own)]
        overlaps = shared / (areas[0][:, :, None] + areas[1][:, None] - shared)  # NaN of two places without a box
        alike = (there[:, :, None, 4] == own[:, None, :, 4]) & (own[:, None, :, 5] > 0) & (there[:, :, None, 5] > 0)
        fits = alike & (overlaps > self.overlap)
        found = fits.any(dim=2).sum(dim=1)
        for row in (fits.sum(dim=1) > 1).any(dim=1).nonzero().flatten().tolist():
            found[row] = _most_pairs(fits[row])
        lost = (there[..., 5] > 0).sum(dim=1) - found
        return (0.5 - lost.double()).where(outputs.flatten(1).isfinite().all(dim=1), torch.nan)[:, None]

    def described(self, decided: Tensor) -> list[str]:
        words = []
        for row in decided:
            kinds = Counter(self._word(own) for own in row[row[:, 5] > 0, 4].tolist()).most_common()
            total = sum(count for _, count in kinds)
            parts = listed([f"{count} {name}" for name, count in kinds], SHOWN)
            words.append(f"{total} box{'es' if total > 1 else ''}: {parts}" if total else "no boxes")
        return words

    def under_noise(self, margins: Sequence[float]) -> list[str]:
        return [f"{0.5 - own:.2f} boxes are lost on average" for own in margins]

    def numbers(self, outputs: Tensor) -> Tensor:
        """Corners, classes and scores in order, each for itself, `[B, 6 MOST_BOXES]`.

        They come in by degrees from half the score on, so that rounding moves none of these numbers far.
        """
        come_in = (2 * outputs[..., 5:] / self.score - 1).clamp(0.0, 1.0)
        return (outputs * come_in).sort(dim=1, descending=True).values.flatten(1)

    def check(self, outputs: Tensor) -> None:
        """They were read as boxes."""


def _first(boxes: Tensor) -> Tensor:
    """The places `[N, q, 6]` up to the last that holds a box in some row, one at least."""
    return boxes[:, : max(1, int((boxes[..., 5] > 0).sum(dim=1).max()))]


def _most_pairs(fits: Tensor) -> int:
    """The most pairs that can be made, no row or column of `fits` `[p, q]` in two of them."""
    from scipy.sparse import csr_array  # late, as it takes a tenth of a second
    from scipy.sparse.csgraph import maximum_bipartite_matching

    pairs = maximum_bipartite_matching(csr_array(fits.cpu().numpy()), perm_type="column")
    return int(np.count_nonzero(pairs >= 0))
