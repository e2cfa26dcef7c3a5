"""Classifiers of XGBoost, LightGBM and CatBoost of every objective and booster, compared with the library itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.pipeline import make_pipeline

import brittle
from brittle.errors import BrittleError
from brittle.extensions.trees.boxes import find_trees, place_categories
from brittle.extensions.trees.read_trees import raw_scores
from brittle.model.arrays import Estimator
from brittle.model.loading.load import load_model

ROWS, COLUMNS = 500, list("abcd")
LEVELS = ["red", "blue", "green", "gold", "grey"]
CODED = ("categories", "codes")


@dataclass(frozen=True)
class Setting:
    """A classifier to fit.

    Attributes:
        library: `xgboost`, `lightgbm` or `catboost`; `xgboost.train` and `lightgbm.train` have no object.
        parameters: parameters of the classifier, or of `train`.
        classes: number of classes; or `labels`, three a row, or `two labels`.
        data: `numbers`, `missing` (some are NaN), `zeros` (many are), `frame`, `categories` (the last column of a
            frame), `codes` (that column as whole numbers).
        labels: names of the classes.
        fitting: further arguments of `fit`; `early` holds out some rows.
        after: a change of the fitted model.
    """

    library: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    classes: int | str = 2
    data: str = "numbers"
    labels: Any = None
    fitting: Mapping[str, Any] = field(default_factory=dict)
    after: Callable[[Any], Any] | None = None


def _all(library: str, **settings: Setting | dict[str, Any]) -> dict[str, Setting]:
    settings_by_name = {}
    for name, setting in settings.items():
        complete = setting if isinstance(setting, Setting) else Setting(library, setting)
        settings_by_name[f"{library} {name.replace('_', ' ')}"] = complete
    return settings_by_name


def _x(library: str = "xgboost", **more: Any) -> Setting:
    keys = {key: more.pop(key) for key in ("classes", "data", "labels", "fitting", "after") if key in more}
    return Setting(library, more, **keys)


def _l(**more: Any) -> Setting:
    return _x("lightgbm", **more)


def _c(**more: Any) -> Setting:
    return _x("catboost", **more)


TWO_GROUPS = {"objective": "multi:softprob", "num_class": 2}
SETTINGS: dict[str, Setting] = {
    **_all(
        "xgboost",
        logistic={},
        logistic_base=_x(base_score=0.9),
        logitraw={"objective": "binary:logitraw"},
        logitraw_base=_x(objective="binary:logitraw", base_score=0.7),
        hinge={"objective": "binary:hinge"},
        softprob_three=_x(classes=3),
        softmax_three=_x(classes=3, objective="multi:softmax"),
        two_groups_softprob=_x("xgboost.train", **TWO_GROUPS),
        two_groups_softmax=_x("xgboost.train", objective="multi:softmax", num_class=2),
        two_groups_of_a_classifier=_x(objective="multi:softprob", num_class=2),
        several_labels=_x(classes="labels"),
        two_labels=_x(classes="two labels"),
        several_labels_in_a_leaf=_x(classes="labels", multi_strategy="multi_output_tree"),
        three_in_a_leaf=_x(classes=3, multi_strategy="multi_output_tree"),
        linear={"booster": "gblinear"},
        dart=_x(booster="dart", rate_drop=0.5, n_estimators=12),
        dart_three=_x(booster="dart", rate_drop=0.5, n_estimators=12, classes=3),
        forest=_x(n_estimators=1, num_parallel_tree=5, subsample=0.7, learning_rate=1.0),
        boosted_forest_three=_x(n_estimators=3, num_parallel_tree=3, subsample=0.7, classes=3),
        early=_x(n_estimators=60, learning_rate=1.0, early_stopping_rounds=2, fitting={"early": True}),
        early_three=_x(n_estimators=60, learning_rate=1.0, early_stopping_rounds=2, fitting={"early": True}, classes=3),
        missing=_x(data="missing"),
        missing_number=_x(missing=0.0, data="zeros"),
        categories=_x(enable_categorical=True, max_cat_to_onehot=2, data="categories"),
        frame=_x(data="frame"),
        exact_method={"tree_method": "exact"},
        approximate_method={"tree_method": "approx", "max_bin": 4},
        lossguide={"grow_policy": "lossguide", "max_leaves": 6},
        weighted={"scale_pos_weight": 7.0},
        pruned={"gamma": 4.0, "max_depth": 5},
        monotone={"monotone_constraints": (1, 0, 0, -1)},
        poisson=_x("xgboost.train", objective="count:poisson"),
        regression=_x("xgboost.train", objective="reg:squarederror"),
        ranking=_x("xgboost.train", objective="rank:pairwise"),
    ),
    **_all(
        "lightgbm",
        binary={},
        binary_sigmoid={"sigmoid": 2.5},
        binary_base={"boost_from_average": False},
        unbalanced={"is_unbalance": True},
        weighted={"scale_pos_weight": 7.0},
        cross_entropy={"objective": "cross_entropy"},
        cross_entropy_lambda={"objective": "cross_entropy_lambda"},
        three=_l(classes=3),
        ova_three=_l(classes=3, objective="multiclassova"),
        ova_three_sigmoid=_l(classes=3, objective="multiclassova", sigmoid=0.3),
        two_groups=_l(objective="multiclass", num_class=2),
        two_groups_ova=_l(objective="multiclassova", num_class=2),
        two_groups_of_a_booster=_x("lightgbm.train", objective="multiclass", num_class=2),
        forest={"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6},
        forest_three=_l(boosting_type="rf", bagging_freq=1, bagging_fraction=0.6, classes=3),
        dart=_l(boosting_type="dart", drop_rate=0.6, n_estimators=12),
        goss={"data_sample_strategy": "goss"},
        linear_leaves={"linear_tree": True},
        extra={"extra_trees": True},
        few_bins={"max_bin": 4},
        zero_as_missing=_l(zero_as_missing=True, data="zeros"),
        missing_unused=_l(use_missing=False, data="missing"),
        missing=_l(data="missing"),
        categories=_l(data="categories", min_data_per_group=3, cat_smooth=1.0),
        frame=_l(data="frame"),
        text_labels=_l(labels=["no", "yes"]),
        early=_l(n_estimators=60, learning_rate=1.0, early_stopping_round=2, fitting={"early": True}),
        smooth={"path_smooth": 3.0},
        regression=_x("lightgbm.train", objective="regression"),
        one_leaf={"min_child_samples": 1000},
    ),
    **_all(
        "catboost",
        logloss={},
        cross_entropy={"loss_function": "CrossEntropy"},
        three=_c(classes=3),
        three_ova=_c(classes=3, loss_function="MultiClassOneVsAll"),
        two_groups=_c(loss_function="MultiClass"),
        two_groups_ova=_c(loss_function="MultiClassOneVsAll"),
        threshold=_c(after=lambda model: model.set_probability_threshold(0.8)),
        low_threshold=_c(after=lambda model: model.set_probability_threshold(0.1)),
        lossguide={"grow_policy": "Lossguide"},
        depthwise={"grow_policy": "Depthwise"},
        text_labels=_c(labels=["no", "yes"]),
        text_labels_three=_c(labels=["x", "z", "y"], classes=3),
        boolean_labels=_c(labels=[False, True]),
        fraction_labels=_c(labels=[0.5, 1.5]),
        number_labels=_c(labels=[7, 3]),
        weighted={"class_weights": [1.0, 6.0]},
        balanced=_c(auto_class_weights="Balanced", classes=3),
        early=_c(iterations=60, learning_rate=1.0, early_stopping_rounds=2, fitting={"early": True}),
        missing=_c(data="missing"),
        missing_largest=_c(data="missing", nan_mode="Max"),
        categories=_c(data="categories"),
        whole_categories=_c(data="codes"),
        frame=_c(data="frame"),
        few_borders={"border_count": 3},
        ordered={"boosting_type": "Ordered"},
        scaled=_c(after=lambda model: model.set_scale_and_bias(0.5, 0.25)),
    ),
}  # fmt: skip
"""Settings by library and oddity."""

QUICK = (
    *("xgboost two groups softprob", "xgboost two groups softmax", "xgboost several labels", "xgboost dart three"),
    *("xgboost hinge", "xgboost logitraw", "xgboost early", "xgboost missing", "xgboost categories", "xgboost frame"),
    *("lightgbm two groups", "lightgbm two groups of a booster", "lightgbm ova three sigmoid", "lightgbm forest"),
    *("lightgbm linear leaves", "lightgbm zero as missing", "lightgbm categories", "lightgbm cross entropy"),
    *("catboost threshold", "catboost two groups", "catboost text labels three", "catboost categories"),
    *("catboost frame", "catboost lossguide", "catboost missing"),
)
"""Settings that the suite runs."""


def judge(name: str, folder: Path) -> dict[str, str]:
    """Judge a setting by object and by file: `exact` (right, and the trees are), `right`, `refused:` or
    `WRONG:` with why."""
    setting = SETTINGS[name]
    data, answers, rows = _data(setting)
    model, booster = _fitted(setting, data, answers)
    verdicts = {}
    if model is not None:
        verdicts["object"] = _judged(lambda: model, rows, lambda: _of_object(model, rows))
        if setting.data == "frame":
            verdicts["columns"] = _columns(model)
    file, opened = _saved(setting, booster if model is None else model, folder)
    verdicts["file"] = _judged(lambda: load_model(file).module, rows, lambda: opened(rows))
    return verdicts


def _data(setting: Setting) -> tuple[Any, np.ndarray, Any]:
    """Return data to fit on, and rows at the data's numbers, next to them, between them and far away."""
    generator = np.random.default_rng(5)
    x = generator.normal(size=(300, 4)).round(1)
    if setting.data == "zeros":
        x[generator.random(x.shape) < 0.4] = 0.0
    if setting.data in CODED:
        x[:, 3] = generator.integers(0, 5, 300)
    noise = x + generator.normal(size=x.shape)
    labels = {"labels": 3, "two labels": 2}.get(str(setting.classes))
    answers = noise[:, :labels] > 0 if labels else None
    if answers is None:
        answers = noise[:, : int(setting.classes)].argmax(axis=1)
        answers = answers if setting.labels is None else np.array(setting.labels)[answers]
    else:
        answers = answers.astype(int)
    single = x.astype(np.float32).astype(float)
    odd = [x, single, np.nextafter(x, 9e9), np.nextafter(single, -9e9), x + 0.05, np.full_like(x, 1e30), -x * 1e29]
    odd += [np.zeros_like(x), np.full_like(x, 1e-36), np.full_like(x, -1e-36), generator.normal(size=x.shape) * 2]
    pool = np.stack(odd)
    rows = pool[generator.integers(0, len(odd), (ROWS, 4)), generator.integers(0, 300, (ROWS, 4)), np.arange(4)]
    if setting.data == "missing":
        x[generator.random(x.shape) < 0.2] = np.nan
        rows[generator.random(rows.shape) < 0.2] = np.nan
    if setting.data not in ("frame", *CODED):
        return x, answers, rows
    frames = [pd.DataFrame(numbers, columns=COLUMNS) for numbers in (x, rows)]
    if setting.data in CODED:
        codes = x[:, 3].astype(int), generator.integers(0, 5, ROWS)
        for frame, places in zip(frames, codes, strict=True):
            frame["d"] = pd.Categorical.from_codes(places, LEVELS) if setting.data == "categories" else places
    return frames[0], answers, frames[1]


