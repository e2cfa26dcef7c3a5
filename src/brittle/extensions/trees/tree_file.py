"""A classifier of trees in a file, which the library that wrote it scores."""

import json
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from brittle.errors import ModelError, first_line
from brittle.extensions.trees.read_trees import DAMAGED, parse_trees
from brittle.extensions.trees.trees import Trees
from brittle.model.loading.load import file_source
from brittle.user_code import import_package

Function = Callable[[np.ndarray], Any]  # a library's function of rows `[B, n]`


class TreeFile:
    """A classifier of XGBoost, LightGBM or CatBoost, with scikit-learn's methods: every number is the library's.

    The library never opens the file itself, but a new one, written from the data that our reader checked. Two objects
    are the same where the contents of their files are.

    Attributes:
        trees: trees of our reader.
        classes_: 0, 1, 2 and so on, or CatBoost's classes.
        feature_names_in_: names of the columns, or None.
    """

    feature_names_in_: np.ndarray | None = None
    _predict: Function | None = None

    def __init__(self, content: bytes, ending: str, library: str, package: Any, data: Any, trees: Trees) -> None:
        self._content, self._ending, self.trees = content, ending, trees
        self.classes_: np.ndarray = np.arange(len(trees.base))
        self._sums, self._shares = getattr(self, f"_open_{library}")(package, data)

    def __reduce__(self) -> Any:
        return read_tree_file, (self._content, self._ending)

    def _take_names(self, names: Any, default_name: str) -> None:
        """Take the names of the columns, unless the library made them up."""
        if names and list(names) != [default_name.format(place) for place in range(len(names))]:
            self.feature_names_in_ = np.array(names, str)

    def _numbers(self, rows: Any) -> np.ndarray:
        """Return rows `[B, n]` as numbers, a frame's categories as their places."""
        if rows.shape[1] != self.trees.n_features_in_:  # before the library takes memory for all of the header's
            raise ValueError(f"the model takes {self.trees.n_features_in_} columns, and the data have {rows.shape[1]}")
        if not self.trees.levels or not hasattr(rows, "iloc"):
            return np.asarray(rows, np.float64)
        columns = []
        for place in range(rows.shape[1]):
            cells = rows.iloc[:, place].tolist()
            columns.append(self.trees.places(place, cells) if place in self.trees.levels else np.array(cells, float))
            missing = np.isnan(columns[place])
            if place in self.trees.levels and missing.any():
                cell = cells[int(missing.argmax())]
                raise ModelError(
                    "columns",
                    f"column {rows.columns[place]!r:.40} holds {cell!r:.40}, a category that the model was not "
                    "fitted on; leave such rows out, or let the column stay as it is: --rules NAME=fixed (rules=)",
                )
        return np.stack(columns, axis=1)

    def decision_function(self, rows: Any) -> np.ndarray:
        """Return sums over the trees, `[B, C]`, or `[B]` for two classes."""
        return np.asarray(self._sums(self._numbers(rows)))

    def predict_proba(self, rows: Any) -> np.ndarray:
        """Return probabilities of the classes, `[B, C]`, also where the library returns those of the second alone."""
        shares = np.asarray(self._shares(self._numbers(rows)))
        return shares if shares.ndim == 2 else np.stack((1 - shares, shares), axis=1)

    def predict(self, rows: Any) -> np.ndarray:
        """Return the classes, `[B]`, of the largest probability, or by CatBoost's threshold."""
        if self._predict is not None:
            return np.ravel(self._predict(self._numbers(rows)))
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]

    def _open_xgboost(self, library: Any, data: Any) -> tuple[Function, Function]:
        booster = library.Booster()
        booster.load_model(bytearray(json.dumps(_rewrite_xgboost(data)).encode()))
        self._take_names(booster.feature_names, "")
        column_names = {"feature_names": booster.feature_names, "feature_types": booster.feature_types}

        def compute(margins: bool, numbers: np.ndarray) -> np.ndarray:
            matrix = library.DMatrix(numbers, enable_categorical=True, **column_names)
            return booster.predict(matrix, output_margin=margins)

        return partial(compute, True), partial(compute, False)

    def _open_lightgbm(self, library: Any, data: Any) -> tuple[Function, Function]:
        header, blocks, _ = data
        if header["version"] not in LIGHTGBM_VERSIONS:  # other versions may hold other fields
            raise ValueError(f"its version is {header['version']:.10}, and {', '.join(LIGHTGBM_VERSIONS)} are read")
        text = _lines_of({"tree": "", **{key: value for key, value in header.items() if key != "tree_sizes"}})
        for number, block in enumerate(blocks):
            text += f"\nTree={number}\n{_lines_of({key: value for key, value in block.items() if not key.isdigit()})}\n"
        with warnings.catch_warnings(action="ignore"):  # about the other parameters, which are the file's
            booster = library.Booster(model_str=f"{text}\n\nend of trees\n", params={"verbosity": -1})
        self._take_names(booster.feature_name(), "Column_{}")
        return partial(booster.predict, raw_score=True), booster.predict

    def _open_catboost(self, library: Any, data: Any) -> tuple[Function, Function]:
        model = library.CatBoostClassifier()
        with tempfile.TemporaryDirectory() as folder:  # CatBoost reads JSON only from files
            file = Path(folder) / "model.json"
            file.write_text(json.dumps(_rewrite_catboost(data)))
            model.load_model(str(file), format="json")
        self.classes_, self._predict = np.asarray(model.classes_), model.predict
        self._take_names(model.feature_names_, "{}")
        share = model.get_probability_threshold() if len(data["scale_and_bias"][1]) == 1 else 0.5
        if not 0 < share < 1:
            raise ValueError(f"its probability threshold is {share:.4g}, which predicts one class")
        threshold = float(np.log(share / (1 - share)))  # a larger sum predicts the second class
        if share != 0.5:
            self.trees = replace(self.trees, base=self.trees.base - [0.0, threshold])
        return lambda rows: model.predict(rows, prediction_type="RawFormulaVal") - threshold, model.predict_proba


