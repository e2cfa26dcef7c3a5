"""Whether a score is sound: its class variables, its parameters, its measurements, and what its estimate returns.

The scores of brittle pass through the same checks as those from outside.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from brittle.estimate import FLIP_PROBABILITY, Estimate, Evidence, Parameters, Status
from brittle.measure.base import Measurement
from brittle.model.loading.named_code import check_name, failing, kind_of, refused
from brittle.scores.options import KEY, NO_OPTION

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

TEXTS = ("title", "quantity", "cost", "reference", "explanation")
"""Class variables of a score that are text."""

CLASS_VARIABLES = ("name", *TEXTS, "safer", "colour", "preference", "model")
"""Class variables of a score; the last three may be properties."""

NUMBERS = ("value", "low", "high")
"""The fields of an estimate that are numbers."""


class ScoreLike(Protocol):
    """The part of a score that is looked at here."""

    @property
    def needs(self) -> tuple[Measurement, ...]:
        """The measurements that the formula reads."""
        ...

    @property
    def parameters(self) -> Parameters:
        """The parameters as the table writes them."""
        ...

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The score of every point of a batch."""
        ...


@cache
def check_class(kind: type, where: str) -> None:
    """Raise unless a class of scores says all that tables and reports ask of it.

    Args:
        kind: a class of scores.
        where: how it was named, for the message.

    Raises:
        ParameterError: it is no frozen dataclass, or leaves unsaid what tables and reports ask of it.
    """
    check_dataclass(kind, where)
    check_name(where, getattr(kind, "name", None), "name = 'my_score'")
    missing = [one for one in TEXTS if not isinstance(text := getattr(kind, one, None), str) or not text]
    if missing:
        raise refused(where, f"does not say its {', '.join(missing)}; expected a text for each")
    given = [one.name for one in fields(kind) if one.name in CLASS_VARIABLES]
    if given:
        raise refused(where, f"has a field {given[0]}; expected a class variable: {given[0]}: ClassVar[...] = ...")
    _check_class_variables(kind, where)


def check_dataclass(kind: type, where: str) -> None:
    """Raise unless `kind`, found at `where`, is a frozen dataclass that can be made.

    Raises:
        ParameterError: it is not.
    """
    if inspect.isabstract(kind):
        missing = ", ".join(sorted(getattr(kind, "__abstractmethods__", ())))
        raise refused(where, f"leaves out {missing}; write it")
    parameters = vars(kind).get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        raise refused(where, "is no frozen dataclass; write @dataclass(frozen=True) above the class")


def _check_class_variables(kind: Any, where: str) -> None:
    """Raise where a class variable that is no text has a value that it may not have; properties are not looked at."""
    places: Mapping[str, tuple[object, str]] = {
        "safer": (kind.safer in ("higher", "lower", None), "'higher', 'lower' or None"),
        "colour": (kind.colour is None or isinstance(kind.colour, int), "a whole number or None"),
        "preference": (kind.preference is None or isinstance(kind.preference, int | float), "a number or None"),
        "model": (kind.model is None or isinstance(kind.model, str), "a text or None"),
    }
    for name, (right, expected) in places.items():
        value = inspect.getattr_static(kind, name)
        if not right and not isinstance(value, property):
            raise refused(where, f"has {name} = {value!r:.60}; expected {expected}")


def check_parameters(score: ScoreLike) -> None:
    """Raise unless the class of a score is sound, and its parameters are those of no other score.

    Raises:
        ParameterError: it is not, or a field that decides equality, and is not its default, stands in no parameter.
    """
    kind: type[DataclassInstance] = type(score)  # type: ignore[assignment]
    check_class(kind, f"{kind.__module__}.{kind.__qualname__}")
    with failing(kind, "parameters"):
        parameters = score.parameters
    if not isinstance(parameters, dict):
        found = kind_of(parameters)
        raise refused(f"{kind.__qualname__}.parameters", f"is {found}; expected a property that gives a dict")
    hidden = [one.name for one in _deciding(kind) if one.name not in parameters and not _is_default(one, score)]
    if hidden:
        raise refused(
            kind.__qualname__, f"leaves {', '.join(hidden)} out of its parameters, so no table could tell; add it"
        )


def _deciding(kind: type[DataclassInstance]) -> Iterator[Field[Any]]:
    """The fields that decide whether two scores are equal, but for those that are told in another way."""
    return (one for one in fields(kind) if one.compare and one.metadata.get(KEY) is not NO_OPTION[KEY])


