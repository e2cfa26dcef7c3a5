"""What the commands of the studies say where they are asked for what cannot be done."""

from __future__ import annotations


class StudyError(Exception):
    """Something is wrong with what was asked; the message says what was found, where, and what to do."""
