"""Rules of a gate: each passes, fails or is undecided by the truth and its interval, and pipelines can read it."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest
import torch
from helpers.data_files import refused
from helpers.known_groups import BREAK, HOLD, made
from scipy import special

import brittle
from brittle import check
from brittle.cli.commands import main
from brittle.extensions.detector.detector import Detector
from brittle.scores import InputMargin, LogitMargin, MonteCarlo, Softmax
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("short_search")

SIGMA, LIMIT, RIGHT = 0.1, 0.9, 0.9
HOLDS = 1.0 - SIGMA * float(special.ndtri(LIMIT))
"""Share of the inputs, uniform in [-1, 1], whose prediction, the sign, is kept with probability `LIMIT`."""


@cache
def run(points: int, seed: int = 0, shift: float = 0.0, draws: int = 1000) -> Table:
    """Score the sign of uniform inputs, less `shift`; nine in ten labels are right. Margins only at 1,000 draws."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(points, 1, generator=generator) * 2 - 1
    wrong = torch.rand(points, generator=generator) > RIGHT
    classifier = brittle.Classifier(lambda x: torch.cat([x - shift, torch.zeros_like(x)], 1), bounds=(-1, 1))
    y = ((x[:, 0] < 0) ^ wrong).long()
    margins = [InputMargin(effort="fast")] if draws == 1000 else []
    return brittle.score(classifier, (x, y), [MonteCarlo(SIGMA, draws=draws, limit=None), *margins])


def slice_run(table: Table, start: int, count: int) -> Table:
    """Return consecutive points of a run of one score."""
    return replace(table, points=table.points.slice(start, count), scores=table.scores.slice(start, count))


