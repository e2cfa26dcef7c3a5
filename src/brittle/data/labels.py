"""Labels and targets of the points: class indices, several labels or numbers, and the names of the classes."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from brittle.data.arrow import is_number
from brittle.data.files import path_text
from brittle.data.points import Points, SomePoints
from brittle.errors import DataError, ParameterError, first_line, listed

LARGEST_LABEL = 2.0**31  # largest number that may be a class index


def answers_of(y: Any, source: str, count: int, targets: bool) -> dict[str, Any]:
    """Return class indices `[N]` or `[N, 1]` as `labels`, numbers `[N, R]` as `targets`; {} for None."""
    if y is None:
        return {}
    array = plain_array(y, source)
    if not targets:
        return {"labels": check_labels(array, source, count)}
    check_form(array.shape, array.dtype, source, count, targets)
    numbers = array.reshape(count, -1).astype(np.float64)
    odd = np.argwhere(~np.isfinite(numbers))
    if len(odd):
        raise DataError("labels", f"{source} holds {numbers[tuple(odd[0])]} in row {odd[0][0]}; give every number")
    columns = getattr(y, "columns", ())
    names = {"class_names": tuple(columns)} if len(columns) and all(isinstance(name, str) for name in columns) else {}
    return {"targets": torch.from_numpy(numbers)} | names


def file_answers(
    array: np.ndarray | None, source: str, count: int, targets: bool, names: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return what `answers_of` gives for an array in a file, with names of classes, by default their texts."""
    known_names = {} if names is None else {"class_names": tuple(names)}
    if array is None or targets or array.dtype.kind != "U":
        return answers_of(array, source, count, targets) | known_names
    check_form(array.shape, array.dtype, source, count, targets)
    labels, texts = classes_of(array.reshape(-1).tolist(), source)
    if names is None or texts is None:
        return {"labels": labels, "class_names": texts} | known_names
    if missing := [text for text in texts if text not in names]:
        raise DataError("labels", f"{source} holds {listed(missing)}, and class_names are {listed(list(names))}")
    places = [names.index(text) for text in texts]
    return {"labels": tuple(places[label] for label in labels)} | known_names


def classes_of(cells: Sequence[Any], source: str) -> tuple[tuple[int, ...], tuple[str, ...] | None]:
    """Return the class index of each row, and the names of the classes where labels are text, as Python sorts them."""
    cells = [cell.strip() if isinstance(cell, str) else cell for cell in cells]
    odd = next((row for row, cell in enumerate(cells) if not isinstance(cell, str | int | float) or cell == ""), None)
    if odd is not None:
        fault = "is empty" if cells[odd] in (None, "") else f"holds {cells[odd]!r:.60}"
        raise DataError("labels", f"row {odd} of {source} {fault}; label all rows, with whole numbers or text, or none")
    texts = [cell for cell in cells if isinstance(cell, str) and not is_number(cell)]
    if not texts:
        return check_labels(np.array([float(cell) for cell in cells]), source, len(cells)), None
    if len(texts) < len(cells):
        number = next(cell for cell in cells if not isinstance(cell, str) or is_number(cell))
        raise DataError("labels", f"{source} holds text and numbers: {texts[0]!r:.60} and {number}; write all as one")
    names = sorted(set(texts))
    return tuple(map({name: at for at, name in enumerate(names)}.__getitem__, texts)), tuple(names)


