"""The distance from each point within which a classifier provably keeps its prediction."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from brittle.decisions import Decision
from brittle.errors import ParameterError
from brittle.estimate import check_norm
from brittle.extensions.certificates.graph import Network, UnsupportedLayer
from brittle.extensions.certificates.proof import ROUNDING, Proof, decided_outputs
from brittle.extensions.certificates.tracing import build_network
from brittle.measure.base import PROOFS, Measurement, NetworkTraits, Passes
from brittle.measure.forward import Clean
from brittle.measure.nearest.nearest import EXACT_SEARCHES
from brittle.model.classifier import Classifier

RADII = {"full": 8, "middle": 6, "fast": 7}  # average number of radii tried for a point, by proof
AGREEMENT = 1e-3  # largest relative distance between the classifier's scores and those of its layers in double
BLOCK_NUMBERS = 2**16  # input numbers of the points that are searched together, at most


@dataclass(frozen=True)
class CertifiedRadius:
    """The largest radius for which no other prediction was proved possible.

    `radius`, `[B]`, float64, is in the classifier's units; 0 where nothing could be proved. `passes`, `[B]`, int64,
    counts the clean pass, three to see how the network rounds, and for each radius that was tried one forward pass and
    one backward pass per linear function that was bounded, from an inner neuron on for one of that. A gradient step of
    the optimisation is one of each. `unsupported` is a layer that bounds cannot be sent through, such as `softmax`.
    """

    radius: Tensor
    passes: Tensor
    unsupported: str | None = None


@dataclass(frozen=True)
class Certified(Measurement):
    """The largest `r` for which `min_{|d| <= r} z_t(x + d) - z_j(x + d) > 0` is proved for all classes `j`.

    `t` is the predicted class. Another decision uses its margins, where these are linear in the model's output
    (`Decision.linear`; `custom` has no proof). The minima are bounded from below by linear relaxation (CROWN), so the
    true margin is at least `radius`; it is equal for a network without nonlinear layers and not `bounded`. First the
    input of each layer is bounded by intervals (`fast` ends here), then by linear relaxation (`middle` ends here, after
    two radii); last, in networks with rectifiers and no maxima where a radius takes few passes, the lines below
    rectifiers are optimised and the ball is proved in parts (`branching`). Each radius tried is a separate proof, which
    may reach less than that radius, and the largest reach is returned.

    Bounds are computed in double precision for the layers in exact arithmetic. A margin counts as positive above
    `ROUNDING (|z_t| + |z_j|)` plus `SLACK` times the largest difference between the classifier's scores and the exact
    ones at the point and at three inputs drawn around it. This allows for the rounding of a network that runs in single
    precision as far as these show it; it is no bound on the rounding elsewhere.

    The ball extends over all coordinates, and so contains the ball over those that vary.

    Supported are the layers of `operators` and `composites`: affine ones, activations of one number, products of two
    values, softmax, attention, normalisation over each row, and maxima. `unsupported` names the first other layer.

    Source: Zhang, Weng, Chen, Hsieh, Daniel, Efficient neural network robustness certification with general activation
    functions (NeurIPS 2018), section 3; Wang et al., Beta-CROWN (NeurIPS 2021), section 3, for the parts.

    Attributes:
        norm: `linf`, the largest change of one number, `l2`, the Euclidean distance, or `l1`, the sum of changes.
        bounded: only inputs inside the classifier's bounds count.
        proof: `full`; or `fast`: intervals bound what enters each layer, and each radius costs one forward pass and one
            backward pass for each margin that is not proved there yet; or `middle`: two more by linear relaxation.
    """

    norm: str = "linf"
    bounded: bool = True
    proof: str = "full"

    differentiates = False
    certifies = True

    def __post_init__(self) -> None:
        check_norm(self.norm)
        if self.proof not in PROOFS:
            raise ParameterError(f"no proof is called {self.proof!r}; there are {', '.join(PROOFS)}")

    def cost(self, network: NetworkTraits) -> Passes:
        """Return the cost of `RADII` radii, whose margins to all classes are bounded one by one."""
        radii = RADII[self.proof]
        return Passes(radii, radii * network.classes)

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[CertifiedRadius]:
        """Return the radii of `needs`, in blocks of points; for trees as far as their boxes were searched."""
        for search in EXACT_SEARCHES.values():
            exact = [search(need.norm, need.bounded, need.proof, classifier, clean) for need in needs]
            radii = [CertifiedRadius(numbers["proved"], numbers["passes"]) for numbers in exact if numbers is not None]
            if len(radii) == len(needs):
                return radii
        try:
            if clean.extra_inputs is not None and clean.extra_inputs.tensors:
                raise UnsupportedLayer("points of several tensors")
            if not classifier.decision.linear:
                raise UnsupportedLayer(f"the decision {classifier.decision.label}, which is no linear function")
            network = build_network(classifier, clean.inputs)
            finite = clean.inputs.flatten(1).isfinite().all(dim=1) & clean.finite
            usable = (finite & ~clean.tied).nonzero()[:, 0]
            _check_agreement(network, clean, usable, classifier.decision)
            return [_radii(need, network, classifier, clean, usable) for need in needs]
        except UnsupportedLayer as layer:
            passes = torch.full_like(clean.predicted, clean.passes)
            nothing = torch.zeros(len(passes), dtype=torch.float64, device=passes.device)
            return [CertifiedRadius(nothing, passes, str(layer)) for _ in needs]


def _check_agreement(network: Network, clean: Clean, usable: Tensor, decision: Decision) -> None:
    """Refuse layers that do not reproduce the classifier, or whose rows depend on each other."""
    for rows in (usable[:1], *usable.split(clean.rows)) if len(usable) else ():
        logits, exact = clean.logits[rows].double(), network.read(network(clean.inputs[rows]))
        if exact.dim() != 2:
            raise UnsupportedLayer(f"an output of shape {list(exact.shape)}")
        decided = decided_outputs(clean, rows)
        exact = exact if decided is None else decision.as_logits(exact, decided)
        if logits.shape != exact.shape or ((logits - exact).abs() > AGREEMENT * (1 + logits.abs())).any():
            raise UnsupportedLayer("layers that do not reproduce the classifier's scores")


def _radii(need: Certified, network: Network, classifier: Classifier, clean: Clean, usable: Tensor) -> CertifiedRadius:
    radius = torch.zeros(len(clean.logits), dtype=torch.float64, device=clean.logits.device)
    passes = torch.full_like(clean.predicted, clean.passes)
    for rows in usable.split(max(1, BLOCK_NUMBERS // clean.inputs[0].numel())) if len(usable) else ():
        proof = Proof(network, classifier, clean, rows, need.norm, need.bounded)
        # One last unit below, for the rounding of the additions in a distance.
        radius[rows] = proof.largest(need.proof) * (1 - ROUNDING)
        passes[rows] += proof.passes
    return CertifiedRadius(radius, passes)
