"""Decisions in runs: tables, comparisons and resumption."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.decided import bent_network

import brittle
from brittle.analysis import compare
from brittle.cli.commands import main as brittle_main
from brittle.decisions import Decision, MultiLabel, Within
from brittle.errors import DataError, ModelError, ResumeError
from brittle.scores import InputMargin, MonteCarlo, Shrinkage

pytestmark = pytest.mark.usefixtures("nothing_drawn", "short_search")  # the tests read words

X = torch.rand(30, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
NAMES = ("rain", "snow", "fog", "wind")
SCORES = [MonteCarlo(sigma=0.3, draws=20, limit=None), InputMargin(effort="fast")]


def outputs() -> torch.Tensor:
    with torch.no_grad():
        return bent_network()(X)


def scored(decision: Decision | str, y: object, **options) -> brittle.Table:
    classifier = brittle.Classifier(bent_network(), decision=decision)
    points = brittle.data.array_points(X, y, class_names=NAMES, targets=classifier.decision.targets)
    return brittle.score(classifier, points, options.pop("scores", SCORES), **options)


def test_sets_of_labels_are_classes() -> None:
    """Bits and names by hand from the outputs, at the points and at the nearest other inputs."""
    targets = (outputs() > 0).long()
    targets[0, 1] ^= 1
    table = scored("multilabel", targets)
    points = table.points.to_pylist()
    for row, z in enumerate(outputs()):
        labels = [place for place in range(4) if float(z[place]) > 0]
        assert points[row]["predicted"] == sum(2**place for place in labels)
        assert table.record.data.names[points[row]["predicted"]] == (" + ".join(NAMES[i] for i in labels) or "none")
        assert points[row]["correct"] is (row != 0)
    assert points[0]["label"] == points[0]["predicted"] ^ 2
    assert table.record.data.labelled
    predictions = {point["point"]: point["predicted"] for point in points}
    examples = table.counterexamples.to_pylist()
    assert len(examples) > 20
    assert all(example["predicted"] != predictions[example["point"]] for example in examples)


def test_numbers_are_words() -> None:
    targets = outputs() + 0.05
    targets[3] += 1.0
    table = scored(Within(0.1), targets)
    points = table.points.to_pylist()
    assert [point["correct"] for point in points] == [row != 3 for row in range(30)]
    assert all(point["predicted"] is None and point["label"] is None for point in points)
    assert points[3]["decided"].split(", ")[0] == f"{float(outputs()[3, 0]):.4g}"
    assert points[3]["target"].split(", ")[0] == f"{float(targets[3, 0]):.4g}"


def test_the_best_few_are_right_where_the_label_is_among_them() -> None:
    labels = torch.arange(30) % 4
    points = scored("top:2", labels).points.to_pylist()
    ranked = outputs().argsort(dim=1, descending=True)[:, :2].tolist()
    assert [point["correct"] for point in points] == [int(labels[row]) in ranked[row] for row in range(30)]
    assert [point["predicted"] for point in points] == [row[0] for row in ranked]


@pytest.mark.parametrize(
    ("decision", "field"),
    [(MultiLabel(only=1), "multilabel"), (MultiLabel(threshold=0.2), "decision_parameters"), (None, "multilabel")],
)
def test_another_decision_is_another_run(tmp_path: Path, decision, field: str) -> None:
    scored("multilabel", None, out=tmp_path / "run")
    with pytest.raises(ResumeError, match=field):
        scored(decision, None, out=tmp_path / "run", resume=True)


def test_runs_over_different_decisions_are_not_compared() -> None:
    multilabel_table, top_table = scored("multilabel", None), scored("top:2", None)
    with pytest.raises(DataError, match=r"multilabel.*top:2"):
        compare(multilabel_table, top_table)


@pytest.mark.parametrize("decision", ["within:0.5", "multilabel"])
def test_a_model_may_return_a_single_number(decision: str) -> None:
    """`f = 2 x_1`, with and without gradients: a run finds the same number again."""
    x, weight = X.float(), torch.tensor([[2.0, 0, 0, 0, 0, 0]])
    network = torch.nn.Linear(6, 1, bias=False).requires_grad_(False)
    network.weight.copy_(weight)
    targets = (x @ weight.T if decision == "within:0.5" else (x @ weight.T > 0).long()).numpy()
    classifier = brittle.Classifier(network.eval(), decision=decision)
    scores = [Shrinkage(sigma=0.3, limit=None), InputMargin(effort="fast", bounded=False)]
    table = brittle.score(classifier, (x, targets), scores)
    assert all(point["correct"] for point in table.points.to_pylist())
    nearest = np.full(30, 0.5) if decision == "within:0.5" else (2 * x[:, 0]).abs().numpy()
    np.testing.assert_allclose(table["input_margin"].value, nearest / 2, rtol=1e-3)


def test_the_margin_of_a_tolerance_is_not_scored_by_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = torch.nn.Linear(2, 1).eval()
    torch.export.save(
        torch.export.export(network, (torch.rand(2, 2),), dynamic_shapes=({0: torch.export.Dim("batch")},)),
        tmp_path / "model.pt2",
    )
    rows = [f"{a:.3f},{b:.3f},{a:.3f}" for a, b in torch.rand(12, 2).tolist()]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,target", *rows]) + "\n")
    command = ["score", str(tmp_path / "model.pt2"), str(tmp_path / "data.csv"), "--decision", "within:0.5"]
    assert brittle_main([*command, "--sigma", "0.1", "--out", str(tmp_path / "run")]) == 0
    assert "logit_margin" in capsys.readouterr().err
    assert {column.score for column in brittle.read_table(tmp_path / "run").columns} == {"shrinkage"}
    assert brittle_main([*command, "--scores", "logit_margin", "--out", str(tmp_path / "asked")]) == 0
    assert set(brittle.read_table(tmp_path / "asked")["logit_margin"].value) == {0.5}


@pytest.mark.parametrize("decision", ["multilabel", "multilabel:2", "within:0.5"])
def test_as_many_labels_as_outputs_are_needed(decision: str) -> None:
    """One column must not be compared with each of three outputs."""
    classifier = brittle.Classifier(torch.nn.Linear(4, 3), decision=decision)
    with pytest.raises(ModelError, match=r"\b1\b.*\b3\b") as caught:
        brittle.score(
            classifier, (torch.rand(20, 4), torch.randint(2, (20, 1)).double()), [MonteCarlo(0.1, draws=10, limit=None)]
        )
    assert caught.value.code == "output_shape"
