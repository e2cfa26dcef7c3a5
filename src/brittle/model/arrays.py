"""Models outside PyTorch: scikit-learn classifiers and functions of NumPy arrays. They run forward only."""

from __future__ import annotations

import shlex
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeGuard, cast

import numpy as np
import torch
from torch import Tensor, nn

from brittle.decisions import Custom, Decision, MultiLabel, Within
from brittle.decisions.function_code import code_digest, estimator_digest
from brittle.errors import DataError, ModelError, ParameterError, listed
from brittle.model.rules import Rules

if TYPE_CHECKING:
    import pandas as pd

COLUMNS_SHOWN = 3  # columns that a message names
ARRAYS = ("torch", "numpy")  # kinds of arrays that a function takes and returns: tensors of PyTorch, or NumPy arrays

SMALLEST_PROBABILITY = float(np.finfo(np.float32).eps)
"""Smallest class probability of an estimator, 2^-23 or 1.2e-7, for a finite logarithm; smaller ones are raised to it.

A forest whose trees all agree gives the other classes 0: their logit is then -15.9, and the largest margin 15.9.
"""

_LARGEST = "give the classifier inside it, without a threshold, or ask for the largest probability, outputs='probs'"


class Levels(NamedTuple):
    """Values behind the codes of a column that stays as it is; NaN is the code of a missing value."""

    levels: Sequence[Any]  # the values, as text where JSON has no such type
    category: bool  # whether the column is of type `category` of pandas, which may be `ordered`
    ordered: bool = False
    dtype: str = "object"  # the type of the values in pandas
    missing: str = "nan"  # what a missing value is in a column of objects, `"nan"`, `"None"` or `"<NA>"`

    def column(self, codes: np.ndarray) -> Any:
        """Return a column of a frame, `[B]`, from codes."""
        import pandas as pd

        places = np.where(np.isnan(codes), -1, codes).astype(np.int64)
        moved = ~np.isnan(codes) & ((places != codes) | (places < 0))
        if moved.any() or places.max() >= len(self.levels):
            raise ModelError("columns", f"noise or a search changed a column of the categories {self.levels!r:.60}")
        values = pd.Index(self.levels, dtype=object).astype(self.dtype)
        if self.category:
            return pd.Series(pd.Categorical.from_codes(places, categories=values, ordered=self.ordered))
        if self.dtype != "object":
            return pd.Series(values.array.take(places, allow_fill=True))
        missing = {"nan": np.nan, "None": None, "<NA>": pd.NA}[self.missing]
        return pd.Series(np.append(values.to_numpy(), [missing])[places], dtype=object)


Rows: TypeAlias = "np.ndarray | pd.DataFrame"  # with the names of columns where it was fitted with names


class ArrayModel:
    """A function of NumPy arrays, `[B, *shape]` to class scores `[B, C]`, as one of tensors, without a gradient."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, inputs: Tensor) -> Tensor:
        return as_tensor(self.function(inputs.detach().cpu().numpy()), inputs.device)


class BatchModel(ArrayModel):
    """A classifier of images as MAITE calls one, with a list of arrays for which it returns as many lists of scores."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__(function)
        self.digest = code_digest(function)

    def __call__(self, inputs: Tensor) -> Tensor:
        scores = self.function(list(inputs.detach().cpu().numpy()))
        rows = [row.detach().cpu().numpy() if isinstance(row, Tensor) else np.asarray(row) for row in scores]
        return as_tensor(np.stack(rows), inputs.device)


