"""Trees of fitted classifiers and of files: the class scores of the library itself, at its cuts and beside them."""

from __future__ import annotations

import json
import pickle
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.odd_trees import QUICK, SETTINGS, judge
from helpers.small_trees import make, thresholds

import brittle
from brittle.decisions.function_code import estimator_digest
from brittle.errors import ModelError
from brittle.extensions.trees import trees
from brittle.extensions.trees.boxes import agrees, find_trees
from brittle.extensions.trees.read_trees import extract_trees
from brittle.extensions.trees.tree_file import TreeFile
from brittle.extensions.trees.trees import Trees, single_cut
from brittle.model.arrays import Estimator
from brittle.model.loading.load import load_model

pytest.importorskip("sklearn")

LIBRARIES = ("xgboost", "lightgbm", "catboost")
KINDS = ("forest", "extra", "boosted", "histograms", *LIBRARIES)
pytestmark = pytest.mark.filterwarnings("ignore")


def fitted(kind: str, classes: int) -> tuple[Any, np.ndarray]:
    """Return a classifier, and rows, half of them on a cut of a feature or one number above it."""
    if kind in LIBRARIES:
        pytest.importorskip(kind)
    generator = np.random.default_rng(classes)
    x = generator.normal(size=(200, 4))
    y = (x + generator.normal(size=x.shape)).argmax(axis=1) % classes
    model = make(kind, 8, 3, 0).fit(x, y)
    rows = generator.normal(size=(600, 4))
    for row, place in enumerate(generator.integers(0, len(splits := thresholds(model)), 300)):
        feature, cut = splits[place]
        rows[row, feature] = np.nextafter(cut, np.inf) if row % 2 else cut
    return model, rows


def raw(model: Any, rows: np.ndarray) -> np.ndarray:
    """Return the library's sums."""
    more = {"XGB": {"output_margin": True}, "LGB": {"raw_score": True}, "Cat": {"prediction_type": "RawFormulaVal"}}
    kind = type(model).__name__[:3]
    if kind in more:
        return np.asarray(model.predict(rows, **more[kind]))
    forest = not hasattr(model, "decision_function")
    return model.predict_proba(rows) * len(model.estimators_) if forest else model.decision_function(rows)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_trees_add_up_to_the_scores_of_the_library(kind: str, classes: int) -> None:
    model, rows = fitted(kind, classes)
    trees = extract_trees(model)
    assert isinstance(trees, Trees)
    scores, library_sums = trees.scores(rows), raw(model, rows)
    sums = scores if library_sums.ndim == 2 else scores[:, 1] - scores[:, 0]
    assert np.abs(sums - library_sums).max() <= trees.slack
    low, high = trees.ends
    held = ((low < rows[:, None]) & (rows[:, None] <= high)).all(axis=2)
    assert (held.sum(axis=1) == len(trees.roots)).all()
    np.testing.assert_allclose(trees.base + held @ trees.value[trees.leaves], scores, atol=1e-12)


@pytest.mark.every_other
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("ending", ["json", "ubj", "txt", "catboost.json"])
def test_a_file_has_the_classes_of_the_model(ending: str, classes: int, tmp_path: Path) -> None:
    kind = {"json": "xgboost", "ubj": "xgboost", "txt": "lightgbm"}.get(ending, "catboost")
    model, rows = fitted(kind, classes)
    file = tmp_path / f"model.{ending}"
    if kind == "lightgbm":
        model.booster_.save_model(str(file))
    else:
        model.save_model(str(file), **({"format": "json"} if ending == "catboost.json" else {}))
    loaded = load_model(file)
    assert loaded.provenance["runs_code"] is False
    assert isinstance(loaded.module, TreeFile)
    assert (np.ravel(loaded.module.predict(rows)) == np.ravel(model.predict(rows))).all()
    table = brittle.score(loaded.module, (rows[:20], None), noise="per-feature", sigma=0.1)
    model_table = brittle.score(model, (rows[:20], None), noise="per-feature", sigma=0.1)
    file_shares, model_shares = (run.frame()["p_robust"] for run in (table, model_table))
    np.testing.assert_allclose(file_shares, model_shares, atol=1e-5)


