"""Scores that draw for each point until a question about it is answered."""

from __future__ import annotations

from collections.abc import Sequence

from brittle.errors import ParameterError
from brittle.estimate import FLIP_PROBABILITY
from brittle.scores.base import NoiseScore, Score
from brittle.scores.monte_carlo import MonteCarlo

DECIDED = "decided"
"""Draw until it is decided whether `p_robust` reaches the limit."""

MOST_DRAWS = 10_000
"""Noisy copies of a point at most by default, where a rule stops earlier."""


def drawn_until(
    scores: Sequence[Score],
    until: str | None = None,
    limit: float | None = None,
    precision: float | None = None,
    most_draws: int = MOST_DRAWS,
) -> tuple[Score, ...]:
    """`scores`, with a `MonteCarlo` that stops by the rule under every noise of the average case.

    It takes the place of the `MonteCarlo` under the same noise, and comes last where there is none. Without a rule the
    scores stay as they are.

    Args:
        scores: what is to be computed.
        until: `decided`, with `limit`; or None.
        limit: draw for a point until the interval of `p_robust` leaves this number, between 0 and 1.
        precision: draw for a point until its interval is no wider than this, between 0 and 1.
        most_draws: noisy copies of a point at most, even.

    Raises:
        ParameterError: a number is out of range, `until` and `limit` are not given together, or no score has noise.
    """
    if until not in (None, DECIDED):
        raise ParameterError("until", f"until takes 'decided' or nothing; found {until!r:.40}")
    if (until is None) != (limit is None):
        raise ParameterError(
            "until",
            "until='decided' and limit go together: limit=0.9 asks whether a prediction holds with probability 0.9; of "
            "a run that is there, brittle.analysis.decide(table, limit=0.9) says it",
        )
    if until is None and precision is None:
        return tuple(scores)
    noisy = [score for score in scores if isinstance(score, NoiseScore) and score.quantity == FLIP_PROBABILITY]
    if not noisy:
        raise ParameterError("until", "no score says how often noise changes a prediction; add one, such as moments")
    stopped = {
        one.noise: MonteCarlo(noise=one.noise, draws=most_draws, limit=limit, precision=precision) for one in noisy
    }
    kept: dict[Score, None] = {}
    for score in scores:
        kept[stopped.pop(score.noise, score) if isinstance(score, MonteCarlo) else score] = None
    return tuple(kept | dict.fromkeys(stopped.values()))
