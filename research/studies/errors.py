"""The error of the commands of the studies."""

from __future__ import annotations


class StudyError(Exception):
    """Something is wrong with the request or with a process; the message says what was found and what to do."""
