"""The scores of a run that asks for all labels together and for each of them by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brittle.decisions import Decision, MultiLabel, OneLabel
from brittle.errors import ParameterError
from brittle.scores.base import Score
from brittle.scores.serving import serves


def of_each_label(scores: Sequence[Score], decision: Decision, names: Sequence[str]) -> tuple[Score, ...]:
    """`scores` of all labels together, then those of each label; as they are where the decision asks for no label.

    Args:
        scores: what is asked for.
        decision: what is decided.
        names: of the labels, in the order of the outputs; an empty one is not known.

    Raises:
        ParameterError: a score from outside leaves the label out of its parameters.
    """
    if not isinstance(decision, MultiLabel) or not decision.each:
        return tuple(scores)
    together = [score for score in scores if serves(score, replace(decision, each=False))]
    labels = [OneLabel(position, name or None) for position, name in enumerate(names)]
    single = [score.about(label) for label in labels for score in scores]
    silent = next((score for score in single if "label" not in score.parameters), None)
    if silent is not None:
        raise ParameterError(
            f"{silent.name} leaves the label out of its parameters, so no table could tell labels apart; let its "
            f"parameters begin with super().parameters",
        )
    return (*together, *single)