LATEST_XGBOOST, LIGHTGBM_VERSIONS = 3, ("v3", "v4")
"""Versions of readable files: XGBoost's latest number, and LightGBM's names of its format."""

WORDS = ("tree", "average_output")  # lines of LightGBM's header without a value


def _rewrite_xgboost(data: Any) -> dict[str, Any]:
    """Write a model of XGBoost with the fields that its predictions need, each number cast and each link in range."""
    learner = data["learner"]
    booster, name = learner["gradient_booster"], learner["objective"]["name"]
    dart = booster["name"] == "dart"
    model, parameters = (booster["gbtree"] if dart else booster)["model"], learner["learner_model_param"]
    features, groups = int(parameters["num_feature"]), int(parameters["num_class"])
    grown = model["trees"]
    written: dict[str, Any] = {
        "model": {
            "gbtree_model_param": _as_texts(num_parallel_tree=1, num_trees=len(grown)),
            "iteration_indptr": [*range(0, len(grown), max(1, groups)), len(grown)],
            "tree_info": list(map(int, model["tree_info"])),
            "trees": [_xgboost_tree(tree, number, features) for number, tree in enumerate(grown)],
        },
        "name": "gbtree",
    }
    if dart:
        written = {"gbtree": written, "name": "dart", "weight_drop": list(map(float, booster["weight_drop"]))}
    base = np.atleast_1d(np.array(json.loads(parameters["base_score"]), float)).tolist()
    numbers = _as_texts(num_class=groups, num_feature=features, num_target=1, boost_from_average=1)
    # `multi:softmax` would return classes alone, and not XGBoost's probabilities.
    objective: dict[str, Any] = {"name": name.replace("multi:softmax", "multi:softprob")}
    objective["reg_loss_param"] = _as_texts(scale_pos_weight=1)
    rewritten = {
        "attributes": {},
        "feature_names": list(map(str, learner.get("feature_names", ()))),
        "feature_types": list(map(str, learner.get("feature_types", ()))),
        "gradient_booster": written,
        "learner_model_param": numbers | {"base_score": json.dumps(base if len(base) > 1 else base[0])},
        "objective": objective | ({"softmax_multiclass_param": _as_texts(num_class=groups)} if groups else {}),
    }
    version = list(map(int, data["version"]))[:3]
    if version[0] > LATEST_XGBOOST:  # later versions may hold fields that are not written here
        raise ValueError(f"version {version[0]} of XGBoost wrote it, and files up to {LATEST_XGBOOST} are read")
    return {"learner": rewritten, "version": version}


def _xgboost_tree(tree: Any, number: int, features: int) -> dict[str, Any]:
    left_ids, right_ids = (np.array(tree[f"{side}_children"], np.int64) for side in ("left", "right"))
    nodes = [0]
    for node in nodes:
        nodes += [left_ids[node], right_ids[node]] if left_ids[node] >= 0 else []
    count, leaf = len(nodes), left_ids[nodes] < 0
    places = np.full(len(left_ids), -1)
    places[nodes] = np.arange(count)
    children = [np.where(leaf, -1, places[np.where(leaf, 0, side[nodes])]) for side in (left_ids, right_ids)]
    parents = np.full(count, 2**31 - 1)
    for side in children:
        parents[side[~leaf]] = np.flatnonzero(~leaf)
    starts, sizes, split = (list(map(int, tree.get(f"categories_{key}", ()))) for key in ("segments", "sizes", "nodes"))
    sets = {
        int(places[node]): list(map(int, tree["categories"][at : at + size]))
        for node, at, size in zip(split, starts, sizes, strict=True)
        if places[node] >= 0
    }
    columns = {
        "left_children": children[0],
        "right_children": children[1],
        "parents": parents,
        "split_indices": np.where(leaf, 0, np.array(tree["split_indices"], np.int64)[nodes]),
        "default_left": np.array(tree["default_left"], np.int64)[nodes] != 0,
        "split_type": np.isin(np.arange(count), [*sets]),
    }
    ends = np.cumsum([0, *map(len, sets.values())]).tolist()
    return {
        **{key: numbers.astype(int).tolist() for key, numbers in columns.items()},
        **dict.fromkeys(("base_weights", "loss_changes", "sum_hessian"), [0.0] * count),
        "id": number,
        "split_conditions": np.array(tree["split_conditions"], float)[nodes].tolist(),
        "categories": [code for codes in sets.values() for code in codes],
        "categories_nodes": [*sets],
        "categories_segments": ends[:-1],
        "categories_sizes": [len(codes) for codes in sets.values()],
        "tree_param": _as_texts(num_deleted=0, num_feature=features, num_nodes=count, size_leaf_vector=1),
    }