def stump() -> dict[str, Any]:
    """Return the data of a file of XGBoost with one tree, which splits by `b`."""
    xgboost = pytest.importorskip("xgboost")
    x = np.column_stack([np.zeros(20), np.arange(20.0)])
    matrix = xgboost.DMatrix(x, x[:, 1] > 9, feature_names=["a", "b"])
    return json.loads(xgboost.train({"objective": "binary:logistic", "max_depth": 1}, matrix, 1).save_raw("json"))


CATBOOST_SPLIT = {"float_feature_index": 0, "border": 0.0}
CATBOOST: dict[str, Any] = {
    "scale_and_bias": [1.0, [0.0]],
    "features_info": {"float_features": [{"flat_feature_index": 0}]},
    "model_info": {"params": {"loss_function": {"type": "Logloss"}}},
}


def write(folder: Path, content: Any) -> Path:
    file = folder / "model.json"
    file.write_text(json.dumps(content))
    return file


@pytest.mark.parametrize("kind", LIBRARIES)
def test_a_file_asks_for_its_library(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(kind)
    file, _ = saved_file(make(kind, 2, 1, 0).fit(np.arange(40.0).reshape(20, 2), np.arange(20) > 9), tmp_path)
    monkeypatch.setitem(sys.modules, kind, None)
    with pytest.raises(ModelError) as caught:
        load_model(file)
    assert caught.value.code == "not_installed"


@pytest.mark.parametrize("kind", LIBRARIES)
def test_a_file_is_the_same_in_every_process(kind: str, tmp_path: Path) -> None:
    model, rows = fitted(kind, 3)
    _, read = saved_file(model, tmp_path)
    copy = pickle.loads(pickle.dumps(read))
    np.testing.assert_array_equal(copy.decision_function(rows), read.decision_function(rows))
    assert estimator_digest(copy) == estimator_digest(read) is not None
    _, two_class_file = saved_file(fitted(kind, 2)[0], tmp_path)
    assert estimator_digest(two_class_file) != estimator_digest(read)


def tree(**changed: Any) -> dict[str, Any]:
    content = stump()
    content["learner"]["gradient_booster"]["model"]["trees"][0] |= changed
    return content


def header(**changed: Any) -> dict[str, Any]:
    """Return the stump with changes in its header."""
    content = stump()
    content["learner"]["learner_model_param"] |= changed
    return content


def sets(codes: list[int], **changed: Any) -> dict[str, Any]:
    """Return the fields of a stump whose root splits by a set of categories."""
    sizes = {"categories_segments": [0], "categories_sizes": [len(codes)]}
    return {"categories": codes, "categories_nodes": [0], "split_type": [1, 0, 0]} | sizes | changed


def test_categories_that_cut_too_many_boxes_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    content = tree(**sets([*range(0, 40, 2)]))
    assert len(load_model(write(tmp_path, content)).module.trees.leaves) == 41
    monkeypatch.setattr(trees, "MAX_NODES", 80)
    with pytest.raises(ModelError) as caught:
        load_model(write(tmp_path, content))
    assert caught.value.code == "model_file"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b"[$d#L" + b"\x7f" * 8,
        b"{L" + b"\xff" * 8,
        b"[$Z#L" + b"\x7f" * 8,
        b"[$d{",
        b"Sd" + b"\x00" * 4,
        b"SL" + b"\x00" * 7 + b"\x01\xff",
        b"?",
    ],
)
def test_damaged_binary_files_are_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "model.ubj"
    file.write_bytes(content)
    with pytest.raises(ModelError) as caught:
        load_model(file)
    assert caught.value.code == "model_file"


