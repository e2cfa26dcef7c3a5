"""Points out of a `torch.utils.data.Dataset` or `DataLoader`: read once, in order, and held in memory."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeGuard, TypeVar

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
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from brittle.data.arrays import check_inputs, copied_tensor, memory_points
from brittle.data.images import DECLARED, DECODER_ERRORS, UnreadableImage, from_levels, pixels_of
from brittle.data.labels import plain_array
from brittle.data.points import ListedPoints
from brittle.data.reading import FITTED, Reading
from brittle.errors import BrittleError, DataError, ParameterError, warn

INPUT_KEYS = ("x", "image", "images", "img", "pixel_values", "input", "inputs", "features", "data")
LABEL_KEYS = ("y", "label", "labels", "target", "targets")
"""What the inputs and the labels of items that are dictionaries are called; one of each is there."""

LOOKED_AT = 16
"""Items, or batches, of a stream that are read a second time."""

_OPTIONS = FITTED | {"bounds", "limit", "layout", "scale_uint8", "targets"}

T = TypeVar("T")


@dataclass(frozen=True)
class _Part:
    """Inputs and labels of some items in a row, which nobody else writes to.

    Attributes:
        start: position of the first.
        inputs: `[B, *shape]`.
        labels: `[B]` or `[B, C]`, or None.
        picked: the index of each, `[B]`, as the sampler of a loader gave it; None where the items come in their order.
    """

    start: int
    inputs: Tensor
    labels: np.ndarray | None
    picked: tuple[str, ...] | None = None

    def digests(self) -> list[str]:
        """A digest of each input and its label, `[B]`."""
        rows = self.inputs.cpu().contiguous().unsqueeze(-1).view(torch.uint8).numpy()
        labels = [b""] * len(rows) if self.labels is None else [one.tobytes() for one in self.labels]
        return [hashlib.sha256(x.tobytes() + y).hexdigest()[:16] for x, y in zip(rows, labels, strict=True)]

    def first(self, count: int) -> _Part:
        """The first `count` items."""
        labels = None if self.labels is None else self.labels[:count]
        return _Part(self.start, self.inputs[:count], labels, self.picked and self.picked[:count])

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
    loader holds the same with an axis in front. Ids are the positions, as those of arrays are, or the indices that the
    sampler of a loader gives. Those of a stream that gives other items when it is read again, or that several workers
    share, are digests of the content, and a warning says so. The digest is that of the content, so a run over a data
    set is the run over its arrays.

    Args:
        data: a data set of either style, a loader that does not shuffle, or a list of items.
        class_names: names of the classes in the order of their index; by default those in `data.classes`, where
            torchvision keeps them.
        feature_names: as for `array_points`.
        options: fields of `Reading`: `bounds`, `limit`, `layout`, `scale_uint8`, `targets`, and for images of Pillow
            `mode`, `resize`, `center_crop`.

    Raises:
        DataError: the loader shuffles, or gives an item twice; an item cannot be read or is of another form, or two
            differ in shape, type or device; the code says which.
        ParameterError: an option is not of its form.
    """
    if odd := sorted(options.keys() - _OPTIONS):
        raise ParameterError(f"{odd[0]} is no option of a data set in memory; these are {', '.join(sorted(_OPTIONS))}")
    reading = Reading(**options)
    source = data.dataset if isinstance(data, DataLoader) else data
    parts = list(_limited(_parts(data, reading), reading.limit))
    if not parts:
        raise DataError("empty_dataset", f"{_name(source)} holds no items; expected at least 1")
    if isinstance(data, DataLoader):
        _check_workers(data, parts, reading.limit)
    names = _class_names(source) if class_names is None else class_names
    ids, labels = _ids(data, parts, reading), _joined_labels(parts)
    inputs = check_inputs(torch.cat([part.inputs for part in parts]), "x", reading)
    return memory_points(inputs, labels, ids, names, reading, feature_names)


def is_list_of_images(data: object) -> TypeGuard[list[Any]]:
    """Whether it is a list of images of Pillow, or of pairs of one and its label."""

    def has_image(item: object) -> bool:
        return isinstance(item[0] if isinstance(item, tuple) and item else item, Image.Image)

    return isinstance(data, list) and bool(data) and all(map(has_image, data))


def _parts(data: Dataset[Any] | DataLoader[Any] | Sequence[Any], reading: Reading) -> Iterator[_Part]:
    return _batches(data) if isinstance(data, DataLoader) else _items(data, reading)