@pytest.mark.parametrize(
    ("rules", "states"),
    [
        ({"holds": (0.8, 0.87, 0.95)}, ("passes", "undecided", "fails")),
        ({"every_class": (0.75, 0.87, 0.97)}, ("passes", "undecided", "fails")),
        ({"accuracy": (0.85, 0.9, 0.95)}, ("passes", "undecided", "fails")),
        ({"robust_accuracy": (0.7, 0.81, 0.9)}, ("passes", "undecided", "fails")),
        ({"expected_robustness": (0.8, 0.855, 0.9)}, ("passes", "undecided", "fails")),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_rule_has_three_outcomes(rules: dict[str, tuple[float, ...]], states: tuple[str, ...]) -> None:
    """The truth is 0.87 of the predictions, 0.9 of the labels, and 0.81 right and farther than 0.1 from 0; 0.855 in
    the mean over the distances up to 0.1."""
    ((rule, shares),) = rules.items()
    options: dict[str, Any] = {"epsilon": "1/10"} if "robust" in rule else {}
    results = [check(run(1500), **{rule: share}, **options) for share in shares]
    assert tuple(result.state for result in results) == states
    for result, share in zip(results, shares, strict=True):
        (verdict,) = result.verdicts
        assert verdict.minimum == share
        assert verdict.low <= verdict.value <= verdict.high
        assert bool(verdict.remedy) == (result.state == "undecided")


@pytest.mark.parametrize(("shift", "allowed", "state"), [(0.0, 0.01, "passes"), (5.0, 0.0, "passes")])
def test_a_run_is_compared_with_another(shift: float, allowed: float, state: str) -> None:
    """A run is as robust as itself; one whose boundary is far from all inputs is more robust, and the reverse fails."""
    shifted = run(1500, shift=shift)
    run_a, run_b = (run(1500), shifted) if shift == 0 else (shifted, run(1500))
    assert check(run_a, against=run_b, no_worse_than=allowed).state == state
    if shift:
        assert check(run_b, against=run_a).state == "fails"


@pytest.mark.parametrize(("count", "limit"), [(80, 5), pytest.param(400, 12, marks=pytest.mark.slow)])
def test_rules_at_the_truth_seldom_pass_or_fail(count: int, limit: int) -> None:
    """The truth itself passes in at most 1% and fails in at most 1%: any count above `limit` has probability 2e-4."""
    points = 60
    table = run(count * points, 1, draws=400)
    results = [check(slice_run(table, points * at, points), holds=HOLDS, accuracy=RIGHT) for at in range(count)]
    for place in range(2):
        states = [result.verdicts[place].state for result in results]
        assert states.count("passes") <= limit
        assert states.count("fails") <= limit


def test_the_advised_number_of_points_decides() -> None:
    """Check that the stated number of further points of the same kind decides the rule."""
    table = run(6000, 2, draws=4)
    (verdict,) = check(slice_run(table, 0, 100), accuracy=0.85).verdicts
    assert verdict.state == "undecided"
    needed = int("".join(filter(str.isdigit, verdict.remedy)))
    assert 100 < needed < 6000
    assert check(slice_run(table, 0, needed), accuracy=0.85).state == "passes"


TO_HOLD, TO_BREAK = (0.04, 0.14), (0.06, 0.16)
"""Ends of flip probabilities that leave the limit open, and whose middle lies on either side of it."""


def make_run(hold: int, to_hold: int, to_break: int, breaks: int) -> Table:
    """Make a run of points that hold, are open or break, each by 400 copies."""
    return made([HOLD] * hold + [TO_HOLD] * to_hold + [TO_BREAK] * to_break + [BREAK] * breaks)


@pytest.mark.parametrize(
    ("counts", "minimum", "state"),
    [((300, 60, 0, 20), 0.8, "passes"), ((300, 0, 60, 20), 0.9, "fails"), ((200, 30, 30, 0), 0.8, "passes")],
    ids=str,
)
def test_copies_are_advised_where_they_decide_a_rule(counts: tuple[int, ...], minimum: float, state: str) -> None:
    """The rule is decided once each open point is settled on the side of its value."""
    hold, to_hold, to_break, breaks = counts
    (verdict,) = check(make_run(*counts), holds=minimum, limit=LIMIT).verdicts
    assert verdict.state == "undecided"
    assert verdict.remedy.startswith(f"{to_hold + to_break} points")
    assert verdict.command
    assert check(make_run(hold + to_hold, 0, 0, breaks + to_break), holds=minimum, limit=LIMIT).state == state


@pytest.mark.parametrize(
    ("counts", "minimum"), [((20, 4, 0, 2), 0.8), ((20, 0, 2, 4), 0.9), ((24, 0, 0, 3), 0.8)], ids=str
)
def test_points_are_advised_where_copies_decide_nothing(counts: tuple[int, ...], minimum: float) -> None:
    """The stated number of points of the same kind, their open ones settled, decides the rule."""
    hold, to_hold, to_break, breaks = counts
    (verdict,) = check(make_run(*counts), holds=minimum, limit=LIMIT).verdicts
    assert (verdict.state, verdict.command) == ("undecided", "")
    settled_counts = (hold + to_hold, 0, 0, breaks + to_break)
    assert check(make_run(*settled_counts), holds=minimum, limit=LIMIT).state == "undecided"
    times = -(-int("".join(filter(str.isdigit, verdict.remedy))) // sum(counts))
    assert times > 1
    larger_counts = (times * count for count in settled_counts)
    assert check(make_run(*larger_counts), holds=minimum, limit=LIMIT).state != "undecided"


def test_results_parse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    run(600, 3).save("run")
    Path("rules.toml").write_text("holds = 0.75\naccuracy = 0.9\n", encoding="utf-8")
    command = "check run --config rules.toml --robust-accuracy 0.95 --epsilon 1/10"
    assert main(shlex.split(f"{command} --junit j.xml --markdown m.md --github")) == 1
    printed = capsys.readouterr().out
    assert main(shlex.split(f"{command} --json")) == 1
    answer = json.loads(capsys.readouterr().out)
    states = [verdict["state"] for verdict in answer["verdicts"]]
    assert (answer["format"], answer["state"], states) == (1, "fails", ["passes", "undecided", "fails"])
    suite = ElementTree.parse("j.xml").getroot()[0]
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["skipped"]) == ("3", "1", "1")
    assert [[child.tag for child in case] for case in suite] == [
        ["system-out"], ["skipped", "system-out"], ["failure", "system-out"],
    ]  # fmt: skip
    for kind, count in (("notice", 1), ("warning", 1), ("error", 1)):
        assert sum(text.startswith(f"::{kind} ") for text in printed.splitlines()) == count
    assert len([text for text in Path("m.md").read_text().splitlines() if text.startswith("| ")]) == 5
    for options, code in (("--holds 0.75", 0), ("--accuracy 0.9", 10), ("--accuracy 0.9 --undecided 1", 1)):
        assert main(["check", "run", *options.split()]) == code
    Path("own.xml").write_text("<mine/>")
    assert main(shlex.split("check run --holds 0.75 --junit own.xml")) == 7
    assert Path("own.xml").read_text() == "<mine/>"


def test_each_class_is_a_separate_case() -> None:
    result = check(run(1500), every_class=0.8, accuracy=0.85)
    rule = result.verdicts[0]
    assert len(rule.parts) == 2
    assert rule.low == min(part.low for part in rule.parts)
    assert sum(part.points for part in rule.parts) == 1500
    (suite,) = ElementTree.fromstring(result.junit())
    names = [case.attrib["name"] for case in suite]
    assert (len(set(names)), suite.attrib["tests"]) == (3, "3")
    assert [part["rule"] for part in json.loads(result.json())["verdicts"][0]["parts"]] == names[:2]


def test_the_rate_of_a_detector() -> None:
    network = torch.nn.Linear(1, 2)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        network.bias.zero_()
    x = torch.rand(600, 1, generator=torch.Generator().manual_seed(0)) - 0.5
    table = brittle.score(
        brittle.Classifier(network, bounds=(-1, 1)), x, [MonteCarlo(SIGMA, limit=None), LogitMargin()]
    )
    detector = Detector.fit(table, limit=LIMIT, tpr=0.8)
    assert check(table, detector=detector, detector_tpr=0.5).state == "passes"
    assert check(table, detector=detector, detector_tpr=0.85).state == "undecided"
    refused("other_model", "another model", check, run(60, 5), detector=detector, detector_tpr=0.5)


def test_points_without_a_prediction_may_be_wrong() -> None:
    """Score 600 points, 60 of them without a number: the accuracy is between 0.8 and 0.9."""
    table = run(600, 6)
    correct = [None if place < 60 else True for place in range(600)]
    points = table.points.set_column(
        table.points.column_names.index("correct"), "correct", pa.array(correct, pa.bool_())
    )
    for minimum, state in ((0.8, "passes"), (0.95, "undecided")):
        assert check(replace(table, points=points), accuracy=minimum).state == state


def test_hostile_class_names_stay_text() -> None:
    """Names of classes end no line and link nowhere."""
    name = "b\n::add-mask::x [c](http://e) @user"
    table = run(200, 7)
    hostile = replace(table, record=replace(table.record, data=replace(table.record.data, class_names=(name, name))))
    result = check(hostile, every_class=0.9)
    assert not any(line.lstrip().startswith("::add-mask") for line in f"{result}\n{result.github()}".splitlines())
    assert "@user" not in result.markdown()
    assert "[c](" not in result.markdown()
    ElementTree.fromstring(result.junit())


def test_runs_that_share_no_value_are_undecided() -> None:
    table = run(60, 5)
    empty = table.scores.set_column(
        table.scores.column_names.index("value"), "value", pa.array([math.nan] * len(table.scores), pa.float64())
    )
    assert check(table, against=replace(table, scores=empty)).state == "undecided"


def test_arguments_of_other_types_are_refused() -> None:
    table = run(60, 5)
    refused("parameter", "table", check, "run", holds=0.5)
    refused("parameter", "against", check, table, against="run")
    refused("parameter", "Detector", check, table, detector="d.json", detector_tpr=0.5)


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ({}, "parameter"),
        ({"holds": 1.5}, "parameter"),
        ({"holds": math.nan}, "parameter"),
        ({"robust_accuracy": 0.5}, "parameter"),
        ({"no_worse_than": 0.1}, "parameter"),
        ({"detector_tpr": 0.9}, "parameter"),
        ({"robust_accuracy": 0.5, "epsilon": 0.1, "norm": "l1"}, "no_such_score"),
    ],
    ids=str,
)
def test_invalid_rules_are_refused(rules: dict[str, Any], code: str) -> None:
    refused(code, ".", check, run(60, 5), **rules)


def test_missing_requirements_of_a_rule_are_named() -> None:
    table = brittle.score(brittle.Classifier(torch.nn.Linear(3, 2)), torch.rand(20, 3), [Softmax()])
    refused("no_such_score", ".", check, table, holds=0.5)
    refused("labels", ".", check, table, accuracy=0.5)
    refused("runs_differ", ".", check, table, against=table)