class Fitted(ArrayModel):
    """A fitted estimator of scikit-learn, given rows under the names of its fit, some codes of `categories`."""

    advice = (
        "give a frame, or Parquet, with columns of the types that it was fitted on: a CSV file has no categories and "
        "no dates"
    )

    def __init__(self, estimator: Any, outputs: str = "logits", rules: Any = None) -> None:
        self.estimator, self._outputs, self._rules = estimator, outputs, dict(rules or {})
        self.categories, self.dtypes = dict[Any, Levels](), dict[str, str]()
        self._columns: Sequence[str] | None = None
        self._calls, self.__name__ = 0, type(estimator).__name__

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return the outputs; in the first, second, fourth, eighth .. call they are compared with `predict`."""
        rows = self.as_rows(inputs.detach().cpu().numpy())
        outputs, self._calls = self.of_rows(rows), self._calls + 1
        if self._calls & (self._calls - 1) == 0:
            self.check_predicted(rows, outputs)
        return as_tensor(outputs, inputs.device)

    @abstractmethod
    def of_rows(self, rows: Rows) -> np.ndarray:
        """Return the outputs that the decision reads, of rows in double precision."""

    def check_predicted(self, rows: Rows, outputs: np.ndarray) -> None:
        """Raise where `predict` says something else."""

    def as_rows(self, inputs: np.ndarray) -> Rows:
        """Return `inputs` `[B, *shape]` as the estimator takes them."""
        return self._named(inputs.reshape(len(inputs), -1).astype(np.float64))

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns that it was fitted on; None where it was fitted on an array."""
        names = _fitted_names(self.estimator)
        return None if names is None else tuple(map(str, names))

    @property
    def has_probabilities(self) -> bool:
        """Tell whether it has a `predict_proba`."""
        return hasattr(self.estimator, "predict_proba")

    @property
    def digest(self) -> str | None:
        """Digest of the learned state: `brittle.decisions.function_code.estimator_digest`."""
        return estimator_digest((self.estimator, self._rules) if self._rules else self.estimator)

    def reading(
        self, categories: Mapping[str, Levels], names: Sequence[str] | None, dtypes: Mapping[str, str]
    ) -> Fitted:
        """Return the same for inputs with columns of these names, some of them codes of categories."""
        for name in self._rules.keys() & categories.keys():
            if self._rules[name].strip() != "fixed":
                raise ParameterError(f"the column {name!r:.40} holds categories, whose one rule is fixed")
        changed = copy(self)
        changed.categories, changed._columns, changed.dtypes = dict(categories), names, dict(dtypes)
        return changed

    def rules(self, size: int) -> Rules:
        """Return the rules of `size` columns."""
        return Rules.of(self._rules, self._columns or self.feature_names or [*map(str, range(size))])

    def kept(self, inputs: Tensor) -> Tensor | None:
        """Return `inputs` `[B, *shape]` as rules let the model read them; None without rules."""
        if not self._rules:
            return None
        rows = inputs.detach().cpu().flatten(1).double().numpy()
        return torch.from_numpy(self.rules(rows.shape[1]).kept(rows)).view(inputs.shape).to(inputs)

    def check_columns(self, data_names: Sequence[str] | None) -> None:
        """Raise where the columns of the data, `data_names`, are not those of its fit, or stand in another order."""
        fitted = self.feature_names
        if fitted is None or data_names is None or list(fitted) == list(data_names):
            return
        if set(fitted) == set(data_names):
            at = next(i for i, (before, after) in enumerate(zip(fitted, data_names, strict=True)) if before != after)
            columns = f"{fitted[at]!r:.40} there and {data_names[at]!r:.40} in the data"
            raise DataError(
                "columns", f"the model was fitted on the same columns in another order: column {at} is {columns}"
            )
        raise DataError("columns", _other_columns(data_names, fitted))

    def _named(self, rows: np.ndarray) -> Rows:
        """Return the rows under the names of its fit, where that was on a frame with as many columns."""
        rows = self.rules(rows.shape[1]).kept(rows) if self._rules else rows
        names = _fitted_names(self.estimator)
        if names is None or len(names) != rows.shape[1]:
            return rows
        import pandas as pd  # here alone: every command and every worker would take a sixth longer to start

        frame = pd.DataFrame(rows, columns=pd.Index(names))
        for name, levels in self.categories.items():
            frame[name] = levels.column(frame[name].to_numpy())
        frame = frame.astype({name: dtype for name, dtype in self.dtypes.items() if _holds(dtype, frame[name])})
        coded = getattr(_last(self.estimator), "get_cat_feature_indices", list)()
        for name in [names[place] for place in coded if names[place] not in self.categories]:
            # CatBoost takes categories as text, or as whole numbers of that type
            codes = frame[name].to_numpy(np.float64, na_value=np.nan)
            fractions = codes[codes % 1 != 0]
            if len(fractions):
                raise ModelError(
                    "columns",
                    f"column {name!r:.40} holds {fractions[0]:.4g}, and the model was fitted on whole numbers there; "
                    f"let it stay as it is: --rules {name!s:.40}=fixed (rules=)",
                )
            frame[name] = codes.astype(np.int64)
        return frame


