"""The command that writes corrupted copies of images."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from brittle.cli.common import Quiet, program, say
from brittle.cli.options import DataOptions


def corrupt(
    data: Path,
    *,
    kind: tuple[str, ...],
    severity: tuple[int, ...],
    out: Path,
    reading: DataOptions = DataOptions(),
    bounds: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
    quiet: Quiet = False,
) -> int:
    """Write corrupted copies of the images of DATA, OUT/KIND-SEVERITY.npz, under the ids of the originals.

    The kinds and their strengths are those of CIFAR-10-C (Hendrycks and Dietterich 2019), and a rotation. A copy is
    scored with the options of the model alone; those that say how DATA is read are not needed again.

    Args:
        data: As for `brittle score`; images only.
        kind: What is done to them: gaussian_noise, shot_noise, impulse_noise, gaussian_blur, brightness, contrast,
            saturate (colour images), jpeg_compression, pixelate or rotate.
        severity: How strongly, 1 to 5.
        out: Folder for the copies, whose axis order is nchw; files that are there are not replaced.
        bounds: Smallest and largest value of an input; the copies are in the same units.
        seed: Seed of the draws.
    """
    from brittle.data.corruptions import write_copies

    copies = write_copies(reading.open(data, bounds), out, kind, severity, seed=seed, bounds=bounds)
    for path in copies.paths:
        print(path)
    if copies.failed:
        sentence = f"{copies.failed} of {copies.points} points could not be read; they are NaN in the copies"
        print(f"brittle: note: {sentence}", file=sys.stderr)
    count = f"{len(copies.paths)} cop{'y' if len(copies.paths) == 1 else 'ies'}"
    say(quiet, f"{copies.points} points, {count}; next: {program()} score MODEL {shlex.quote(str(copies.paths[0]))}")
    return 0
