"""Frames of pandas: what an estimator was fitted on is what it is given, and noise leaves categories alone."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from helpers.data_files import refused

import brittle
from brittle.cli.commands import main
from brittle.data import open_points
from brittle.noise import PerFeature, Swap
from brittle.scores import MonteCarlo, Shrinkage

pytest.importorskip("sklearn")

from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

pytestmark = pytest.mark.filterwarnings("ignore::brittle.BrittleWarning")


def flowers(count: int = 24) -> pd.DataFrame:
    """Numbers of two scales, text, categories of which one never occurs, whole numbers, and the kind."""
    drawn = np.random.default_rng(0)
    frame = pd.DataFrame({"length": drawn.normal(5, 1, count), "weight": drawn.normal(300, 50, count)})
    frame["colour"] = drawn.choice(["red", "blue"], count)
    frame["site"] = pd.Categorical(drawn.choice(["wood", "field"], count), categories=["wood", "field", "hill"])
    frame["leaves"] = drawn.integers(0, 4, count)
    frame["kind"] = np.where(frame.length + (frame.colour == "red") + (frame.site == "hill") > 5.5, "ant", "bee")
    return frame


class Watching(HistGradientBoostingClassifier):
    """A classifier that remembers the frames it is given."""

    def decision_function(self, X: Any) -> Any:
        vars(self).setdefault("seen", []).append(X)
        return super().decision_function(X)


FRAME = flowers()
X, KIND = FRAME.drop(columns="kind"), FRAME["kind"]


def fitted() -> Pipeline:
    encoder = make_column_transformer((OneHotEncoder(), ["colour", "site"]), remainder="passthrough")
    return make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=3)).fit(X, KIND)


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return fitted()


def test_a_pipeline_is_scored_on_the_frame_it_was_fitted_on(pipeline: Pipeline) -> None:
    table = brittle.score(pipeline, FRAME, label_column="kind", noise="per-feature", sigma=0.1)
    frame = table.frame()
    assert frame["predicted"].tolist() == pipeline.predict(X).tolist()
    assert frame["label"].tolist() == KIND.tolist()
    assert table.record.data.feature_names == tuple(X.columns)
    assert frame["p_robust"].between(0, 1).all()


def test_frame_and_labels_and_file_are_the_same_run(pipeline: Pipeline, tmp_path: Path) -> None:
    given: dict[str, Any] = {"scores": "shrinkage", "noise": "per-feature", "sigma": 0.1}
    whole = brittle.score(pipeline, FRAME, label_column="kind", **given)
    for y in (KIND.astype("category"), KIND.tolist()):
        apart = brittle.score(pipeline, (X, y), **given)
        assert apart.scores.equals(whole.scores)
        assert apart.record.data.sha256 == whole.record.data.sha256
    FRAME.to_csv(tmp_path / "flowers.csv", index=False)
    FRAME.to_parquet(tmp_path / "flowers.parquet")
    for name in ("flowers.csv", "flowers.parquet"):
        assert brittle.score(pipeline, tmp_path / name, label_column="kind", **given).scores.equals(whole.scores)


def test_text_that_reads_as_numbers_is_text(tmp_path: Path) -> None:
    """ "01" of a frame or a Parquet file is no 1.0 to a model that was fitted on text, and has no noise."""
    shops = X[["length", "weight"]].assign(shop=np.where(X.leaves < 2, "01", "10"))
    encoder = make_column_transformer((OneHotEncoder(), ["shop"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestClassifier(9, random_state=0)).fit(shops, KIND)
    shops.to_parquet(tmp_path / "shops.parquet")
    for data in (shops, tmp_path / "shops.parquet"):
        table = brittle.score(model, data, "monte_carlo", noise="per-feature", sigma=0.1)
        assert table.frame()["predicted"].tolist() == model.predict(shops).tolist()


def test_more_texts_than_categories_may_have_are_no_numbers() -> None:
    frame = pd.DataFrame({"length": np.arange(10_001.0), "place": [f"{row:05d}" for row in range(10_001)]})
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["place"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestClassifier(1)).fit(frame[:50], frame.length[:50] > 20)
    refused("columns", "'place'", lambda: brittle.score(model, frame, "softmax"))


def test_numbers_alone_are_their_arrays() -> None:
    forest = RandomForestClassifier(5, random_state=0).fit(X[["length", "weight"]], KIND)
    numbers, scores = X[["length", "weight"]], [Shrinkage(sigma=0.3, limit=None)]
    table = brittle.score(forest, (numbers, KIND), scores)
    assert table.scores.equals(brittle.score(forest, (numbers.to_numpy(), KIND), scores).scores)


@pytest.mark.parametrize("noise", ["gaussian", "per-feature", "swap:0.5"])
def test_every_pass_has_the_same_columns_and_categories(noise: str) -> None:
    columns = ["length", "site"]
    model = Watching(categorical_features="from_dtype", max_iter=9, min_samples_leaf=5).fit(X[columns], KIND)
    sigma = None if noise == "swap:0.5" else 0.3
    brittle.score(model, (X[columns], KIND), ["shrinkage"], noise=noise, sigma=sigma)
    for frame in vars(model)["seen"]:
        assert list(frame.columns) == columns
        assert frame["site"].dtype == X["site"].dtype
    moved = max(vars(model)["seen"], key=len)
    assert moved["length"].nunique() > len(X) if noise != "swap:0.5" else moved["length"].nunique() > 1


def test_noise_per_feature_is_learned_from_a_frame() -> None:
    noise = PerFeature.of(X, 0.1)
    assert noise.still == "colour, site, leaves"
    torch.testing.assert_close(noise.scale[:2], torch.tensor(np.std(X[["length", "weight"]].to_numpy(), axis=0)))
    assert PerFeature.of(X, 0.1, categories=["weight"]).still == "weight, colour, site"


def test_points_that_hold_codes_reach_the_estimator_as_categories(pipeline: Pipeline, tmp_path: Path) -> None:
    """A score that is called gives it what `brittle.score` does."""
    X.to_csv(tmp_path / "flowers.csv", index=False)
    X[X.columns[::-1]].to_csv(tmp_path / "other.csv", index=False)
    points, other = (open_points(tmp_path / name, levels=True) for name in ("flowers.csv", "other.csv"))
    classifier, score = (
        brittle.Classifier(pipeline, bounds=None),
        MonteCarlo(noise=PerFeature.of(X, 0.1), draws=20, limit=None),
    )
    robust = brittle.score(classifier, points, [score]).frame()["p_robust"]
    assert [1 - flip for flip in score(classifier, points).value.tolist()] == robust.tolist()
    for read in (score, brittle.nearest):
        refused("columns", "another order", read, classifier, other)


@pytest.mark.slow
def test_a_search_moves_the_numbers_of_a_frame_and_keeps_its_categories(pipeline: Pipeline, tmp_path: Path) -> None:
    """A thousand passes through the frames of a pipeline."""
    X.to_csv(tmp_path / "flowers.csv", index=False)
    points = open_points(tmp_path / "flowers.csv", levels=True)
    found = brittle.nearest(brittle.Classifier(pipeline, bounds=None), points, norm="l2", effort="fast", bounded=False)
    there = (found.predicted >= 0).numpy()
    moved = X.assign(
        **{name: found.points[:, list(X.columns).index(name)].numpy() for name in ("length", "weight", "leaves")}
    )
    assert there.sum() > 8
    assert pipeline.predict(moved[there]).tolist() == pipeline.classes_[found.predicted[there]].tolist()


def test_the_index_of_a_frame_names_its_points(pipeline: Pipeline) -> None:
    """A part of the rows has the numbers that it has among all; an index that repeats is no id."""
    score = [MonteCarlo(noise=PerFeature.of(X, 0.1), draws=20, limit=None)]
    named = X.set_axis([f"customer {row}" for row in range(len(X))])
    parts: list[Any] = [named, named[::-3]]
    whole, some = (brittle.score(pipeline, one, score).frame() for one in parts)
    assert whole["point"].tolist() == named.index.tolist()
    kept = whole[some.columns].set_index("point")  # without columns that hold nothing for these
    assert some.set_index("point").equals(kept.loc[some["point"]])
    doubled = brittle.score(pipeline, X.set_axis([0] * len(X)), score).frame()
    assert doubled["point"].tolist() == [str(row) for row in range(len(X))]


ROWS = len(X)
INDICES = {
    "rows": pd.RangeIndex(ROWS), "range": pd.RangeIndex(40, 40 - ROWS, -1), "ints": pd.Index(np.arange(ROWS)[::-1] * 7),
    "named": pd.Index(range(5, ROWS + 5), name="flower"), "small": pd.Index(range(ROWS), dtype="uint8"),
    "text": pd.Index([f"f{row}" for row in range(ROWS)], name="flower"), "numerals": pd.Index(map(str, range(ROWS))),
    "spaces": pd.Index([f" f{row}" for row in range(ROWS)]), "floats": pd.Index(np.arange(ROWS) / 3),
    "times": pd.date_range("2020-03-28", periods=ROWS, freq="7h", name="seen"),
    "zone": pd.date_range("2020-10-24", periods=ROWS, freq="30min", tz="Europe/Berlin"),
    "repeated": pd.Index([*range(ROWS // 2)] * 2), "same": pd.Index(["a"] * ROWS, name="site"),
}  # fmt: skip
OTHERS = {
    "levels": pd.MultiIndex.from_product([range(ROWS // 4), range(4)]),
    "booleans": pd.Index([True, False] * (ROWS // 2)),
    "mixed": pd.Index([*range(ROWS - 1), "last"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def margins(pipeline: Pipeline) -> list[float]:
    return brittle.score(pipeline, X, scores="logit_margin", skip_doctor=True).frame()["logit_margin"].tolist()


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        *((name, False) for name in (*INDICES, *OTHERS)),
        ("rows", True),
        ("text", True),
        ("same", True),
        ("levels", True),
    ],
)
def test_the_index_of_a_frame_comes_back(
    name: str, ids: bool, pipeline: Pipeline, margins: list[float], tmp_path: Path
) -> None:
    """In type and name, in memory and from a run folder, beside a column of ids as well; labels of other kinds as their
    text. Each row stands beside its own values, also of the top."""
    index = (INDICES | OTHERS)[name]
    data = X.set_axis(index).assign(**({"id": [f"point {row}" for row in range(ROWS)]} if ids else {}))
    table = brittle.score(pipeline, data, scores="logit_margin", out=tmp_path / "run", skip_doctor=True)
    expected = index if name in INDICES else index.map(str)
    for one in (table, brittle.read_table(tmp_path / "run")):
        frame = one.frame()
        assert frame.index.equals(expected)
        assert frame.index.names == ([None] if name in OTHERS else index.names)
        assert name in OTHERS or frame.index.dtype == index.dtype
        assert frame["logit_margin"].tolist() == margins
        assert one.frame(whole=True).index.equals(expected)
        top = one.top(3, by="logit_margin")
        assert top.index.equals(expected.take(top["row"]))
        if index.is_unique and name in INDICES:
            joined = data.join(frame[["logit_margin"]])
            assert joined["logit_margin"].tolist() == margins
        if index.is_unique and name in INDICES and not ids and name != "spaces":
            joined = data.join(frame.set_index("point")[["logit_margin"]])
            assert joined["logit_margin"].tolist() == margins


@pytest.mark.parametrize(
    ("name", "ids"), [("rows", False), ("text", True), ("repeated", False), ("same", True), ("levels", False)]
)
def test_a_run_goes_on_with_the_labels_that_it_has(name: str, ids: bool, pipeline: Pipeline, tmp_path: Path) -> None:
    """Else its rows would be joined to those of another frame; repeated labels tell rows apart no less."""
    index = (INDICES | OTHERS)[name]
    data = X.assign(**({"id": [f"point {row}" for row in range(ROWS)]} if ids else {}))
    run = {"scores": "logit_margin", "out": tmp_path / "run", "resume": True, "skip_doctor": True}
    table = brittle.score(pipeline, data.set_axis(index), **run)
    assert brittle.score(pipeline, data.set_axis(index), **run).frame().equals(table.frame())
    shifted = index.map(str) + "-"
    refused("other_run", "sha256", brittle.score, pipeline, data.set_axis(shifted), **run)


def test_the_index_of_other_data_are_their_rows() -> None:
    x = torch.rand(9, 3)
    points = brittle.data.sample_points(brittle.data.array_points(x), 4)
    frame = brittle.score(brittle.Classifier(torch.nn.Linear(3, 2)), points, scores="logit_margin").frame()
    assert frame.index.tolist() == list(map(int, frame["point"]))
    assert len(frame) == 4


@pytest.mark.parametrize("index", [{}, {"dtype": "int64"}, "point", 3, {"dtype": 3, "name": [], "column": "input"}])
def test_an_index_that_nobody_wrote_is_none(index: Any) -> None:
    """A record may come from anybody."""
    table = brittle.score(brittle.Classifier(torch.nn.Linear(3, 2)), torch.rand(4, 3), scores="logit_margin")
    data = replace(table.record.data, reading={**table.record.data.reading, "index": index})
    assert replace(table, record=replace(table.record, data=data)).frame().index.tolist() == [0, 1, 2, 3]


def test_swapping_a_column_of_text_alone_is_refused(pipeline: Pipeline) -> None:
    swap = MonteCarlo(noise=Swap.of(X, 0.9, columns=["colour"]), draws=20, limit=None)
    refused("columns", "categories", brittle.score, pipeline, X, [swap])


def test_noise_of_columns_needs_no_bounds() -> None:
    network = torch.nn.Linear(2, 3)
    numbers: Any = X[["length", "weight"]].to_numpy(np.float32)
    table = brittle.score(network, numbers, "monte_carlo", noise="per-feature", sigma=0.1)
    assert table.record.model.bounds is None


def test_booleans_of_a_text_file_are_those_that_pandas_reads(tmp_path: Path) -> None:
    drawn = np.random.default_rng(0)
    frame = pd.DataFrame({"a": drawn.normal(size=60), "b": drawn.random(60) > 0.5})
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["b"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestClassifier(9, random_state=0)).fit(frame, (frame.a > 0) ^ frame.b)
    frame.to_csv(tmp_path / "frame.csv", index=False)
    for data in (frame, tmp_path / "frame.csv"):
        table = brittle.score(model, data, "monte_carlo", noise="per-feature", sigma=0.1)
        assert table.frame()["predicted"].tolist() == [str(one) for one in model.predict(frame)]


def test_a_missing_text_that_the_encoder_does_not_know_costs_its_row_alone(pipeline: Pipeline, tmp_path: Path) -> None:
    X.assign(colour=["NA", *X.colour[1:]]).to_csv(tmp_path / "flowers.csv", index=False)
    X.assign(colour=[None, *X.colour[1:]]).to_parquet(tmp_path / "flowers.parquet")
    for data in (tmp_path / "flowers.csv", tmp_path / "flowers.parquet", X.assign(colour=[None, *X.colour[1:]])):
        table = brittle.score(pipeline, data, "softmax").frame()
        assert table["status"].tolist() == ["nonfinite_input", *["ok"] * (len(X) - 1)]
        assert table["predicted"].tolist()[1:] == pipeline.predict(X).tolist()[1:]


def test_labels_as_text_are_placed_once() -> None:
    """Of a model whose classes are whole numbers: by name, and not once more by value."""
    x = np.random.default_rng(0).random((60, 3))
    kinds = (x[:, 0] * 3).astype(int) + 3
    model = RandomForestClassifier(9, random_state=0).fit(x, kinds)
    some = kinds > 3
    for labels in (kinds[some].astype(str), kinds[some]):
        frame = brittle.score(model, (x[some], labels), "softmax").frame()
        assert frame["label"].tolist() == [str(one) for one in kinds[some]]


def test_numbers_as_text_in_a_label_column_are_names(tmp_path: Path) -> None:
    """Classes "0", "1", "10", "2", .. in the order of their text."""
    x = np.random.default_rng(0).random((60, 2))
    kinds = np.arange(60) % 12
    model = RandomForestClassifier(9, random_state=0).fit(x, kinds.astype(str))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "label": kinds.astype(str)})
    frame.to_csv(tmp_path / "frame.csv", index=False)
    given: list[Any] = [frame, (x, kinds.astype(str)), tmp_path / "frame.csv"]
    for data in given:
        table = brittle.score(model, data, "softmax").frame()
        assert table["label"].tolist() == [str(one) for one in kinds]
        assert table["correct"].mean() == model.score(x, kinds.astype(str))


def test_booleans_are_classes_by_their_names() -> None:
    x = np.random.default_rng(0).random((40, 2))
    kinds = x[:, 0] > 0.5
    model = RandomForestClassifier(9, random_state=0).fit(x, kinds)
    for labels in (kinds, kinds.astype(str), kinds.astype(int)):
        assert brittle.score(model, (x, labels), "softmax").frame()["correct"].all()
    named = RandomForestClassifier(9, random_state=0).fit(x, np.where(kinds, "high", "low"))
    for labels in (kinds, pd.Series(kinds), pd.Series(kinds, dtype="boolean"), torch.tensor(kinds), kinds.tolist()):
        refused("labels", "high", brittle.score, named, (x, labels), "softmax")


def test_labels_by_other_names_than_a_model_was_given_are_refused() -> None:
    classifier = brittle.Classifier(torch.nn.Linear(2, 2), bounds=None, class_names=["pos", "neg"])
    frame = X[["length", "weight"]].assign(label=["positive", "negative"] * 12)
    refused("parameter", "'negative'", brittle.score, classifier, frame, "softmax")
    refused("parameter", "class_names", brittle.Classifier, torch.nn.Linear(2, 2), class_names={"pos", "neg"})


def test_a_model_that_takes_no_other_categories_is_scored_without_noise() -> None:
    """The checks before a run send it the values that its columns hold."""
    codes = pd.DataFrame({"kind": np.arange(24) % 4, "size": np.linspace(0, 1, 24)})
    strict = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    model = make_pipeline(strict, RandomForestClassifier(5, random_state=0)).fit(codes, codes["kind"] > 1)
    assert brittle.score(model, codes, "softmax").frame()["status"].eq("ok").all()


def test_what_does_not_fit_gets_one_sentence(pipeline: Pipeline) -> None:
    given: dict[str, Any] = {"noise": "per-feature", "sigma": 0.1}
    network = brittle.Classifier(torch.nn.Linear(5, 2), bounds=None)
    refused("columns", "row 0, column 'colour' of the frame", brittle.score, network, X, **given)
    refused("columns", "--label-column kind ", brittle.score, pipeline, FRAME, **given)
    two = X.assign(first=1, second=2).drop(columns="leaves")
    for name in ("leaves", "first, second", "--label-column"):
        refused("columns", name, brittle.score, pipeline, two, **given)
    spaced = X.assign(**{"what it is": KIND})
    refused("columns", "--label-column 'what it is' ", brittle.score, pipeline, spaced, **given)
    refused("columns", "another order", brittle.score, pipeline, X[X.columns[::-1]], **given)
    twice = X[["length", "length"]]
    refused("columns", "two columns called 'length'", brittle.score, pipeline, twice, **given)
    refused("columns", "mixed values", brittle.score, pipeline, X.assign(colour=["red", 1] * 12), **given)
    refused("columns", "never changes", brittle.score, pipeline, X[["colour", "site"]], **given)
    refused("parameter", "give one", brittle.score, pipeline, (X, KIND), label_column="kind", **given)
    refused("parameter", "is for tables", brittle.score, network, torch.rand(3, 5), label_column="kind", sigma=1)


def test_the_command_line_reads_categories_for_a_model_that_was_fitted_on_a_frame(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("flowers.csv", index=False)
    code = (
        "import sys\nsys.path.insert(0, {!r})\nfrom test_frames import KIND, X, pipeline\nmake = pipeline.__wrapped__\n"
    )
    Path("model.py").write_text(code.format(str(Path(__file__).parent)), encoding="utf-8")
    options = ["flowers.csv", "--label-column", "kind", "--noise", "per-feature", "--sigma", "0.1", "--quiet"]
    assert main(["doctor", "./model.py:make", *options[:-1]]) == 0
    assert main(["score", "./model.py:make", *options, "--out", "run"]) == 0
    table = brittle.score(pipeline, FRAME, label_column="kind", noise="per-feature", sigma=0.1)
    assert brittle.read_table("run").scores.equals(table.scores)
    capsys.readouterr()
    assert main(["show", "run"]) == 0
    assert any({"colour", "site"} <= {*re.findall(r"\w+", line)} for line in capsys.readouterr().out.splitlines())