class Regressor(Fitted):
    """A fitted scikit-learn regressor, a pipeline included: what it predicts, one number a row or several."""

    def of_rows(self, rows: Rows) -> np.ndarray:
        """Return the predictions, `[B]` or `[B, R]`."""
        return np.asarray(self.estimator.predict(rows))


class LabelEstimator(Fitted):
    """A fitted classifier of several labels at once: the log odds of each, or what `decision_function` returns.

    A label holds above 0, as in `predict`, with which labels are compared in the first, second, fourth, eighth .. call.
    """

    def __init__(self, estimator: Any, outputs: str = "logits", rules: Any = None) -> None:
        super().__init__(estimator, outputs, rules)
        _check_fitted(estimator)
        if outputs != "logits":
            raise ParameterError(f"{self.__name__} gives logits; leave out --outputs {outputs} (outputs=)")

    def of_rows(self, rows: Rows) -> np.ndarray:
        """Return logits, `[B, L]`."""
        if not self._calls and np.ndim(self.estimator.predict(rows[:1])) != 2:
            advice = "leave out --decision multilabel (decision=)"
            raise ModelError("estimator", f"{self.__name__} predicts one label for an input; {advice}")
        scores = self._odds(rows) if self.has_probabilities else np.asarray(self.estimator.decision_function(rows))
        return np.where(scores == 0, -np.finfo(np.float64).tiny, scores)

    def _odds(self, rows: Rows) -> np.ndarray:
        """Return log odds of each label, `[B, L]`, from one array for all labels or a list of arrays."""
        probabilities = self.estimator.predict_proba(rows)
        if isinstance(probabilities, list):
            odds = np.stack([_of_label(*pair) for pair in zip(probabilities, self.estimator.classes_, strict=True)], 2)
        else:
            odds = np.stack((1 - np.asarray(probabilities), probabilities), axis=1)
        logarithms = np.log(odds.clip(SMALLEST_PROBABILITY))
        return logarithms[:, 1] - logarithms[:, 0]

    def check_predicted(self, rows: Rows, outputs: np.ndarray) -> None:
        """Raise unless `predict` says that a label holds just where its score is positive, but for rounding."""
        scores, predicted = outputs, np.asarray(self.estimator.predict(rows))
        if predicted.shape != scores.shape:
            shapes = f"{list(scores.shape)} for labels of shape {list(predicted.shape)}"
            raise ModelError("output_shape", f"{self.__name__} gave scores of shape {shapes}; give one for each")
        differ = ((predicted != (scores > 0)) & (np.abs(scores) > 1e-9)).any(axis=1)
        if differ.any():
            raise ModelError(
                "estimator",
                f"predict of {self.__name__} gives other labels than those of a positive score at "
                f"{int(differ.sum())} of {len(rows)} inputs; give a classifier of labels 0 and 1 without thresholds",
            )


