"""The command that attacks a few points and estimates the robust accuracy of all."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from brittle.cli.common import DATA, MODEL, ROW_FAILURES, Config, Json, Quiet, say, show
from brittle.cli.options import DataOptions, ModelOptions
from brittle.estimate import CONFIDENCE
from brittle.text import as_json


def robust_accuracy(
    model: Annotated[str, Parameter(group=MODEL)],
    data: Annotated[Path, Parameter(group=DATA)],
    /,
    *,
    epsilon: str,
    attack: int = 500,
    declared: ModelOptions = ModelOptions(),
    reading: DataOptions = DataOptions(),
    norm: str = "linf",
    effort: str = "standard",
    seed: int = 0,
    confidence: float = CONFIDENCE,
    json: Json = False,
    quiet: Quiet = False,
    config: Config = None,
) -> int:
    """Estimate the robust accuracy of MODEL on DATA from attacks on a few points and one pass for each.

    Without labels every prediction counts as right. The interval belongs to the rectified answer.

    Args:
        model: As for `brittle score`.
        data: As for `brittle score`.
        epsilon: Right predictions with no other prediction found within this are robust, such as 8/255.
        attack: Number of points to attack, drawn at random.
        norm: Norm of the distance, linf, l2, l1 or l0.
        effort: Budget of passes per attacked point: fast, standard or thorough.
        seed: Seed of the draw and of the attacks.
        confidence: Confidence of the intervals.
    """
    from brittle.cli.score_options import Opening, ScoreOptions
    from brittle.extensions.worst_case.run import robust_accuracy as robust_accuracy_of

    scoring = ScoreOptions(scores=("logit_margin", "input_margin"), norm=(norm,), effort=effort)
    opening = Opening.checked(model, data, declared, reading, scoring, quiet)
    opening.check_there()
    settings: dict[str, Any] = {"norm": norm, "effort": effort, "seed": seed, "confidence": confidence}
    settings |= {"progress": not quiet, "note": lambda code, sentence: say(False, f"note: {code}: {sentence}")}
    answer = robust_accuracy_of(opening.classifier, opening.points, epsilon, attack, **settings)
    show(as_json(**asdict(answer)) if json else str(answer))
    return ROW_FAILURES if answer.estimated.dropped else 0