def _fitted(setting: Setting, data: Any, answers: np.ndarray) -> tuple[Any, Any]:
    """Fit a classifier, or a booster where the library only trains."""
    library, _, trains = setting.library.partition(".")
    package, more = import_module(library), dict(setting.parameters)
    if trains:
        matrix = package.DMatrix(data, answers) if library == "xgboost" else package.Dataset(data, answers)
        small = {"max_depth": 3, "nthread": 1} if library == "xgboost" else {"num_threads": 1, "verbosity": -1}
        return None, package.train({**small, **more}, matrix, 8)
    if library == "catboost":
        usual: dict[str, Any] = {"iterations": 8, "depth": 3, "thread_count": 1, "verbose": 0}
        usual |= {"allow_writing_files": False, **({"cat_features": ["d"]} if setting.data in CODED else {})}
    else:
        usual = {"n_estimators": 8, "max_depth": 3, "n_jobs": 1, **({"verbose": -1} if library == "lightgbm" else {})}
    name = {"xgboost": "XGBClassifier", "lightgbm": "LGBMClassifier", "catboost": "CatBoostClassifier"}[library]
    model, early = getattr(package, name)(**{**usual, **more}), dict(setting.fitting).pop("early", False)
    shown = {"verbose": False} if library == "xgboost" else {}
    held = {"eval_set": [(data[200:], answers[200:])], **shown} if early else {}
    model.fit(data[:200], answers[:200], **held) if early else model.fit(data, answers)
    if setting.after is not None:
        setting.after(model)
    return model, None


