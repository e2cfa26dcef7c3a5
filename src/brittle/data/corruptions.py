"""Corruptions of images by noise, blur, light, compression and rotation, in five severities.

The kinds are those of CIFAR-10-C that need no more than NumPy, SciPy and Pillow, with the strengths by which it was
made (D. Hendrycks, T. Dietterich, Benchmarking neural network robustness to common corruptions and perturbations, 2019,
https://arxiv.org/abs/1903.12261; strengths: https://github.com/hendrycks/robustness, make_cifar_c.py). `rotate` is not
one of theirs: it is geometric, with the strengths of MNIST-C (N. Mu, J. Gilmer, MNIST-C: a robustness benchmark for
computer vision, 2019, https://arxiv.org/abs/1906.02337).

The strengths were chosen for colour images of 32 x 32 pixels. Lengths grow with the shorter side of larger images
(times side / 32) and are kept for smaller ones, where a blur of a fraction of a pixel would change nothing; other
strengths know no size. In images much smaller than that, severities of `pixelate` can come to the same number of
pixels. The results follow the published definitions, not the published files: levels are rounded where
these were cut off, the draws are others, and JPEG depends on the library that Pillow was built with.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from PIL import Image

from brittle.data.images import from_levels
from brittle.data.points import Batch, Points, check_values, readable
from brittle.errors import DataError, ParameterError, StorageError, UsageError
from brittle.model.bounds import check_bounds
from brittle.store.writing import check_target, make_folder, replacing

SEVERITIES = range(1, 6)
"""From hardly visible to strong."""

USUAL_SIDE = 32
"""Side of the images, in pixels, for which lengths are given."""

CHANNEL_COUNTS = (1, 3)

ROWS = 256
"""Images held in memory at a time."""

Levels = NDArray[np.uint8]
Draw = np.random.Generator


class Severities(NamedTuple):
    """A way to corrupt an image: levels `[H, W, C]`, a strength and a generator to levels that are not yet rounded or
    clipped; and a strength for each of `SEVERITIES`."""

    apply: Callable[[Levels, Any, Draw], NDArray[Any]]
    strengths: tuple[Any, ...]


def corrupt(image: Levels, kind: str, severity: int, generator: Draw) -> Levels:
    """A corrupted copy of an image.

    Args:
        image: `[H, W]`, `[H, W, 1]` or `[H, W, 3]`, uint8.
        kind: one of `CORRUPTIONS`.
        severity: 1 to 5.
        generator: where the draws come from; `generator_for` gives one that depends on the point alone.

    Returns:
        levels of the same shape and type.

    Raises:
        UsageError: no corruption is called `kind`.
        ParameterError: the severity is none of 1 to 5.
        DataError: the array is no image, or a grey one and `kind` changes colours only.

    Example:
        >>> grey = np.full((2, 2), 100, np.uint8)
        >>> corrupt(grey, "brightness", 5, generator_for(0, "brightness", 5, "7")).tolist()
        [[176, 176], [176, 176]]
    """
    chosen, strength = choose(kind, severity)
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8:
        found = image.dtype if isinstance(image, np.ndarray) else type(image).__name__
        raise DataError("dtype", f"an image is a NumPy array of type uint8, levels 0 to 255; found {found}")
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in CHANNEL_COUNTS) or not image.size:
        raise DataError("shape", f"an image has shape (H, W), (H, W, 1) or (H, W, 3) and pixels; found {image.shape}")
    changed = chosen.apply(image if image.ndim == 3 else image[..., None], strength, generator)
    return np.rint(changed).clip(0, 255).astype(np.uint8).reshape(image.shape)


def choose(kind: str, severity: int) -> tuple[Severities, Any]:
    """The corruption of this name, and its strength at this severity."""
    if kind not in CORRUPTIONS:
        raise UsageError(f"no corruption is called {kind!r}; there are {', '.join(CORRUPTIONS)}")
    if not isinstance(severity, int | np.integer) or severity not in SEVERITIES:
        raise ParameterError(f"the severity must be a whole number from 1 to 5; found {severity}")
    return CORRUPTIONS[kind], CORRUPTIONS[kind].strengths[severity - 1]


def generator_for(seed: int, kind: str, severity: int, point: str) -> Draw:
    """The generator of one copy, keyed by (seed, kind, severity, point id); no other copy shares its draws."""
    key = f"{seed}\n{kind}\n{severity}\n{point}".encode("utf-8", "surrogatepass")
    return np.random.default_rng(int.from_bytes(hashlib.blake2b(key, digest_size=16).digest(), "big"))


def _gaussian_noise(image: Levels, sigma: float, generator: Draw) -> NDArray[Any]:
    return image + generator.normal(0.0, 255 * sigma, image.shape)


def _shot_noise(image: Levels, photons: float, generator: Draw) -> NDArray[Any]:
    return generator.poisson(image / 255 * photons) * (255 / photons)


def _impulse_noise(image: Levels, share: float, generator: Draw) -> NDArray[Any]:
    draw = generator.random(image.shape)
    return np.where(draw < share / 2, 0, np.where(draw < share, 255, image))


def _gaussian_blur(image: Levels, sigma: float, generator: Draw) -> NDArray[Any]:
    pixels = sigma * max(1.0, min(image.shape[:2]) / USUAL_SIDE)
    return scipy.ndimage.gaussian_filter(image.astype(np.float64), (pixels, pixels, 0), mode="nearest")


def _brightness(image: Levels, added: float, generator: Draw) -> NDArray[Any]:
    """The value of hue, saturation and value is the largest channel; the others keep their ratio to it."""
    value = image.max(axis=2, keepdims=True).astype(np.float64)
    brighter = np.minimum(value + 255 * added, 255)
    return np.where(value > 0, image * (brighter / np.maximum(value, 1)), brighter)


def _contrast(image: Levels, factor: float, generator: Draw) -> NDArray[Any]:
    mean = image.mean(axis=(0, 1))
    return mean + factor * (image - mean)


def _saturate(image: Levels, line: tuple[float, float], generator: Draw) -> NDArray[Any]:
    """Saturation `s` becomes `factor s + added`, at most 1; hue and value stay, and grey pixels stay grey."""
    if image.shape[2] == 1:
        raise DataError("shape", "saturate changes colours only, and the images are grey; leave it out")
    factor, added = line
    value = image.max(axis=2, keepdims=True).astype(np.float64)
    below = value - image
    saturation = below.max(axis=2, keepdims=True) / np.maximum(value, 1)
    wanted = np.minimum(factor * saturation + added, 1)
    return value - below * np.divide(wanted, saturation, out=np.ones_like(wanted), where=saturation > 0)


def _jpeg_compression(image: Levels, quality: int, generator: Draw) -> NDArray[Any]:
    file = BytesIO()
    _picture(image).save(file, "JPEG", quality=quality)
    return _pixels(Image.open(file), image)


def _pixelate(image: Levels, share: float, generator: Draw) -> NDArray[Any]:
    picture = _picture(image)
    width, height = (max(1, int(side * share)) for side in picture.size)
    small = picture.resize((width, height), Image.Resampling.BOX)
    return _pixels(small.resize(picture.size, Image.Resampling.BOX), image)


def _rotate(image: Levels, angle: float, generator: Draw) -> NDArray[Any]:
    degrees = math.degrees(angle) * generator.choice((-1, 1))
    return _pixels(_picture(image).rotate(degrees, Image.Resampling.BILINEAR), image)


def _picture(image: Levels) -> Image.Image:
    return Image.fromarray(np.ascontiguousarray(image[..., 0] if image.shape[2] == 1 else image))


def _pixels(picture: Image.Image, like: Levels) -> Levels:
    return np.asarray(picture).reshape(like.shape)


CORRUPTIONS = {
    # standard deviation of normal noise, as a share of the value range
    "gaussian_noise": Severities(_gaussian_noise, (0.04, 0.06, 0.08, 0.09, 0.10)),
    # photons of a white pixel, Poisson
    "shot_noise": Severities(_shot_noise, (500, 250, 100, 75, 50)),
    # share of the numbers that become black or white, half each
    "impulse_noise": Severities(_impulse_noise, (0.01, 0.02, 0.03, 0.05, 0.07)),
    # standard deviation in pixels of an image of side 32, longer in larger ones
    "gaussian_blur": Severities(_gaussian_blur, (0.4, 0.6, 0.7, 0.8, 1.0)),
    # added to the value (of hue, saturation, value), as a share of the value range
    "brightness": Severities(_brightness, (0.05, 0.1, 0.15, 0.2, 0.3)),
    # factor of the distance from the mean
    "contrast": Severities(_contrast, (0.75, 0.5, 0.4, 0.3, 0.15)),
    # factor of the saturation and what is added; the first two take colour away, the others give more
    "saturate": Severities(_saturate, ((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2))),
    # quality
    "jpeg_compression": Severities(_jpeg_compression, (80, 65, 58, 50, 40)),
    # share of the pixels of a side that is kept
    "pixelate": Severities(_pixelate, (0.95, 0.9, 0.85, 0.75, 0.65)),
    # angle in radians, to a drawn side; what comes into the image is black
    "rotate": Severities(_rotate, (0.2, 0.4, 0.6, 0.8, 1.0)),
}
"""All corruptions, by name, with what their strengths are."""


class WrittenCopies(NamedTuple):
    """The files that were written, by kind and then by severity, and how many points each holds.

    Attributes:
        paths: the files.
        points: points in each.
        failed: points that could not be read or hold NaN; they are NaN in every copy.
    """

    paths: tuple[Path, ...]
    points: int
    failed: int


def write_copies(
    points: Points,
    folder: str | os.PathLike[str],
    kinds: Sequence[str],
    severities: Sequence[int],
    *,
    seed: int = 0,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> WrittenCopies:
    """Write `folder/KIND-SEVERITY.npz` for each kind and severity: all files or, where anything fails, none.

    A file holds `x` `[N, C, H, W]`, float32 in the bounds, so that it is scored with the options of the model alone;
    and `y`, `ids`, `names` and `class_names` of the points as far as they have them. The ids are those of the original,
    so runs on both can be compared point by point. `corruption` says in JSON how the file was made.

    Inputs are rounded to the 256 levels between the bounds before they are corrupted. The copy of a point depends on
    the point, its id, the kind, the severity and the seed, not on the other points or their order. The levels of all
    points and one copy of them are held in memory.

    Args:
        points: images `[1, H, W]` or `[3, H, W]`.
        folder: made if absent.
        kinds: some of `CORRUPTIONS`.
        severities: some of 1 to 5.
        seed: seed of all draws.
        bounds: smallest and largest value of an input.

    Returns:
        what was written.

    Raises:
        UsageError: no corruption is called so.
        ParameterError: no kind or severity, a severity out of range, or bounds that are not finite and increasing.
        DataError: the points are no images, grey ones where only colours would change, or not within the bounds.
        StorageError: a file is there already, or cannot be written.
    """
    bounds = check_bounds(bounds)
    strengths = {(kind, severity): choose(kind, severity)[1] for kind in kinds for severity in severities}
    if not strengths:
        raise ParameterError("expected at least one kind and one severity of corruption, found none")
    paths = [Path(folder) / f"{kind}-{severity}.npz" for kind, severity in strengths]
    for path in paths:
        check_target(path)
        if path.exists():
            raise StorageError("exists", f"{path} is there already; choose another folder or remove it")
    parts, ids, names = list[tuple[Levels, NDArray[Any]]](), list[str](), list[str]()
    for batch in points.batches(ROWS):
        parts.append(_levels(batch, bounds))
        ids += batch.ids
        names += batch.names or ()
    levels, lost = (np.concatenate(each) for each in zip(*parts, strict=True))
    held = {"ids": ids, "y": points.labels, "names": names or None, "class_names": points.class_names}
    entries: dict[str, Any] = {key: np.array(tuple(one)) for key, one in held.items() if one is not None}
    for kind, severity in strengths:  # refuses what cannot be corrupted so, before anything is written
        corrupt(levels[0], kind, severity, generator_for(seed, kind, severity, ""))
    make_folder(Path(folder))
    with ExitStack() as stack:  # files get their names when all went well, and are removed otherwise
        for ((kind, severity), strength), path in zip(strengths.items(), paths, strict=True):
            made = {"kind": kind, "severity": int(severity), "strength": strength, "seed": seed, "bounds": bounds}
            copies = np.stack(
                [
                    corrupt(image, kind, severity, generator_for(seed, kind, severity, own))
                    for image, own in zip(levels, ids, strict=True)
                ]
            )
            x = from_levels(torch.from_numpy(copies.transpose(0, 3, 1, 2).copy()), bounds).numpy()
            x[lost] = np.nan
            said = np.array(json.dumps(made | {"data": points.provenance}))
            file = stack.enter_context(replacing(path, "make room or choose another folder"))
            np.savez_compressed(file, x=x, corruption=said, **entries)
    return WrittenCopies(tuple(paths), len(levels), int(lost.sum()))


def _levels(batch: Batch, bounds: tuple[float, float]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The nearest of the 256 levels between the bounds, `[B, H, W, C]`, and where there is no finite input."""
    shape, (low, high) = tuple(batch.inputs.shape[1:]), bounds
    if len(shape) != 3 or shape[0] not in CHANNEL_COUNTS:
        raise DataError("shape", f"the inputs have shape {shape}, which is no image; bring them to (1 or 3, H, W)")
    check_values(batch, bounds)
    values = batch.inputs.double().cpu().numpy().transpose(0, 2, 3, 1)
    share = (np.where(np.isfinite(values), values, low) - low) / (high - low)
    return np.rint(255 * share).clip(0, 255).astype(np.uint8), (~readable(batch)).cpu().numpy()
