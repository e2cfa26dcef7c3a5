"""Published corruptions of known test images, under the ids of the clean ones."""

from functools import partial
from pathlib import Path

import numpy as np

from brittle.data.arrays import check_inputs, read_arrays
from brittle.data.files import choose_split, files_digest, path_text
from brittle.data.folder import is_flat_folder, is_folder_of_classes
from brittle.data.labels import answers_of
from brittle.data.numpy_files import read_array
from brittle.data.points import ListedPoints, RowIds
from brittle.data.reading import Format, Reading
from brittle.errors import DataError

SEVERITIES = 5  # times that a file of CIFAR-10-C holds the same images, each time more corrupted
CHANNELS = (1, 3, 4)  # allowed sizes of the last axis; other arrays are channels first, or not images

LABELS, TEST_IMAGES, TEST_LABELS = "labels.npy", "test_images.npy", "test_labels.npy"


def read_corruptions(path: Path, reading: Reading) -> ListedPoints:
    """Read points of the split `KIND:SEVERITY` in `KIND.npy`, `[5 N, H, W, C]`, and `labels.npy`, `[5 N]`; or of the
    split `KIND` in `KIND/test_images.npy`, `[N, H, W, C]`, and `KIND/test_labels.npy`, `[N]`.

    The id of a point is its place among the N images, like that of the clean image.

    Source: the files of CIFAR-10-C (D. Hendrycks and T. Dietterich, Benchmarking neural network robustness to common
    corruptions and perturbations, 2019) and of MNIST-C (N. Mu and J. Gilmer, MNIST-C, 2019).
    """
    has_severities = _has_severities(path)
    times = SEVERITIES if has_severities else 1
    kinds = _images(path).items()
    parts = {f"{kind}:{at + 1}" if has_severities else kind: (file, at) for kind, file in kinds for at in range(times)}
    split = choose_split(path, list(parts), reading.split)
    file, place = parts[split]
    files = file, path / LABELS if has_severities else file.with_name(TEST_LABELS)
    image_file, label_file = map(path_text, files)
    images, labels = read_array(file), read_array(files[1])
    count = len(images) // times if images.ndim == 4 and images.shape[3] in CHANNELS else 0
    if not count or len(images) != count * times or labels.shape[:1] != images.shape[:1]:
        raise DataError(
            "shape",
            f"{image_file} has shape {images.shape} and {label_file} {labels.shape}; expected images [N, H, W, C] of "
            f"1, 3 or 4 channels and a label for each, N a multiple of {times}",
        )
    if (labels.reshape(times, -1) != labels[:count].reshape(-1)).any():
        raise DataError(
            "labels",
            f"{label_file} does not hold the same {count:,} labels {times} times; bring images and labels into "
            "the order of the severities",
        )
    as_images = Reading(layout="nhwc", scale_uint8=images.dtype == np.uint8)
    inputs = check_inputs(np.array(images[place * count : (place + 1) * count]), image_file, as_images)
    names = [path_text(data_file.relative_to(path)) for data_file in files]
    return reading.points(
        reading.record(path, files_digest(path, files), split=split, files=names),
        RowIds(count),
        partial(read_arrays, inputs, reading.bounds, None),
        **answers_of(labels[:count], label_file, count, reading.targets),
    )


def _has_severities(path: Path) -> bool:
    """Return whether one `labels.npy` covers all corruptions; beside images it holds their labels."""
    return (path / LABELS).is_file() and not is_folder_of_classes(path) and not is_flat_folder(path)


def _images(path: Path) -> dict[str, Path]:
    if _has_severities(path):
        files = {file.stem: file for file in sorted(path.glob("*.npy")) if file.name != LABELS}
    else:
        files = {file.parent.name: file for file in sorted(path.glob(f"*/{TEST_IMAGES}"))}
    return {path_text(kind): file for kind, file in files.items() if not kind.startswith(".")}


CORRUPTIONS = Format(
    "corruptions", "a folder with KIND.npy and labels.npy", lambda path: path.is_dir() and bool(_images(path)),
    read_corruptions, rank=3,
)  # fmt: skip
