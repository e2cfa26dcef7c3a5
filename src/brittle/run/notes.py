"""The notes of a run, told to the one who started it: each once, as soon as it is known."""

from __future__ import annotations

from collections.abc import Callable

from brittle.errors import warn
from brittle.store.record import RunRecord

Told = Callable[[str, str], None]
"""Called with the code and the sentence of a note."""


class Once:
    """Tells every note of a run once.

    Args:
        say: what a note is told to.
    """

    def __init__(self, say: Told) -> None:
        self._say = say
        self._told: set[tuple[str, str]] = set()

    def tell(self, code: str, sentence: str) -> None:
        """Tell a note, unless it was told."""
        if (code, sentence) not in self._told:
            self._told.add((code, sentence))
            self._say(code, sentence)

    def tell_rest(self, record: RunRecord) -> None:
        """Tell what else a finished run notes."""
        for note in record.warnings:
            self.tell(note.code, note.sentence)


class Warnings(Once):
    """Tells every note of a run as a warning of the category `BrittleWarning`, at the line that called brittle."""

    def __init__(self) -> None:
        super().__init__(warn)