class Estimator(Fitted):
    """A fitted scikit-learn classifier, a pipeline included, as a function of tensors.

    Its logits are what `decision_function` returns; of two classes, where that is one number, 0 and that number. Where
    the classifier has none, they are the logarithms of `predict_proba`, which is not taken below
    `SMALLEST_PROBABILITY`. Logits decide, and give margins; scores of a probability read `predict_proba` itself
    (`log_probabilities`), as the softmax of a `decision_function` need not be one. Inputs are flattened to
    `[B, features]` and are given in double precision.

    The class of the largest logit is the one that `predict` gives, which is compared in the first, second, fourth,
    eighth .. call. Where `outputs` is "probs" it is the class of the largest probability, whatever `predict` says; of
    an SVC whose `break_ties` is False, `predict` takes the first of classes with as many votes, and this the one with
    the largest `decision_function`. `outputs="probs"` takes the probabilities in any case.
    """

    def __init__(self, estimator: Any, outputs: str = "logits", rules: Any = None) -> None:
        super().__init__(estimator, outputs, rules)
        _check_fitted(estimator)
        classes, name = estimator.classes_, self.__name__
        if isinstance(classes, list) or np.ndim(classes) != 1:
            raise _several_labels(name)
        if len(classes) < 2:
            raise ModelError("estimator", f"{name} was fitted on 1 class; a classifier needs at least 2")
        classes = np.asarray(classes)
        if outputs == "binary-logit":
            raise ParameterError(f"{name} scores each of its classes; leave out --outputs binary-logit (outputs=)")
        whole = classes.dtype.kind in "iufb" and (classes == np.floor(classes.astype(np.float64))).all()
        self.class_values = tuple(map(int, classes)) if whole else None
        booleans = classes.dtype.kind == "b"  # named as pandas and CSV files name them
        self.class_names = tuple(map(str, classes if booleans else self.class_values or classes))
        self._probabilities = outputs == "probs" or not hasattr(estimator, "decision_function")
        self._logarithms = self._probabilities and outputs != "probs"
        self.classes = classes
        last = _last(estimator)
        method = getattr(last, "response_method", None)  # of those that decide by a threshold
        inside = None if method is None else getattr(last, "estimator_", None)
        threshold = getattr(last, "best_threshold_", getattr(last, "threshold", "auto"))
        usual = 0.5 if method == "predict_proba" or (method == "auto" and hasattr(inside, "predict_proba")) else 0.0
        if outputs != "probs" and inside is not None and threshold not in ("auto", usual):
            raise ModelError("estimator", f"{name} decides by the threshold {threshold:.4g}; {_LARGEST}")
        self._pairs = getattr(last, "decision_function_shape", None) == "ovo"
        self._by_votes = not getattr(last, "break_ties", True)
        if self._probabilities and not self.has_probabilities:
            if outputs == "probs":
                raise ModelError("estimator", f"{name} gives no probabilities; leave out --outputs probs (outputs=)")
            raise ModelError("estimator", f"{name} has no decision_function and no predict_proba; give one that does")

    def with_outputs(self, outputs: str) -> Estimator:
        """Return the same, with other declared outputs."""
        described = type(self)(self.estimator, outputs, self._rules)
        return cast("Estimator", described.reading(self.categories, self._columns, self.dtypes))

    def of_rows(self, rows: Rows) -> np.ndarray:
        """Class scores, `[B, C]`."""
        if not self._calls and np.size(self.estimator.predict(rows[:1])) != 1:
            raise _several_labels(self.__name__)
        if not self._probabilities:
            scores = np.asarray(self.estimator.decision_function(rows))
            if scores.ndim == 1 and len(self.class_names) == 2:
                return np.stack((np.zeros_like(scores), scores), axis=1)
            return self._check_shape("decision_function", scores, rows)
        probabilities = self._predict_proba(rows).clip(SMALLEST_PROBABILITY)
        return np.log(probabilities) if self._logarithms else probabilities

    def log_probabilities(self, inputs: Tensor) -> Tensor:
        """Logarithms of `predict_proba`, `[B, C]`, in double precision; that of 0 is -708."""
        probabilities = self._predict_proba(self.as_rows(inputs.detach().cpu().numpy()))
        return as_tensor(np.log(probabilities.clip(np.finfo(np.float64).tiny)), inputs.device)

    def check_predicted(self, rows: Rows, outputs: np.ndarray) -> None:
        """Raise unless `predict` gives the class of the largest score, wherever that is clearly the largest."""
        if self._by_votes or self._logarithms < self._probabilities:
            return
        largest, runner_up = np.sort(outputs, axis=1)[:, :-3:-1].T
        gap = largest - runner_up
        clear = gap > 1e-9 * (1.0 + np.abs(largest))  # beyond rounding
        closest = np.argsort(np.where(clear, gap, np.inf), kind="stable")[:64]  # where a threshold would show
        closest_rows = rows[closest] if isinstance(rows, np.ndarray) else rows.iloc[closest]
        scores, clear = outputs[closest], clear[closest]
        differ = clear & (np.ravel(self.estimator.predict(closest_rows)) != self.classes[scores.argmax(axis=1)])
        if differ.any():
            method = "probability" if self._probabilities else "decision_function"
            raise ModelError(
                "estimator",
                f"predict of {self.__name__} gives another class than its largest {method} at {int(differ.sum())} of "
                f"{len(closest_rows)} inputs; {_LARGEST}",
            )

    def _predict_proba(self, rows: Rows) -> np.ndarray:
        return self._check_shape("predict_proba", np.asarray(self.estimator.predict_proba(rows), np.float64), rows)

    def _check_shape(self, method: str, scores: np.ndarray, rows: Rows) -> np.ndarray:
        """`scores`, if they have a row for each of `rows` and a column for each class."""
        pairs = self._pairs and method == "decision_function"
        if scores.shape == (len(rows), len(self.class_names)) and not pairs:
            return scores
        shapes = f"{list(scores.shape)} for {len(rows)} rows and {len(self.class_names)} classes"
        advice = "give one column a class (SVC: decision_function_shape='ovr')"
        raise ModelError("output_shape", f"{method} of {self.__name__} gave shape {shapes}; {advice}")


