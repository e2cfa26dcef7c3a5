"""The nearest input with another prediction: its distance, found by attacks and certified from below."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import COUNT, DISTANCES, INPUT_MARGIN, Estimate, Status
from brittle.measure import Clean, Forward, Measurement, Nearest, NearestPoint
from brittle.measure.base import PROOFS
from brittle.measure.nearest import ATTACKS, EFFORTS
from brittle.measure.nearest.nearest import check_search
from brittle.registry import load
from brittle.scores.base import Score, clean_status, finish, mark
from brittle.scores.options import option


@dataclass(frozen=True)
class SearchedScore(Score):
    """Base of the scores of the nearest input that attacks find: the fields of the search."""

    norm: str = field(default="l2", metadata=option(choices=DISTANCES))
    attack: str = field(default="best", metadata=option(choices=("best", *ATTACKS)))
    effort: str = field(default="standard", metadata=option(choices=tuple(EFFORTS)))
    bounded: bool = True

    unsaid = ("attack", "effort", "bounded", "certify", "proof")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_search(self.norm, self.attack, self.effort, self.bounded)


@dataclass(frozen=True)
class InputMargin(SearchedScore):
    """`min ||x' - x||_p` over the inputs `x'` with another prediction than `x`, in pixel units; 0 at a tie.

    The value is the distance of the nearest such input that was found, and the upper end of the interval; the lower
    end is the radius that was certified, 0 without a certificate. Misclassified points have margins, too. The status is
    `not_found` where the value is infinite; `masked` where gradients vanish or mislead; `no_certificate` in place of
    `ok` where bounds cannot be sent through a layer, which the detail names; and `refuted`, with a low end of 0, where
    another prediction was found nearer than the radius that was certified.

    Of an ensemble of trees both come from one search of its boxes, by effort: `low` needs no certificate, and is the
    value itself where the search ended, which is then exact (`docs/how-to/trees.md`).

    Validity: the interval holds the margin, up to what single precision rounds (see
    `brittle.extensions.certificates.radius.Certified`). `docs/explanation/attacks.md` measures its error.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 2.1.

    Attributes:
        norm: norm of the distance, `l2`, `linf` or `l1`; or `l0`, the number of changed values, inside finite bounds.
        attack: what looks for the nearest other decision: `best` for the nearest of all attacks, or one by name.
        effort: budget of passes per point for it: `fast`, `standard` or `thorough`.
        bounded: stay inside the classifier's bounds.
        certify: look for a certified lower bound of the distance as well; `brittle doctor` tells its cost before a run.
        proof: of that bound: `full` takes hundreds to thousands of passes per point, more than the search with little
            effort; `fast` some tens, fewer than it, and proves less, above all in deep networks; `middle` a
            twentieth to a third of `full`, and a tenth to nine tenths of the distance (`docs/explanation/margins.md`).

    Raises:
        ParameterError: a proof where no certificate is asked for; or `l0` without bounds or with `certify`.
    """

    certify: bool = False
    proof: str = field(default="full", metadata=option(choices=PROOFS))

    name: ClassVar[str] = INPUT_MARGIN
    title = "Input margin"
    quantity = "distance"
    cost = "by effort"
    reference = "Ngnawé et al. (NeurIPS 2024), section 2.1"
    serves = "all"
    explanation = (
        "The distance to the nearest input found with another prediction: an upper bound, as a search may miss a "
        "nearer one. Many passes."
    )
    colour = 11

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.certify and self.norm == COUNT:
            raise ParameterError(
                f"no distance in {COUNT} can be certified; leave out certify=true, or take another norm"
            )
        if self.proof != "full" and not self.certify:
            advice = "ask for one (--set input_margin.certify=true, certify=True) or leave the proof out"
            raise ParameterError(f"proof {self.proof!r} says how one is computed, and none is asked for; {advice}")

    @property
    def needs(self) -> tuple[Measurement, ...]:
        needs = (Forward(), Nearest(self.norm, self.attack, self.effort, self.bounded))
        certified = load("measurement", "certified") if self.certify else None
        return needs if certified is None else (*needs, certified(self.norm, self.bounded, self.proof))

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        clean: Clean = measured[Forward()]
        nearest: NearestPoint = measured[self.needs[1]]
        distance, status = nearest.distance, nearest_status(clean, nearest)
        proved = torch.zeros_like(distance) if nearest.proved is None else nearest.proved
        if not self.certify:
            return finish(distance, proved, distance, status, nearest.passes)
        certified = measured[self.needs[2]]
        # A counterexample contradicts the certificate, beyond what rounds in a distance.
        refuted = (certified.radius > distance * (1 + 1e-6)) & (nearest.predicted >= 0)
        certificate_passes, status = certified.passes - clean.passes, mark(status, refuted, Status.REFUTED)
        if certified.unsupported is None:
            detail = _about_certificate(certified, nearest, certificate_passes, refuted)
        else:
            detail = (f"no lower bound goes through {certified.unsupported}",) * len(distance)
            status = torch.where(status == int(Status.OK), int(Status.NO_CERTIFICATE), status)
        low = torch.maximum(certified.radius, proved).where(~refuted, 0.0)
        return finish(distance, low, distance, status, nearest.passes + certificate_passes, detail)

    def counterexamples(self, measured: Mapping[Measurement, Any]) -> NearestPoint:
        return measured[self.needs[1]]


def nearest_status(clean: Clean, nearest: NearestPoint) -> Tensor:
    status = mark(clean_status(clean), nearest.distance.isinf(), Status.NOT_FOUND)
    doubtful = nearest.masked & ~clean.tied & (status <= int(Status.NOT_FOUND))
    return torch.where(doubtful, int(Status.MASKED), status)


def _about_certificate(certified: Any, nearest: NearestPoint, passes: Tensor, refuted: Tensor) -> tuple[str, ...]:
    details = [f"{count:,} of the passes for the certificate" for count in passes.tolist()]
    for row in refuted.nonzero()[:, 0].tolist():
        details[row] = (
            f"the certificate and the attack contradict each other: a radius of {float(certified.radius[row]):.6g} was "
            f"certified, and another prediction found {float(nearest.distance[row]):.6g} away; {details[row]}"
        )
    return tuple(details)