def _is_default(field: Field[Any], score: object) -> bool:
    value = getattr(score, field.name)
    default = field.default_factory() if field.default_factory is not MISSING else field.default
    if value is None or value is default:
        return True
    same = value == default
    return getattr(same, "shape", ()) == () and bool(same)


def needs_of(score: ScoreLike) -> tuple[Measurement, ...]:
    """The measurements that a score reads.

    Raises:
        ParameterError: it fails, or gives something else.
    """
    kind = type(score)
    with failing(kind, "needs"):
        needs = score.needs
        hash(needs)
    if not isinstance(needs, tuple) or not all(isinstance(need, Measurement) for need in needs):
        found = needs if isinstance(needs, tuple) else kind_of(needs)
        raise refused(
            f"{kind.__qualname__}.needs", f"is {found!s:.80}; expected a property with a tuple of measurements"
        )
    return needs


def estimate_of(score: Any, measured: Mapping[Measurement, Any], confidence: float, points: int) -> Estimate:
    """What a score estimates of a batch of so many `points`, checked.

    Raises:
        ParameterError: it fails, or returns something else than an estimate of each point.
    """
    kind = type(score)
    with failing(kind, "estimate"):
        found = score.estimate(measured, confidence)
    fault = _fault(found, points) or _fault_of_numbers(found, score.quantity == FLIP_PROBABILITY)
    if fault:
        raise refused(f"{score.name}.estimate", f"returned {fault}")
    return found


def _fault(found: object, points: int) -> str | None:
    """What is wrong with the form of an estimate: its type, its shapes, its codes."""
    if not isinstance(found, Estimate):
        return f"{kind_of(found)}; expected an Estimate, as brittle.scores.base.finish makes it"
    fields_there = {name: getattr(found, name) for name in (*NUMBERS, "status", "passes")}
    fields_there |= {} if found.evidence is None else {"evidence": found.evidence}
    if found.counted is not None:
        if not isinstance(found.counted, tuple) or len(found.counted) != 2:
            return f"counted of {kind_of(found.counted)}; expected two tensors"
        fields_there |= dict(zip(("counted low", "counted high"), found.counted, strict=True))
    for name, one in fields_there.items():
        if not isinstance(one, Tensor):
            return f"{name} of {kind_of(one)}; expected a tensor"
        if one.shape != (points,):
            return f"{name} of shape {list(one.shape)}; expected [{points}], one for each point"
        whole = name in ("status", "passes", "evidence")
        if one.dtype is torch.bool or one.dtype.is_complex or one.dtype.is_floating_point == whole:
            return f"{name} of {one.dtype}; expected {'whole numbers' if whole else 'torch.float64'}"
    if found.detail is not None and (
        len(found.detail) != points or not all(isinstance(one, str | None) for one in found.detail)
    ):
        return f"{len(found.detail)} details; expected {points}, a text or None for each point"
    return _fault_of_codes(found)


def _fault_of_codes(found: Estimate) -> str | None:
    for name, codes, known in (("status", found.status, Status), ("evidence", found.evidence, Evidence)):
        strange = set() if codes is None else {*codes.tolist()} - {int(one) for one in known}
        if strange:
            return f"the {name} {min(strange)}; expected a member of brittle.estimate.{known.__name__}"
    if bool((found.passes < 0).any()):
        return f"{int(found.passes.min())} passes; expected 0 or more"
    return None


def _fault_of_numbers(found: Estimate, is_probability: bool) -> str | None:
    """What is wrong with the numbers of the points whose status promises one."""
    valued = torch.tensor([Status(code).has_value for code in found.status.tolist()], dtype=torch.bool)
    value, low, high = (getattr(found, name).detach().cpu() for name in NUMBERS)
    ordered = (low <= value) & (value <= high) | low.isnan() & high.isnan() & ~value.isnan()
    within = (value >= 0) & (value <= 1) if is_probability else torch.ones_like(ordered)
    for right, expected in (
        (ordered, "low <= value <= high, or NaN at both ends; a NaN value only under a status that carries no number"),
        (within, "a flip probability within [0, 1]"),
    ):
        wrong = (valued & ~right).nonzero().flatten().tolist()
        if wrong:
            at = wrong[0]
            ends = f"[{float(low[at]):.6g}, {float(high[at]):.6g}]"
            return f"{float(value[at]):.6g} with the interval {ends} for point {at} of the batch; expected {expected}"
    return None
