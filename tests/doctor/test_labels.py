"""What is said of labels that are moved, all alike, or of classes that stand elsewhere."""

from __future__ import annotations

from collections import Counter

import pytest

from brittle.doctor import about_accuracy, unweighted
from brittle.doctor.labels import ENOUGH, _outputs_of

Confusion = Counter[tuple[int, int]]


def sentence(confusion: Confusion, classes: int = 10, **more: str | None) -> str:
    correct = sum(count for (label, predicted), count in confusion.items() if label == predicted)
    found = list(about_accuracy(correct, confusion.total(), classes, confusion, **more))
    return found[0].sentence if found else ""


@pytest.mark.parametrize("by", [-1, 1])
def test_labels_that_are_moved_by_one_are_told(by: int) -> None:
    moved = Counter({(own, own + by): 5 for own in range(1, 9)})
    verb = "subtracted from" if by < 0 else "added to"
    assert f"100.0% are right when 1 is {verb} every label" in sentence(moved)


def test_they_are_not_told_without_reason() -> None:
    apart = Counter({(own, (own + 5) % 10): 5 for own in range(10)})
    two = Counter({(0, 1): 20, (1, 2): 20})
    few = Counter({(own, own - 1): 2 for own in range(1, 9)})
    assert few.total() < ENOUGH
    assert sentence(few) == ""
    for confusion in (apart, two):
        assert "little better than chance" in sentence(confusion)
        assert "every label" not in sentence(confusion)
    assert sentence(Counter({(own, own): 5 for own in range(10)})) == ""


def test_forgotten_weights_are_the_first_thing_to_look_at() -> None:
    made = unweighted({"format": "python", "spec": "net.py:make", "weights": None})
    wrong = Counter({(own, 9): 9 for own in range(9)})
    assert "no --weights were given: if net.py:make does not load" in sentence(wrong, unweighted=made)
    assert "--weights" not in sentence(wrong, unweighted=unweighted({"format": "object", "spec": "Linear"}))
    assert unweighted({"format": "python", "spec": "net.py:make", "weights": "w.safetensors"}) is None
    assert unweighted({"format": "torch.export", "spec": "net.pt2"}) is None


def test_the_outputs_of_classes_are_found_where_they_are_clear_and_apart() -> None:
    clear = Counter({(0, 7): 6, (0, 1): 3, (1, 3): 4})
    assert _outputs_of(clear, 2) == [(0, 7), (1, 3)]
    assert _outputs_of(clear, 3) is None, "nothing is known of the third"
    assert _outputs_of(Counter({(0, 7): 6, (1, 7): 4}), 2) is None, "two get the same"
    assert _outputs_of(Counter({(0, 7): 3, (0, 1): 3, (1, 3): 4}), 2) is None, "half is not most"