def _of_object(model: Any, rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the classifier's own classes, and its sums, or logarithms of its probabilities where it has none."""
    if hasattr(model, "decision_function"):
        return np.ravel(model.predict(rows)), np.asarray(model.decision_function(rows))
    probabilities = np.asarray(model.predict_proba(rows), float)
    return np.ravel(model.predict(rows)), np.log(probabilities.clip(np.finfo(np.float32).eps))


def _saved(setting: Setting, model: Any, folder: Path) -> tuple[Path, Callable[[Any], Any]]:
    """Save a model, and return the file and the library's own reading of it: classes and sums over the trees."""
    library = setting.library.partition(".")[0]
    file = folder / ("model.txt" if library == "lightgbm" else "model.json")
    package = import_module(library)
    if library == "catboost":
        model.save_model(str(file), format="json")

        def by_catboost(rows: Any) -> Any:
            model = package.CatBoostClassifier()
            model.load_model(str(file), format="json")
            return np.ravel(model.predict(rows)), None

        return file, by_catboost
    if library == "lightgbm":
        getattr(model, "booster_", model).save_model(str(file))

        def by_lightgbm(rows: Any) -> Any:
            booster = package.Booster(model_file=str(file))
            return _class(booster.predict(rows)), booster.predict(rows, raw_score=True)

        return file, by_lightgbm
    model.save_model(str(file))

    def by_xgboost(rows: Any) -> Any:
        booster = package.Booster(model_file=str(file))
        matrix = package.DMatrix(rows, enable_categorical=True)
        return _class(booster.predict(matrix)), booster.predict(matrix, output_margin=True)

    return file, by_xgboost


def _class(numbers: np.ndarray) -> np.ndarray:
    if numbers.ndim == 2:
        return numbers.argmax(axis=1)
    return numbers.astype(int) if set(numbers) <= {0, 1, 2} else (numbers > 0.5).astype(int)


def _judged(make: Callable[[], Any], rows: Any, truth: Callable[[], tuple[np.ndarray, Any]]) -> str:
    try:
        inputs, classifier = _codes(rows), brittle.Classifier(make(), "none")
        if not isinstance(rows, np.ndarray):
            levels = {"levels": LEVELS, "category": True}
            categories = {"d": levels} if rows["d"].dtype == "category" else {}
            classifier = classifier.reading({"feature_names": COLUMNS, "categories": categories})
        model = classifier.model
        assert isinstance(model, Estimator)
        scores = classifier(torch.from_numpy(inputs)).double().numpy()
        trees = find_trees(model)
    except BrittleError as error:
        return f"refused: {error}"
    classes, library_scores = truth()
    clear = np.diff(np.sort(scores, axis=1)[:, -2:])[:, 0] > 1e-5
    odd = int((np.array(model.class_names)[scores.argmax(axis=1)] != classes.astype(str))[clear].sum())
    if odd:
        return f"WRONG: class at {odd} of {int(clear.sum())}"
    if library_scores is not None:
        compared = scores if library_scores.ndim == 2 else scores[:, 1] - scores[:, 0]
        if library_scores.shape != compared.shape or not np.allclose(compared, library_scores, rtol=1e-5, atol=1e-5):
            return "WRONG: scores"
    if trees is None or np.isnan(inputs).any():
        return "right"
    raw = raw_scores(model.estimator, model.as_rows(inputs))
    sums = trees.scores(place_categories(model, trees, inputs))
    apart = np.abs((sums if raw.ndim == 2 else sums[:, 1] - sums[:, 0]) - raw).max()
    decided = np.diff(np.sort(sums, axis=1)[:, -2:])[:, 0] > trees.slack
    same_classes = (np.array(model.class_names)[sums.argmax(axis=1)] == classes.astype(str))[decided].all()
    return "exact" if apart <= trees.slack and same_classes else f"WRONG: trees, by {apart:.3g}"


def _codes(rows: Any) -> np.ndarray:
    """Return rows as brittle holds them, with the places of categories."""
    if isinstance(rows, np.ndarray):
        return rows
    return rows.assign(d=rows["d"].cat.codes if rows["d"].dtype == "category" else rows["d"]).to_numpy(float)


def _columns(model: Any) -> str:
    """Refuse columns in another order, one more, one fewer, of a classifier and of a pipeline that ends with it."""
    for estimator, columns in product((model, make_pipeline("passthrough", model)), ("cabd", "abcde", "abc")):
        try:
            brittle.Classifier(estimator, "none").reading({"feature_names": [*columns]})
        except BrittleError as error:
            if error.code == "columns":
                continue
        return f"WRONG: columns {columns} of {type(estimator).__name__}"
    return "refused: other columns"
