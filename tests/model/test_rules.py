"""Rules of columns: noise and searches keep them, whatever the model."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.ruled import points, related, table

import brittle
from brittle.cli.commands import main
from brittle.errors import ParameterError
from brittle.model.rules import Rules
from brittle.scores import InputMargin, MonteCarlo

pytest.importorskip("sklearn")

RULES = {"age": "whole 17..90", "gain": "0..", "sex": "fixed", "share": "..1"}


class RecordingModel:
    """A classifier of few columns that records its input rows."""

    classes_ = np.array([0, 1])

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []

    def fit(self) -> None:
        """Change nothing."""

    def decision_function(self, rows: Any) -> np.ndarray:
        self.rows.append(np.asarray(rows))
        return self.rows[-1] @ np.array([0.01, 0.5, 1.0, -1.0, 0.3]) - 1.0

    def predict(self, rows: Any) -> np.ndarray:
        return (self.decision_function(rows) > 0).astype(int)


def check(rows: np.ndarray, sexes: set[float]) -> None:
    assert (rows[:, 0] == np.round(rows[:, 0])).all()
    assert rows[:, 0].min() >= 17
    assert rows[:, 0].max() <= 90
    assert rows[:, 1].min() >= 0
    assert set(rows[:, 2]) <= sexes
    assert rows[:, 3].max() <= 1


def test_a_hundred_thousand_noisy_copies_keep_every_rule() -> None:
    model, x = RecordingModel(), table(100)
    noise = brittle.noise.PerFeature(1.0, torch.from_numpy(x.std(axis=0)))
    run = brittle.score(
        brittle.Classifier(model, None, rules=RULES),
        points(x),
        [MonteCarlo(noise=noise, draws=1000, limit=None)],
        skip_doctor=True,
    )
    rows = np.concatenate(model.rows)
    assert len(rows) >= 100_000
    assert len(run.frame()) == 100
    check(rows, {0.0, 1.0})
    assert (rows[:, 0] == 17).any()
    assert (rows[:, 4] < x[:, 4].min()).any()


@pytest.mark.parametrize("norm", ["l2", "linf", "l1"])
def test_the_search_over_signs_keeps_every_rule(norm: str) -> None:
    model, x = RecordingModel(), table(8)
    brittle.score(brittle.Classifier(model, None, rules=RULES), points(x), [InputMargin(norm, effort="fast")])
    check(np.concatenate(model.rows), {0.0, 1.0})


SEVERAL = {
    **dict.fromkeys(("red", "green", "blue"), "one-hot:colour"),
    **{"first": "whole 0.. at-most:last", "last": "whole"},
    **{"low": "at-most:middle", "middle": "..9 at-most:high", "high": "..8"},
}
SEVERAL_NAMES = ["red", "first", "green", "blue", "last", "low", "middle", "high"]


@pytest.mark.parametrize(
    ("kind", "draws"),
    [("per_feature", 1000), ("swap", 50), pytest.param("swap", 1000, marks=pytest.mark.slow)],
)
def test_noisy_copies_keep_rules_of_several_columns(kind: str, draws: int) -> None:
    """A hundred thousand copies; a swap draws each copy alone, so the fast suite has five thousand."""

    class RelatedModel(RecordingModel):
        def decision_function(self, rows: Any) -> np.ndarray:
            self.rows.append(np.asarray(rows))
            return self.rows[-1] @ np.array([1.0, 0.1, -1.0, 0.5, 0.1, 1.0, -0.5, 0.2]) - 2.0

    model, x = RelatedModel(), related(100)
    data = brittle.data.array_points(x, feature_names=SEVERAL_NAMES, bounds=None)
    noise = {
        "per_feature": brittle.noise.PerFeature(1.0, torch.from_numpy(x.std(axis=0))),
        "swap": brittle.noise.Swap.of(data, 0.4, rules=SEVERAL),
    }[kind]
    classifier = brittle.Classifier(model, None, rules=SEVERAL)
    brittle.score(classifier, data, [MonteCarlo(noise=noise, draws=draws, limit=None)], skip_doctor=True)
    rows = np.concatenate(model.rows)
    assert len(rows) >= 100 * draws
    assert (np.sort(rows[:, [0, 2, 3]], axis=1) == [0.0, 0.0, 1.0]).all()
    assert (rows[:, [1, 4]] == rows[:, [1, 4]].round()).all()
    assert (rows[:, 1] >= 0).all()
    assert (np.diff(rows[:, [1, 4]], axis=1) >= 0).all()
    assert (np.diff(rows[:, 5:], axis=1) >= 0).all()
    assert rows[:, 5:].max() <= 8
    assert len(np.unique(rows[:, [0, 2, 3]], axis=0)) == 3
    if kind == "swap":
        triples = {tuple(row) for row in x[:, 5:].astype(np.float32).tolist()}
        assert {tuple(row) for row in rows[:, 5:].astype(np.float32).tolist()} <= triples


def test_numbers_become_the_nearest_that_keep_joint_rules() -> None:
    rules = Rules.of(SEVERAL, SEVERAL_NAMES)
    rows = rules.kept(np.array([[0.2, 6.0, 0.9, 0.3, 3.0, 3.0, 2.0, 4.0], [0.0, -1.0, 0.0, 0.0, -3.0, 5.0, 9.5, 9.0]]))
    assert rows.tolist() == [[0.0, 4.0, 1.0, 0.0, 4.0, 2.5, 2.5, 4.0], [1.0, 0.0, 0.0, 0.0, 0.0, 5.0, 8.0, 8.0]]
    related_rows = related(200)
    np.testing.assert_array_equal(rules.kept(related_rows), related_rows.clip(None, [np.inf] * 5 + [8.0] * 3))
    fixed_rows = Rules.of({"0": "fixed at-most:1"}, ["0", "1"]).kept(np.array([[3.0, 1.0], [3.0, 4.0]]))
    assert fixed_rows.tolist() == [[3.0, 3.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    "rules",
    [
        {"9": "whole"},
        {"0": "odd"},
        {"0": "a..b"},
        {"0": "1..x"},
        {"0": " "},
        {"0": "5..1"},
        {"0": "nan..3"},
        {"0": "whole 1.2..1.8"},
        {"0": "one-hot:a"},
        {"0": "one-hot:a fixed", "1": "one-hot:a"},
        {"0": "one-hot:"},
        {"0": "at-most:9"},
        {"0": "whole at-most:1"},
        {"0": "fixed at-most:1", "1": "fixed"},
        {"0": "one-hot:a", "1": "one-hot:a", "2": "at-most:1 whole"},
        {"0": "5.. at-most:1", "1": "..4"},
    ],
    ids=[
        *("column", "word", "ends", "end", "nothing", "empty", "nan", "no whole", "one of a group", "fixed in a group"),
        *("no name", "tied to no column", "whole and not", "both fixed", "tied to a group", "nothing between"),
    ],
)
def test_invalid_rules_are_refused(rules: dict[str, str]) -> None:
    with pytest.raises(ParameterError):
        Rules.of(rules, ["0", "1", "2"])


@pytest.mark.parametrize("rule", ["whole", "0..1", "at-most:a", "one-hot:b"])
def test_categories_have_no_rule_but_fixed(rule: str) -> None:
    """Codes of categories can be neither rounded nor ordered."""
    pd = pytest.importorskip("pandas")
    x = pd.DataFrame({"kind": pd.Categorical(list("abcd") * 5), "a": np.arange(20.0)})
    from sklearn.ensemble import HistGradientBoostingClassifier

    forest = HistGradientBoostingClassifier(max_iter=2, categorical_features="from_dtype").fit(x, np.arange(20) > 9)
    extra_rules = {"a": "one-hot:b"} if rule == "one-hot:b" else {}
    for rules, is_refused in (({"kind": rule, **extra_rules}, True), ({"kind": "fixed"}, False)):
        classifier = brittle.Classifier(forest, "none", rules=rules)
        with pytest.raises(ParameterError) if is_refused else nullcontext():
            brittle.score(classifier, (x, None), "softmax", skip_doctor=True)


def test_a_called_score_keeps_fixed_columns_as_a_run_does() -> None:
    x, score = table(12), MonteCarlo(sigma=0.5, draws=200, limit=None)
    classifier = brittle.Classifier(RecordingModel(), "none", rules={"4": "fixed", "1": "fixed"})
    estimate = score(classifier, torch.from_numpy(x), ids=[str(row) for row in range(len(x))])
    run = brittle.score(classifier, (x, None), [score], skip_doctor=True)
    assert estimate.value.tolist() == run.scores["value"].to_pylist()


def test_a_column_with_a_rule_of_numbers_is_no_category() -> None:
    """The column of sexes holds three whole numbers alone, and any column of three rows holds few."""
    from brittle.noise import PerFeature

    plain, ruled = (PerFeature.of(points(table()), 0.1, None, moving) for moving in ((), ("sex",)))
    assert (float(plain.scale[2]), float(ruled.scale[2]) > 0) == (0.0, True)


def test_rules_are_for_estimators() -> None:
    with pytest.raises(ParameterError):
        brittle.Classifier(torch.nn.Linear(2, 2), rules={"0": "whole"})


def test_the_command_takes_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("forest.py").write_text(
        "from sklearn.ensemble import RandomForestClassifier as Forest\n"
        "make = lambda: Forest(9, random_state=0).fit([[1, 0.5], [5, 0.1], [9, 0.9]] * 9, [0, 1, 1] * 9)\n"
    )
    Path("data.csv").write_text("a,b,label\n1,0.5,0\n4,0.1,1\n9,0.9,1\n")
    command = ["score", "forest.py:make", "data.csv", "--bounds", "none", "--scores", "input_margin"]
    assert main([*command, "--out", "run", "--rules", "a=whole,0..9", "b=fixed"]) == 0
    distances = brittle.read_table("run").frame()["input_margin"]
    assert distances.tolist() == distances.round().tolist()
    assert main([*command, "--out", "other", "--rules", "c=fixed"]) == 3
    scores = ["--scores", "monte_carlo", "input_margin"]
    assert main([*command[:-2], *scores, "--out", "tied", "--rules", "b=at-most:a", "--noise", "swap:0.5"]) == 0
