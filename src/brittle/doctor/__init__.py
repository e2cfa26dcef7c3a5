"""Checks of a model, its data and the settings, made before anything is scored.

Each check looks at a few of the points and either raises, with what was found and what to do, or notes a finding that
goes into the run record and onto the report. `docs/reference/doctor.md` explains every code.
"""

from brittle.doctor.checks import CHECKS, OF_THE_COMMAND, Outcome, examine, run_all
from brittle.doctor.data import GUARD_ROWS, about_accuracy, check_unchanged, digest
from brittle.doctor.rounding import Reference
from brittle.doctor.settings import varying
from brittle.doctor.subject import LOOKED_AT, Finding, Subject

__all__ = [
    "CHECKS", "GUARD_ROWS", "LOOKED_AT", "OF_THE_COMMAND", "Finding", "Outcome", "Reference", "Subject",
    "about_accuracy", "check_unchanged", "digest", "examine", "run_all", "varying",
]  # fmt: skip
