"""Points out of a `torch.utils.data.Dataset` or `DataLoader`: read once, in order, and held in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from brittle.data.arrays import array_points
from brittle.data.listed import ListedPoints
from brittle.data.options import ReadingOptions
from brittle.data.pictures import Pictures
from brittle.errors import BrittleError, DataError
from brittle.model.bounds import BoundsLike

INPUT_KEYS = ("x", "image", "images", "img", "pixel_values", "input", "inputs", "features", "data")
LABEL_KEYS = ("y", "label", "labels", "target", "targets")
"""What the inputs and the labels of items that are dictionaries are called; the first that is there is taken."""

_RANDOM = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)

_UNEQUAL = re.compile(r"equal size, but got \[([\d, ]*)\] at entry (\d+) and \[([\d, ]*)\] at entry (\d+)")
"""What `default_collate` says where the inputs of a batch differ in shape."""

T = TypeVar("T")


@dataclass(frozen=True)
class _Part:
    """Inputs and labels of some items in a row.

    Attributes:
        start: position of the first.
        inputs: `[B, *shape]`.
        labels: `[B]` or `[B, C]`, or None.
    """

    start: int
    inputs: Tensor
    labels: np.ndarray | None


def dataset_points(
    data: Dataset[Any] | DataLoader[Any] | Sequence[Any],
    *,
    bounds: BoundsLike = (0.0, 1.0),
    limit: int | None = None,
    class_names: Sequence[str] | None = None,
    layout: str | None = None,
    scale_uint8: bool = False,
    feature_names: Sequence[str] | np.ndarray | None = None,
    targets: bool = False,
    resize: Sequence[int] | None = None,
    center_crop: Sequence[int] | None = None,
    interpolation: str | None = None,
    crop_rounding: str | None = None,
    mode: str | None = None,
) -> ListedPoints:
    """The items of a data set, read once in their order and held in memory: the points of their arrays.

    An item is `x`, `(x, y)`, `(x, y, ...)` or a dictionary with one of `INPUT_KEYS` and, where there are labels, one of
    `LABEL_KEYS`; `x` is a tensor or a NumPy array `[*shape]`, or an image of Pillow, `y` a class index. A batch of a
    loader holds the same with an axis in front. Ids are the positions, as those of arrays are, and the digest is that
    of the content, so a run over a data set is the run over its arrays.

    Args:
        data: a data set of either style, a loader that does not shuffle, or a list of items.
        bounds: smallest and largest value of an input.
        limit: read the first so many items only; None reads all.
        class_names: names of the classes in the order of their index; by default those in `data.classes`, where
            torchvision keeps them.
        layout: as for `array_points`.
        scale_uint8: as for `array_points`.
        feature_names: as for `array_points`.
        targets: as for `array_points`.
        resize: height and width to which images of Pillow are brought, or the shorter side alone, as `open_points` does
            with encoded images.
        center_crop: height and width of the middle of them that is kept, after `resize`.
        interpolation: how they are resized, as `open_points` does.
        crop_rounding: where their middle begins, likewise.
        mode: `RGB` or `L`, to which they are converted before that; None takes the mode of the first.

    Raises:
        DataError: the loader shuffles, an item cannot be read or is of another form, or two differ in shape, type or
            device; the code says which.
        ParameterError: `limit`, `bounds` or `layout` are not of this form.
    """
    pixels = (None if sides is None else tuple(sides) for sides in (resize, center_crop))
    options = ReadingOptions(
        bounds=bounds,
        limit=limit,
        layout=layout,
        resize=next(pixels),
        center_crop=next(pixels),
        interpolation=interpolation,
        crop_rounding=crop_rounding,
        mode=mode,
    )
    source = data.dataset if isinstance(data, DataLoader) else data
    found = _batches(data) if isinstance(data, DataLoader) else _items(data, Pictures(options))
    parts = list(_limited(found, limit))
    if not parts:
        raise DataError("empty_dataset", f"{_name(source)} holds no items; expected at least 1")
    names = _class_names(source) if class_names is None else class_names
    points = array_points(
        torch.cat([part.inputs for part in parts]),
        _joined_labels(parts),
        class_names=names,
        bounds=bounds,
        layout=layout,
        scale_uint8=scale_uint8,
        feature_names=feature_names,
        targets=targets,
    )
    fitted = {name: value for name, value in options.of_images.items() if name != "exif"}
    return replace(points, provenance=points.provenance | fitted | {"limit": limit})


def _items(data: Dataset[Any] | Sequence[Any], pictures: Pictures) -> Iterator[_Part]:
    """Every item as a part of one."""
    if not isinstance(data, IterableDataset) and not hasattr(data, "__len__"):
        raise DataError(
            "dataset_item", f"{_name(data)} has no length; give it __len__, or derive it from IterableDataset"
        )
    iterable = isinstance(data, IterableDataset)
    count = None if iterable else len(data)  # type: ignore[arg-type]
    items = iter(data) if iterable else iter(map(data.__getitem__, range(count or 0)))
    for position, item in enumerate(_guarded(data, items)):
        where = f"item {position} of {_name(data)}"
        x, y = _split(item, where)
        labels = None if y is None else _array(y, where)[None]
        own = pictures.tensor(x, where) if isinstance(x, Image.Image) else _tensor(x, where)
        yield _Part(position, own[None], labels)


def _batches(loader: DataLoader[Any]) -> Iterator[_Part]:
    """Every batch of a loader; what it gives is an item where it makes no batches."""
    _check_order(loader)
    start = 0
    for number, batch in enumerate(_guarded(loader.dataset, iter(loader), loader)):
        where = f"batch {number} of the DataLoader over {_name(loader.dataset)}"
        x, y = _split(batch, where)
        inputs, labels = _tensor(x, where), None if y is None else _array(y, where)
        if loader.batch_sampler is None:
            inputs, labels = inputs[None], None if labels is None else labels[None]
        if inputs.dim() < 1 or (labels is not None and labels.shape[:1] != inputs.shape[:1]):
            found = None if labels is None else labels.shape
            raise DataError(
                "dataset_item",
                f"{where} holds inputs of shape {tuple(inputs.shape)} and labels of shape {found}; expected one label "
                "for each input",
            )
        yield _Part(start, inputs, labels)
        start += len(inputs)


def _check_order(loader: DataLoader[Any]) -> None:
    sampler = getattr(loader.batch_sampler, "sampler", loader.sampler)
    shuffles = isinstance(sampler, _RANDOM) or (isinstance(sampler, DistributedSampler) and sampler.shuffle)
    if shuffles:
        raise DataError(
            "shuffled",
            f"the DataLoader over {_name(loader.dataset)} shuffles ({type(sampler).__name__}), so its order cannot be "
            "repeated and the ids, which are positions, would name other points the next time; make it with "
            "shuffle=False",
        )


def _guarded(source: object, items: Iterator[T], loader: DataLoader[Any] | None = None) -> Iterator[T]:
    """What `items` gives; what fails in the code of the data set is told with its position."""
    position = 0
    while True:
        try:
            item = next(items)
        except StopIteration:
            return
        except BrittleError:
            raise
        except Exception as error:
            raise _failed(source, position, loader, error) from error
        yield item
        position += 1


def _failed(source: object, position: int, loader: DataLoader[Any] | None, error: Exception) -> DataError:
    text = str(error).strip()
    size = 1 if loader is None or loader.batch_sampler is None else loader.batch_size
    unequal = _UNEQUAL.search(text)
    if unequal is not None and size is not None:
        one, first, other, second = unequal.groups()
        start = position * size
        return _unequal(start + int(first), f"shape ({one})", start + int(second), f"shape ({other})")
    said = f"{type(error).__name__}: {text.splitlines()[-1] if text else 'no message'}"
    where = f"{'item' if loader is None else 'batch'} {position}"
    return DataError("dataset_item", f"{where} of {_name(source)} cannot be read, its code failed: {said}")


def _limited(parts: Iterator[_Part], limit: int | None) -> Iterator[_Part]:
    """The parts of the first `limit` items, which are alike; no more is read."""
    first: _Part | None = None
    for part in parts:
        first = first or part
        if _kind(part) != _kind(first):
            raise _unequal(first.start, _kind(first), part.start, _kind(part))
        if (part.labels is None) != (first.labels is None):
            without, with_one = (part, first) if part.labels is None else (first, part)
            raise DataError(
                "label_null",
                f"item {without.start} has no label and item {with_one.start} has one; label all items or none",
            )
        left = None if limit is None else limit - part.start
        yield part if left is None else _Part(part.start, part.inputs[:left], _cut(part.labels, left))
        if left is not None and left <= len(part.inputs):
            return


def _cut(labels: np.ndarray | None, count: int) -> np.ndarray | None:
    return None if labels is None else labels[:count]


def _kind(part: _Part) -> str:
    """Shape, type and device of an input, in words."""
    inputs = part.inputs
    device = "" if inputs.device.type == "cpu" else f" on {inputs.device}"
    return f"shape {tuple(inputs.shape[1:])} of {str(inputs.dtype).removeprefix('torch.')}{device}"


def _unequal(first: int, one: str, second: int, other: str) -> DataError:
    return DataError(
        "shape_mixed",
        f"item {first} has {one} and item {second} has {other}; bring all items to one shape and type first",
    )


def _split(item: Any, where: str) -> tuple[Any, Any]:
    """The input and the label, or None, of an item or a batch."""
    if isinstance(item, Mapping):
        key = next((key for key in INPUT_KEYS if key in item), None)
        if key is None:
            keys = ", ".join(map(str, item)) or "no keys"
            raise DataError("dataset_item", f"{where} has the keys {keys}; call its input x or {INPUT_KEYS[1]}")
        return item[key], next((item[key] for key in LABEL_KEYS if key in item), None)
    if isinstance(item, tuple | list):
        if not item:
            raise DataError("dataset_item", f"{where} is empty; expected x, (x, y) or a dictionary")
        return item[0], item[1] if len(item) > 1 else None
    return item, None


def _tensor(x: Any, where: str) -> Tensor:
    if isinstance(x, Tensor):
        return x.detach()
    if isinstance(x, np.ndarray) and x.dtype.kind in "fiub":
        return torch.from_numpy(np.ascontiguousarray(x, x.dtype.newbyteorder("=")).copy().reshape(x.shape))
    found = f"an array of {x.dtype}" if isinstance(x, np.ndarray) else f"a {type(x).__name__}"
    raise DataError(
        "dataset_item",
        f"{where} holds {found} as its input; expected a tensor or a NumPy array of numbers: give the data set a "
        "transform that makes one, such as torchvision's ToTensor",
    )


def _array(y: Any, where: str) -> np.ndarray:
    try:
        labels = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    except (ValueError, TypeError, RuntimeError):
        labels = np.array(None)
    if labels.dtype.kind not in "iufb":
        raise DataError(
            "label_dtype",
            f"{where} has a label of type {type(y).__name__} ({y!r:.40}); expected a class index, the "
            "place of its class among the model's outputs",
        )
    return labels


def _joined_labels(parts: Sequence[_Part]) -> np.ndarray | None:
    """The labels of all items, of one shape and kind."""
    labels = [part.labels for part in parts if part.labels is not None]
    odd = next((number for number, one in enumerate(labels) if one.shape[1:] != labels[0].shape[1:]), None)
    if odd is not None:
        raise DataError(
            "label_dtype",
            f"item {parts[0].start} has a label of shape {labels[0].shape[1:]} and item {parts[odd].start} one of "
            f"shape {labels[odd].shape[1:]}; expected a class index each",
        )
    return np.concatenate(labels) if labels else None


def _class_names(source: object) -> Sequence[str] | None:
    found = getattr(source, "classes", None)
    texts = isinstance(found, list | tuple) and bool(found) and all(isinstance(one, str) for one in found)
    return found if texts else None


def _name(source: object) -> str:
    return f"the data set {type(source).__name__}"