@pytest.mark.parametrize(
    "content",
    [
        lambda: {},
        lambda: [],
        lambda: tree(left_children=[0, -1, -1]),
        lambda: tree(left_children=[2, -1, -1]),
        lambda: tree(left_children=[7, -1, -1]),
        lambda: tree(split_indices=[5, 0, 0]),
        lambda: tree(split_conditions=[0.1, float("nan"), 3.0]),
        lambda: tree(split_type=[1, 0, 0]),
        lambda: tree(default_left=[0]),
        lambda: tree(tree_param={"num_nodes": "900000000", "size_leaf_vector": "1"}),
        lambda: tree(**sets([-1])),
        lambda: tree(**sets([])),
        lambda: tree(**sets([2], left_children=[0, -1, -1])),
        lambda: header(num_class="300000000"),
        lambda: header(num_target="3"),
        lambda: header(base_score="[5E-1,5E-1,5E-1]"),
        lambda: header(num_feature="1"),
        lambda: stump()["learner"] | {"oblivious_trees": None},
        lambda: CATBOOST | {"oblivious_trees": [{"splits": [CATBOOST_SPLIT] * 40, "leaf_values": [0.0, 1.0]}]},
        lambda: (
            CATBOOST
            | {"oblivious_trees": [{"splits": [{"float_feature_index": -1, "border": 0.0}], "leaf_values": [0.0, 1.0]}]}
        ),
        lambda: (
            "tree\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=0\nobjective=binary sigmoid:1\n"
            "feature_names=a\nfeature_infos=[0:1]\n\nTree=0\nnum_leaves=120000000\nsplit_feature=0\nthreshold=0.5\n"
            "decision_type=2\nleft_child=-1\nright_child=-2\nleaf_value=1 2\n\nend of trees\n"
        ),
    ],
)
def test_a_damaged_file_or_another_model_is_refused(content: Callable[[], Any], tmp_path: Path) -> None:
    """A claim of the header takes no more memory than the file."""
    data, file = content(), tmp_path / "model.txt"
    if isinstance(data, str):
        file.write_text(data)
    else:
        file = write(tmp_path, data)
    tracemalloc.start()
    with pytest.raises(ModelError) as caught:
        load_model(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.code == "model_file"
    assert peak < 16 << 20


def test_a_cut_stands_between_two_numbers_of_single_precision() -> None:
    thresholds = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(-5, 5).repeat(100)
    for strict in (False, True):
        limits = thresholds.astype(np.float32).astype(float) if strict else thresholds
        cut = single_cut(limits, strict=strict)
        at_cut, above_cut = (numbers.astype(np.float32).astype(float) for numbers in (cut, np.nextafter(cut, np.inf)))
        assert ((at_cut < limits) if strict else (at_cut <= limits)).all()
        assert ((above_cut >= limits) if strict else (above_cut > limits)).all()


def by_category(kind: str, x: Any, y: np.ndarray) -> Any:
    """Return a classifier whose first and last columns hold categories, or the categorical ones of a frame."""
    pytest.importorskip(kind)
    array = isinstance(x, np.ndarray)
    if kind == "xgboost":
        from xgboost import XGBClassifier  # type: ignore[import-not-found]

        types = {"feature_types": ["c", "float", "c"]} if array else {}
        return XGBClassifier(
            n_estimators=5, max_depth=4, enable_categorical=True, max_cat_to_onehot=4, n_jobs=1, **types
        ).fit(x, y)
    from lightgbm import LGBMClassifier  # type: ignore[import-not-found]

    model = LGBMClassifier(n_estimators=5, num_leaves=12, min_data_per_group=3, cat_smooth=1, n_jobs=1, verbose=-1)
    columns: dict[str, Any] = {"categorical_feature": [0, 2]} if array else {}
    return model.fit(x, y, **columns)


def saved_file(model: Any, folder: Path) -> tuple[Path, Any]:
    """Save a model and return its file and the classifier that is read from it."""
    file = folder / ("model.txt" if type(model).__name__ == "LGBMClassifier" else "model.json")
    options = {"format": "json"} if type(model).__name__ == "CatBoostClassifier" else {}
    getattr(model, "booster_", model).save_model(str(file), **options)
    return file, load_model(file).module


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_sets_of_categories_are_those_of_the_library(kind: str, classes: int, tmp_path: Path) -> None:
    """At whole numbers, beside them, and at unseen ones; and the nearest inputs are those of all boxes."""
    generator = np.random.default_rng(classes)
    x = np.column_stack([generator.integers(0, 7, 300), generator.normal(size=300), generator.integers(0, 3, 300)])
    weights = 2 * generator.normal(size=7)
    sums = weights[x[:, 0].astype(int)] + x[:, 1] * (x[:, 2] - 1)
    model = by_category(kind, x, np.searchsorted(np.quantile(sums, np.arange(1, classes) / classes), sums))
    odd = [-2.0, -1.0, -0.5, -1e-50, 0.5, np.nextafter(1.0, 0.0), 1.99999999999, 2.5, 7.0, 9.0, 40.0, 1e6]
    rows = generator.choice([*odd, *range(7)], (900, 3))
    rows[:, 1] = generator.normal(size=900)
    model_trees, read = extract_trees(model), saved_file(model, tmp_path)[1]
    assert model_trees is not None
    library_sums, scores = raw(model, rows), model_trees.scores(rows)
    compared = scores if library_sums.ndim == 2 else scores[:, 1] - scores[:, 0]
    assert np.abs(compared - library_sums).max() <= model_trees.slack
    np.testing.assert_array_equal(read.trees.scores(rows), scores)
    np.testing.assert_allclose(read.decision_function(rows), library_sums, rtol=1e-6)
    points = x[:4]
    distances = brittle.nearest(brittle.Classifier(read, "none"), torch.from_numpy(points), norm="l1").distance
    inner = model_trees.left_ids > np.arange(len(model_trees.left_ids))
    cuts = [np.unique(model_trees.cut[inner & (model_trees.feature == column)]) for column in range(3)]
    for point, distance in zip(points, distances.tolist(), strict=True):
        sides = [[*ends, *np.nextafter(ends, np.inf), number] for ends, number in zip(cuts, point, strict=True)]
        grid = np.array(list(product(*sides)))
        is_other_class = model.predict(grid) != model.predict(point[None])
        assert distance == pytest.approx(np.abs(grid[is_other_class] - point).sum(axis=1).min(), abs=1e-9)


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_categories_of_a_frame_are_known_by_their_values(kind: str, tmp_path: Path) -> None:
    """Also where the data have fewer of them, in another order, or as text in CSV."""
    pd = pytest.importorskip("pandas")
    generator, levels = np.random.default_rng(0), ["red", "blue", "green", "gold"]
    codes, a = generator.integers(0, 4, 300), generator.normal(size=300)
    frame = pd.DataFrame({"colour": pd.Categorical.from_codes(codes, levels), "a": a})
    model = by_category(kind, frame, (a * (codes - 1.5) > 0.2).astype(int))
    points = frame.iloc[[int((codes == code).argmax()) for code in (0, 2, 3)]].copy()
    points["colour"] = pd.Categorical(points["colour"].astype(object), sorted(set(points["colour"])))
    read = saved_file(model, tmp_path)[1]
    assert (read.predict(points) == model.predict(points)).all()
    points.to_csv(tmp_path / "some.csv", index=False)
    last = np.unique(extract_trees(model).cut)  # type: ignore[union-attr]
    expected = []
    for row in range(3):
        tried = np.concatenate([last, np.nextafter(last, np.inf), points["a"].iloc[[row]]])
        copies = points.iloc[[row] * len(tried)].assign(a=tried)
        is_other_class = model.predict(copies) != model.predict(points.iloc[[row]])
        expected.append(np.abs(tried[is_other_class] - points["a"].iloc[row]).min())
    for classifier, data in ((model, (points, None)), (read, (points, None)), (read, str(tmp_path / "some.csv"))):
        rows = brittle.score(
            brittle.Classifier(classifier, "none"), data, "input_margin", skip_doctor=True
        ).scores.to_pylist()
        np.testing.assert_allclose([row["value"] for row in rows], expected, atol=1e-9)
        assert [row["low"] for row in rows] == [row["value"] for row in rows]
    with pytest.raises(ModelError) as caught:
        read.predict(points.assign(colour="pink"))
    assert caught.value.code == "columns"


@pytest.mark.parametrize("kind", ["ordered", "constant", "ordered alone"])
def test_categories_of_unnamed_columns_are_not_guessed(kind: str, tmp_path: Path) -> None:
    """LightGBM codes ordered and constant columns like all categories, and stores them like numbers."""
    pd, lightgbm = pytest.importorskip("pandas"), pytest.importorskip("lightgbm")
    generator = np.random.default_rng(0)
    size, code, a = generator.integers(1, 5, 300), generator.integers(1, 5, 300), generator.normal(size=300)
    size = np.full(300, 2) if kind == "constant" else size
    frame = pd.DataFrame({"size": pd.Categorical(size, [1, 2, 3, 4], ordered="ordered" in kind), "code": code, "a": a})
    columns = {"ordered": ["code"], "constant": ["size", "code"], "ordered alone": []}[kind]
    model = lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1)
    model.fit(frame, (2 * size + (code % 3) + a > 6).astype(int), categorical_feature=columns)
    assert extract_trees(model) is None
    with pytest.raises(ModelError) as caught:
        saved_file(model, tmp_path)[1]
    assert caught.value.code == "model_file"


