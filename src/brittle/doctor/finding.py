"""What a check says that does not stop a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """Something a user should know that does not stop a run.

    Attributes:
        code: short name, stable.
        sentence: what was found, and what to do.
    """

    code: str
    sentence: str