def _rewrite_catboost(data: Any) -> dict[str, Any]:
    """Write a model of CatBoost with the fields that its predictions need, each number cast and each place in range."""
    (scale, bias), info, features = data["scale_and_bias"], data["model_info"], []
    for at, feature in enumerate(data["features_info"]["float_features"]):
        if int(feature["flat_feature_index"]) != at:
            raise ValueError("its columns are not in order")
        features.append(
            {
                "borders": sorted({float(border) for border in feature["borders"] or ()}),
                "feature_id": str(feature["feature_id"]),
                "feature_index": at,
                "flat_feature_index": at,
                "has_nans": bool(feature["has_nans"]),
                "nan_value_treatment": str(feature["nan_value_treatment"]),
            }
        )
    order = [(at, border) for at, feature in enumerate(features) for border in feature["borders"]]
    places = {split: place for place, split in enumerate(order)}

    def write_split(split: Any) -> dict[str, Any]:
        at, border = int(split["float_feature_index"]), float(split["border"])
        written = {"border": border, "float_feature_index": at, "split_index": places[at, border]}
        return written | {"split_type": "FloatFeature"}

    loss, classes = info["params"]["loss_function"]["type"], info["class_params"]["class_names"]
    kinds = {*map(type, classes)} or {int}  # CrossEntropy names none
    if len(kinds) > 1 or len({*classes}) != (max(2, len(bias)) if classes else 0):
        raise ValueError("its classes are not those of its trees")
    kind = {int: "Integer", float: "Float", str: "String", bool: "Boolean"}[kinds.pop()]
    labels = {"class_names": classes, "class_to_label": [*range(max(2, len(bias)))], "classes_count": 0}
    threshold = "binclass_probability_threshold"
    return {
        "features_info": {"float_features": features},
        "model_info": {
            "params": {"loss_function": {"type": loss, "params": {}}, "flat_params": {"loss_function": loss}},
            "class_params": {"class_label_type": kind, **labels},
            **({threshold: str(float(info[threshold]))} if threshold in info else {}),
        },
        "oblivious_trees": [
            {
                "leaf_values": list(map(float, tree["leaf_values"])),
                "splits": [write_split(split) for split in tree["splits"] or ()],
            }
            for tree in data["oblivious_trees"]
        ],
        "scale_and_bias": [float(scale), list(map(float, bias))],
    }


def _as_texts(**numbers: int) -> dict[str, str]:
    return {key: str(number) for key, number in numbers.items()}


def _lines_of(lines: Mapping[str, str]) -> str:
    """Return lines of LightGBM, some of them a single word."""
    return "\n".join(key if key in WORDS else f"{key}={value}" for key, value in lines.items() if key)


def read_tree_file(content: bytes, name: str) -> TreeFile:
    """Read a classifier of trees: XGBoost's `.json` and `.ubj`, LightGBM's `.txt`, CatBoost's `.json`.

    Raises:
        ModelError: it is none of these, no classifier, splits by more than numbers and sets of categories, or the
            library that wrote it is not installed or refuses it.
    """
    advice = "name a function that returns the fitted model, FILE.py:FUNCTION"
    ending = Path(f"x{name}").suffix
    try:
        library, data, trees = parse_trees(content, ending)
    except DAMAGED as error:
        raise ModelError(
            "model_file",
            f"{name} holds no whole classifier of trees of XGBoost, LightGBM (.txt) or CatBoost: "
            f"{type(error).__name__} {error}; {advice}",
        ) from error
    package = import_package(library, name, "pip install 'brittle[trees]'")
    try:
        return TreeFile(content, ending, library, package, data, trees)
    except Exception as error:
        raise ModelError("model_file", f"{library} cannot open {name}: {first_line(error)}; {advice}") from error


TREES = file_source(read_tree_file)  # classifiers of trees in files of their libraries: `.json`, `.ubj`, `.txt`
