"""All labels together and each by itself in one run: every column is that of the label's own run, for shared passes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import pytest
import torch
from helpers.decided import bent_network

import brittle
from brittle.analysis.columns import TYPICAL_P_ROBUST, typical
from brittle.decisions import MultiLabel
from brittle.errors import DataError, ParameterError
from brittle.scores import CATALOGUE, LogitMargin, MonteCarlo, Score, Shrinkage, Softmax

pytestmark = pytest.mark.usefixtures("nothing_drawn")  # words are what counts here

X = torch.rand(9, 6, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
NAMES = ("rain", "snow", "fog", "wind")
SMALL = {"draws": 8, "first": 8, "effort": "fast", "probes": 4}
COLUMNS = ("value", "low", "high", "status", "detail", "passes", "evidence", "counted_low", "counted_high")


def network() -> torch.nn.Sequential:
    return bent_network().eval()


def scored(decision: str, scores: list[Score], names: tuple[str, ...] | None = NAMES, **options) -> brittle.Table:
    points = brittle.data.array_points(X, class_names=names)
    return brittle.score(brittle.Classifier(network(), decision=decision), points, scores, skip_doctor=True, **options)


def asked() -> list[Score]:
    """Every score that is about one label, with few draws."""
    found = []
    for kind in CATALOGUE.values():
        if kind.serves in ("all", "probability"):
            known = kind.__dataclass_fields__
            given = {name: value for name, value in SMALL.items() if name in known and kind.name != "rare_event"}
            found.append(kind(**({"sigma": 0.3} if "sigma" in known else {}), **given))  # pyright: ignore[reportCallIssue]
    return found


@cache
def of_each() -> brittle.Table:
    return scored("multilabel:each", asked())


def rows_of(table: brittle.Table, score: str, label: str | None) -> list[dict]:
    (column,) = [c for c in table.columns if c.score == score and c.parameters.get("label") == label]
    return [dict(zip(COLUMNS, row, strict=True)) for row in column.rows[list(COLUMNS)].itertuples(index=False)]


def same(own: list[dict], other: list[dict]) -> None:
    assert len(own) == len(other) == len(X)
    for one, two in zip(own, other, strict=True):
        for name in COLUMNS:
            if isinstance(one[name], float):
                np.testing.assert_allclose(one[name], two[name], rtol=1e-12, atol=1e-12)
            else:
                assert one[name] == two[name], name


def test_each_column_is_that_of_the_labels_own_run() -> None:
    place = 2
    alone = scored(f"multilabel:{place}", asked())
    for score in asked():
        same(rows_of(of_each(), score.name, NAMES[place]), rows_of(alone, score.name, None))


def test_all_labels_together_are_as_in_their_own_run() -> None:
    together = scored("multilabel", [one for one in asked() if one.serves == "all"])
    for column in together.columns:
        same(rows_of(of_each(), column.score, None), rows_of(together, column.score, None))
    assert of_each().points.drop_columns(["passes"]).equals(together.points.drop_columns(["passes"]))
    assert of_each().record.data.decided_names == together.record.data.decided_names


def test_passes_of_linear_scores_are_those_of_one_run() -> None:
    """The gradients of all labels are those of each: one Jacobian at the point, and one at every noisy copy."""
    scores = [CATALOGUE[name](sigma=0.3) for name in ("taylor", "taylor_mvs")]  # pyright: ignore[reportCallIssue]
    scores += [CATALOGUE["mmse"](sigma=0.3, draws=6), CATALOGUE["first_order_margin"]()]  # pyright: ignore[reportCallIssue]
    spent = []
    for decision in ("multilabel", "multilabel:each"):
        classifier = brittle.Classifier(network(), decision=decision)
        passes = brittle.score(classifier, X, scores, skip_doctor=True).points["passes"].to_pylist()
        spent.append((passes, classifier.backward_passes))
    assert spent[0] == spent[1]
    assert spent[0][0] == [1 + 5 + 6 + 6 * 5] * 9


def test_the_run_speaks_of_all_labels_together() -> None:
    """Also where the mean robustness of a single label is the one that tells points apart best."""
    loud = scored("multilabel:each", [MonteCarlo(sigma=3.0, draws=20)])
    means = [float(abs(column.p_robust.mean() - TYPICAL_P_ROBUST)) for column in loud.columns]
    assert means[0] > min(means)
    chosen = typical(loud.columns)
    assert chosen is not None
    assert not chosen.setting.of_label
    assert of_each()["shrinkage"].parameters.get("label") is None
    assert of_each()["shrinkage", "fog"].parameters["label"] == "fog"
    with pytest.raises(DataError, match="softmax"):
        _ = of_each()["softmax"]


def test_a_score_of_probabilities_is_asked_of_each_label_alone() -> None:
    table = scored("multilabel:each", [Softmax(), Shrinkage(sigma=0.1)])
    assert {column.parameters.get("label") for column in table.columns if column.score == "softmax"} == {*NAMES}
    with pytest.raises(ParameterError, match="softmax"):
        Softmax()(brittle.Classifier(network(), decision="multilabel:each"), X)
    with pytest.raises(ParameterError, match="feature_margin"):
        scored("multilabel:each", [CATALOGUE["feature_margin"]()])


def test_a_score_that_hides_its_label_is_refused() -> None:
    @dataclass(frozen=True)
    class Silent(LogitMargin):
        name: ClassVar[str] = "silent"

        @property
        def parameters(self):
            return {}

    with pytest.raises(ParameterError, match="silent"):
        scored("multilabel:each", [Silent()])


def test_a_label_by_its_name_is_the_label_by_its_position() -> None:
    """With the names of the data, then with those of the model, which go first; the records are equal."""
    one, two = (scored(f"multilabel:{word}", [LogitMargin()]) for word in ("fog", "2"))
    assert one.record.model == two.record.model
    same(rows_of(one, "logit_margin", None), rows_of(two, "logit_margin", None))
    classifier = brittle.Classifier(network(), decision=MultiLabel(only="fog"))
    classifier.class_names = tuple(reversed(NAMES))
    with torch.no_grad():
        assert LogitMargin()(classifier, X).value.tolist() == pytest.approx(network()(X)[:, 1].abs().tolist())


@pytest.mark.parametrize("names", [NAMES, None])
def test_a_name_that_no_label_has_is_refused(names: tuple[str, ...] | None) -> None:
    with pytest.raises(ParameterError, match="fogg"):
        scored("multilabel:fogg", [LogitMargin()], names=names)
    with pytest.raises(ParameterError, match="fogg"):
        LogitMargin()(brittle.Classifier(network(), decision="multilabel:fogg"), X)
