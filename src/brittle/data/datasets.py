"""Points out of a `torch.utils.data.Dataset` or `DataLoader`: read once, in order, and held in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler

from brittle.data.arrays import check_inputs, copied_tensor, memory_points
from brittle.data.images import DECLARED, DECODER_ERRORS, UnreadableImage, from_levels, pixels_of
from brittle.data.labels import plain_array
from brittle.data.points import ListedPoints
from brittle.data.reading import FITTED, Reading
from brittle.errors import BrittleError, DataError, ParameterError

INPUT_KEYS = ("x", "image", "images", "img", "pixel_values", "input", "inputs", "features", "data")
LABEL_KEYS = ("y", "label", "labels", "target", "targets")
"""What the inputs and the labels of items that are dictionaries are called; one of each is there."""

LOOKED_AT = 16
"""Items, or batches, of a stream that are read a second time."""

_OPTIONS = FITTED | {"bounds", "limit", "layout", "scale_uint8", "targets"}


class _Part(NamedTuple):
    """Inputs `[B, *shape]` and labels, `[B]` or `[B, C]` or None, of the items from `start`; nobody else writes to
    them."""

    start: int
    inputs: Tensor
    labels: np.ndarray | None

    @property
    def kind(self) -> str:
        """Shape, type and device of an input, in words."""
        device = "" if self.inputs.device.type == "cpu" else f" on {self.inputs.device}"
        return f"shape {tuple(self.inputs.shape[1:])} of {str(self.inputs.dtype).removeprefix('torch.')}{device}"


def dataset_points(
    data: Dataset[Any] | DataLoader[Any] | Sequence[Any],
    *,
    class_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | np.ndarray | None = None,
    **options: Any,
) -> ListedPoints:
    """The items of a data set, read once in their order and held in memory: the points of their arrays.

    An item is `x`, `(x, y)`, `(x, y, ...)` or a dictionary with one of `INPUT_KEYS` and, where there are labels, one of
    `LABEL_KEYS`; `x` is a tensor or a NumPy array `[*shape]`, or an image of Pillow, `y` a class index. A batch of a
    loader holds the same with an axis in front. Ids are the positions, as those of arrays are, so what cannot be read
    twice in the same order is refused. The digest is that of the content, so a run over a data set is the run over its
    arrays.

    Args:
        data: a data set of either style, a loader that takes its items in turn, or a list of items.
        class_names: names of the classes in the order of their index; by default those in `data.classes`, where
            torchvision keeps them.
        feature_names: as for `array_points`.
        options: fields of `Reading`: `bounds`, `limit`, `layout`, `scale_uint8`, `targets`, and for images of Pillow
            `mode`, `resize`, `center_crop`.

    Raises:
        DataError: the items come in another order when they are read again, or once for each worker of a loader; an
            item cannot be read or is of another form, or two differ in shape, type or device; the code says which.
        ParameterError: an option is not of its form.
    """
    if odd := sorted(options.keys() - _OPTIONS):
        raise ParameterError(f"{odd[0]} is no option of a data set in memory; these are {', '.join(sorted(_OPTIONS))}")
    reading = Reading(**options)
    source = data.dataset if isinstance(data, DataLoader) else data
    if isinstance(data, DataLoader):
        _check_order(data)
    parts = list(_alike(_parts(data, reading), reading.limit))
    if not parts:
        raise DataError("empty_dataset", f"{_name(source)} holds no items; expected at least 1")
    _check_again(data, parts, reading)
    labels = [part.labels for part in parts if part.labels is not None]
    if class_names is None:
        there = getattr(source, "classes", None)
        texts = isinstance(there, list | tuple) and bool(there) and all(isinstance(one, str) for one in there)
        class_names = there if texts else None
    inputs = check_inputs(torch.cat([part.inputs for part in parts]), "x", reading)
    return memory_points(inputs, np.concatenate(labels) if labels else None, None, class_names, reading, feature_names)


def is_list_of_images(data: object) -> TypeGuard[list[Any]]:
    """Whether it is a list of images of Pillow, or of pairs of one and its label."""

    def has_image(item: object) -> bool:
        return isinstance(item[0] if isinstance(item, tuple) and item else item, Image.Image)

    return isinstance(data, list) and bool(data) and all(map(has_image, data))


def _check_order(loader: DataLoader[Any]) -> None:
    """Raise where a loader does not take each item once and in turn, as the data set gives them."""
    name, batches = _name(loader.dataset), loader.batch_sampler
    if isinstance(loader.dataset, IterableDataset):
        if loader.num_workers > 1:
            raise DataError(
                "ids",
                f"the DataLoader over {name} reads a stream with {loader.num_workers} workers, which give all of it "
                "each, or take turns as their number has it; make it with num_workers=0",
            )
        return
    sampler: Any = loader.sampler if batches is None else batches.sampler if type(batches) is BatchSampler else batches
    if type(sampler) is not SequentialSampler or not getattr(loader, "in_order", True):
        raise DataError(
            "shuffled",
            f"the DataLoader over {name} shuffles, or takes its items by a {type(sampler).__name__}, and ids, which "
            "are positions, would name other points the next time; make it with shuffle=False, or give some items by "
            "torch.utils.data.Subset(dataset, indices)",
        )


def _check_again(data: Any, parts: Sequence[_Part], reading: Reading) -> None:
    """Raise where the beginning of a stream, or of a loader with a way of its own, is another when it is read again."""
    source = data.dataset if isinstance(data, DataLoader) else data
    own_way = isinstance(data, DataLoader) and type(data).__iter__ is not DataLoader.__iter__
    stream = isinstance(source, IterableDataset)
    if not (stream or own_way) or (stream and iter(source) is iter(source)):  # which can be read once
        return
    first = parts[: 1 if isinstance(data, DataLoader) else LOOKED_AT]
    again = list(islice(_alike(_parts(data, reading), reading.limit), len(first)))
    if len(again) != len(first) or not all(map(_equal, first, again)):
        raise DataError(
            "shuffled",
            f"{_name(source)} gives other items when it is read again, and ids, which are positions, would name other "
            "points the next time; let it give the same ones in one order, or give a list of its items",
        )


def _equal(one: _Part, other: _Part) -> bool:
    same = one.inputs.shape == other.inputs.shape and np.array_equal(one.inputs.cpu(), other.inputs.cpu(), True)
    return same and (one.labels is None or np.array_equal(one.labels, np.asarray(other.labels)))


def _parts(data: Any, reading: Reading) -> Iterator[_Part]:
    """What a loader gives at a time, or each item of a data set by itself."""
    if isinstance(data, DataLoader):
        return _batches(data)
    if not isinstance(data, IterableDataset) and not hasattr(data, "__len__"):
        raise DataError("dataset", f"{_name(data)} has no length; give it __len__, or derive it from IterableDataset")
    return _items(data, reading)


def _items(data: Any, reading: Reading) -> Iterator[_Part]:
    """Every item as a part of one; images are all brought to the mode of the first."""
    mode = reading.mode
    for position, item in enumerate(_guarded(data, data, "item")):
        where = f"item {position} of {_name(data)}"
        x, y = _split(item, where)
        if isinstance(x, Image.Image):
            mode = mode or DECLARED.get(x.mode)
            x = _image_input(x, mode, reading, where)
        yield _Part(position, _tensor(x, where)[None], None if y is None else _labels(y, where)[None])


def _batches(loader: DataLoader[Any]) -> Iterator[_Part]:
    """Every batch of a loader; what it gives is an item where it makes no batches."""
    start = 0
    for number, batch in enumerate(_guarded(loader.dataset, loader, "batch")):
        where = f"batch {number} of the DataLoader over {_name(loader.dataset)}"
        x, y = _split(batch, where)
        inputs, labels = _tensor(x, where), None if y is None else _labels(y, where)
        if loader.batch_sampler is None:
            inputs, labels = inputs[None], None if labels is None else labels[None]
        if inputs.dim() < 1 or (labels is not None and labels.shape[:1] != inputs.shape[:1]):
            raise DataError(
                "dataset",
                f"{where} holds inputs of shape {tuple(inputs.shape)} and labels of shape "
                f"{None if labels is None else labels.shape}; expected one label for each input",
            )
        yield _Part(start, inputs, labels)
        start += len(inputs)


def _guarded(source: object, data: Any, word: str) -> Iterator[Any]:
    """What `data` gives; what fails in the code of the data set is told with its position."""
    position, sized = 0, not isinstance(data, IterableDataset | DataLoader)
    try:
        items = iter(range(len(data)) if sized else data)
        while True:
            try:
                item = next(items)
            except StopIteration:
                return
            yield data[item] if sized else item
            position += 1
    except (BrittleError, GeneratorExit):
        raise
    except Exception as error:
        text = str(error).strip()
        found = f"{type(error).__name__}: {text.splitlines()[-1] if text else 'no message'}"
        unequal = "equal size" in text  # said by default_collate
        raise DataError(
            "shape" if unequal else "dataset",
            f"{word} {position} of {_name(source)} cannot be read, its code failed: {found}",
        ) from error


def _alike(parts: Iterator[_Part], limit: int | None) -> Iterator[_Part]:
    """The parts of the first `limit` items, which are alike; no more is read."""
    first: _Part | None = None
    for part in parts:
        first = first or part
        if part.kind != first.kind:
            raise DataError(
                "shape",
                f"item {first.start} has {first.kind} and item {part.start} has {part.kind}; bring all items to one "
                "shape and type first",
            )
        mine, its = (None if one.labels is None else one.labels.shape[1:] for one in (first, part))
        if mine != its:
            said = ("no label" if one is None else f"a label of shape {one}" for one in (mine, its))
            raise DataError(
                "labels",
                f"item {first.start} has {next(said)} and item {part.start} has {next(said)}; give all items a class "
                "index, or none",
            )
        left = None if limit is None else limit - part.start
        yield _Part(part.start, part.inputs[:left], None if part.labels is None else part.labels[:left])
        if left is not None and left <= len(part.inputs):
            return


def _split(item: Any, where: str) -> tuple[Any, Any]:
    """The input and the label, or None, of an item or a batch."""
    if isinstance(item, Mapping):
        x, y = ([key for key in keys if key in item] for keys in (INPUT_KEYS, LABEL_KEYS))
        if len(x) != 1 or len(y) > 1:
            keys = ", ".join(map(str, item)) or "no keys"
            raise DataError(
                "dataset", f"{where} has the keys {keys}; call its input x or {INPUT_KEYS[1]}, its label y, one of each"
            )
        return item[x[0]], item[y[0]] if y else None
    if isinstance(item, tuple | list):
        if not item:
            raise DataError("dataset", f"{where} is empty; expected x, (x, y) or a dictionary")
        return item[0], item[1] if len(item) > 1 else None
    return item, None


def _image_input(image: Image.Image, mode: str | None, reading: Reading, where: str) -> Tensor:
    """An image of Pillow as an input `[channels, height, width]`, float32, its levels mapped to the bounds."""
    frames = getattr(image, "n_frames", 1)
    if image.mode not in DECLARED or mode is None or frames > 1:
        found = f"{frames} frames" if frames > 1 else f"mode {image.mode}"
        raise DataError("dataset", f"{where} is an image of {found}; one frame in {', '.join(DECLARED)} is read")
    try:
        return from_levels(pixels_of(image, mode, reading.fitting), reading.bounds)
    except UnreadableImage as error:
        raise DataError("shape", f"{where} has {error.failure.reason}; use another resize= or center_crop=") from error
    except DECODER_ERRORS as error:
        found = f"{type(error).__name__}: {error}"
        raise DataError("dataset", f"{where} is an image that cannot be decoded: {found}") from error


def _tensor(x: Any, where: str) -> Tensor:
    if isinstance(x, Tensor) or (isinstance(x, np.ndarray) and x.dtype.kind in "fiub" and x.dtype.itemsize <= 8):
        return copied_tensor(x, where)
    found = f"an array of {x.dtype}" if isinstance(x, np.ndarray) else f"a {type(x).__name__}"
    raise DataError(
        "dataset",
        f"{where} holds {found} as its input; expected a tensor or a NumPy array of numbers: give the data set a "
        "transform that makes one, such as torchvision's ToTensor",
    )


def _labels(y: Any, where: str) -> np.ndarray:
    labels = np.array(y if isinstance(y, Mapping) else plain_array(y, where))  # a copy
    if labels.dtype.kind not in "iufb":
        raise DataError(
            "labels",
            f"{where} has a label of type {type(y).__name__} ({y!r:.40}); expected a class index, the place of its "
            "class among the model's outputs",
        )
    return labels


def _name(source: object) -> str:
    return f"the data set {type(source).__name__}"
