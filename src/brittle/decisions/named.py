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


def as_decision(given: Decision | str | None) -> Decision:
    """A decision from itself or from its word, such as `top:5`; None is the predicted class.

    Raises:
        ParameterError: it is neither.
    """
    if given is None or isinstance(given, Decision):
        return given or PredictedClass()
    name, _, value = str(given).partition(":")
    try:
        match name:
            case "class" if not value:
                return PredictedClass()
            case "one-logit" if not value:
                return OneLogit()
            case "top":
                return SameTop(int(value)) if value else SameTop()
            case "within" if value:
                return Within(tuple(float(each) for each in value.split(",")))
            case "multilabel" if value in ("", EACH):
                return MultiLabel(each=value == EACH)
            case "multilabel":
                return MultiLabel(only=int(value) if value.removeprefix("-").isdecimal() else value)
    except ParameterError:
        raise
    except ValueError:
        pass
    raise ParameterError(
        f"a decision is one of class, one-logit, multilabel, multilabel:J (one label, counted from 0, or its name), "
        f"multilabel:each, top:K, within:T (such as within:0.1), or in Python one of brittle.decisions; found "
        f"{given!r:.60}"
    )
