"""What the commands of the studies say where something goes wrong."""

from __future__ import annotations


class StudyError(Exception):
    """Something is wrong with what was asked, or with a process; the message says what was found and what to do."""
