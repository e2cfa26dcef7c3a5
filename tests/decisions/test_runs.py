"""Decisions in runs: what the tables hold, what the report says, what is compared and resumed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.decided import bent_network, first_leads

import brittle
from brittle.analysis import compare, format_overview, overview
from brittle.cli import main as brittle_main
from brittle.decisions import Custom, Decision, MultiLabel, Within
from brittle.errors import DataError, ModelError, ParameterError, ResumeError
from brittle.scores import InputMargin, MonteCarlo, Shrinkage

pytestmark = pytest.mark.usefixtures("nothing_drawn")  # words are what counts here

X = torch.rand(30, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
NAMES = ("rain", "snow", "fog", "wind")
SCORES = [MonteCarlo(sigma=0.3, draws=20), InputMargin(effort="fast")]


def outputs() -> torch.Tensor:
    with torch.no_grad():
        return bent_network()(X)


def scored(decision: Decision | str, y: object, **options) -> brittle.Table:
    classifier = brittle.Classifier(bent_network(), decision=decision)
    points = brittle.data.array_points(X, y, class_names=NAMES, targets=classifier.decision.targets)
    return brittle.score(classifier, points, options.pop("scores", SCORES), **options)


def test_sets_of_labels_are_classes() -> None:
    """Bits and names, computed here from the outputs, at the points and at the nearest other inputs."""
    right = (outputs() > 0).long()
    right[0, 1] ^= 1
    table = scored("multilabel", right)
    points = table.points.to_pylist()
    for row, z in enumerate(outputs()):
        held = [place for place in range(4) if float(z[place]) > 0]
        assert points[row]["predicted"] == sum(2**place for place in held)
        assert table.record.data.names[points[row]["predicted"]] == (" + ".join(NAMES[one] for one in held) or "none")
        assert points[row]["correct"] is (row != 0)
    assert points[0]["label"] == points[0]["predicted"] ^ 2
    assert table.record.data.labelled
    known = {one["point"]: one["predicted"] for one in points}
    met = table.counterexamples.to_pylist()
    assert len(met) > 20
    assert all(one["predicted"] != known[one["point"]] for one in met)


def test_what_is_decided_at_the_nearest_inputs_is_what_the_network_says_there() -> None:
    classifier = brittle.Classifier(bent_network(), decision="multilabel")
    table = brittle.score(classifier, (X, None), [InputMargin(norm="l2", effort="fast")])
    there = brittle.nearest(classifier, X, norm="l2", effort="fast").points
    with torch.no_grad():
        bits = ((bent_network()(there) > 0) * 2 ** torch.arange(4)).sum(1).tolist()
    found = {int(one["point"]): one["predicted"] for one in table.counterexamples.to_pylist()}
    assert found == {row: bits[row] for row in found}


def test_numbers_are_words() -> None:
    right = outputs() + 0.05
    right[3] += 1.0
    table = scored(Within(0.1), right)
    points = table.points.to_pylist()
    assert [one["correct"] for one in points] == [row != 3 for row in range(30)]
    assert all(one["predicted"] is None and one["label"] is None for one in points)
    assert points[3]["decided"].split(", ")[0] == f"{float(outputs()[3, 0]):.4g}"
    assert points[3]["target"].split(", ")[0] == f"{float(right[3, 0]):.4g}"


def test_the_best_few_are_right_where_the_label_is_among_them() -> None:
    labels = torch.arange(30) % 4
    points = scored("top:2", labels).points.to_pylist()
    ranked = outputs().argsort(dim=1, descending=True)[:, :2].tolist()
    assert [one["correct"] for one in points] == [int(labels[row]) in ranked[row] for row in range(30)]
    assert [one["predicted"] for one in points] == [row[0] for row in ranked]


def test_without_names_labels_are_numbered() -> None:
    table = brittle.score(brittle.Classifier(bent_network(), decision="multilabel"), X, [MonteCarlo(0.1, draws=4)])
    assert table.record.data.names[:3] == ("none", "label 0", "label 1")
    assert table.record.data.labelled is False


@pytest.mark.parametrize(
    ("decision", "named"),
    [(MultiLabel(only=1), "multilabel"), (MultiLabel(threshold=0.2), "decision_parameters"), (None, "multilabel")],
)
def test_another_decision_is_another_run(tmp_path: Path, decision, named: str) -> None:
    scored("multilabel", None, out=tmp_path / "run")
    with pytest.raises(ResumeError, match=named):
        scored(decision, None, out=tmp_path / "run", resume=True)


def test_another_function_is_another_run(tmp_path: Path) -> None:
    scored(Custom(first_leads), None, out=tmp_path / "run", scores=SCORES[:1])
    scored(Custom(first_leads), None, out=tmp_path / "run", scores=SCORES[:1], resume=True)

    def other(output, at_point):
        return first_leads(output, at_point) + 0.1

    with pytest.raises(ResumeError, match="function"):
        scored(Custom(other, name_of="another"), None, out=tmp_path / "run", scores=SCORES[:1], resume=True)


def test_runs_over_different_decisions_are_not_compared() -> None:
    first, second = scored("multilabel", None), scored("top:2", None)
    with pytest.raises(DataError, match="multilabel, the second about top:2"):
        compare(first, second)


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (np.zeros((30, 3, 2)), "expected numbers, one or one row for each point"),
        (np.zeros((29, 4)), "for 30 points"),
        (np.full((30, 4), np.nan), "give every number"),
        (np.full((30, 4), "x"), "expected numbers"),
    ],
)
def test_targets_that_are_none_are_refused(y: np.ndarray, said: str) -> None:
    with pytest.raises(DataError, match=said):
        brittle.data.array_points(X, y, targets=True)


def test_labels_of_several_columns_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From a table to the page: columns by name, the accuracy of all labels, names on the page."""
    network = torch.nn.Linear(3, 2)
    torch.manual_seed(0)
    torch.nn.init.normal_(network.weight)
    torch.export.save(
        torch.export.export(network, (torch.rand(4, 3),), dynamic_shapes=({0: torch.export.Dim("rows")},)),
        tmp_path / "model.pt2",
    )
    x = torch.rand(12, 3)
    y = (network(x) > 0).long()
    rows = [[*map(str, features), *map(str, labels)] for features, labels in zip(x.tolist(), y.tolist(), strict=True)]
    lines = ["a,b,c,rain,snow", *(",".join(row) for row in rows)]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    place = [str(tmp_path / "model.pt2"), str(tmp_path / "data.csv")]
    options = ["--decision", "multilabel", "--label-column", "rain,snow", "--sigma", "0.1"]
    run = str(tmp_path / "run")
    assert brittle_main(["doctor", *place, *options]) == 0
    assert "100.0% of 12 labelled points" in capsys.readouterr().out
    assert brittle_main(["score", *place, *options, "--out", run]) == 0
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["data"]["decided_names"] == ["none", "rain", "snow", "rain + snow"]
    assert record["data"]["label_column"] == "rain,snow"
    assert {score["score"] for score in record["scores"]} == {"shrinkage", "logit_margin"}
    capsys.readouterr()
    assert brittle_main(["show", run, "--right"]) == 0
    assert "12 of 12 points" in capsys.readouterr().out
    assert brittle_main(["report", run]) == 0
    names = {name for name, held in zip(("rain", "snow"), y.T, strict=True) if bool(held.any())}
    page = (tmp_path / "run" / "report.html").read_text()
    assert names
    assert all(name in page for name in names)


