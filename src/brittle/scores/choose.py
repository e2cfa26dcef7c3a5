"""From names and numbers, as the command line takes them, to scores."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from brittle.errors import UsageError
from brittle.estimate import FLIP_PROBABILITY
from brittle.measure.nearest import ATTACKS, EFFORTS
from brittle.noise import FAMILIES, Noise
from brittle.norms import DUAL_ORDER
from brittle.scores import (
    CATALOGUE,
    FirstOrderChange,
    MonteCarlo,
    NoiseScore,
    ProbabilityChange,
    SampledScore,
    Score,
    first_order_change,
    probability_change,
)

RUNGS = (6, 10, 20, 50, 100, 200, 500)
"""Budgets of draws, with 100 times their numbers, at which a comparison also reads off what the draws so far say."""


def choose(
    names: Sequence[str],
    *,
    sigmas: Sequence[float],
    family: str = "gaussian",
    draws: int | None = None,
    gradient_draws: int | None = None,
    clip: bool = False,
    classes: int | None = None,
    temperature: float | None = None,
    norms: Sequence[str] = (),
    attack: str | None = None,
    effort: str | None = None,
    certify: bool = False,
    bounded: bool = True,
    method: str | None = None,
    probes: int | None = None,
    columns: int | None = None,
) -> list[Score]:
    """The scores that `names` stand for, at every sigma.

    Where `monte_carlo` is among several scores, the estimators are compared with it: every estimator of the flip
    probability that draws is then also recorded at smaller budgets, which are the first draws of the largest and cost
    nothing.

    Args:
        names: keys of the catalogue.
        sigmas: noise levels in pixel units.
        family: name of the noise family.
        draws: noisy copies for the sampled scores; their own default when None.
        gradient_draws: noisy copies for the scores that differentiate at each; their own default when None.
        clip: clip noisy copies to the bounds, for the sampled scores.
        classes: competitors that linear scores keep; their own default when None.
        temperature: of the softmax; 1 when None.
        norms: of the distances, for the scores that are distances; L2 when empty.
        attack: what looks for the nearest other decision; the nearest of all attacks when None.
        effort: its budget; `standard` when None.
        certify: look for a lower bound of the distance as well.
        bounded: look for it inside the bounds only.
        method: how the Laplacian is found; `auto` when None.
        probes: random directions for it; its own default when None.
        columns: of the Hessian, for the bound on the mean absolute change; its own default when None.

    Raises:
        UsageError: an unknown score, noise family, norm, attack or effort, or an option that no chosen score takes.
        ParameterError: a number out of range.
    """
    for given, known, what in (
        (names, CATALOGUE, "score"),
        ([family], FAMILIES, "noise family"),
        (norms, DUAL_ORDER, "norm"),
        ([attack] if attack else [], ("best", *ATTACKS), "attack"),
        ([effort] if effort else [], EFFORTS, "effort"),
    ):
        unknown = [name for name in given if name not in known]
        if unknown:
            near = get_close_matches(unknown[0], known, 1)
            hint = f"did you mean {near[0]}? " if near else "separate names with blanks; " if "," in unknown[0] else ""
            if unknown[0].replace("-", "_") == "pseudo_margin":
                hint = "give its file with --pseudo-margin FILE; "
            raise UsageError("unknown_name", f"no {what} is called {unknown[0]!r}; {hint}there are {', '.join(known)}")
    noises = [FAMILIES[family](sigma) for sigma in dict.fromkeys(sigmas)]
    options = {"clip": clip or None, "classes": classes, "temperature": temperature}
    options |= {"attack": attack, "effort": effort, "certify": certify or None}
    options |= {"bounded": None if bounded else False, "method": method, "probes": probes, "columns": columns}
    budgets = {"draws": draws, "gradient_draws": gradient_draws}
    _check_all_taken(names, options | budgets | {"norm": tuple(norms) or None})
    comparing = MonteCarlo.name in names and len(names) > 1
    found: list[Score] = []
    for name in dict.fromkeys(names):
        kind = CATALOGUE[name]
        budget = draws if issubclass(kind, SampledScore) else gradient_draws
        for variant in _variants(kind, norms):
            found += _scores(kind, noises, options | {"draws": budget} | variant, comparing)
    return found


def _variants(kind: type[Score], norms: Sequence[str]) -> list[dict[str, Any]]:
    """What tells apart the scores that one name stands for: a distance in every norm, a change by every statistic."""
    if "norm" in _options_of(kind) and norms:
        return [{"norm": norm} for norm in dict.fromkeys(norms)]
    return [{"statistic": statistic} for statistic in STATISTICS.get(kind, ())] or [{}]


STATISTICS: dict[type[Score], tuple[str, ...]] = {
    ProbabilityChange: probability_change.STATISTICS,
    FirstOrderChange: first_order_change.STATISTICS,
}
"""The scores of one name that cost no more than one of them."""

_FLAGS = {"bounded": "unbounded", "method": "laplacian_method"}
"""Options by the names of the command line, where these differ."""


def _check_all_taken(names: Sequence[str], options: dict[str, Any]) -> None:
    """Raise where an option would silently change nothing."""
    for option, value in options.items():
        if value is not None and not any(option in _options_of(CATALOGUE[name]) for name in names):
            takers = ", ".join(name for name, kind in CATALOGUE.items() if option in _options_of(kind))
            raise UsageError(
                "unused_option",
                f"--{_FLAGS.get(option, option).replace('_', '-')} changes none of these scores; it is for {takers}",
            )


def _options_of(kind: type[Score]) -> set[str]:
    takes = set(inspect.signature(kind).parameters)
    if "draws" in takes and not issubclass(kind, SampledScore):
        return takes - {"draws"} | {"gradient_draws"}
    return takes


def _scores(kind: type[Score], noises: Iterable[Noise], options: dict[str, Any], comparing: bool) -> Iterator[Score]:
    takes = inspect.signature(kind).parameters
    given = {name: value for name, value in options.items() if value is not None and name in takes}
    if not issubclass(kind, NoiseScore):
        yield kind(**given)
        return
    for noise in noises:
        largest = kind(noise=noise, **given)
        if comparing and "draws" in takes and kind.quantity == FLIP_PROBABILITY:
            for budget in _smaller_budgets(largest.parameters["draws"]):
                yield kind(noise=noise, **(given | {"draws": budget}))
        yield largest


def _smaller_budgets(draws: int) -> list[int]:
    rungs = [*RUNGS, *(100 * rung for rung in RUNGS[1:])]
    return [rung for rung in rungs if rung < draws]
