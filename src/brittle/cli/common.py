"""What the commands share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App, ArgumentCollection, Parameter

from brittle.errors import ModelError, UsageError

if TYPE_CHECKING:
    from brittle.data import Points
    from brittle.models import LoadedModel

Many = Parameter(consume_multiple=True, negative=())
Flag = Parameter(negative=())


def whole_numbers(app: App, command: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse fractions where a whole number is needed, for every option of every command; cyclopts would round them."""
    for argument in arguments:
        if argument.hint not in (int, int | None):
            continue
        for token in argument.tokens:
            try:
                int(token.value)
            except ValueError as error:
                name = token.keyword or argument.name
                raise UsageError("whole_number", f"{name} takes a whole number; found {token.value!r:.60}") from error


def whole_rows(batch_size: str) -> int | None:
    """Rows in one pass, or None for `auto`."""
    if batch_size == "auto":
        return None
    if not batch_size.lstrip("-").isdigit():
        raise UsageError("batch_size", f"--batch-size takes a whole number or auto; found {batch_size!r}")
    return int(batch_size)


def sphere_or(noise: str, sigma: Sequence[float], radius: Sequence[float]) -> str:
    """The noise family: that on the sphere where a radius is given, else `noise`."""
    if radius and (sigma or noise not in ("gaussian", "sphere")):
        raise UsageError("radius", "--radius is noise on the sphere of that length; leave out --sigma and --noise")
    return "sphere" if radius else noise


def sigmas_of(radius: Sequence[float], points: Points) -> tuple[float, ...]:
    """The standard deviation per coordinate of noise on spheres, for inputs as these points have them."""
    from brittle.noise import Sphere

    size = next(iter(points.batches(1))).inputs[0].numel()
    return tuple(Sphere.of_radius(each, size).sigma for each in radius)


def load(model: str, weights: Path | None) -> LoadedModel:
    """The network that MODEL names; one whose batch size is fixed is refused."""
    from brittle.models import load_model

    loaded = load_model(model, weights=weights)
    if loaded.fixed_batch is not None:
        raise ModelError(
            "fixed_batch",
            f"{model} was exported for batches of {loaded.fixed_batch}; export it with a dynamic batch dimension "
            f"(dynamic_shapes={{0: torch.export.Dim('batch')}})",
        )
    return loaded


def say(quiet: bool, sentence: str) -> None:
    """Tell what happens, on stderr, unless QUIET."""
    if not quiet:
        print(f"brittle: {sentence}", file=sys.stderr)