@pytest.mark.parametrize(
    "changed",
    [
        {"left_children": [-1, -1, -1]},
        {"left_children": [1, -1, -(2**31)]},
        {"parents": [2**31 - 1] * 3},
        {"parents": [None, "x", 9, 1]},
        {"default_left": [77, 0, 0]},
    ],
)
def test_links_that_no_prediction_needs_never_reach_the_library(changed: dict[str, Any], tmp_path: Path) -> None:
    """XGBoost itself reads foreign memory for such links."""
    read = load_model(write(tmp_path, tree(**changed))).module
    rows = np.array([[0.0, 1.0], [0.0, 19.0]])
    sums = read.trees.scores(rows)
    np.testing.assert_allclose(read.decision_function(rows), sums[:, 1], rtol=1e-6)


@pytest.mark.parametrize("name", QUICK)
def test_every_number_is_that_of_the_library_or_missing(name: str, tmp_path: Path) -> None:
    """`make test-trees` runs the whole grid."""
    pytest.importorskip(SETTINGS[name].library.partition(".")[0])
    verdicts = judge(name, tmp_path)
    assert not [verdict for verdict in verdicts.items() if verdict[1].startswith("WRONG")], verdicts


@pytest.mark.parametrize("name", ["lightgbm two groups", "xgboost two groups softprob", "catboost threshold"])
def test_two_groups_and_thresholds_are_exact_by_file(name: str, tmp_path: Path) -> None:
    pytest.importorskip(SETTINGS[name].library.partition(".")[0])
    assert judge(name, tmp_path)["file"] == "exact"


