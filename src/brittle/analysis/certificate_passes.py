"""What certificates cost, apart from the search for the nearest input with another prediction."""

from __future__ import annotations

import re
from collections.abc import Iterable

from brittle.store.columns import Column

_SPENT = re.compile(r"([\d,]+) of the passes for the certificate")
"""How the detail of a point says what its certificate took; `brittle.scores.input_margin` writes it."""

_DECIDING = ("norm", "bounded", "certify", "proof", "label")
"""Parameters of a score on which its certificate depends: scores that agree in them share it."""


def certificate_passes(columns: Iterable[Column]) -> int:
    """Passes that the certificates of a run took, those that several scores share once; 0 where it has none.

    Args:
        columns: of the run.
    """
    spent: dict[tuple[object, ...], int] = {}
    for column in columns:
        if column.parameters.get("certify"):
            found = (_SPENT.search(detail) for detail in column.rows["detail"].dropna())
            key = tuple(column.parameters.get(name) for name in _DECIDING)
            spent[key] = sum(int(one[1].replace(",", "")) for one in found if one is not None)
    return sum(spent.values())


def certificates_text(columns: Iterable[Column]) -> str:
    """How many of the passes were those of certificates, as it stands in a sentence; empty where none were."""
    passes = certificate_passes(columns)
    return f"{passes:,} of them on certificates" if passes else ""
