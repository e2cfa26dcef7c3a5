"""Scores that draw for each point until a question about it is answered."""

from __future__ import annotations

from collections.abc import Sequence

from brittle.errors import ParameterError
from brittle.estimate import FLIP_PROBABILITY, MOST_DRAWS
from brittle.intervals import check_share
from brittle.measure import Sample, SampleUntil
from brittle.noise import Noise
from brittle.scores.base import NoiseScore, Score
from brittle.scores.monte_carlo import MonteCarlo

DECIDED = "decided"
"""Draw until it is decided whether `p_robust` reaches the limit."""


def drawn_until(
    scores: Sequence[Score],
    until: str | None = None,
    limit: float | None = None,
    precision: float | None = None,
    most_draws: int = MOST_DRAWS,
) -> tuple[Score, ...]:
    """`scores`, with a `MonteCarlo` that stops by the rule under every noise of the average case.

    It takes the place of the `MonteCarlo` under the same noise, and comes last where there is none. It clips its copies
    where the scores under that noise clip theirs. Without a rule the scores stay as they are.

    Args:
        scores: what is to be computed.
        until: `decided`, with `limit`; or None.
        limit: draw for a point until the interval of `p_robust` leaves this number, between 0 and 1.
        precision: draw for a point until its interval is no wider than this, between 0 and 1.
        most_draws: noisy copies of a point at most, even.

    Raises:
        ParameterError: a number is out of range, `until` and `limit` are not given together, or no score has noise.
    """
    check_share("limit", limit)
    check_share("precision", precision)
    if until not in (None, DECIDED):
        raise ParameterError(f"until takes 'decided' or nothing; found {until!r:.40}")
    if until is not None and limit is None:
        raise ParameterError(
            "until decided needs a limit, such as 0.9 (--limit 0.9, limit=0.9): the probability to hold with"
        )
    if until is None and limit is not None:
        raise ParameterError(
            "a limit draws for each point only together with --until decided (until='decided'); which points of a run "
            "hold at another limit, brittle show RUN --limit 0.9 says, and brittle.analysis.decide(table, limit=0.9)",
        )
    if until is None and precision is None:
        return tuple(scores)
    noisy = [score for score in scores if isinstance(score, NoiseScore) and score.quantity == FLIP_PROBABILITY]
    if not noisy:
        raise ParameterError("no score says how often noise changes a prediction; add one, such as moments")
    stopped = {
        (noise, clip): MonteCarlo(noise=noise, draws=most_draws, clip=clip, limit=limit, precision=precision)
        for noise, clip in _copies(noisy)
    }
    kept: dict[Score, None] = {}
    for score in scores:
        kept[stopped.pop((score.noise, score.clip), score) if isinstance(score, MonteCarlo) else score] = None
    return tuple(kept | dict.fromkeys(stopped.values()))


def _copies(scores: Sequence[NoiseScore]) -> dict[tuple[Noise, bool], None]:
    """The noises of the scores, each with whether copies are clipped; not, where no score looks at copies."""
    looked = [
        (score.noise, need.clip) for score in scores for need in score.needs if isinstance(need, Sample | SampleUntil)
    ]
    seen = {noise for noise, _ in looked}
    return dict.fromkeys([*looked, *((score.noise, False) for score in scores if score.noise not in seen)])