def test_trees_that_the_library_contradicts_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the class at the points is right, so that other trees prove no distance."""
    model, rows = fitted("histograms", 2)
    estimator = brittle.Classifier(model, "none").model
    assert isinstance(estimator, Estimator)
    assert find_trees(estimator) is not None
    read = extract_trees(model)
    assert read is not None
    moved = replace(read, value=read.value * (1 + 1e-9))
    assert not agrees(estimator, moved, rows)
    shifted = replace(read, cut=np.nextafter(read.cut, np.inf))
    assert not agrees(estimator, shifted, read.boundary_rows(256))


def test_categories_of_whole_numbers_never_get_fractions() -> None:
    """CatBoost's error was a traceback where noise, or another reading of the data, made fractions of categories."""
    import pandas as pd
    from catboost import CatBoostClassifier

    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"size": generator.normal(size=80), "zone": generator.integers(0, 4, 80)})
    labels = (frame["size"] + frame["zone"] + generator.normal(size=80) > 2).astype(int)
    model = CatBoostClassifier(iterations=5, depth=2, verbose=0, allow_writing_files=False)
    model.fit(frame, labels, cat_features=["zone"])
    points = (frame, labels.to_numpy())
    with pytest.raises(ModelError) as caught:
        brittle.score(brittle.Classifier(model, "none"), points, "monte_carlo", sigma=0.5, skip_doctor=True)
    assert caught.value.code == "columns"
    assert "zone=fixed" in str(caught.value)
    table = brittle.score(brittle.Classifier(model, "none", rules={"zone": "fixed"}), points, "monte_carlo", sigma=0.5)
    assert (table["monte_carlo"].status == "ok").all()