def test_the_page_says_in_words_what_is_no_class(tmp_path: Path) -> None:
    scored(Within(0.3), outputs(), out=tmp_path / "run", scores=[*SCORES, Shrinkage(sigma=0.3)])
    page = brittle.write_report(brittle.read_table(tmp_path / "run"), tmp_path / "page.html").read_text()
    assert f"{float(outputs()[0, 0]):.4g}, " in page


def test_an_accuracy_is_expected_of_classes_alone() -> None:
    with pytest.raises(ParameterError, match="decides which labels hold"):
        scored("multilabel", (outputs() > 0).long(), expected_accuracy=0.9)


@pytest.mark.parametrize("decision", ["within:0.5", "multilabel"])
def test_a_model_may_return_a_single_number(decision: str) -> None:
    """`f = 2 x_1`, gradients recorded and not: what is looked at again in a run is no other number than at first."""
    x, weight = X.float(), torch.tensor([[2.0, 0, 0, 0, 0, 0]])
    network = torch.nn.Linear(6, 1, bias=False).requires_grad_(False)
    network.weight.copy_(weight)
    right = (x @ weight.T if decision == "within:0.5" else (x @ weight.T > 0).long()).numpy()
    classifier = brittle.Classifier(network.eval(), decision=decision)
    scores = [Shrinkage(sigma=0.3), InputMargin(effort="fast", bounded=False)]
    table = brittle.score(classifier, (x, right), scores)
    assert all(one["correct"] for one in table.points.to_pylist())
    nearest = np.full(30, 0.5) if decision == "within:0.5" else (2 * x[:, 0]).abs().numpy()
    np.testing.assert_allclose(table["input_margin"].value, nearest / 2, rtol=1e-3)


