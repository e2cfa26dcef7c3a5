"""Data as points: files and arrays of many kinds behind one interface."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from brittle.data.arrays import array_points
from brittle.data.chosen import choose_points
from brittle.data.class_names import name_classes
from brittle.data.datasets import dataset_points
from brittle.data.feature_parquet import is_feature_table, read_features
from brittle.data.files import path_text
from brittle.data.folder import is_flat_folder, is_folder_of_classes, read_flat_folder, read_folder
from brittle.data.format import Format
from brittle.data.idx import is_idx_folder, read_idx
from brittle.data.npy import is_npy, read_npy
from brittle.data.npz import read_npz
from brittle.data.options import FOR_SOME, ReadingOptions
from brittle.data.outside import GROUP, check_format, find_outside_format, read_outside, recognises
from brittle.data.parquet import is_parquet, read_parquet
from brittle.data.pictures import is_list_of_images
from brittle.data.points import Points
from brittle.data.saved_dataset import is_saved_dataset, is_saved_table, read_saved_dataset, read_saved_table
from brittle.data.text_table import is_text_table, read_texts
from brittle.data.webdataset import is_webdataset, read_webdataset
from brittle.errors import BrittleError, DataError, ParameterError
from brittle.model.bounds import BoundsLike
from brittle.model.loading.named_code import unknown
from brittle.model.loading.user_code import offered
from brittle.model.texts import TextForm
from brittle.store.files.nearby import nearby


def _is_npz(path: Path) -> bool:
    return path.is_file() and path.suffix == ".npz"


_FITTED = frozenset({"resize", "center_crop", "interpolation", "crop_rounding", "mode"})
"""Options of all formats of encoded images."""

TEXTS = Format(
    "texts",
    "a table with a column of texts, .csv, .tsv or .parquet",
    is_text_table,
    read_texts,
    options=frozenset({"label_column", "header", "text_column"}),
)
"""The format of what a model of texts reads."""

FORMATS = (
    Format("npz", "a .npz file with x and y, or images and labels", _is_npz, read_npz, arrays=True),
    Format("array", "a .npy file with one array", is_npy, read_npy, arrays=True, options=frozenset({"label_file"})),
    Format(
        "table",
        "a table of features, .csv, .tsv or .parquet",
        is_feature_table,
        read_features,
        options=frozenset({"label_column", "header"}),
    ),
    Format(
        "parquet",
        "a Hugging Face image .parquet file, or a folder of them",
        is_parquet,
        read_parquet,
        encoded=True,
        options=_FITTED | {"label_column"},
    ),
    Format(
        "datasets-table",
        "a folder that save_to_disk of Hugging Face datasets wrote, with columns of numbers",
        is_saved_table,
        read_saved_table,
        options=frozenset({"label_column"}),
    ),
    Format(
        "datasets",
        "a folder that save_to_disk of Hugging Face datasets wrote, with state.json",
        is_saved_dataset,
        read_saved_dataset,
        encoded=True,
        options=_FITTED | {"label_column"},
    ),
    Format(
        "webdataset",
        "WebDataset shards, a .tar file of images and .cls files, or a folder of them",
        is_webdataset,
        read_webdataset,
        encoded=True,
        options=_FITTED,
    ),
    Format("idx", "a folder with PREFIX-images-idx3-ubyte[.gz]", is_idx_folder, read_idx),
    Format(
        "folder",
        "a folder of images by class, CLASS/NAME.png",
        is_folder_of_classes,
        read_folder,
        encoded=True,
        options=_FITTED,
    ),
    Format(
        "images",
        "a folder of images without classes, NAME.png",
        is_flat_folder,
        read_flat_folder,
        encoded=True,
        options=_FITTED | {"label_file"},
    ),
    TEXTS,
)
"""All formats; the first that recognises a path reads it."""


def as_points(
    data: Points | tuple[Any, Any] | Tensor | list[Any] | Dataset[Any] | DataLoader[Any] | str | os.PathLike[str],
    bounds: BoundsLike,
    targets: bool = False,
) -> Points:
    """Points as `brittle.score` takes them: `(x, y)`, where `y` may be None, or `x` alone, or points themselves, or a
    data set or loader of PyTorch or a list of images of Pillow, which is read as `dataset_points` does, or a path,
    which is opened as `open_points` does.

    With `targets` a point's label is not a class, but several labels or numbers.

    Raises:
        DataError: the arrays are not of the form that `array_points` takes, or the items not of that of
            `dataset_points`.
    """
    if isinstance(data, Points):
        return data
    if isinstance(data, str | os.PathLike):
        return open_points(data, bounds=bounds, targets=targets)
    if isinstance(data, Dataset | DataLoader) or is_list_of_images(data):
        return dataset_points(data, bounds=bounds, targets=targets)
    x, y = data if isinstance(data, tuple) and len(data) == 2 else (cast(Any, data), None)
    return array_points(x, y, bounds=bounds, targets=targets)


def check_there(place: Path) -> None:
    """Raise where there is no such file and no such folder.

    Raises:
        DataError: there is none; what may have been meant is named.
    """
    if not place.exists():
        meant = nearby(place, lambda one: one.suffix == place.suffix or one.stem == place.stem)
        raise DataError("no_such_path", f"{path_text(place)} does not exist{meant}")


def open_points(
    path: str | os.PathLike[str],
    *,
    split: str | None = None,
    bounds: BoundsLike = (0.0, 1.0),
    limit: int | None = None,
    layout: str | None = None,
    scale_uint8: bool = False,
    exif: str = "ignore",
    format: Format | str | None = None,  # noqa: A002 - the word that the record and the command line use
    ids: Iterable[str] | None = None,
    label_column: str | None = None,
    header: bool | None = None,
    labels: str | os.PathLike[str] | None = None,
    resize: Sequence[int] | None = None,
    center_crop: Sequence[int] | None = None,
    interpolation: str | None = None,
    crop_rounding: str | None = None,
    mode: str | None = None,
    class_names: Sequence[str] | None = None,
    targets: bool = False,
    text_column: str | None = None,
    texts: TextForm | None = None,
) -> Points:
    """Open data on disk; the format is found from the path (see `FORMATS`), unless one is given.

    Image files and IDX hold whole numbers 0..255, which are mapped to the bounds, float32; floating point arrays are
    taken as they are.

    Args:
        path: a file or a folder.
        split: part of the data, such as `test`; needed where there are several.
        bounds: smallest and largest value of an input.
        limit: keep the first so many points.
        layout: `nchw` or `nhwc`, axis order of image arrays, such as those in `.npz` files.
        scale_uint8: map whole numbers 0..255 in `.npz` files to the bounds.
        exif: `apply` turns encoded images (folders, Parquet) as the orientation in their EXIF data says, before
            anything else is done with them; `ignore` leaves them as their pixels lie, as torchvision does.
        format: what the data are, of your own or by a name that `find_format` knows; None recognises it.
        ids: keep the points with these ids, as `brittle.data.choose_points` does; None keeps all.
        label_column: name of the column of a table that holds the labels, or its place as text, `0` being the first and
            `-1` the last; None takes the one that is called label, target, class or y, in a table of images label or
            labels, or else the only one that is declared as classes.
        header: whether the first row of a `.csv` or `.tsv` file names the columns; None looks at it.
        labels: a `.npy` file with the class index of each point, for a `.npy` file or a folder of images without
            classes.
        resize: `(height, width)` to which encoded images are brought, or `(side,)` for
            the shorter side, which keeps their shape.
        center_crop: `(height, width)` of the middle of them that is kept, after `resize`.
        interpolation: how they are resized, by the names of Pillow: `bilinear` (the default), `bicubic`, `lanczos`,
            `nearest`, `box` or `hamming`; all but `nearest` with antialiasing.
        crop_rounding: where the middle begins if it cannot lie in the middle: at the `even` one of two pixels (the
            default), as torchvision has it, or `down`, as image processors of transformers have it.
        mode: `RGB` or `L` (grey), to which they are converted before that; None takes the mode of the first.
        class_names: names of the model's classes in the order of its outputs; labels of data that name their classes
            are mapped into them, as `brittle.data.class_names.name_classes` does.
        targets: whether what the data say is right for a point is no class, but several labels (1 holds, 0 does not)
            or numbers, as for `array_points`; `label_column` may then name several, with commas between them.
        text_column: name of the column of a table that holds texts, or its place as text; None takes the only one of
            text.
        texts: how texts become points, for a model that reads texts; the data must then be a table with a column of
            text.

    Returns:
        the points, in the order of the data.

    Raises:
        DataError: the data cannot be scored as they stand; the code says why.
        ParameterError: `limit`, `bounds`, `layout` or `exif` are not of this form, or are not for this format; the
            format is none that can be used; `limit` and `ids` are both given, or an id is not there.
        UsageError: no format is called so.
    """
    if ids is not None and limit is not None:
        raise ParameterError("a limit keeps the first points and ids keep those that they name; give one of them")
    options = ReadingOptions(
        split,
        bounds,
        limit,
        layout,
        scale_uint8,
        exif,
        label_column=label_column,
        header=header,
        label_file=None if labels is None else Path(labels),
        resize=_pixels(resize),
        center_crop=_pixels(center_crop),
        interpolation=interpolation,
        crop_rounding=crop_rounding,
        mode=mode,
        targets=targets,
        text_column=text_column,
        texts=texts,
    )
    place = Path(path)
    check_there(place)
    known = _known(format, place, texts is not None)
    _check_meant(known, options, place)
    points = known.read(place, options) if _is_own(known) else read_outside(known, place, options)
    points = points if ids is None else choose_points(points, ids)
    return points if class_names is None else name_classes(points, class_names)


def find_format(name: str) -> Format:
    """The format that `name` stands for: one of `FORMATS`, or as `brittle.model.loading.named_code` finds it.

    Raises:
        UsageError: there is none.
        ParameterError: its code fails, or it is no format that can be used.
    """
    own = {known.name: known for known in FORMATS}
    found = own.get(name) or find_outside_format(name)
    if found is None:
        raise unknown("format", name, [*own, *offered(GROUP)])
    return found


def reads_images(path: str | os.PathLike[str], format: str | None = None) -> bool:  # noqa: A002
    """Whether `path` is read as encoded images, which can be brought to one size; False where it is not read at all."""
    place = Path(path)
    try:
        known = _recognised(place) if format is None else find_format(format)
    except BrittleError:
        return False  # opening it says what is wrong
    return known.options >= _FITTED


def _pixels(sides: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if sides is None else tuple(sides)


def _check_meant(known: Format, options: ReadingOptions, place: Path) -> None:
    """Raise where an option is given that is not for data of this form."""
    if options.layout is not None and not known.arrays:
        raise ParameterError(f"a layout is for arrays in .npz files and the like, {path_text(place)} is {known.form}")
    if options.exif != "ignore" and not known.encoded:
        raise ParameterError(f"only encoded images are turned (exif), {path_text(place)} is {known.form}")
    for name, meant in FOR_SOME.items():
        if getattr(options, name) is not None and name not in known.options:
            raise ParameterError(f"{meant}, and {path_text(place)} is {known.form}; leave it out")


def _known(asked: Format | str | None, path: Path, of_texts: bool) -> Format:
    """The format of a path; that of texts where the model reads texts, and there alone.

    Raises:
        DataError: it is another one.
    """
    if asked is not None:
        known = _given(asked, path)
    elif of_texts:
        known = TEXTS if TEXTS.recognise(path) else _recognised(path)
    else:
        known = _recognised(path)
    if of_texts and known is not TEXTS:
        raise DataError("texts", f"the model reads texts; expected {TEXTS.form}, found {path_text(path)}, {known.form}")
    return known


def _recognised(path: Path) -> Format:
    """The first of `FORMATS` that recognises a path."""
    known = next((one for one in FORMATS if one.recognise(path)), None)
    if known is None:
        forms = "; ".join(f"{one.name}: {one.form}" for one in FORMATS)
        raise DataError("unknown_format", f"{path_text(path)} is none of the formats that are read ({forms})")
    return known


def _given(format: Format | str, path: Path) -> Format:  # noqa: A002
    """The format that was asked for, which must recognise the path."""
    known = find_format(format) if isinstance(format, str) else check_format(format, "format")
    own = _is_own(known)
    if not own and known.name in (one.name for one in FORMATS):
        raise ParameterError(f"expected a format of another name than brittle's own, found {known.name!r}")
    if not (known.recognise(path) if own else recognises(known, path)):
        raise DataError("unknown_format", f"expected {known.form} (format {known.name}), found {path_text(path)}")
    return known


def _is_own(known: Format) -> bool:
    return any(known is one for one in FORMATS)
