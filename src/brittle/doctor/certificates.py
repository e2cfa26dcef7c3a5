"""Certificates that were asked for: can they be computed, and what do they cost beside the search?"""

from __future__ import annotations

from collections.abc import Iterator

from brittle.doctor.certificate_trial import Trial, certificates_among, tried
from brittle.doctor.durations import duration
from brittle.doctor.finding import Finding
from brittle.doctor.subject import Subject
from brittle.measure import Certified, Measurement, Nearest

TIMED = 4
"""Points whose certificates are timed together, beside one alone."""

SEARCHED = 32
"""Points whose search is timed together: one alone takes nearly as long as a batch."""


def check_certificates(subject: Subject) -> Iterator[Finding | str]:
    """Bounds go through every layer, where a score asks for certificates; looked at in one point."""
    reasons = list(dict.fromkeys(trial.unsupported for trial in subject.certificates if trial.unsupported is not None))
    for reason in reasons:
        yield Finding(
            "no_certificate",
            f"no certificate can be computed, because no lower bound goes through {reason}; every point would get the "
            f"status no_certificate, a low end of 0 that proves nothing, and the distance that the attack finds: leave "
            f"the certificate out (no --certify, certify=False) and use the attack alone",
        )
    if subject.certificates and not reasons:
        yield "bounds go through every layer"
    elif not subject.certificates:
        yield "no chosen score asks for certificates"


def cost_of_certificates(subject: Subject) -> str:
    """Time and passes of the certificates of a run, beside those of the search, both taken at some of its points."""
    if any(trial.unsupported is not None for trial in subject.certificates):
        return "none can be computed"
    return "; ".join(_cost(subject, need) for need in certificates_among(subject.needs)) or "none asked for"


def _cost(subject: Subject, need: Certified) -> str:
    total = len(subject.points) if subject.points is not None else len(subject.batch)
    alone, count = _trial(subject, need, 1), min(TIMED, len(subject.inputs))
    several = _trial(subject, need, count)
    each = max(0.0, several.seconds - alone.seconds) / (count - 1) if count > 1 else alone.seconds
    once = max(0.0, alone.seconds - each)  # the network is traced anew for every batch
    seconds = total * each + once * -(-total // max(1, subject.rows // 2))
    said = (
        f"{need.norm}: about {duration(seconds)} for {total:,} points on top of that ({several.passes:,.0f} passes a "
        f"point, {each:.2g} s and {once:.2g} s for each batch, at the first {count})"
    )
    search = next((one for one in subject.needs if isinstance(one, Nearest) and one.norm == need.norm), None)
    if search is None:
        return f"{said}; an estimate"
    looked = min(SEARCHED, len(subject.inputs))
    found = _trial(subject, search, looked)
    times = several.seconds / count / (found.seconds / looked)
    return (
        f"{said}, {times:.2g} times as long as the search ({search.effort}, {found.passes:,.0f} passes and "
        f"{found.seconds / looked:.2g} s a point, at the first {looked}); an estimate"
    )


def _trial(subject: Subject, need: Measurement, count: int) -> Trial:
    return tried(need, subject.decided, subject.inputs, subject.aside, subject.seed, count)
