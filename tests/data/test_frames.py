"""Frames of pandas: an estimator gets the columns it was fitted on, and noise leaves categories unchanged."""

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
    """Return numbers of two scales, text, categories with an unused one, whole numbers, and the kind."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"length": rng.normal(5, 1, count), "weight": rng.normal(300, 50, count)})
    frame["colour"] = rng.choice(["red", "blue"], count)
    frame["site"] = pd.Categorical(rng.choice(["wood", "field"], count), categories=["wood", "field", "hill"])
    frame["leaves"] = rng.integers(0, 4, count)
    frame["kind"] = np.where(frame.length + (frame.colour == "red") + (frame.site == "hill") > 5.5, "ant", "bee")
    return frame


class RecordingTrees(HistGradientBoostingClassifier):
    """A classifier that records its input frames."""

    def decision_function(self, X: Any) -> Any:
        vars(self).setdefault("frames", []).append(X)
        return super().decision_function(X)


FRAME = flowers()
X, KIND = FRAME.drop(columns="kind"), FRAME["kind"]


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    encoder = make_column_transformer((OneHotEncoder(), ["colour", "site"]), remainder="passthrough")
    return make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=3)).fit(X, KIND)


def test_a_pipeline_is_scored_on_the_frame_it_was_fitted_on(pipeline: Pipeline) -> None:
    table = brittle.score(pipeline, FRAME, label_column="kind", noise="per-feature", sigma=0.1)
    frame = table.frame()
    assert frame["predicted"].tolist() == pipeline.predict(X).tolist()
    assert frame["label"].tolist() == KIND.tolist()
    assert table.record.data.feature_names == tuple(X.columns)
    assert frame["p_robust"].between(0, 1).all()


def test_frame_and_labels_and_file_are_the_same_run(pipeline: Pipeline, tmp_path: Path) -> None:
    options: dict[str, Any] = {"scores": "shrinkage", "noise": "per-feature", "sigma": 0.1, "skip_doctor": True}
    table = brittle.score(pipeline, FRAME, label_column="kind", **options)
    for y in (KIND.astype("category"), KIND.tolist()):
        pair_table = brittle.score(pipeline, (X, y), **options)
        assert pair_table.scores.equals(table.scores)
        assert pair_table.record.data.sha256 == table.record.data.sha256
    FRAME.to_csv(tmp_path / "flowers.csv", index=False)
    FRAME.to_parquet(tmp_path / "flowers.parquet")
    for name in ("flowers.csv", "flowers.parquet"):
        assert brittle.score(pipeline, tmp_path / name, label_column="kind", **options).scores.equals(table.scores)


def test_text_that_reads_as_numbers_is_text(tmp_path: Path) -> None:
    """For a model fitted on text, "01" of a frame or a Parquet file differs from 1.0 and has no noise."""
    shops = X[["length", "weight"]].assign(shop=np.where(X.leaves < 2, "01", "10"))
    encoder = make_column_transformer((OneHotEncoder(), ["shop"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestClassifier(9, random_state=0)).fit(shops, KIND)
    shops.to_parquet(tmp_path / "shops.parquet")
    for data in (shops, tmp_path / "shops.parquet"):
        table = brittle.score(model, data, "monte_carlo", noise="per-feature", sigma=0.1, skip_doctor=True)
        assert table.frame()["predicted"].tolist() == model.predict(shops).tolist()


def test_more_texts_than_categories_may_have_are_no_numbers() -> None:
    frame = pd.DataFrame({"length": np.arange(10_001.0), "place": [f"{row:05d}" for row in range(10_001)]})
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["place"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestClassifier(1)).fit(frame[:50], frame.length[:50] > 20)
    refused("columns", "'place'", lambda: brittle.score(model, frame, "softmax"))


def test_frames_of_numbers_are_scored_as_arrays() -> None:
    forest = RandomForestClassifier(5, random_state=0).fit(X[["length", "weight"]], KIND)
    numbers, scores = X[["length", "weight"]], [Shrinkage(sigma=0.3, limit=None)]
    table = brittle.score(forest, (numbers, KIND), scores)
    assert table.scores.equals(brittle.score(forest, (numbers.to_numpy(), KIND), scores).scores)


@pytest.mark.parametrize("noise", ["gaussian", "per-feature", "swap:0.5"])
def test_every_pass_has_the_same_columns_and_categories(noise: str) -> None:
    columns = ["length", "site"]
    model = RecordingTrees(categorical_features="from_dtype", max_iter=9, min_samples_leaf=5).fit(X[columns], KIND)
    sigma = None if noise == "swap:0.5" else 0.3
    brittle.score(model, (X[columns], KIND), ["shrinkage"], noise=noise, sigma=sigma)
    for frame in vars(model)["frames"]:
        assert list(frame.columns) == columns
        assert frame["site"].dtype == X["site"].dtype
    largest_batch = max(vars(model)["frames"], key=len)
    assert largest_batch["length"].nunique() > len(X) if noise != "swap:0.5" else largest_batch["length"].nunique() > 1


def test_noise_per_feature_is_learned_from_a_frame() -> None:
    noise = PerFeature.of(X, 0.1)
    assert noise.still == "colour, site, leaves"
    torch.testing.assert_close(noise.scale[:2], torch.tensor(np.std(X[["length", "weight"]].to_numpy(), axis=0)))
    assert PerFeature.of(X, 0.1, categories=["weight"]).still == "weight, colour, site"


def test_category_codes_reach_the_estimator_as_categories(pipeline: Pipeline, tmp_path: Path) -> None:
    """A called score passes it the same inputs as `brittle.score`."""
    X.to_csv(tmp_path / "flowers.csv", index=False)
    X[X.columns[::-1]].to_csv(tmp_path / "other.csv", index=False)
    points, reordered_points = (open_points(tmp_path / name, levels=True) for name in ("flowers.csv", "other.csv"))
    classifier, score = (
        brittle.Classifier(pipeline, bounds=None),
        MonteCarlo(noise=PerFeature.of(X, 0.1), draws=20, limit=None),
    )
    robust = brittle.score(classifier, points, [score]).frame()["p_robust"]
    assert [1 - flip for flip in score(classifier, points).value.tolist()] == robust.tolist()
    for measure in (score, brittle.nearest):
        refused("columns", "another order", measure, classifier, reordered_points)


@pytest.mark.slow
def test_a_search_moves_numbers_and_keeps_categories(pipeline: Pipeline, tmp_path: Path) -> None:
    """The search makes a thousand passes through the frames of a pipeline."""
    X.to_csv(tmp_path / "flowers.csv", index=False)
    points = open_points(tmp_path / "flowers.csv", levels=True)
    nearest = brittle.nearest(
        brittle.Classifier(pipeline, bounds=None), points, norm="l2", effort="fast", bounded=False
    )
    has_point = (nearest.predicted >= 0).numpy()
    moved_frame = X.assign(
        **{name: nearest.points[:, list(X.columns).index(name)].numpy() for name in ("length", "weight", "leaves")}
    )
    assert has_point.sum() > 8
    assert pipeline.predict(moved_frame[has_point]).tolist() == pipeline.classes_[nearest.predicted[has_point]].tolist()


def test_the_index_of_a_frame_names_its_points(pipeline: Pipeline) -> None:
    """A part of the rows has the numbers of the full frame; an index that repeats gives no ids."""
    score = [MonteCarlo(noise=PerFeature.of(X, 0.1), draws=20, limit=None)]
    customers = X.set_axis([f"customer {row}" for row in range(len(X))])
    parts: list[Any] = [customers, customers[::-3]]
    full_frame, part_frame = (brittle.score(pipeline, data, score).frame() for data in parts)
    assert full_frame["point"].tolist() == customers.index.tolist()
    shared_columns = full_frame[part_frame.columns].set_index("point")  # without columns that are empty for these rows
    assert part_frame.set_index("point").equals(shared_columns.loc[part_frame["point"]])
    numbered_frame = brittle.score(pipeline, X.set_axis([0] * len(X)), score).frame()
    assert numbered_frame["point"].tolist() == [str(row) for row in range(len(X))]


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
    """Type and name return in memory and from a run folder, also with a column of ids; labels of other kinds become
    text. Each row has its own values, also in the top."""
    index = (INDICES | OTHERS)[name]
    data = X.set_axis(index).assign(**({"id": [f"point {row}" for row in range(ROWS)]} if ids else {}))
    table = brittle.score(pipeline, data, scores="logit_margin", out=tmp_path / "run", skip_doctor=True)
    expected = index if name in INDICES else index.map(str)
    for run in (table, brittle.read_table(tmp_path / "run")):
        frame = run.frame()
        assert frame.index.equals(expected)
        assert frame.index.names == ([None] if name in OTHERS else index.names)
        assert name in OTHERS or frame.index.dtype == index.dtype
        assert frame["logit_margin"].tolist() == margins
        assert run.frame(whole=True).index.equals(expected)
        top = run.top(3, by="logit_margin")
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
def test_an_invalid_recorded_index_is_ignored(index: Any) -> None:
    """Records may come from untrusted sources."""
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
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.random(60) > 0.5})
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["b"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestClassifier(9, random_state=0)).fit(frame, (frame.a > 0) ^ frame.b)
    frame.to_csv(tmp_path / "frame.csv", index=False)
    for data in (frame, tmp_path / "frame.csv"):
        table = brittle.score(model, data, "monte_carlo", noise="per-feature", sigma=0.1)
        assert table.frame()["predicted"].tolist() == [str(label) for label in model.predict(frame)]


def test_a_missing_text_unknown_to_the_encoder_costs_its_row(pipeline: Pipeline, tmp_path: Path) -> None:
    X.assign(colour=["NA", *X.colour[1:]]).to_csv(tmp_path / "flowers.csv", index=False)
    X.assign(colour=[None, *X.colour[1:]]).to_parquet(tmp_path / "flowers.parquet")
    for data in (tmp_path / "flowers.csv", tmp_path / "flowers.parquet", X.assign(colour=[None, *X.colour[1:]])):
        table = brittle.score(pipeline, data, "softmax").frame()
        assert table["status"].tolist() == ["nonfinite_input", *["ok"] * (len(X) - 1)]
        assert table["predicted"].tolist()[1:] == pipeline.predict(X).tolist()[1:]


def test_labels_as_text_are_placed_once() -> None:
    """Classes that are whole numbers are matched by name, and not again by value."""
    x = np.random.default_rng(0).random((60, 3))
    kinds = (x[:, 0] * 3).astype(int) + 3
    model = RandomForestClassifier(9, random_state=0).fit(x, kinds)
    selection = kinds > 3
    for labels in (kinds[selection].astype(str), kinds[selection]):
        frame = brittle.score(model, (x[selection], labels), "softmax").frame()
        assert frame["label"].tolist() == [str(kind) for kind in kinds[selection]]


def test_numbers_as_text_in_a_label_column_are_names(tmp_path: Path) -> None:
    """Classes "0", "1", "10", "2", .. in the order of their text."""
    x = np.random.default_rng(0).random((60, 2))
    kinds = np.arange(60) % 12
    model = RandomForestClassifier(9, random_state=0).fit(x, kinds.astype(str))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "label": kinds.astype(str)})
    frame.to_csv(tmp_path / "frame.csv", index=False)
    sources: list[Any] = [frame, (x, kinds.astype(str)), tmp_path / "frame.csv"]
    for data in sources:
        table = brittle.score(model, data, "softmax").frame()
        assert table["label"].tolist() == [str(kind) for kind in kinds]
        assert table["correct"].mean() == model.score(x, kinds.astype(str))


def test_booleans_are_classes_by_their_names() -> None:
    x = np.random.default_rng(0).random((40, 2))
    kinds = x[:, 0] > 0.5
    model = RandomForestClassifier(9, random_state=0).fit(x, kinds)
    for labels in (kinds, kinds.astype(str), kinds.astype(int)):
        assert brittle.score(model, (x, labels), "softmax").frame()["correct"].all()
    named_model = RandomForestClassifier(9, random_state=0).fit(x, np.where(kinds, "high", "low"))
    for labels in (kinds, pd.Series(kinds), pd.Series(kinds, dtype="boolean"), torch.tensor(kinds), kinds.tolist()):
        refused("labels", "high", brittle.score, named_model, (x, labels), "softmax")


def test_label_names_that_the_model_lacks_are_refused() -> None:
    classifier = brittle.Classifier(torch.nn.Linear(2, 2), bounds=None, class_names=["pos", "neg"])
    frame = X[["length", "weight"]].assign(label=["positive", "negative"] * 12)
    refused("parameter", "'negative'", brittle.score, classifier, frame, "softmax")
    refused("parameter", "class_names", brittle.Classifier, torch.nn.Linear(2, 2), class_names={"pos", "neg"})


def test_a_model_of_strict_categories_is_scored_without_noise() -> None:
    """The checks before a run send the model values from its columns alone."""
    codes = pd.DataFrame({"kind": np.arange(24) % 4, "size": np.linspace(0, 1, 24)})
    strict = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    model = make_pipeline(strict, RandomForestClassifier(5, random_state=0)).fit(codes, codes["kind"] > 1)
    assert brittle.score(model, codes, "softmax").frame()["status"].eq("ok").all()


def test_frames_that_do_not_fit_get_one_sentence(pipeline: Pipeline) -> None:
    options: dict[str, Any] = {"noise": "per-feature", "sigma": 0.1}
    network = brittle.Classifier(torch.nn.Linear(5, 2), bounds=None)
    refused("columns", "row 0, column 'colour' of the frame", brittle.score, network, X, **options)
    refused("columns", "--label-column kind ", brittle.score, pipeline, FRAME, **options)
    extra_columns = X.assign(first=1, second=2).drop(columns="leaves")
    for name in ("leaves", "first, second", "--label-column"):
        refused("columns", name, brittle.score, pipeline, extra_columns, **options)
    spaces = X.assign(**{"what it is": KIND})
    refused("columns", "--label-column 'what it is' ", brittle.score, pipeline, spaces, **options)
    refused("columns", "another order", brittle.score, pipeline, X[X.columns[::-1]], **options)
    repeated_columns = X[["length", "length"]]
    refused("columns", "two columns called 'length'", brittle.score, pipeline, repeated_columns, **options)
    refused("columns", "mixed values", brittle.score, pipeline, X.assign(colour=["red", 1] * 12), **options)
    refused("columns", "never changes", brittle.score, pipeline, X[["colour", "site"]], **options)
    refused("parameter", "give one", brittle.score, pipeline, (X, KIND), label_column="kind", **options)
    refused("parameter", "is for tables", brittle.score, network, torch.rand(3, 5), label_column="kind", sigma=1)


def test_the_command_line_reads_categories_for_a_frame_model(
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