def _items(data: Dataset[Any] | Sequence[Any], reading: Reading) -> Iterator[_Part]:
    """Every item as a part of one; images are all brought to the mode of the first."""
    if not isinstance(data, IterableDataset) and not hasattr(data, "__len__"):
        raise DataError("dataset", f"{_name(data)} has no length; give it __len__, or derive it from IterableDataset")
    items = iter(data) if isinstance(data, IterableDataset) else _in_turn(data)
    mode = reading.mode
    for position, item in enumerate(_guarded(data, items)):
        where = f"item {position} of {_name(data)}"
        x, y = _split(item, where)
        if isinstance(x, Image.Image):
            mode = mode or DECLARED.get(x.mode)
            x = _image_input(x, mode, reading, where)
        yield _Part(position, _tensor(x, where)[None], None if y is None else _labels(y, where)[None])


def _in_turn(data: Any) -> Iterator[Any]:
    """The items of a data set that has a length; an item that raises StopIteration is not the end."""
    for position in range(len(data)):
        yield data[position]


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


class _Picks:
    """What the sampler of a loader gives, one batch after another, and what it has given."""

    def __init__(self, sampler: Iterable[Any]) -> None:
        self.sampler = sampler
        self.given: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        for one in self.sampler:
            self.given.append(one)
            yield one


def _batches(loader: DataLoader[Any]) -> Iterator[_Part]:
    """Every batch of a loader; what it gives is an item where it makes no batches."""
    sampler = _sampler(loader)
    random = isinstance(sampler, RandomSampler | SubsetRandomSampler | WeightedRandomSampler)
    if random or (isinstance(sampler, DistributedSampler) and sampler.shuffle):
        raise DataError(
            "shuffled",
            f"the DataLoader over {_name(loader.dataset)} shuffles ({type(sampler).__name__}), so its order cannot be "
            "repeated and the ids, which are positions, would name other points the next time; make it with "
            "shuffle=False",
        )
    single = loader.batch_sampler is None
    picking: Any = loader.sampler if single else loader.batch_sampler
    picks, own = None, loader
    if not isinstance(loader.dataset, IterableDataset) and not _has_own_way(loader):
        picks, own = _Picks(picking), copy(loader)
        # A loader is not meant to be changed, so its copy is, where nothing looks.
        vars(own).update({"sampler" if single else "batch_sampler": picks, "_iterator": None, "in_order": True})
    start = 0
    for number, batch in enumerate(_guarded(loader.dataset, iter(own), loader)):
        where = f"batch {number} of the DataLoader over {_name(loader.dataset)}"
        x, y = _split(batch, where)
        inputs, labels = _tensor(x, where), None if y is None else _labels(y, where)
        given = None if picks is None else picks.given[number]
        if single and not isinstance(given, list | tuple):
            inputs, labels, given = inputs[None], None if labels is None else labels[None], [given]
        if inputs.dim() < 1 or (labels is not None and labels.shape[:1] != inputs.shape[:1]):
            raise DataError(
                "dataset",
                f"{where} holds inputs of shape {tuple(inputs.shape)} and labels of shape "
                f"{None if labels is None else labels.shape}; expected one label for each input",
            )
        picked = tuple(str(one.item() if isinstance(one, Tensor | np.generic) else one) for one in given or ())
        yield _Part(start, inputs, labels, picked if len(picked) == len(inputs) and picked != ("None",) else None)
        start += len(inputs)


def _has_own_way(loader: DataLoader[Any]) -> bool:
    """Whether its class goes through the items in a way of its own, which need not be that of its sampler."""
    return type(loader).__iter__ is not DataLoader.__iter__


def _sampler(loader: DataLoader[Any]) -> Any:
    """What gives the indices of items, that of a batch sampler included; this itself where it has none."""
    picking: Any = loader.sampler if loader.batch_sampler is None else loader.batch_sampler
    return getattr(picking, "sampler", picking)


def _ids(data: Any, parts: Sequence[_Part], reading: Reading) -> list[str] | None:
    """What names the items the next time, too; None where that is their positions."""
    known = [part.picked for part in parts if part.picked is not None]
    if len(known) == len(parts):
        ids = [index for part in known for index in part]
        index, times = Counter(ids).most_common(1)[0]
        if times > 1:
            raise DataError(
                "ids",
                f"the {type(_sampler(data)).__name__} of the DataLoader over {_name(data.dataset)} gives {times} times "
                f"item {index}, and a point is scored once; give the data set itself, or each item once",
            )
        return ids
    if _keeps_order(data, parts, reading):
        return None
    warn(
        "unordered",
        f"{_name(getattr(data, 'dataset', data))} gives other items when it is read again, or by another number of "
        "workers, so its points are called by digests of their content and not by their places; let it give the same "
        "ones in one order, without workers",
    )
    content = [digest for part in parts for digest in part.digests()]
    seen: Counter[str] = Counter()
    for place, digest in enumerate(content):
        seen[digest] += 1
        content[place] = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
    return content


