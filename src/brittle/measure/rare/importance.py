"""Importance sampling of a rare flip, at the nearest flips that gradients find and around those already seen."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure.rare.asking import Ask, Search
from brittle.measure.rare.mixture import Covariance, Mixture, fit
from brittle.measure.rare.subset import Draw
from brittle.measure.rare.tangents import Tangents

LOOKED_AT = 30
"""Flips whose gradients are taken."""

SURPRISE = 0.2
"""Share of the sum of all weights from which on one more weight is a surprise."""


@dataclass(frozen=True)
class Weighted:
    """Draws of a mixture.

    Attributes:
        weights: density of the noise over that of the mixture where a draw flips, 0 elsewhere, `[m]`, float64.
        nonfinite: copies with NaN or infinite logits.
        ties: draws that tie.
        mixture: what was drawn from.
    """

    weights: Tensor
    nonfinite: int
    ties: int
    mixture: Mixture

    def unexpected(self, noise: Tensor) -> Tensor:
        """Whether flips at `noise` `[m, n]` would be a surprise, `[m]`.

        One draw there would weigh more than `SURPRISE` of all draws together, so the mixture expects no flips there.
        """
        return torch.exp(-self.mixture.ratios(noise)) > SURPRISE * self.weights.sum()


def importance(
    draw: Draw, covariance: Covariance, scales: Tensor, tangents: Tangents, flipped: Tensor, draws: int
) -> Search[Weighted | None]:
    """Importance sampling of one point: draws of a mixture about the places where the prediction flips, weighted.

    `P = mean_j w_j 1{flip_j}`, `w` the density of the noise over that of the mixture, at most `1 / PLAIN`. The parts
    of the mixture lie where linearised margins turn 0, and where flips were seen; it is fitted to these flips, and its
    draws are independent of them.

    Source: A. Owen, Y. Maximov, M. Chertkov, Importance sampling the union of rare events, Electron. J. Stat. 13
    (2019); the fit is that of R. Rubinstein, D. Kroese, The cross-entropy method (2004).

    Args:
        draw: plain noise.
        covariance: of the noise.
        scales: of the margins, `[C]`.
        tangents: linearised margins at noise that came near to a flip.
        flipped: noise that flips, `[f, n]`.
        draws: of the mixture.

    Returns:
        the draws; None where no linearised margin turns 0 anywhere.
    """
    found, chosen = tangents, flipped
    if len(flipped):
        count = min(LOOKED_AT, len(flipped))
        chosen = flipped[torch.arange(count, device=flipped.device) * len(flipped) // count]
        seen = yield Ask(chosen, True, scales)
        around = Tangents.at(chosen, seen, covariance)
        found = Tangents.together((tangents, around, around.means(covariance)))
    candidates = found.candidates(covariance)
    if candidates is None:
        return None
    mixture = fit(candidates, chosen, draws)
    drawn = mixture.draw(draw(draws))
    seen = yield Ask(drawn)
    weights = torch.exp(-mixture.ratios(drawn)).masked_fill(seen.margins > 0, 0.0)
    return Weighted(weights, seen.nonfinite, int((seen.margins == 0).sum()), mixture)