@pytest.mark.parametrize(
    ("decision", "skip_doctor"),
    [
        pytest.param(decision, skip_doctor, marks=() if (number + skip_doctor) % 2 == 0 else pytest.mark.slow)
        for number, decision in enumerate(("within:0.4", "multilabel", "multilabel:0"))
        for skip_doctor in (False, True)
    ],
)
def test_a_network_that_returns_one_number_is_scored(decision: str, skip_doctor: bool) -> None:
    """Its shares of flips are those of single copies counted by hand: a linear network, a normal number."""
    torch.manual_seed(3)
    network = torch.nn.Linear(6, 1).double()
    classifier = brittle.Classifier(network, decision=decision)
    table = brittle.score(
        classifier, X, [MonteCarlo(sigma=0.3, draws=2000)], confidence=0.99999, skip_doctor=skip_doctor
    )
    with torch.no_grad():
        spread, z = 0.3 * network.weight.norm(), network(X)[:, 0]
    normal = torch.distributions.Normal(0.0, 1.0)
    if decision.startswith("within"):
        truth = (2 * normal.cdf(-0.4 / spread)).expand(len(X))
    else:
        truth = normal.cdf(-z.abs() / spread)
    column = table["monte_carlo"]
    found = np.asarray(column.low), truth.numpy(), np.asarray(column.high)
    assert ((found[0] <= found[1]) & (found[1] <= found[2])).all()  # 30 points in 6 cases, fails once in 500 runs


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        ("multilabel", "A prediction is which labels hold; a class is such a set of labels."),
        ("multilabel:2", "A prediction is whether label 2 holds."),
        ("top:2", "A prediction is which 2 classes score highest, in any order."),
        ("within:0.5", "A prediction holds while every number stays within 0.5 of what it is."),
        (Custom(first_leads), "A prediction holds while the function first_leads says that it is the same."),
    ],
)
def test_page_and_terminal_say_what_a_prediction_is(decision, said: str, tmp_path: Path) -> None:
    table = scored(decision, None, scores=SCORES[:1])
    assert said in format_overview(overview(table))
    assert said in brittle.write_report(table, tmp_path / "page.html").read_text()


def test_of_the_predicted_class_nothing_is_said() -> None:
    assert "A prediction" not in format_overview(overview(scored("class", None, scores=SCORES[:1])))


def test_the_margin_of_a_tolerance_is_not_scored_unless_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = torch.nn.Linear(2, 1).eval()
    torch.export.save(
        torch.export.export(network, (torch.rand(2, 2),), dynamic_shapes=({0: torch.export.Dim("batch")},)),
        tmp_path / "model.pt2",
    )
    rows = [f"{one:.3f},{other:.3f},{one:.3f}" for one, other in torch.rand(12, 2).tolist()]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,target", *rows]) + "\n")
    command = ["score", str(tmp_path / "model.pt2"), str(tmp_path / "data.csv"), "--decision", "within:0.5"]
    assert brittle_main([*command, "--sigma", "0.1", "--out", str(tmp_path / "run")]) == 0
    assert "logit_margin is left out: with within:0.5 it is the same at every point" in capsys.readouterr().err
    assert {one.score for one in brittle.read_table(tmp_path / "run").columns} == {"shrinkage"}
    assert brittle_main([*command, "--scores", "logit_margin", "--out", str(tmp_path / "asked")]) == 0
    assert set(brittle.read_table(tmp_path / "asked")["logit_margin"].value) == {0.5}


@pytest.mark.parametrize("decision", ["multilabel", "multilabel:2", "multilabel:each", "within:0.5"])
def test_as_many_labels_as_outputs_are_needed(decision: str) -> None:
    """One column beside three outputs was compared with each of them."""
    classifier = brittle.Classifier(torch.nn.Linear(4, 3), decision=decision)
    with pytest.raises(ModelError, match=r"hold 1 .* returns 3") as caught:
        brittle.score(classifier, (torch.rand(20, 4), torch.randint(2, (20, 1)).double()), [MonteCarlo(0.1, draws=10)])
    assert caught.value.code == "output_shape"
