"""Decisions by the words that the command line and the record of a run use."""

from __future__ import annotations

from brittle.decisions.base import Decision
from brittle.decisions.by_user import Custom
from brittle.decisions.classes import OneLogit, PredictedClass, SameTop
from brittle.decisions.labels import EACH, MultiLabel
from brittle.decisions.numbers import Within
from brittle.errors import ParameterError

DECISIONS: dict[str, type[Decision]] = {
    decision.name: decision for decision in (PredictedClass, OneLogit, MultiLabel, SameTop, Within, Custom)
}
"""Every decision by its name."""

WORDS = (
    "class, one-logit, multilabel, multilabel:J (one label, counted from 0, or its name), multilabel:each, top:K, "
    "within:T (such as within:0.1)"
)
"""How a decision is written."""


def as_decision(found: Decision | str | None) -> Decision:
    """A decision from itself or from its word, such as `top:5`; None is the predicted class.

    Raises:
        ParameterError: it is neither.
    """
    if found is None:
        return PredictedClass()
    if isinstance(found, Decision):
        return found
    if isinstance(found, str):
        name, _, value = found.partition(":")
        try:
            known = _from_word(name, value)
        except ValueError:
            known = None
        if known is not None:
            return known
    raise ParameterError(
        f"a decision is one of {WORDS}, or in Python one of brittle.decisions; found {found!r:.60}",
    )


def _labels(value: str) -> MultiLabel:
    """All labels, all and each of them, or one by its position or its name."""
    if value in ("", EACH):
        return MultiLabel(each=value == EACH)
    whole = value.removeprefix("-").isdecimal()
    return MultiLabel(only=int(value) if whole else value)


def _from_word(name: str, value: str) -> Decision | None:
    """The decision `name:value`; None where there is none of this name and kind of value.

    Raises:
        ValueError: the value is no number.
    """
    if name == SameTop.name:
        return SameTop(int(value)) if value else SameTop()
    if name == Within.name and value:
        return Within(tuple(float(each) for each in value.split(",")))
    if name == MultiLabel.name:
        return _labels(value)
    simple = {PredictedClass.name: PredictedClass, OneLogit.name: OneLogit}
    return simple[name]() if name in simple and not value else None