def check_labels(labels: np.ndarray, source: str, count: int) -> tuple[int, ...]:
    """Class indices as a tuple, `[N]`, from whole numbers `[N]` or `[N, 1]`, also such as 1.0 and True."""
    if labels.dtype.kind not in "iufb":
        example = f"{str(next(labels.flat, None))!r:.40}"
        raise DataError(
            "labels",
            f"{source} has type {labels.dtype} and holds {example}; class indices are whole numbers: with names, give "
            "those of the outputs in their order, brittle.Classifier(model, class_names=names)",
        )
    check_form(labels.shape, labels.dtype, source, count, targets=False)
    labels = labels.reshape(-1)
    odd = np.argwhere((labels != np.floor(labels)) | (np.abs(labels.astype(np.float64)) > LARGEST_LABEL))
    if len(odd):
        raise DataError(
            "labels",
            f"{source} holds {labels[tuple(odd[0])]:g} in row {odd[0][0]}; class indices are whole numbers "
            "(--label-column names their column); for numbers use --decision within:T (decision='within:T')",
        )
    return tuple(labels.astype(np.int64).tolist())


def check_form(shape: tuple[int, ...], dtype: np.dtype, source: str, count: int, targets: bool) -> None:
    """Raise where an array of this shape and type cannot say what is right for each of `count` points."""
    if targets and (dtype.kind not in "iufb" or len(shape) not in (1, 2) or shape[0] != count):
        raise DataError(
            "labels", f"{source} has type {dtype} and shape {shape} for {count} points; expected numbers, a row each"
        )
    if not targets and len(shape) == 2 and shape[1] != 1:
        raise DataError(
            "labels",
            f"{source} has shape {shape}, which looks one-hot; give class indices, such as labels.argmax(1), or where "
            "several labels may hold --decision multilabel (decision='multilabel')",
        )
    if not targets and shape not in ((count,), (count, 1)):
        raise DataError("shape", f"{source} has shape {shape} for {count} points; expected one label each")


def plain_array(x: Any, source: str) -> np.ndarray:
    """Return a tensor, an array or a list as a plain array on the CPU."""
    hidden = int(np.ma.count_masked(x)) if isinstance(x, np.ma.MaskedArray) else 0
    if hidden:
        fault = f"{source} is a masked array that hides {hidden:,} of {x.size:,} entries"
        raise DataError("dtype", f"{fault}; leave these points out, or fill them in: numpy.ma.filled")
    try:
        if isinstance(x, torch.Tensor):
            x = (x.float() if x.dtype == torch.bfloat16 else x).detach().cpu().numpy()
        return np.asarray(x)
    except (ValueError, TypeError, RuntimeError) as error:
        fault = f"{source} is no array of numbers or texts ({first_line(error)})"
        raise DataError("dtype", f"{fault}; give a NumPy array") from error


def name_classes(points: Points, names: Sequence[str]) -> SomePoints:
    """Return `points` under the names of the model's classes, to which labels are mapped by name."""
    data_names, names = points.class_names, tuple(names)
    if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise ParameterError(f"expected names of classes, each once; found {names!r:.80}")
    if data_names is None or points.labels is None:
        return SomePoints.of(points, class_names=names, is_named=True)
    missing = [name for name in data_names if name not in names]
    if missing:
        spelled = {_plain(name): name for name in names}
        alike = [f"{name!r:.40} is {spelled[_plain(name)]!r:.40}" for name in missing if _plain(name) in spelled]
        missing_text, model_text = (listed([f"{name!r:.40}" for name in group]) for group in (missing, names))
        raise ParameterError(
            f"{len(missing)} of the {len(data_names)} classes of the data are not among the {len(names)} names "
            f"of the model: {missing_text}; these are {model_text}: call them alike (--class-names, class_names=)"
            + (f"; but for spelling, {listed(alike)}" if alike else "")
        )
    return _relabelled(points, names, {at: names.index(name) for at, name in enumerate(data_names)})


def _relabelled(points: Points, names: tuple[str, ...], places: Mapping[int, int]) -> SomePoints:
    """Points whose labels became these places among `names`, -1 where there is none."""
    labels = None if points.labels is None else tuple(places.get(label, -1) for label in points.labels)
    return SomePoints.of(points, labels=labels, class_names=names, is_named=True)