def _keeps_order(data: Any, parts: Sequence[_Part], reading: Reading) -> bool:
    """Whether items come in the same order the next time: those of a data set do, and what a loader takes in turn.

    A stream that several workers share comes in an order that follows from their number. Others keep theirs where the
    first ones are the same when they are read again; a stream that can be read once says nothing.
    """
    loads = isinstance(data, DataLoader)
    source = data.dataset if loads else data
    if isinstance(source, IterableDataset):
        if loads and data.num_workers > 1:
            return False
        if iter(source) is iter(source):
            return True
    elif not loads or (isinstance(_sampler(data), SequentialSampler) and not _has_own_way(data)):
        return True
    first = parts[: 1 if loads else LOOKED_AT]
    try:
        again = list(islice(_parts(data, reading), len(first)))
    except DataError:  # a stream that cannot be read again
        return True
    then, now = ([digest for part in some for digest in part.digests()] for some in (first, again))
    return not now or now[: len(then)] == then


def _check_workers(loader: DataLoader[Any], parts: Sequence[_Part], limit: int | None) -> None:
    """Raise where every worker of a loader reads the whole of a stream, so that all items come once for each of them.

    They do where, in the rounds in which each worker gives a batch, every content comes as often as there are workers,
    or twice as often, and so on; and where this process, which is one reader, is not given as many.
    """
    stream, workers = loader.dataset, loader.num_workers
    if not isinstance(stream, IterableDataset) or workers < 2:
        return
    whole = len(parts) - (limit is not None)  # the last may be cut
    seen = Counter(digest for part in parts[: whole // workers * workers] for digest in part.digests())
    if not seen or any(times % workers for times in seen.values()):
        return
    read = sum(len(part.inputs) for part in parts) if loader.batch_sampler is not None else len(parts)
    if limit is None and sum(1 for _ in islice(stream, read)) >= read:
        return
    raise DataError(
        "ids",
        f"each of the {workers} workers of the DataLoader reads all of {_name(stream)}, so the same {len(seen):,} "
        f"items came {workers} times; make it with num_workers=0, or let __iter__ take the share of "
        "torch.utils.data.get_worker_info()",
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
            text = str(error).strip()
            unequal = "equal size" in text  # said by default_collate
            found = f"{type(error).__name__}: {text.splitlines()[-1] if text else 'no message'}"
            where = f"{'item' if loader is None else 'batch'} {position} of {_name(source)}"
            first = "" if loader is None or loader.batch_size is None else f", from item {position * loader.batch_size}"
            raise DataError(
                "shape" if unequal else "dataset", f"{where}{first} cannot be read, its code failed: {found}"
            ) from error
        yield item
        position += 1


def _limited(parts: Iterator[_Part], limit: int | None) -> Iterator[_Part]:
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
        if (part.labels is None) != (first.labels is None):
            without, labelled = (part, first) if part.labels is None else (first, part)
            raise DataError(
                "labels",
                f"item {without.start} has no label and item {labelled.start} has one; label all items or none",
            )
        left = None if limit is None else limit - part.start
        yield part if left is None else part.first(left)
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
    try:
        labels = np.array(plain_array(y, where))
    except DataError:
        if isinstance(y, np.ma.MaskedArray):
            raise
        labels = np.array(None)
    if labels.dtype.kind not in "iufb":
        raise DataError(
            "labels",
            f"{where} has a label of type {type(y).__name__} ({y!r:.40}); expected a class index, the place of its "
            "class among the model's outputs",
        )
    return labels


def _joined_labels(parts: Sequence[_Part]) -> np.ndarray | None:
    """The labels of all items, of one shape and kind."""
    labels = [part.labels for part in parts if part.labels is not None]
    odd = next((number for number, one in enumerate(labels) if one.shape[1:] != labels[0].shape[1:]), None)
    if odd is not None:
        raise DataError(
            "labels",
            f"item {parts[0].start} has a label of shape {labels[0].shape[1:]} and item {parts[odd].start} one of "
            f"shape {labels[odd].shape[1:]}; expected a class index each",
        )
    return np.concatenate(labels) if labels else None


def _class_names(source: object) -> Sequence[str] | None:
    names = getattr(source, "classes", None)
    texts = isinstance(names, list | tuple) and bool(names) and all(isinstance(one, str) for one in names)
    return names if texts else None


def _name(source: object) -> str:
    return f"the data set {type(source).__name__}"
