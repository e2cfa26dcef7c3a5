"""An estimate in a notebook."""

from __future__ import annotations

from collections import Counter

from markupsafe import Markup

from brittle.display.markup import LONGEST, block, grid, paragraph, text, unreadable
from brittle.estimate import Estimate, Status
from brittle.report.wording import MISSING, plural, reach, signed

SHOWN = 10
"""Points that a notebook shows."""

DIGITS = 3
"""Digits of a number that count."""

_KNOWN = {int(status): status for status in Status}


def estimate_html(estimate: Estimate) -> str:
    """`estimate` as inert HTML: the first points with value, interval and status in words, and how many have which.

    One whose fields do not fit together is said to be one, and nothing is raised.
    """
    try:
        return str(block(_parts(estimate)))
    except Exception as error:  # noqa: BLE001 - as in a terminal
        return str(paragraph(text(unreadable("Estimate", error))))


def _parts(estimate: Estimate) -> list[Markup]:
    codes = estimate.status.tolist()
    said = estimate.detail or (None,) * len(codes)
    numbers = (one[:SHOWN].tolist() for one in (estimate.value, estimate.low, estimate.high))
    rows = [_row(place, *row) for place, row in enumerate(zip(*numbers, codes, said, strict=False))]
    left = len(codes) - len(rows)
    counts = [
        [text(_slug(code)), text(f"{count:,}"), text(_sentence(code))] for code, count in sorted(Counter(codes).items())
    ]
    return [
        paragraph(Markup("<b>{}</b>").format(text(f"Estimate of {plural(len(codes), 'point')}"))),
        *([grid(["point", "value", "interval", "status"], rows, words=frozenset({3}))] if rows else []),
        *([paragraph(text(f"and {plural(left, 'point')} more"))] if left else []),
        *([grid(["status", "points", "what it says"], counts, words=frozenset({0, 2}))] if counts else []),
    ]


def _row(place: int, value: float, low: float, high: float, code: int, detail: str | None) -> list[Markup]:
    interval = MISSING if low != low else reach(low, high, DIGITS)
    found = f"{_sentence(code)} Found: {detail}." if detail else _sentence(code)
    return [text(place), text(signed(value, DIGITS)), text(interval), text(found, LONGEST + len(_sentence(code)))]


def _slug(code: int) -> str:
    return _KNOWN[code].slug if code in _KNOWN else f"status {code}"


def _sentence(code: int) -> str:
    return _KNOWN[code].sentence if code in _KNOWN else f"Status {code}, which this version does not know."
