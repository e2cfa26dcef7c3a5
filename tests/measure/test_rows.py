"""Rows of results: picked from all that holds a row for each point, and put together again as they were."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import torch
from helpers.inputs import SIGMA
from helpers.measured import COUNT, clean_of, pairs_of
from helpers.problems import inputs, small_classifier

from brittle.measure import Sample, Sampled
from brittle.measure.rows import join, pick
from brittle.measure.sample_sums import SampleSums
from brittle.noise import Gaussian


def check_same(one: object, other: object, tolerance: float = 0.0) -> None:
    """Equal, however deep: to the last bit, or floating-point numbers within a relative tolerance."""
    if isinstance(one, torch.Tensor):
        assert isinstance(other, torch.Tensor)
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
    elif is_dataclass(one):
        for field in fields(one):
            check_same(getattr(one, field.name), getattr(other, field.name), tolerance)
    elif isinstance(one, tuple | list):
        assert isinstance(other, tuple | list)
        for mine, yours in zip(one, other, strict=True):
            check_same(mine, yours, tolerance)
    else:
        assert one == other


def sampled() -> Sampled:
    classifier = small_classifier()
    return Sample(Gaussian(SIGMA), 12)(classifier, clean_of(classifier, inputs(COUNT)))


def test_what_is_picked_and_joined_is_what_it_was() -> None:
    found = sampled()
    parts = [pick(found, torch.tensor(rows)) for rows in ([0, 1], [2], [3, 4])]
    assert [len(part.tied) for part in parts] == [2, 1, 2]
    check_same(join(parts), found)


def test_sums_of_some_points_go_on_as_the_whole_would() -> None:
    """Above 100 classes not all competitors are kept.

    Sums over a batch of another shape may be rounded in another order, by the processor's kernels.
    """
    classes = 130
    classifier, rows = small_classifier(classes=classes), torch.tensor([1, 4])
    clean = clean_of(classifier, inputs(COUNT))
    with torch.no_grad():
        copies = classifier(pairs_of(inputs(COUNT), "sample", 24).flatten(0, 1)).double()
    logits = copies.view(COUNT, 12, 2, classes)
    whole = SampleSums.start(clean)
    whole.add(logits[:, :5])
    some = pick(whole, rows)
    some.add(logits[rows, 5:])
    assert whole.votes.flips.sum(dim=1).tolist() == [5] * COUNT
    whole.add(logits[:, 5:])
    check_same(some.read(12), pick(whole.read(12), rows), tolerance=1e-9)