def as_model(model: Any, outputs: str, arrays: str, decision: Decision, rules: Any = None) -> Callable[[Tensor], Any]:
    """Return `model`, or a wrapper of an estimator, a regressor where numbers are decided, or of a function."""
    if rules and not is_estimator(model):
        raise ParameterError("rules of columns are for estimators, such as a forest, and not for networks or functions")
    if arrays not in ARRAYS:
        raise ParameterError(f"arrays must be one of {', '.join(ARRAYS)}; found {arrays!r}")
    if isinstance(model, nn.Module) and arrays == "numpy":
        raise ParameterError("arrays='numpy' is for functions; a torch.nn.Module takes tensors: leave it out")
    if isinstance(model, Estimator):
        return model.with_outputs(outputs)
    if isinstance(model, nn.Module | ArrayModel):
        return model
    if is_estimator(model):
        numbers = isinstance(decision, Within | Custom) and not hasattr(model, "classes_")
        labels = LabelEstimator if isinstance(decision, MultiLabel) else Estimator
        return (Regressor if numbers else labels)(model, outputs, rules)
    if not callable(model):
        raise ModelError(
            "model_file",
            f"{model!r:.60} is a {type(model).__qualname__}; give a torch.nn.Module, a function from inputs to class "
            "scores, or a fitted classifier",
        )
    if names_itself(model):
        return BatchModel(model)
    return ArrayModel(model) if arrays == "numpy" else model


class Maite(Protocol):
    """Interface of models and data sets of MAITE: `metadata`, a mapping with an `id`."""

    metadata: Any


def names_itself(candidate: object) -> TypeGuard[Any]:
    """Return whether `candidate` is a model or a data set of MAITE."""
    metadata = getattr(candidate, "metadata", None)
    return isinstance(metadata, Mapping) and "id" in metadata


def is_estimator(model: Any) -> bool:
    """Return whether `model` is an object with scikit-learn's method `predict`, fitted or to `fit`, and no function."""
    is_fittable = hasattr(model, "fit") or hasattr(model, "classes_")
    return not callable(model) and not isinstance(model, type) and is_fittable and hasattr(model, "predict")


