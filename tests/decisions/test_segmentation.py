"""Masks that overlap by 0.9 or more, a decision of the user's: counted, against each copy alone through the network."""

from __future__ import annotations

import torch
from scipy import stats
from torch import Tensor, nn

import brittle
from brittle.decisions import Custom
from brittle.scores import MonteCarlo

LEAST, SIGMA, DRAWS, ALONE, CONFIDENCE = 0.9, 0.3, 500, 1_500, 0.9999


class Segmentation(nn.Module):
    """A mask of one logit for each pixel, from the brightness around it."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Conv2d(1, 1, 3, padding=1, bias=False)
        nn.init.constant_(self.mean.weight, 1 / 9)

    def forward(self, x: Tensor) -> Tensor:
        return self.mean(x) - 0.5


def overlap(mask: Tensor, mask_at_point: Tensor) -> Tensor:
    own, there = (each.flatten(1) > 0 for each in (mask_at_point, mask))
    return ((own & there).sum(1) / (own | there).sum(1)).nan_to_num(1.0) >= LEAST


def scenes() -> Tensor:
    """A bright square on dark ground, in the middle or near an edge; a pale one, and none at all."""
    x = torch.full((4, 1, 12, 12), 0.1)
    x[0, :, 3:9, 3:9] = 0.9
    x[1, :, 0:5, 2:11] = 0.9
    x[2, :, 3:9, 3:9] = 0.6
    return x


def pixels(network: nn.Module, image: Tensor) -> set[tuple[int, ...]]:
    """The pixels of the mask of one image, which is alone in its batch."""
    with torch.no_grad():
        return {tuple(place) for place in (network(image[None])[0, 0] > 0).nonzero().tolist()}


def breaks(own: set[tuple[int, ...]], there: set[tuple[int, ...]]) -> bool:
    """Whether two masks overlap by less than `LEAST`; two empty ones are the same."""
    return bool(own | there) and len(own & there) < LEAST * len(own | there)


def test_flips_are_those_of_each_copy_alone_through_the_network() -> None:
    """Copies of its own for each way: two intervals of 4 points that miss each other, at most once in 1,250 times."""
    network = Segmentation().eval()
    classifier = brittle.Classifier(network, decision=Custom(overlap))
    x, generator = scenes(), torch.Generator().manual_seed(1)
    (found,) = brittle.score(classifier, x, [MonteCarlo(SIGMA, draws=DRAWS)], confidence=CONFIDENCE).columns
    for row, point in enumerate(x):
        at_point = pixels(network, point)
        copies = (point + SIGMA * torch.randn(point.shape, generator=generator) for _ in range(ALONE))
        alone = sum(breaks(at_point, pixels(network, copy)) for copy in copies)
        truth = stats.binomtest(alone, ALONE).proportion_ci(CONFIDENCE, "exact")
        low, high = found.low.iloc[row], found.high.iloc[row]
        assert low <= found.value.iloc[row] <= high <= low + 0.25
        assert max(low, truth.low) <= min(high, truth.high)
    assert found.value.nunique() == len(x)


def test_masks_that_overlap_by_just_so_much_are_the_same() -> None:
    """Ten pixels at the point, of which nine are left: 0.9."""
    at_point = torch.ones(3, 1, 1, 10)
    masks = at_point.clone()
    masks[1, ..., :1], masks[2, ..., :2] = -1.0, -1.0
    assert overlap(masks, at_point).tolist() == [True, True, False]
