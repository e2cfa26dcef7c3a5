"""Robust accuracy from attacks on a few points, on a linear network with known distances."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.problems import inputs, small_classifier, small_network

import brittle
from brittle.analysis import direct_robust_accuracy, estimate_robust_accuracy
from brittle.cli.commands import main
from brittle.data import array_points, sample_points
from brittle.extensions.worst_case.run import SampledRobustAccuracy
from brittle.scores import InputMargin, LogitMargin
from brittle.text import as_json

pytestmark = pytest.mark.usefixtures("short_search")

EPSILON, POINTS = 0.1, 300
WEIGHT = np.array([0.6, -0.3, 0.1])

FACTORY = """
import sys
sys.path.insert(0, {tests!r})
from helpers.problems import small_network as make
"""


def make_separated() -> tuple[brittle.Classifier, torch.Tensor, torch.Tensor, np.ndarray]:
    """Make a linear network, points, labels, a fifth of them wrong, and Linf distances away from epsilon.

    With two classes the logit margin is `||w||_1` times the distance, so that Algorithm 1 is exact.
    """
    generator = np.random.default_rng(0)
    distance = np.where(generator.random(POINTS) < 0.4, 0.06, 0.14) + 0.03 * generator.random(POINTS)
    sign = generator.choice([-1.0, 1.0], POINTS)
    x = 0.5 + (sign * distance * np.abs(WEIGHT).sum() / (WEIGHT @ WEIGHT))[:, None] * WEIGHT
    network = torch.nn.Linear(3, 2, dtype=torch.float64)
    with torch.no_grad():
        network.weight.copy_(torch.from_numpy(np.stack([WEIGHT, 0 * WEIGHT])))
        network.bias.copy_(torch.tensor([-0.5 * WEIGHT.sum(), 0.0]))
    labels = np.where(generator.random(POINTS) < 0.2, sign > 0, sign < 0).astype(int)
    return brittle.Classifier(network, bounds=(0, 1)), torch.from_numpy(x), torch.from_numpy(labels), distance


def test_a_few_attacks_estimate_the_share_by_all_distances() -> None:
    classifier, x, labels, distance = make_separated()
    robust = distance > EPSILON
    is_correct = labels.numpy() == (x.numpy() @ WEIGHT < 0.5 * WEIGHT.sum())
    answer = brittle.robust_accuracy(classifier, (x, labels), EPSILON, 30, effort="fast")
    assert answer.estimated.estimate == np.mean(robust & is_correct)
    assert (answer.estimated.points, answer.estimated.subset_points, answer.labelled) == (POINTS, 30, True)
    assert (answer.counted.points, answer.estimated.tpr) == (30, 1.0)
    assert answer.estimated.low < answer.estimated.estimate < answer.estimated.high
    unlabelled = brittle.robust_accuracy(classifier, x, "1/10", 30, effort="fast", seed=1)
    assert (unlabelled.estimated.estimate, unlabelled.labelled) == (robust.mean(), False)
    assert unlabelled.counted.accuracy == 1.0


def test_it_equals_two_runs_and_the_formula_in_value_and_passes() -> None:
    x, labels = inputs(16), torch.arange(16) % 4
    answer = brittle.robust_accuracy(small_classifier(), (x, labels), 0.05, 6, norm="l2", effort="fast", seed=3)
    scores = [LogitMargin(), InputMargin("l2", effort="fast")]
    run = brittle.score(small_classifier(), (x, labels), scores, seed=3)
    ids = {id_ for batch in sample_points(array_points(x, labels), 6, 3).batches(16) for id_ in batch.ids}
    drawn = run["logit_margin"].value.index.isin(ids)
    margin = run["input_margin"].value.where(drawn)
    correct = run.points["correct"].to_pylist()
    by_hand = estimate_robust_accuracy(margin, run["logit_margin"].value, correct, 0.05, drawn)
    for name in ("threshold", "estimate", "rectified", "low", "high", "subset"):
        assert getattr(answer.estimated, name) == pytest.approx(getattr(by_hand, name), abs=1e-6)
    assert answer.counted.robust_accuracy == answer.estimated.subset
    attack_passes = answer.passes - 16
    assert answer.passes_for_all == round(attack_passes / 6 * 16)
    everything = brittle.robust_accuracy(small_classifier(), (x[:5], labels[:5]), 0.05, 9, norm="l2", effort="fast")
    assert everything.passes == everything.passes_for_all + 5
    assert everything.estimated.subset == everything.estimated.rectified


def summarize(margin: np.ndarray, score: np.ndarray, epsilon: float, subset: np.ndarray) -> SampledRobustAccuracy:
    estimated = estimate_robust_accuracy(margin, score, np.ones(400), epsilon, subset)
    counted = direct_robust_accuracy(margin[subset], np.ones(len(margin[subset])), epsilon)
    return SampledRobustAccuracy(estimated, counted, True, "linf", 900, 2000)


def test_a_line_warns_where_the_logit_margin_misleads() -> None:
    margin, subset = np.linspace(0.0, 1.0, 400), np.arange(0, 400, 4)
    guided, misled = (summarize(margin, score, 0.3, subset) for score in (margin, np.sin(1e4 * margin)))
    assert guided.estimated.low <= guided.estimated.estimate <= guided.estimated.high
    assert not misled.estimated.low <= misled.estimated.estimate <= misled.estimated.high
    assert len(str(misled).splitlines()) == len(str(guided).splitlines()) + 1
    nothing = summarize(margin, margin, 0.3, np.arange(0))
    assert str(nothing) == nothing.estimated.reason


def test_an_infinite_threshold_differs_by_its_rate() -> None:
    """All or none of the subset are robust: null in JSON, and `tpr` is null without a non-robust point."""
    margin, subset = np.linspace(0.4, 1.0, 400), np.arange(0, 400, 4)
    for epsilon, threshold, tpr in ((0.3, -np.inf, None), (2.0, np.inf, 1.0)):
        answer = summarize(margin, margin, epsilon, subset)
        assert answer.estimated.threshold == threshold
        read = json.loads(as_json(**asdict(answer)))["estimated"]
        assert (read["threshold"], read["tpr"]) == (None, tpr)
        assert ("inf" in str(answer).replace("linf", ""), "nan" in str(answer)) == (tpr is not None, False)


def test_the_command_agrees_and_counts_points_without_a_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(FACTORY.format(tests=str(Path(__file__).parents[2])))
    x, labels = inputs(12), torch.arange(12) % 4
    np.savez("data.npz", x=x.numpy(), y=labels.numpy())
    words = ["robust-accuracy", "./net.py:make", "data.npz", "--epsilon", "1/20", "--attack", "5"]
    words += ["--effort", "fast", "--seed", "2", "--quiet"]
    assert main(words) == 0
    answer = brittle.robust_accuracy(brittle.Classifier(small_network()), (x, labels), 0.05, 5, effort="fast", seed=2)
    assert capsys.readouterr().out == f"{answer}\n"
    assert main([*words, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["estimated"]["rectified"] == answer.estimated.rectified
    assert (fields["norm"], fields["passes"]) == ("linf", answer.passes)
    x[4, 0, 0, 0] = torch.nan
    np.savez("data.npz", x=x.numpy(), y=labels.numpy())
    assert main([*words, "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["estimated"]["dropped"] == 1