def as_tensor(output: Any, device: torch.device) -> Tensor:
    if isinstance(output, Tensor) and output.dtype == torch.bfloat16:
        return output.detach().to(device)
    try:
        array = np.asarray(output)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ModelError("output_shape", f"the model's output is no NumPy array ({error}); return one") from error
    if array.dtype.kind not in "fiub":
        raise ModelError("output_shape", f"the model returned an array of type {array.dtype}; return real numbers")
    return torch.from_numpy(np.array(array, np.float32 if array.dtype.itemsize <= 4 else np.float64)).to(device)


def _other_columns(data_names: Sequence[str], fitted: Sequence[str]) -> str:
    """Say which columns of the data a model was not fitted on and which it lacks, and what to do."""
    unknown = [name for name in data_names if name not in fitted]
    missing = [name for name in fitted if name not in data_names]
    sentences: list[str] = []
    if missing:
        sentences.append(f"the data lack {listed(missing, COLUMNS_SHOWN)}, which the model was fitted on: add them")
    if len(unknown) == 1:
        word = shlex.quote(unknown[0]) if len(unknown[0]) <= 60 else "NAME"
        sentences.append(
            f"the model was not fitted on the column {unknown[0]!r:.60} of the data: if it holds the labels, type "
            f"--label-column {word} (label_column=), if it names the points call it id, else leave it out"
        )
    elif unknown:
        sentences.append(
            f"the model was not fitted on the columns {listed(unknown, COLUMNS_SHOWN)} of the data: if one holds the "
            "labels, name it with --label-column (label_column=), and leave the others out"
        )
    return "; ".join(sentences)


def _holds(dtype: str, column: Any) -> bool:
    """Tell whether a type of pandas holds the numbers of a column; one of whole numbers holds no fractions."""
    name = dtype.partition("[")[0].lower()
    if not name.startswith(("int", "uint")):
        return True
    numbers, info = column[column.notna() | (dtype == name)], np.iinfo(name)
    return bool(((numbers == numbers.round()) & (numbers >= info.min) & (numbers < info.max + 1)).all())


def _last(estimator: Any) -> Any:
    """Return the estimator that decides in a pipeline, or in a search that has found the best."""
    inside = estimator.steps[-1][1] if hasattr(estimator, "steps") else getattr(estimator, "best_estimator_", None)
    return estimator if inside is None else _last(inside)


def _fitted_names(estimator: Any) -> Sequence[str] | None:
    """Names of the columns that an estimator, or the one that decides in it, was fitted on; None of an array."""
    if (names := getattr(estimator, "feature_names_in_", None)) is not None:
        return names
    last = _last(estimator)
    names = getattr(last, "feature_names_in_", getattr(last, "feature_names_", None))
    if names is None or [*names] == [*map(str, range(len(names)))]:  # CatBoost counts the columns of an array
        return None
    return names


def _check_fitted(estimator: Any) -> None:
    """Raise unless an estimator has `classes_`."""
    if getattr(estimator, "classes_", None) is None:
        name = type(estimator).__name__
        raise ModelError(
            "estimator",
            f"{name} has no classes_; give a fitted classifier, {name}().fit(x, y), or where it predicts numbers say "
            "within what they may move: --decision within:T (decision='within:T')",
        )


def _several_labels(name: str) -> ModelError:
    """Return the error for a classifier of several labels where a class is decided."""
    return ModelError(
        "estimator", f"{name} predicts several labels for an input; use --decision multilabel (decision='multilabel')"
    )


def _of_label(probabilities: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the probabilities that a label does not hold and does, `[B, 2]`; certain where training saw one class."""
    if probabilities.shape[1] > 2:
        classes_text = listed(classes.tolist())
        raise ModelError("estimator", f"a label has {len(classes)} classes, {classes_text}; give labels of 0 and 1")
    if probabilities.shape[1] == 2:
        return probabilities
    holds = np.full(len(probabilities), float(bool(classes[0])))
    return np.stack((1 - holds, holds), axis=1)
