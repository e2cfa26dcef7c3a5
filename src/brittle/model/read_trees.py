"""Trees of scikit-learn, XGBoost, LightGBM and CatBoost, fitted ones and files, as these compare and add them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from brittle.errors import ModelError
from brittle.model.trees import SINGLE, Trees, of_class, of_numbers, single_cut

OBJECTIVES = (
    *("binary:logistic", "multi:softprob", "multi:softmax"),
    *("binary", "multiclass", "multiclassova"),
)
"""Of XGBoost and LightGBM, whose class is that of the largest sum."""

LIGHTGBM_ZERO = float(np.float32(1e-35))
"""LightGBM reads numbers as small as this as 0."""

DAMAGED = (LookupError, ValueError, TypeError, AttributeError, RecursionError, OverflowError)
"""What reading raises of a model that is damaged, or no classifier of trees that is read."""


MOST_NUMBERS = 1 << 25
"""Ends of boxes, nodes times features, that are held at most: 512 MiB."""


def read_tree_file(content: bytes, name: str) -> Trees:
    """The classifier in the content of the file `name`: XGBoost's `.json` and `.ubj`, LightGBM's `.txt`, CatBoost's
    `.json`; read without these libraries, and without running anything.

    Raises:
        ModelError: it is none of these, no classifier, or splits by more than numbers and sets of categories.
    """
    try:
        if name.endswith(".txt"):
            return lightgbm_trees(content.decode())
        if name.endswith(".ubj"):
            return xgboost_trees(_ubjson(content))
        whole = json.loads(content)
        return catboost_trees(whole) if "oblivious_trees" in whole else xgboost_trees(whole)
    except DAMAGED as error:
        raise ModelError(
            "model_file",
            f"{name} holds no whole classifier of trees of XGBoost, LightGBM (.txt) or CatBoost: "
            f"{type(error).__name__} {error}; name a function that returns the fitted model, FILE.py:FUNCTION",
        ) from error


def _ubjson(content: bytes) -> Any:
    """What UBJSON holds, of the forms that XGBoost writes: no number in it takes more room than the file has.

    Source: Universal Binary JSON, draft 12, https://ubjson.org.
    """
    at = 0

    def taken(size: int) -> bytes:
        nonlocal at
        _check(0 <= size <= len(content) - at, "it ends too early")
        at += size
        return content[at - size : at]

    def numbers(kind: bytes, count: int = 1) -> list[Any]:
        own = np.dtype(_NUMBERS[kind])
        return np.frombuffer(taken(own.itemsize * count), own).tolist()

    def size(kind: bytes = b"") -> int:
        return numbers(kind or taken(1))[0]

    def value(kind: bytes) -> Any:
        found: Any = {} if kind == b"{" else []
        if kind == b"{":
            while (kind := taken(1)) != b"}":
                name = taken(size(kind)).decode()
                found[name] = value(taken(1))
            return found
        if kind == b"[":
            if (kind := taken(1)) == b"$":
                kind, counted = taken(1), taken(1)
                _check(counted == b"#", "an array has no length")
                return numbers(kind, size())
            if kind == b"#":
                return [value(taken(1)) for _ in range(size())]
            while kind != b"]":
                found.append(value(kind))
                kind = taken(1)
            return found
        if kind in _WORDS:
            return _WORDS[kind]
        return taken(size()).decode() if kind == b"S" else numbers(kind)[0]

    return value(taken(1))


_NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_WORDS = {b"T": True, b"F": False, b"Z": None}


def _check(right: Any, what: str) -> None:
    if not right:
        raise ValueError(what)


def xgboost_trees(whole: Mapping[str, Any]) -> Trees:
    """The trees of a model of XGBoost, which rounds inputs to single precision and goes left where they are smaller."""
    learner = whole["learner"]
    booster, objective, parameters = learner["gradient_booster"], learner["objective"], learner["learner_model_param"]
    _check(booster["name"] == "gbtree" and objective["name"] in OBJECTIVES, "it is another kind of model")
    model, best, parts = booster["model"], learner["attributes"].get("best_iteration"), []
    classes, base = max(2, int(parameters["num_class"])), np.atleast_1d(json.loads(parameters["base_score"]))
    count = len(model["trees"]) if best is None else model["iteration_indptr"][int(best) + 1]
    for own, at in zip(model["trees"][:count], model["tree_info"], strict=False):
        _check(int(own["tree_param"].get("size_leaf_vector", 1)) <= 1, "its leaves hold several numbers")
        number = np.array(own["split_conditions"], np.float32).astype(np.float64)
        left, right, feature = (np.array(own[key]) for key in ("left_children", "right_children", "split_indices"))
        starts, sizes, codes = (own.get(f"categories{key}", ()) for key in ("_segments", "_sizes", ""))
        sets = {
            node: _ends(codes[start : start + size])
            for node, start, size in zip(own.get("categories_nodes", ()), starts, sizes, strict=True)
        }
        _check({*np.flatnonzero(own.get("split_type", ())).tolist()} == {*sets}, "its sets of categories are lost")
        parts.append(((left < 0, feature, number, left, right, of_class(number, at, classes)), sets))
    if objective["name"] == "binary:logistic":
        base = -np.log(1 / base.astype(np.float32) - 1)  # in single precision, as XGBoost does
    base, names = of_class(base, 1, 2)[0] if classes == 2 else np.broadcast_to(base, classes), learner["feature_names"]
    cut, features = lambda cuts: single_cut(cuts, strict=True), int(parameters["num_feature"])
    enc = model.get("cats", {}).get("enc", ())
    levels = {place: _texts(one) for place, one in zip(range(features), enc, strict=False) if one["values"]}
    return Trees.of(of_numbers(parts), base, features, cut, SINGLE).named(names, levels=levels)


def _ends(codes: Any) -> list[float]:
    """Where runs of whole numbers begin, and the numbers behind them."""
    own = {int(code) for code in codes}
    _check(own and min(own) >= 0 and max(own) < 1 << 24, "its categories are no places")
    return sorted(map(float, own ^ {code + 1 for code in own}))


def _texts(kept: Mapping[str, Any]) -> list[Any]:
    """Categories as XGBoost keeps them: numbers, or texts as the bytes of all and where each begins."""
    values, starts = kept["values"], kept.get("offsets")
    return values if starts is None else [bytes(values[a:b]).decode() for a, b in pairwise(starts)]


def lightgbm_trees(text: str) -> Trees:
    """The trees of a model of LightGBM, which goes left where an input is no larger."""
    trees, _, rest = text.partition("end of trees")
    head, *blocks = trees.split("\nTree=")
    header, parts = _lines(head), []
    kind, each, names = (header[key].split(" ") for key in ("objective", "num_tree_per_iteration", "feature_names"))
    _check(kind[0] in OBJECTIVES and "average_output" not in header, "it is another kind of model")
    classes = max(2, int(each[0]))
    for at, own in enumerate(map(_lines, blocks)):
        count, kinds = int(own["num_leaves"]), np.array(own.get("decision_type", "").split(), int)
        by_set = kinds & 1 == 1
        plain = own.get("is_linear", "0") == "0" and not (~by_set & (kinds >> 2 == 1)).any()
        _check(plain, "it reads 0 as missing, or its leaves are linear")
        # The leaves, which have negative numbers, stand behind the nodes that split.
        keys = ("split_feature", "left_child", "right_child", "threshold")
        feature, left, right, cut = (np.append(np.array(own.get(k, "").split(), float), np.zeros(count)) for k in keys)
        left, right = (np.where(side < 0, count - 2 - side, side).astype(int) for side in (left, right))
        starts, words = (np.array(own.get(f"cat_{key}", "").split(), np.int64) for key in ("boundaries", "threshold"))
        sets = {}
        for node in np.flatnonzero(by_set).tolist():
            bits = words[slice(*starts[int(cut[node]) :][:2])].astype("<u4").view(np.uint8)
            # It leaves the fraction out, also of numbers above -1, and goes left with numbers of the set.
            ends = _ends(np.flatnonzero(np.unpackbits(bits, bitorder="little")))
            sets[node] = [float(np.nextafter(end, -np.inf)) if end else -1.0 for end in ends]
            left[node], right[node] = right[node], left[node]
        value = np.append(np.zeros(count - 1), np.array(own["leaf_value"].split(), float))
        leaf = np.arange(2 * count - 1) >= count - 1
        part = leaf, feature.astype(int), cut, left, right, of_class(value, at % int(each[0]), classes)
        parts.append((part, sets))
    kept = json.loads(_lines(rest.replace("pandas_categorical:", "pandas=")).get("pandas", "null")) or []
    held = header["feature_infos"].split(" ")
    coded = [place for place, one in enumerate(held) if kept and one[0] not in "[n"]
    # Of columns of categories that are ordered, or constant, it says no more than of numbers.
    alike = {"none", *(f"[0:{len(own) - 1}]" for own in kept)} if any(map(_are_numbers, kept)) else set()
    _check(len(coded) == len(kept) and not alike & {*held}, "it does not say which columns hold its categories")
    names = [] if names[0] == "Column_0" else names
    read = Trees.of(of_numbers(parts), np.zeros(classes), int(header["max_feature_idx"]) + 1, _lightgbm_cut)
    factor = float(dict(word.split(":") for word in kind[1:] if ":" in word).get("sigmoid", 1.0))
    link = ("sigmoid" if kind[0] == "multiclassova" else "softmax", factor)
    link = None if link == ("softmax", 1.0) else link  # so that the digest of what is usual stays
    return replace(read.named(names, levels=dict(zip(coded, kept, strict=True))), link=link)


def _are_numbers(levels: list[Any]) -> bool:
    return all(isinstance(one, int | float) for one in levels)


def _lightgbm_cut(cuts: np.ndarray) -> np.ndarray:
    near = np.where(cuts < 0.0, np.nextafter(-LIGHTGBM_ZERO, -1.0), LIGHTGBM_ZERO)
    return np.where(np.abs(cuts) <= LIGHTGBM_ZERO, near, cuts)


def _lines(text: str) -> dict[str, str]:
    return {key: value for key, _, value in (line.partition("=") for line in text.splitlines())}


def catboost_trees(whole: Mapping[str, Any]) -> Trees:
    """The trees of a model of CatBoost, all nodes of one depth with one split, which rounds inputs to single precision
    and goes right where they are larger."""
    (scale, bias), info, parts = whole["scale_and_bias"], whole["features_info"], []
    places, classes = [one["flat_feature_index"] for one in info["float_features"]], max(2, len(bias))
    _check(not info.get("categorical_features"), "it has columns of categories")
    loss = whole["model_info"]["params"]["loss_function"]["type"]
    _check(loss in ("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll"), f"it was trained by {loss:.40}")
    for own in whole["oblivious_trees"]:
        splits = (own["splits"] or [])[::-1]
        place, inner = np.arange((2 << len(splits)) - 1), (1 << len(splits)) - 1
        level = (
            np.frexp(place + 1.0)[1] - 1
        )  # a node's number plus 1 has the bits of the way to it, the last split first
        feature = np.array([*(places[one["float_feature_index"]] for one in splits), 0])[level]
        border = np.array([*(one["border"] for one in splits), 0.0], np.float32).astype(np.float64)[level]
        values = np.reshape(own["leaf_values"], (inner + 1, -1)) * scale
        values = values if values.shape[1] > 1 else of_class(values[:, 0], 1, 2)
        value = np.concatenate((np.zeros((inner, classes)), values))
        parts.append((place >= inner, feature, border, 2 * place + 1, 2 * place + 2, value))
    base, names = bias if len(bias) > 1 else [0.0, *bias], [one["feature_id"] for one in info["float_features"]]
    known = whole["model_info"].get("class_params", {}).get("class_names")
    link = ("sigmoid", 1.0) if loss == "MultiClassOneVsAll" else None
    return replace(Trees.of(parts, base, len(places), single_cut).named(names, known), link=link)


def trees_of(estimator: Any) -> Trees | None:
    """The trees of a fitted classifier; None of one that has none, or that compares otherwise: by categories, by linear
    functions in leaves, or with a number that stands for a missing one."""
    read = _READERS.get((type(estimator).__module__.partition(".")[0], type(estimator).__name__))
    try:
        found = None if read is None else read(estimator)
    except DAMAGED:  # another version may keep them elsewhere
        return None
    return found if found is not None and len(found.left) * found.n_features_in_ <= MOST_NUMBERS else None


def _forest(estimator: Any) -> Trees:
    trees = [one.tree_ for one in getattr(estimator, "estimators_", [estimator])]
    parts = [_nodes(one, one.value[:, 0] / one.value[:, 0].sum(axis=1, keepdims=True)) for one in trees]
    return Trees.of(parts, np.zeros(len(estimator.classes_)), estimator.n_features_in_, single_cut)


def _boosted(estimator: Any) -> Trees | None:
    if estimator.init not in (None, "zero"):  # it may give each input another number to begin with
        return None
    grown = [(at, one.tree_) for group in estimator.estimators_ for at, one in enumerate(group)]
    rate, classes, features = estimator.learning_rate, len(estimator.classes_), estimator.n_features_in_
    parts = [_nodes(one, of_class(rate * one.value[:, 0, 0], at, classes)) for at, one in grown]
    first = np.ravel(estimator._raw_predict_init(np.zeros((1, features))))
    return Trees.of(parts, np.append(np.zeros(classes - len(first)), first), features, single_cut)


def _histograms(estimator: Any) -> Trees | None:
    grown = [(at, one.nodes) for group in estimator._predictors for at, one in enumerate(group)]
    if estimator._preprocessor is not None or any(own["is_categorical"].any() for _, own in grown):
        return None
    parts, classes, first = [], len(estimator.classes_), np.ravel(estimator._baseline_prediction)
    for at, own in grown:
        feature, left, right = (own[name].astype(int) for name in ("feature_idx", "left", "right"))
        value = of_class(own["value"], at, classes)
        parts.append((own["is_leaf"] != 0, feature, own["num_threshold"], left, right, value))
    return Trees.of(parts, np.append(np.zeros(classes - len(first)), first), estimator.n_features_in_)


def _nodes(tree: Any, value: np.ndarray) -> tuple[Any, ...]:
    """Nodes of scikit-learn, which rounds inputs to single precision and goes left where they are no larger."""
    return tree.children_left < 0, tree.feature, tree.threshold, tree.children_left, tree.children_right, value


def _xgboost(estimator: Any) -> Trees | None:
    missing = estimator.missing
    return xgboost_trees(json.loads(estimator.get_booster().save_raw("json"))) if missing != missing else None


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
    ("lightgbm", "LGBMClassifier"): lambda one: lightgbm_trees(one.booster_.model_to_string()),
    ("catboost", "CatBoostClassifier"): _catboost,
    ("brittle", "Trees"): lambda one: one,
}
"""Who reads which classifier, by its package and name."""
