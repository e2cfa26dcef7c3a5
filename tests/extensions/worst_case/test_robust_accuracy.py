"""Robust accuracy from attacks on a few points: on a linear network, whose distances are known."""

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


def separated() -> tuple[brittle.Classifier, torch.Tensor, torch.Tensor, np.ndarray]:
    """A linear network, points and labels, a fifth of them wrong, and their distances in Linf, of which none is near.

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


def test_a_few_attacks_tell_what_the_distances_of_all_say() -> None:
    classifier, x, labels, distance = separated()
    robust = distance > EPSILON
    right = labels.numpy() == (x.numpy() @ WEIGHT < 0.5 * WEIGHT.sum())
    found = brittle.robust_accuracy(classifier, (x, labels), EPSILON, 30, effort="fast")
    assert found.estimated.estimate == np.mean(robust & right)
    assert (found.estimated.points, found.estimated.subset_points, found.labelled) == (POINTS, 30, True)
    assert (found.counted.points, found.estimated.tpr) == (30, 1.0)
    assert found.estimated.low < found.estimated.estimate < found.estimated.high
    unlabelled = brittle.robust_accuracy(classifier, x, "1/10", 30, effort="fast", seed=1)
    assert (unlabelled.estimated.estimate, unlabelled.labelled) == (robust.mean(), False)
    assert unlabelled.counted.accuracy == 1.0


def test_it_is_what_two_runs_and_the_formula_say_and_costs_what_it_says() -> None:
    x, labels = inputs(16), torch.arange(16) % 4
    found = brittle.robust_accuracy(small_classifier(), (x, labels), 0.05, 6, norm="l2", effort="fast", seed=3)
    scores = [LogitMargin(), InputMargin("l2", effort="fast")]
    run = brittle.score(small_classifier(), (x, labels), scores, seed=3)
    ids = {one for batch in sample_points(array_points(x, labels), 6, 3).batches(16) for one in batch.ids}
    drawn = run["logit_margin"].value.index.isin(ids)
    margin = run["input_margin"].value.where(drawn)
    right = run.points["correct"].to_pylist()
    by_hand = estimate_robust_accuracy(margin, run["logit_margin"].value, right, 0.05, drawn)
    for name in ("threshold", "estimate", "rectified", "low", "high", "subset"):
        assert getattr(found.estimated, name) == pytest.approx(getattr(by_hand, name), abs=1e-6)
    assert found.counted.robust_accuracy == found.estimated.subset
    spent = found.passes - 16
    assert found.passes_for_all == round(spent / 6 * 16)
    everything = brittle.robust_accuracy(small_classifier(), (x[:5], labels[:5]), 0.05, 9, norm="l2", effort="fast")
    assert everything.passes == everything.passes_for_all + 5
    assert everything.estimated.subset == everything.estimated.rectified


def told(margin: np.ndarray, score: np.ndarray, epsilon: float, subset: np.ndarray) -> SampledRobustAccuracy:
    few = estimate_robust_accuracy(margin, score, np.ones(400), epsilon, subset)
    alone = direct_robust_accuracy(margin[subset], np.ones(len(margin[subset])), epsilon)
    return SampledRobustAccuracy(few, alone, True, "linf", 900, 2000)


def test_a_line_more_is_said_where_the_logit_margin_misleads() -> None:
    margin, subset = np.linspace(0.0, 1.0, 400), np.arange(0, 400, 4)
    guided, misled = (told(margin, score, 0.3, subset) for score in (margin, np.sin(1e4 * margin)))
    assert guided.estimated.low <= guided.estimated.estimate <= guided.estimated.high
    assert not misled.estimated.low <= misled.estimated.estimate <= misled.estimated.high
    assert len(str(misled).splitlines()) == len(str(guided).splitlines()) + 1
    nothing = told(margin, margin, 0.3, np.arange(0))
    assert str(nothing) == nothing.estimated.reason


def test_what_finds_non_robust_points_is_told_apart_from_that_there_are_none() -> None:
    """The threshold is infinite in both cases, null in JSON; `tpr` is null where the subset has no non-robust point."""
    margin, subset = np.linspace(0.4, 1.0, 400), np.arange(0, 400, 4)
    for epsilon, threshold, tpr in ((0.3, -np.inf, None), (2.0, np.inf, 1.0)):
        found = told(margin, margin, epsilon, subset)
        assert found.estimated.threshold == threshold
        read = json.loads(as_json(**asdict(found)))["estimated"]
        assert (read["threshold"], read["tpr"]) == (None, tpr)
        assert ("inf" in str(found).replace("linf", ""), "nan" in str(found)) == (tpr is not None, False)


def test_the_command_says_the_same_and_counts_a_point_that_cannot_be_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(FACTORY.format(tests=str(Path(__file__).parents[2])))
    x, labels = inputs(12), torch.arange(12) % 4
    np.savez("data.npz", x=x.numpy(), y=labels.numpy())
    words = ["robust-accuracy", "./net.py:make", "data.npz", "--epsilon", "1/20", "--attack", "5"]
    words += ["--effort", "fast", "--seed", "2", "--quiet"]
    assert main(words) == 0
    found = brittle.robust_accuracy(brittle.Classifier(small_network()), (x, labels), 0.05, 5, effort="fast", seed=2)
    assert capsys.readouterr().out == f"{found}\n"
    assert main([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["estimated"]["rectified"] == found.estimated.rectified
    assert (said["norm"], said["passes"]) == ("linf", found.passes)
    x[4, 0, 0, 0] = torch.nan
    np.savez("data.npz", x=x.numpy(), y=labels.numpy())
    assert main([*words, "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["estimated"]["dropped"] == 1
