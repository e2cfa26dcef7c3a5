"""Trees of scikit-learn, XGBoost, LightGBM and CatBoost, fitted or in files, as these libraries compare and add them.

They serve the search of boxes, and the check that a file is sound; class scores are always those of the library."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from brittle.extensions.trees.trees import SINGLE, Trees, expand_sets, place_in_class, single_cut

OBJECTIVES = (
    *("binary:logistic", "binary:hinge", "multi:softprob", "multi:softmax"),
    *("binary", "cross_entropy", "multiclass", "multiclassova"),
)
"""Objectives of XGBoost and LightGBM whose class is that of the largest sum."""

LIGHTGBM_ZERO = float(np.float32(1e-35))  # LightGBM reads numbers as small as this as 0

DAMAGED = (LookupError, ValueError, TypeError, AttributeError, RecursionError, OverflowError)
"""Errors of the readers for a model that is damaged, or not a classifier of trees that they support."""


MAX_NUMBERS = 1 << 25  # most ends of boxes, nodes times features, in memory: 512 MiB


def parse_trees(content: bytes, ending: str) -> tuple[str, Any, Trees]:
    """Parse a tree file without its library: the library's name, the plain data of the file, and its trees.

    Raises:
        LookupError, ValueError, TypeError ...: `DAMAGED`; it is damaged, or not a supported classifier of trees.
    """
    if ending == ".txt":
        lines = _lightgbm_lines(content.decode())
        return "lightgbm", lines, lightgbm_trees(*lines)
    data = _ubjson(content) if ending == ".ubj" else json.loads(content)
    if "oblivious_trees" in data:
        return "catboost", data, catboost_trees(data)
    _check("model_info" not in data, "CatBoost grew it by another grow_policy than SymmetricTree")
    return "xgboost", data, xgboost_trees(data)


def _ubjson(content: bytes) -> Any:
    """Parse UBJSON (https://ubjson.org, draft 12) as XGBoost writes it; the file's length limits the memory."""
    at = 0

    def take(size: int) -> bytes:
        nonlocal at
        _check(0 <= size <= len(content) - at, "it ends too early")
        at += size
        return content[at - size : at]

    def numbers(kind: bytes, count: int = 1) -> list[Any]:
        dtype = np.dtype(_NUMBERS[kind])
        return np.frombuffer(take(dtype.itemsize * count), dtype).tolist()

    def size(kind: bytes = b"") -> int:
        return numbers(kind or take(1))[0]

    def value(kind: bytes) -> Any:
        content: Any = {} if kind == b"{" else []
        if kind == b"{":
            while (kind := take(1)) != b"}":
                name = take(size(kind)).decode()
                content[name] = value(take(1))
            return content
        if kind == b"[":
            if (kind := take(1)) == b"$":
                kind, marker = take(1), take(1)
                _check(marker == b"#", "an array has no length")
                return numbers(kind, size())
            if kind == b"#":
                return [value(take(1)) for _ in range(size())]
            while kind != b"]":
                content.append(value(kind))
                kind = take(1)
            return content
        if kind in _WORDS:
            return _WORDS[kind]
        return take(size()).decode() if kind == b"S" else numbers(kind)[0]

    return value(take(1))


_NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_WORDS = {b"T": True, b"F": False, b"Z": None}


def _check(is_sound: Any, problem: str) -> None:
    if not is_sound:
        raise ValueError(problem)


def xgboost_trees(data: Mapping[str, Any], iterations: int | None = None) -> Trees:
    """Build the trees of a model of XGBoost, of its first `iterations` or all; it rounds inputs to single precision and
    goes left where they are smaller."""
    learner = data["learner"]
    booster, objective, parameters = learner["gradient_booster"], learner["objective"], learner["learner_model_param"]
    _check(booster["name"] in ("gbtree", "dart") and objective["name"] in OBJECTIVES, "it is another kind of model")
    model = (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]
    grown, groups, parts = model["trees"], max(1, int(parameters["num_class"])), []
    _check(int(parameters.get("num_target", 1)) <= 1, "it predicts several labels")
    _check(groups <= len(grown) and len(model["tree_info"]) == len(grown), "its header claims other trees")
    base = np.atleast_1d(np.array(json.loads(parameters["base_score"]), float))
    _check(len(base) in (1, groups), "its base scores are not one a class")
    weights = booster.get("weight_drop", np.ones(len(grown)))
    _check(len(weights) == len(grown), "its weights are not one a tree")
    count = len(grown) if iterations is None else model["iteration_indptr"][iterations]
    for tree, at, weight in zip(grown[:count], model["tree_info"], weights, strict=False):
        _check(int(tree["tree_param"].get("size_leaf_vector", 1)) <= 1, "its leaves hold several numbers")
        number = np.array(tree["split_conditions"], np.float32).astype(np.float64)
        left_ids, right_ids = np.array(tree["left_children"]), np.array(tree["right_children"])
        per_node = ("right_children", "split_indices", "split_conditions", "split_type", "default_left")
        sizes = {len(tree[key]) for key in per_node if key in tree} | {int(tree["tree_param"]["num_nodes"])}
        _check(sizes == {len(left_ids)} and at in range(groups), "its header claims other nodes, or another class")
        starts, sizes, codes = (tree.get(f"categories{key}", ()) for key in ("_segments", "_sizes", ""))
        spans = zip(tree.get("categories_nodes", ()), starts, sizes, strict=True)
        sets = {node: _set_ends(codes[start : start + size]) for node, start, size in spans}
        _check({*np.flatnonzero(tree.get("split_type", ())).tolist()} == {*sets}, "its sets of categories are lost")
        value = np.where(left_ids < 0, number * np.float32(weight), 0.0)
        feature, value = np.array(tree["split_indices"]), place_in_class(value, at, groups)
        parts.append(((left_ids < 0, feature, number, left_ids, right_ids, value), sets))
    if objective["name"] == "binary:logistic":
        base = -np.log(1 / base.astype(np.float32) - 1)  # in single precision, as XGBoost does
    base = place_in_class(base, 0, 1)[0] if groups == 1 else np.broadcast_to(base, groups)
    cut, features = lambda cuts: single_cut(cuts, strict=True), int(parameters["num_feature"])
    coded = zip(range(features), model.get("cats", {}).get("enc", ()), strict=False)
    levels = {place: _category_texts(categories) for place, categories in coded if categories["values"]}
    return Trees.join(expand_sets(parts), base, features, cut, SINGLE, levels)


def _set_ends(codes: Any) -> list[float]:
    """Return the starts of runs of whole numbers, and the numbers behind their ends."""
    code_set = {int(code) for code in codes}
    _check(code_set and min(code_set) >= 0 and max(code_set) < 1 << 24, "its categories are no places")
    return sorted(map(float, code_set ^ {code + 1 for code in code_set}))


def _category_texts(categories: Mapping[str, Any]) -> list[Any]:
    """Return categories in XGBoost's form: numbers, or texts as their joined bytes and the start of each."""
    values, starts = categories["values"], categories.get("offsets")
    return values if starts is None else [bytes(values[a:b]).decode() for a, b in pairwise(starts)]


Lines: TypeAlias = "dict[str, str]"


def _lightgbm_lines(text: str) -> tuple[Lines, list[Lines], list[Any]]:
    """Split a file of LightGBM into its header, its trees and the categories of its columns."""
    trees_text, _, footer = text.partition("end of trees")
    head, *blocks = trees_text.split("\nTree=")
    categories = json.loads(_lines(footer.replace("pandas_categorical:", "pandas=")).get("pandas", "null")) or []
    return _lines(head), [*map(_lines, blocks)], categories


def lightgbm_trees(header: Lines, blocks: Sequence[Lines], categories: Sequence[Any]) -> Trees:
    """Build the trees of a model of LightGBM, which goes left where an input is no larger."""
    parts, kind = [], header["objective"].split(" ")
    groups, features = int(header["num_tree_per_iteration"]), int(header["max_feature_idx"]) + 1
    infos = header["feature_infos"].split(" ")
    _check(kind[0] in OBJECTIVES, "it is another kind of model")
    counts = {groups, int(header["num_class"]), *(int(word[10:]) for word in kind if word.startswith("num_class:"))}
    _check(counts == {groups} and blocks and len(blocks) % groups == 0, "its header claims other classes")
    _check(len(header["feature_names"].split(" ")) == len(infos) == features, "its header claims other columns")
    for at, block in enumerate(blocks):
        kinds, value = (np.array(block.get(key, "").split(), float) for key in ("decision_type", "leaf_value"))
        count, kinds = len(value), kinds.astype(int)
        _check(int(block["num_leaves"]) == count == len(kinds) + 1, "its header claims other leaves")
        is_set = kinds & 1 == 1
        is_plain = block.get("is_linear", "0") == "0" and not (~is_set & (kinds >> 2 == 1)).any()
        _check(is_plain, "it reads 0 as missing, or its leaves are linear")
        # The leaves, which have negative numbers, stand behind the nodes that split.
        keys = ("split_feature", "left_child", "right_child", "threshold")
        feature, *sides, cut = (np.append(np.array(block.get(k, "").split(), float), np.zeros(count)) for k in keys)
        left_ids, right_ids = (np.where(side < 0, count - 2 - side, side).astype(int) for side in sides)
        starts, words = (np.array(block.get(f"cat_{key}", "").split(), np.int64) for key in ("boundaries", "threshold"))
        _check(not len(starts) or (min(starts) >= 0 and max(starts) <= len(words)), "its sets of categories are lost")
        sets = {}
        for node in np.flatnonzero(is_set).tolist():
            _check(0 <= cut[node] < len(starts) - 1, "its sets of categories are lost")
            bits = words[slice(*starts[int(cut[node]) :][:2])].astype("<u4").view(np.uint8)
            # It leaves the fraction out, also of numbers above -1, and goes left with numbers of the set.
            ends = _set_ends(np.flatnonzero(np.unpackbits(bits, bitorder="little")))
            sets[node] = [float(np.nextafter(end, -np.inf)) if end else -1.0 for end in ends]
            left_ids[node], right_ids[node] = right_ids[node], left_ids[node]
        leaf = np.arange(2 * count - 1) >= count - 1
        value = place_in_class(np.append(np.zeros(count - 1), value), at % groups, groups)
        parts.append(((leaf, feature.astype(int), cut, left_ids, right_ids, value), sets))
    coded = [place for place, info in enumerate(infos) if categories and info[0] not in "[n"]
    is_plain = any(all(isinstance(level, int | float) for level in levels) for levels in categories)
    # Ordered or constant columns of categories look like columns of numbers in the file.
    vague = {"none", *(f"[0:{len(levels) - 1}]" for levels in categories)} if is_plain else set()
    _check(len(coded) == len(categories) and not vague & {*infos}, "it does not say which columns hold its categories")
    levels = dict(zip(coded, categories, strict=True))
    return Trees.join(expand_sets(parts), np.zeros(max(2, groups)), features, _lightgbm_cut, levels=levels)


def _lightgbm_cut(cuts: np.ndarray) -> np.ndarray:
    near = np.where(cuts < 0.0, np.nextafter(-LIGHTGBM_ZERO, -1.0), LIGHTGBM_ZERO)
    return np.where(np.abs(cuts) <= LIGHTGBM_ZERO, near, cuts)


def _lines(text: str) -> dict[str, str]:
    return {key: value for key, _, value in (line.partition("=") for line in text.splitlines())}


def catboost_trees(data: Mapping[str, Any]) -> Trees:
    """Build the trees of a model of CatBoost, all nodes of one depth with one split, which rounds inputs to single
    precision and goes right where they are larger."""
    (scale, bias), info, parts = data["scale_and_bias"], data["features_info"], []
    places, groups = [feature["flat_feature_index"] for feature in info["float_features"]], len(bias)
    _check(not info.get("categorical_features"), "it has columns of categories")
    loss = data["model_info"]["params"]["loss_function"]["type"]
    _check(loss in ("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll"), f"it was trained by {loss:.40}")
    for tree in data["oblivious_trees"]:
        splits = (tree["splits"] or [])[::-1]
        _check(len(tree["leaf_values"]) == groups << min(len(splits), 32), "its leaves are not those of its splits")
        _check(all(0 <= split["float_feature_index"] < len(places) for split in splits), "it splits by no feature")
        place, inner = np.arange((2 << len(splits)) - 1), (1 << len(splits)) - 1
        # A node's number plus 1 has the bits of the path to it, the last split first.
        level = np.frexp(place + 1.0)[1] - 1
        feature = np.array([*(places[split["float_feature_index"]] for split in splits), 0])[level]
        border = np.array([*(split["border"] for split in splits), 0.0], np.float32).astype(np.float64)[level]
        values = np.reshape(tree["leaf_values"], (inner + 1, groups)) * scale
        values = values if groups > 1 else place_in_class(values[:, 0], 0, 1)
        value = np.concatenate((np.zeros((inner, values.shape[1])), values))
        parts.append((place >= inner, feature, border, 2 * place + 1, 2 * place + 2, value))
    return Trees.join(parts, bias if groups > 1 else [0.0, *bias], len(places), single_cut)


def extract_trees(estimator: Any) -> Trees | None:
    """Return the trees of a fitted classifier; None for one without, or with other comparisons: by categories, by
    linear functions in leaves, or with a number that stands for a missing one."""
    read = _READERS.get((type(estimator).__module__.partition(".")[0], type(estimator).__name__))
    try:
        trees = None if read is None else read(estimator)
    except DAMAGED:  # another version may store them elsewhere
        return None
    return trees if trees is not None and len(trees.left_ids) * trees.n_features_in_ <= MAX_NUMBERS else None


def _forest(estimator: Any) -> Trees:
    trees = [member.tree_ for member in getattr(estimator, "estimators_", [estimator])]
    parts = [_nodes(tree, tree.value[:, 0] / tree.value[:, 0].sum(axis=1, keepdims=True)) for tree in trees]
    return Trees.join(parts, np.zeros(len(estimator.classes_)), estimator.n_features_in_, single_cut)


def _boosted(estimator: Any) -> Trees | None:
    if estimator.init not in (None, "zero"):  # it may give each input another number to begin with
        return None
    grown = [(at, regressor.tree_) for group in estimator.estimators_ for at, regressor in enumerate(group)]
    rate, classes, features = estimator.learning_rate, len(estimator.classes_), estimator.n_features_in_
    initial = np.ravel(estimator._raw_predict_init(np.zeros((1, features))))
    parts = [_nodes(tree, place_in_class(rate * tree.value[:, 0, 0], at, len(initial))) for at, tree in grown]
    return Trees.join(parts, np.append(np.zeros(classes - len(initial)), initial), features, single_cut)


def _histograms(estimator: Any) -> Trees | None:
    grown = [(at, predictor.nodes) for group in estimator._predictors for at, predictor in enumerate(group)]
    if estimator._preprocessor is not None or any(nodes["is_categorical"].any() for _, nodes in grown):
        return None
    parts, classes, initial = [], len(estimator.classes_), np.ravel(estimator._baseline_prediction)
    for at, nodes in grown:
        feature, left_ids, right_ids = (nodes[name].astype(int) for name in ("feature_idx", "left", "right"))
        value = place_in_class(nodes["value"], at, len(initial))
        parts.append((nodes["is_leaf"] != 0, feature, nodes["num_threshold"], left_ids, right_ids, value))
    return Trees.join(parts, np.append(np.zeros(classes - len(initial)), initial), estimator.n_features_in_)


def _nodes(tree: Any, value: np.ndarray) -> tuple[Any, ...]:
    """Return nodes of scikit-learn, which rounds inputs to single precision and goes left where they are no larger."""
    return tree.children_left < 0, tree.feature, tree.threshold, tree.children_left, tree.children_right, value


def _xgboost(estimator: Any) -> Trees | None:
    if not np.isnan(estimator.missing):
        return None
    booster = estimator.get_booster()
    best = booster.attr("best_iteration")
    return xgboost_trees(json.loads(booster.save_raw("json")), None if best is None else int(best) + 1)


def _catboost(estimator: Any) -> Trees:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.json"
        estimator.save_model(str(file), format="json")
        return catboost_trees(json.loads(file.read_bytes()))


_READERS = {
    **{("sklearn", f"{kind}Classifier"): _forest for kind in ("RandomForest", "ExtraTrees", "DecisionTree")},
    ("sklearn", "GradientBoostingClassifier"): _boosted,
    ("sklearn", "HistGradientBoostingClassifier"): _histograms,
    ("xgboost", "XGBClassifier"): _xgboost,
    ("lightgbm", "LGBMClassifier"): lambda model: lightgbm_trees(*_lightgbm_lines(model.booster_.model_to_string())),
    ("catboost", "CatBoostClassifier"): _catboost,
    ("brittle", "TreeFile"): lambda model: model.trees,
}


def raw_scores(estimator: Any, rows: Any) -> np.ndarray:
    """Return the library's sums of its trees, `[B, C]`; for two classes some return one number, `[B]`."""
    package = type(estimator).__module__.partition(".")[0]
    options = {"xgboost": "output_margin", "lightgbm": "raw_score"}
    if package in options:
        return np.asarray(estimator.predict(rows, **{options[package]: True}))
    if package == "catboost":
        return np.asarray(estimator.predict(rows, prediction_type="RawFormulaVal"))
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(rows))
    return estimator.predict_proba(rows) * len(getattr(estimator, "estimators_", [estimator]))