def in_classes(
    points: Points, names: Sequence[str] | None, values: Sequence[int] | None = None, *, sure: bool = False
) -> Points:
    """Return `points` with labels that are places among the classes of a model, by name or by whole numbers.
    Where no name is one of the model's, or all stand at the same places, labels stay, unless the names are `sure`,
    given by the user or learned in the fit. Points whose classes the user has named stay."""
    if names is None or points.labels is None or getattr(points, "is_named", False):
        return points
    if points.class_names is not None:
        data_names, model_names = tuple(points.class_names), tuple(names)
        ours, theirs = [_plain(name) for name in data_names], [_plain(name) for name in model_names]
        in_order = not sure and (set(ours).isdisjoint(theirs) or ours == theirs[: len(ours)])
        stay = data_names == model_names or (set(data_names).isdisjoint(model_names) and in_order)
        return points if stay else name_classes(points, model_names)
    if values is None and sure and all(name.isdecimal() for name in names):  # a column of such labels holds numbers
        values = tuple(map(int, names))
    if values is None or tuple(values) == tuple(range(len(values))):
        return points
    places = {value: at for at, value in enumerate(values)}
    wrong = [label for label in points.labels if label not in places]
    if len(wrong) > max(1.0, 0.01 * len(points.labels)):  # of few, these points count as wrong
        shown, fitted_on = listed(sorted(map(str, set(wrong)))), listed(list(map(str, places)))
        raise DataError(
            "labels",
            f"{len(wrong)} of {len(points.labels)} labels, such as {shown}, are no classes of the model; give those "
            f"that it was fitted on: {fitted_on}",
        )
    return _relabelled(points, tuple(names), places)


def text_places(labels: Any, names: Sequence[str] | None, fitted: bool = False) -> np.ndarray | None:
    """Return text labels as places among the model's names; None of others. Booleans must be `fitted`."""
    labels = labels.to_numpy() if hasattr(labels, "to_numpy") else labels  # of pandas
    if isinstance(labels, np.ndarray) and labels.shape[1:] == (1,):
        labels = labels[:, 0]
    texts = labels.tolist() if isinstance(labels, np.ndarray) and labels.dtype.kind in "UO" else labels
    of_type = getattr(labels, "dtype", None) in (np.dtype(bool), torch.bool)
    booleans = of_type or (isinstance(texts, list | tuple) and {*map(type, texts)} == {bool})
    if names is not None and not {*names} <= {"False", "True", "0", "1"} and fitted and booleans:
        fault = f"the labels are booleans, and the model was fitted on {listed(list(names))}"
        raise DataError("labels", f"{fault}; give those")
    if names is None or not isinstance(texts, list | tuple) or not any(isinstance(label, str) for label in texts):
        return None
    places = {name: at for at, name in enumerate(names)}
    if (odd := next((row for row, label in enumerate(texts) if label not in places), None)) is not None:
        fault = f"y holds {texts[odd]!r:.40} in row {odd}, which is no class of the model"
        raise DataError("labels", f"{fault}; its classes are {listed(list(names))}")
    twice = sorted(name for name in set(texts) if names.count(name) > 1)
    if twice:
        raise DataError("labels", f"several classes of the model are called {listed(twice)}; give class indices")
    return np.array([places[name] for name in texts], np.int64)


def read_class_names(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the names in a text file, one a line, in the order of the model's outputs."""
    source = f"{path_text(path)} (--class-names)"
    try:
        names = [line.strip() for line in Path(path).read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"{source} cannot be read as text in UTF-8: {error}") from error
    odd = next((line for line, name in enumerate(names) if not name or name in names[:line]), None)
    if odd is not None or not names:
        fault = "is empty" if odd is None else f"has {names[odd]!r:.40} in line {odd + 1}"
        raise ParameterError(f"{source} {fault}; give each class once, one a line")
    return tuple(names)


def _plain(name: str) -> str:
    """Return a name in the spelling in which names are compared: without case, spaces, `-` and `_`."""
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()
