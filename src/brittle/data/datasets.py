"""Points out of a `torch.utils.data.Dataset` or `DataLoader`: read once, in order, and held in memory."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler

from brittle.data.arrays import as_tensor, check_inputs, memory_points
from brittle.data.images import DECLARED, UnreadableImage, check_image, decoding, from_levels, pixels_of
from brittle.data.labels import plain_array
from brittle.data.points import ListedPoints
from brittle.data.reading import IMAGE_OPTIONS, Reading
from brittle.errors import DataError, ParameterError
from brittle.model.arrays import Maite, names_itself

INPUT_KEYS = ("x", "image", "images", "img", "pixel_values", "input", "inputs", "features", "data")
LABEL_KEYS = ("y", "label", "labels", "target", "targets")  # keys of items that are dictionaries, one of each

_OPTIONS = IMAGE_OPTIONS | {"bounds", "limit", "layout", "scale_uint8", "targets"}


class _Part(NamedTuple):
    """Inputs `[B, *shape]` and labels, `[B]` or `[B, C]` or None, of some items."""

    inputs: Tensor
    labels: np.ndarray | None

    @property
    def kind(self) -> str:
        """Shape, type and device of an input, and the shape of a label, in words."""
        device = "" if self.inputs.device.type == "cpu" else f" on {self.inputs.device}"
        label = "no label" if self.labels is None else f"a label of shape {self.labels.shape[1:]}"
        kind = f"{str(self.inputs.dtype).removeprefix('torch.')}{device}"
        return f"shape {tuple(self.inputs.shape[1:])} of {kind} and {label}"


def dataset_points(
    data: Dataset[Any] | DataLoader[Any] | Sequence[Any] | Maite,
    *,
    class_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | np.ndarray | None = None,
    **options: Any,
) -> ListedPoints:
    """Return the items of a data set, read once in their order and held in memory: the points of their arrays.

    An item is `x`, `(x, y)`, `(x, y, ...)` or a dictionary with one of `INPUT_KEYS` and perhaps one of `LABEL_KEYS`;
    `x` is an array `[*shape]` or an image of Pillow, `y` a class index. A batch of a loader holds the same with an axis
    in front. In an item of MAITE, `(x, y, metadata)` with an `id`, `y` may have a number for each class, the largest
    for the right one. Ids are the positions, so what cannot be read twice in the same order is refused.

    Args:
        data: a data set of numbered items, a loader that takes them in turn, or a list of items.
        class_names: names of the classes in the order of their index; by default those in `data.classes`, where
            torchvision keeps them, or in `data.metadata["index2label"]`, where MAITE does.
        feature_names: as for `array_points`.
        options: fields of `Reading`: `bounds`, `limit`, `layout`, `scale_uint8`, `targets`, and for images of Pillow
            `mode`, `resize`, `center_crop`.

    Raises:
        DataError: the items come in no order, or one cannot be read or is of another form; the code says which.
        ParameterError: an option is not of its form.
    """
    if odd := sorted(options.keys() - _OPTIONS):
        raise ParameterError(f"{odd[0]} is no option of a data set in memory; these are {', '.join(sorted(_OPTIONS))}")
    reading, source = Reading(**options), data.dataset if isinstance(data, DataLoader) else data
    _check_order(data)
    parts = list(_parts(data, reading))
    if not parts:
        raise DataError("empty_dataset", f"{_name(source)} holds no items; expected at least 1")
    labels = [part.labels for part in parts if part.labels is not None]
    if class_names is None:
        labels_of = dict(source.metadata.get("index2label", {})) if names_itself(source) else {}
        names: Any = [labels_of.get(place) for place in range(len(labels_of))] or getattr(source, "classes", None)
        texts = isinstance(names, list | tuple) and bool(names) and all(isinstance(name, str) for name in names)
        class_names = names if texts else None
    inputs = check_inputs(torch.cat([part.inputs for part in parts]), "x", reading)
    return memory_points(inputs, np.concatenate(labels) if labels else None, None, class_names, reading, feature_names)


def is_list_of_images(data: object) -> TypeGuard[list[Any]]:
    """Return whether `data` is a list of images of Pillow, or of pairs of an image and its label."""
    if not isinstance(data, list) or not data:
        return False
    return all(isinstance(item[0] if isinstance(item, tuple) and item else item, Image.Image) for item in data)


def _check_order(data: Any) -> None:
    """Raise unless each item is taken once and in turn, as a data set of numbered items gives them."""
    loader = isinstance(data, DataLoader)
    source = data.dataset if loader else data
    if isinstance(source, IterableDataset):
        raise DataError(
            "dataset", f"{_name(source)} is a stream; give its items: brittle.data.dataset_points(list(stream))"
        )
    if not loader:
        return
    batches = data.batch_sampler
    sampler: Any = data.sampler if batches is None else batches.sampler if type(batches) is BatchSampler else batches
    in_turn = type(sampler) is SequentialSampler and type(data).__iter__ is DataLoader.__iter__
    if not in_turn or not getattr(data, "in_order", True):
        raise DataError(
            "shuffled",
            f"the DataLoader over {_name(source)} shuffles, or takes its items by a {type(sampler).__name__} or in a "
            "way of its own, so that ids, their positions, would not name them again; make it with shuffle=False",
        )


def _parts(data: Any, reading: Reading) -> Iterator[_Part]:
    """Yield the first `reading.limit` items, or batches of a loader, all of one form, images of one mode."""
    batched, mode = isinstance(data, DataLoader) and data.batch_sampler is not None, reading.mode
    first_part, start = None, 0
    for source, element in _elements(data):
        x, y = _split(element, source, reading.targets)
        if isinstance(x, Image.Image):
            mode = mode or DECLARED.get(x.mode, "RGB")
            try:
                check_image(x)
                with decoding():
                    x = from_levels(pixels_of(x, mode, reading.steps), reading.bounds)
            except UnreadableImage as error:
                raise DataError("dataset", f"{source} is an image that is not read: {error.reason}") from error
        if not isinstance(x, Tensor | np.ndarray):
            kind = type(x).__name__
            advice = "make it an array, such as by torchvision's ToTensor"
            raise DataError("dataset", f"{source} holds a {kind} as its input; {advice}")
        inputs, labels = as_tensor(x, source).clone(), None if y is None else _label_array(y, source)
        if not batched:
            inputs, labels = inputs[None], None if labels is None else labels[None]
        if inputs.dim() < 1 or (labels is not None and labels.shape[:1] != inputs.shape[:1]):
            shapes = tuple(inputs.shape), None if labels is None else labels.shape
            raise DataError(
                "dataset", f"{source} holds inputs and labels of the shapes {shapes}; expected a label each"
            )
        remaining = None if reading.limit is None else reading.limit - start
        part = _Part(inputs[:remaining], None if labels is None else labels[:remaining])
        first_part = first_part or part
        if part.kind != first_part.kind:
            raise DataError(
                "shape", f"item 0 has {first_part.kind}, and item {start} has {part.kind}; give all one form"
            )
        yield part
        start += len(part.inputs)
        if start == reading.limit:
            return


def _elements(data: Any) -> Iterator[tuple[str, Any]]:
    """Items, or batches of a loader, and what they are called; what fails in the code of the data set is told."""
    loader = isinstance(data, DataLoader)
    name = f"the DataLoader over {_name(data.dataset)}" if loader else _name(data)
    template, place = "batch {} of {}" if loader else "item {} of {}", 0
    try:
        if loader:
            for element in data:
                yield template.format(place, name), element
                place += 1
        else:
            for place in range(len(data)):
                yield template.format(place, name), data[place]
    except Exception as error:
        text = str(error).strip()
        error_text = f"{type(error).__name__}: {text.splitlines()[-1] if text else 'no message'}"
        raise DataError(
            "shape" if "equal size" in text else "dataset",  # said by default_collate
            f"{template.format(place, name)} cannot be read, its code failed: {error_text}",
        ) from error


def _split(item: Any, source: str, targets: bool) -> tuple[Any, Any]:
    """Return the input and the label, or None, of an item or a batch."""
    if isinstance(item, Mapping):
        x, y = ([key for key in keys if key in item] for keys in (INPUT_KEYS, LABEL_KEYS))
        if len(x) != 1 or len(y) > 1:
            keys = ", ".join(map(str, item)) or "no keys"
            raise DataError("dataset", f"{source} has the keys {keys}; expected one of {INPUT_KEYS[:2]}, and y")
        return item[x[0]], item[y[0]] if y else None
    if isinstance(item, tuple | list):
        if not item:
            raise DataError("dataset", f"{source} is empty; expected x, (x, y) or a dictionary")
        x, y = item[0], item[1] if len(item) > 1 else None
        if len(item) != 3 or not isinstance(item[2], Mapping) or "id" not in item[2]:
            return x, y
        x, numbers = x if isinstance(x, Tensor | Image.Image) else np.asarray(x), _label_array(y, source)
        if targets or numbers.ndim != 1 or numbers.size < 2:  # of MAITE, a number for each class
            return x, y
        if (numbers == numbers.max()).sum() != 1:
            raise DataError(
                "labels", f"{source} has the target {y!r:.60}; of its classes one number must be the largest"
            )
        return x, numbers.argmax()
    return item, None


def _label_array(y: Any, source: str) -> np.ndarray:
    """Return the label of an item of a data set as an array; raise where it is no number."""
    labels = np.array(y if isinstance(y, Mapping) else plain_array(y, source))  # a copy
    if labels.dtype.kind not in "iufb":
        raise DataError(
            "labels", f"{source} has a label of type {type(y).__name__} ({y!r:.40}); expected a class index"
        )
    return labels


def _name(source: object) -> str:
    return f"the data set {type(source).__name__}"
