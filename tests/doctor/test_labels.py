"""Notes on labels that are shifted, all alike, or of permuted classes."""

from __future__ import annotations

from bisect import bisect
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from brittle.doctor import about_accuracy
from brittle.doctor.data import BY_CHANCE, FALSE_ALARM, surely_more

Confusion = Counter[tuple[int, int]]


def sentence(confusion: Confusion, classes: int = 10, **source: str | int | None) -> str:
    correct = sum(count for (label, predicted), count in confusion.items() if label == predicted)
    findings = list(about_accuracy(correct, confusion.total(), classes, confusion, source))
    return findings[0].sentence if findings else ""


@pytest.mark.parametrize("by", [-1, 1])
def test_labels_shifted_by_one_are_reported(by: int) -> None:
    confusion = Counter({(label, label + by): 5 for label in range(1, 9)})
    verb = "subtracted from" if by < 0 else "added to"
    assert f"100.0% are right when 1 is {verb} every label" in sentence(confusion)


def test_label_shifts_need_evidence() -> None:
    renaming = Counter({(label, (label + 5) % 10): 5 for label in range(10)})
    two_renamings = Counter({(0, 1): 20, (1, 2): 20})
    sparse = Counter({(label, label - 1): 2 for label in range(1, 7)})
    assert sentence(sparse) == ""
    for confusion in (renaming, two_renamings):
        assert "are right when classes are renamed" in sentence(confusion)
        assert "every label" not in sentence(confusion)
    assert sentence(Counter({(label, label): 5 for label in range(10)})) == ""


def test_two_swapped_classes_are_reported() -> None:
    swap = Counter({(label, {3: 5, 5: 3}.get(label, label)): 26 for label in range(10)})
    assert "100.0% are right when classes are renamed (label 3 as 5, 5 as 3)" in sentence(swap)
    assert "chance" not in sentence(swap)
    mixture = Counter({(i, j): 13 for i in range(10) for j in ({3: (3, 5), 5: (3, 5)}.get(i, (i, i)))})
    assert sentence(mixture) == ""


def test_outputs_in_the_order_of_text_are_reported() -> None:
    as_text = sorted(range(12), key=str)
    confusion = Counter({(label, output): 2 for output, label in enumerate(as_text)})
    assert "100.0% are right when the outputs of the model are read in the order of text" in sentence(confusion, 12)
    assert "order of text" not in sentence(Counter({(label, 11 - label): 2 for label in range(12)}), 12)


@pytest.mark.parametrize("classes", [2, 4, 10, 100])
@pytest.mark.parametrize("labelled", [8, 64, 256])
def test_renamings_are_reported_and_random_predictions_are_not(labelled: int, classes: int) -> None:
    """Some of many renamings fit by chance; a note on one has a probability of at most 1 in 10,000 each time."""
    draw = np.random.default_rng(labelled + classes)
    for _ in range(20):
        label, predicted = draw.integers(classes, size=(2, labelled)).tolist()
        assert "renamed" not in sentence(Counter(zip(label, predicted, strict=True)), classes)
    names = (3 * np.arange(classes) + 1) % classes
    text = sentence(Counter((index, int(names[index])) for index in draw.integers(classes, size=256).tolist()), classes)
    assert ("are right when" in text) == (classes < 100), "256 labels say little of a hundred classes"


@pytest.mark.every_other
@pytest.mark.parametrize("labelled", [8, 64, 1000])
@pytest.mark.parametrize(("classes", "healthy"), [(2, 0.65), (3, 0.5), (10, 0.3), (100, 0.12), (1000, 0.12)])
def test_networks_at_chance_are_reported_and_weak_ones_are_not(labelled: int, classes: int, healthy: float) -> None:
    def alarms(correct: int) -> bool:
        return bool(list(about_accuracy(correct, labelled, classes, {}, {})))

    threshold = bisect(range(labelled + 1), False, key=lambda correct: not alarms(correct))
    step = max(1, labelled // 50)
    assert all(map(alarms, range(0, threshold, step)))
    assert not any(map(alarms, range(threshold, labelled + 1, step)))
    assert stats.binom.cdf(threshold - 1, labelled, healthy) <= BY_CHANCE
    if labelled >= 1000 and classes <= 100:
        assert stats.binom.cdf(threshold - 1, labelled, 1 / classes) >= 0.95
    if classes == 10 and labelled >= 300:
        assert alarms(int(0.14 * labelled)), "14% of ten classes"


@pytest.mark.parametrize("log_tries", [0.0, 2.5])
def test_surely_more_agrees_with_scipy(log_tries: float) -> None:
    for count in range(41):
        p = stats.binomtest(count, 40, 0.3, "greater").pvalue * np.exp(log_tries)
        assert surely_more(count, 40, 0.3, log_tries) == (p <= FALSE_ALARM)


def test_forgotten_weights_are_suggested_first() -> None:
    confusion = Counter({(label, 9): 9 for label in range(9)})
    assert "in net.py:make, or add --weights" in sentence(confusion, format="python", spec="net.py:make", weights=None)
    assert "--weights" not in sentence(confusion, format="object", spec="Linear")
    assert "--weights" not in sentence(confusion, format="python", spec="net.py:make", weights="w.safetensors")


def test_a_model_without_weights_is_not_told_to_load_some() -> None:
    confusion = Counter({(label, 9): 9 for label in range(9)})
    text = sentence(confusion, format="python", spec="rule.py:judge", weights=None, parameters=0)
    assert "--weights" not in text
    assert "bounds" not in text
    assert "order of the classes" in text
