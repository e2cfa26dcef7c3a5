"""Decisions on regions of an image: a class for every pixel, or boxes around objects. Only counting scores apply."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import scipy
import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from brittle.decisions.base import Decision, as_numbers
from brittle.errors import ModelError, ParameterError, listed
from brittle.model.outputs import widened

SHOWN, MOST_BOXES, CELLS = 8, 300, 8
"""Most classes named in a text; most boxes of an image; cells along a side whose means compare outputs."""


@dataclass(frozen=True)
class _Regions(Decision):
    overlap: float = 0.5
    class_names: tuple[str, ...] = field(default=(), kw_only=True, repr=False, compare=False)

    has_margins: ClassVar[bool] = False

    @classmethod
    def parse(cls, text: str) -> Self:
        return cls(*map(float, text.split(","))) if text else cls()

    def __post_init__(self) -> None:
        if not isinstance(self.overlap, int | float) or not 0 <= self.overlap < 1:
            raise ParameterError(f"an overlap is at least 0 and below 1, as in {self.name}:0.5; found {self.overlap!r}")

    @property
    def label(self) -> str:
        return f"{self.name}:{self.overlap:g}"

    def with_names(self, names: Sequence[str] | None) -> Self:
        return replace(self, class_names=tuple(names)) if names else self

    def _word(self, index: float) -> str:
        return self.class_names[int(index)] if 0 <= index < len(self.class_names) else f"class {int(index)}"


@dataclass(frozen=True)
class Masks(_Regions):
    """The class of each pixel (semantic segmentation): every mask keeps its place.

    With `A_c` the pixels of class `c` at the point and `B_c` those of a copy, the prediction is kept while
    `|A_c and B_c| / |A_c or B_c| > overlap` for every class that the point has, however few its pixels; a background is
    a class like any other. The only margin is the smallest of these overlaps less `overlap`; only its sign is used.

    A model returns class scores `[B, K, H, W]`, alone, as `out` (torchvision) or `logits` (transformers). With a single
    channel a pixel has class 1 where it is positive, else class 0.

    Attributes:
        overlap: intersection over union above which a mask counts as kept, at least 0 and below 1.
        class_names: names of the outputs; a classifier sets them.

    Raises:
        ParameterError: the overlap is not a number from 0 to below 1.
    """

    name: ClassVar[str] = "masks"
    explanation: ClassVar[str] = "which pixels each class has"
    form: ClassVar[tuple[str, ...]] = ("classes", "height", "width")
    declared: ClassVar[tuple[str, ...]] = ("logits", "probs")
    of_odds: ClassVar[bool] = True

    def decide(self, outputs: Tensor) -> Tensor:
        """Return the class of each pixel, `[B, H, W]`."""
        mask = outputs.argmax(dim=1) if outputs.shape[1] > 1 else outputs[:, 0] > 0
        return mask.to(torch.uint8 if outputs.shape[1] <= 256 else torch.int32)  # each copy stores a mask

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """Return the smallest overlap less `overlap`, `[N, 1]`, float64; NaN where an output is not finite."""
        count, classes = len(outputs), max(2, outputs.shape[1])
        offsets = torch.arange(count, device=outputs.device)[:, None] * classes
        copy_classes, point_classes = (offsets + mask.flatten(1) for mask in (self.decide(outputs), decided))
        pixels, present, shared = (
            indices.flatten().bincount(minlength=count * classes).view(count, classes).double()
            for indices in (copy_classes, point_classes, copy_classes[copy_classes == point_classes])
        )
        smallest = (shared / (pixels + present - shared)).where(present > 0, 1.0).amin(dim=1)
        beyond = smallest - self.overlap
        margins = beyond.where(beyond > 0, beyond - 1e-9)  # an overlap of exactly `overlap` is lost, not a tie
        return margins.where(outputs.sum(dim=(1, 2, 3)).isfinite(), torch.nan)[:, None]

    def described(self, decided: Tensor) -> list[str]:
        return [f"masks of {listed([*map(self._word, mask.unique().tolist())], SHOWN)}" for mask in decided]

    def describe_copies(self, margins: Sequence[float]) -> list[str]:
        return [f"the worst mask keeps an overlap of {margin + self.overlap:.2f} on average" for margin in margins]

    def numbers(self, outputs: Tensor) -> Tensor:
        return as_numbers(adaptive_avg_pool2d(outputs, (min(CELLS, outputs.shape[2]), min(CELLS, outputs.shape[3]))))


@dataclass(frozen=True)
class Boxes(_Regions):
    """The boxes around objects (detection): a copy finds every box of the point again.

    A copy finds a box again by a box of the same class with an intersection over union above `overlap`. Each box of the
    copy matches one box at most, and the matching is the largest possible; new boxes do not count. The only margin is
    1/2 less the number of lost boxes; only its sign is used. An image without boxes has none to lose.

    A model returns for each image a mapping with `boxes` `[n, 4]` (corners), `labels` and `scores` `[n]` (torchvision);
    or `logits` `[B, Q, K + 1]`, "no object" last, and `pred_boxes` `[B, Q, 4]` (centre, width, height), as DETR in
    transformers. Logits of as many classes as the model's config names go through sigmoids, without "no object". The
    score of a box is that of its likeliest class; the 300 largest scores are read, and boxes without area are not.

    Attributes:
        overlap: intersection over union above which a box counts as found again, at least 0 and below 1.
        score: smallest score of a box that counts, above 0 and at most 1.
        class_names: names of the outputs; a classifier sets them.

    Raises:
        ParameterError: overlap or score is out of range.
    """

    score: float = 0.5

    name: ClassVar[str] = "boxes"
    explanation: ClassVar[str] = "which boxes are found"
    form: ClassVar[tuple[str, ...]] = ("boxes", "6")
    may_be_empty: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.score, int | float) or not 0 < self.score <= 1:
            raise ParameterError(f"a score is above 0 and at most 1, as in boxes:0.5,0.7; found {self.score!r}")

    @property
    def label(self) -> str:
        return super().label + (f",{self.score:g}" if self.score != Boxes.score else "")

    def extract(self, output: Any, classes: int | None) -> tuple[Tensor, str]:
        return extract_boxes(output, classes)

    def decide(self, outputs: Tensor) -> Tensor:
        """Return the boxes that count, `[B, MOST_BOXES, 6]`: corners, class and score; rows of 0 for other boxes."""
        return outputs.where(outputs[..., 5:] >= self.score, 0.0)

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """Return 1/2 less the number of lost boxes, `[N, 1]`, float64; NaN where an output is not finite."""
        padded = (decided.double(), self.decide(outputs).double())  # boxes fill the first places
        point_boxes, copy_boxes = (boxes[:, : max(1, int((boxes[..., 5] > 0).sum(dim=1).max()))] for boxes in padded)
        rows, columns = point_boxes[:, :, None], copy_boxes[:, None]
        sides = torch.minimum(rows[..., 2:4], columns[..., 2:4]) - torch.maximum(rows[..., :2], columns[..., :2])
        shared = sides.clamp_min(0.0).prod(dim=-1)
        areas = sum((boxes[..., 2:4] - boxes[..., :2]).prod(dim=-1) for boxes in (rows, columns))
        fits = (shared / (areas - shared) > self.overlap) & (rows[..., 4] == columns[..., 4])  # NaN between paddings
        matched = fits.any(dim=2).sum(dim=1)
        for row in (fits.sum(dim=1) > 1).any(dim=1).nonzero().flatten().tolist():
            pairs = scipy.optimize.linear_sum_assignment(fits[row].cpu().numpy(), maximize=True)
            matched[row] = fits[row][pairs].sum()
        margins = 0.5 - ((point_boxes[..., 5] > 0).sum(dim=1) - matched).double()
        return margins.where(outputs.flatten(1).isfinite().all(dim=1), torch.nan)[:, None]

    def described(self, decided: Tensor) -> list[str]:
        words = []
        for row in decided:
            kinds = Counter(map(self._word, row[row[:, 5] > 0, 4].tolist()))
            parts = listed([f"{count} {name}" for name, count in kinds.most_common()], SHOWN)
            words.append(f"{kinds.total()} box{'es' if kinds.total() > 1 else ''}: {parts}" if kinds else "no boxes")
        return words

    def describe_copies(self, margins: Sequence[float]) -> list[str]:
        return [f"{0.5 - margin:.2f} boxes are lost on average" for margin in margins]

    def numbers(self, outputs: Tensor) -> Tensor:
        """Return each kind of number sorted, faded in from half the score on, so that rounding moves none far."""
        come_in = (2 * outputs[..., 5:] / self.score - 1).clamp(0.0, 1.0)
        return (outputs * come_in).sort(dim=1, descending=True).values.flatten(1)


def extract_boxes(output: Any, classes: int | None) -> tuple[Tensor, str]:
    """Extract boxes from the output of an object detector, `[B, MOST_BOXES, 6]`, and name the fields they came from.

    A row holds corners, class and score of a box; the largest scores come first, then zeros; NaN where an image has a
    value that is not finite. `Boxes` describes the forms; `classes` is the number that the model's config names.
    """
    logits, corners = _part(output, "logits"), _part(output, "pred_boxes")
    try:
        if corners is None:
            images = [[_part(image, name) for name in ("boxes", "labels", "scores")] for image in output]
            return torch.stack([_pack(*parts) for parts in images]), "boxes, labels and scores"
        probabilities = logits.sigmoid() if logits.shape[2] == classes else logits.softmax(dim=2)[..., :-1]
        scores, labels = probabilities.max(dim=2)
        centre, half = corners[..., :2], corners[..., 2:] / 2
        images = zip(torch.cat((centre - half, centre + half), dim=2), labels, scores, strict=True)
        return torch.stack([_pack(*parts) for parts in images]), "logits and pred_boxes"
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        raise ModelError(
            "output_shape",
            f"the model returned {type(output).__name__}; expected a list with boxes [n, 4], labels and scores [n] of "
            f"each input, or logits [B, Q, K + 1] and pred_boxes [B, Q, 4]; wrap it in a module that returns them",
        ) from error


def _part(output: Any, name: str) -> Any:
    return output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)


def _pack(corners: Tensor, labels: Tensor, scores: Tensor) -> Tensor:
    """Return the boxes of an image, padded to `[MOST_BOXES, 6]`."""
    corners = widened(corners)  # half precision cannot hold label 257
    boxes = torch.cat((corners, labels[:, None].to(corners), scores[:, None].to(corners)), dim=1)
    places = boxes.new_zeros(MOST_BOXES, 6)
    if not bool(boxes.isfinite().all()):
        return places.fill_(torch.nan)
    boxes = boxes[(boxes[:, 2:4] > boxes[:, :2]).all(dim=1)]
    boxes = boxes[boxes[:, 5].argsort(descending=True, stable=True)][:MOST_BOXES]
    places[: len(boxes)] = boxes
    return places
