"""What is wrong with this model, these data, these settings, before anything is scored.

Each check looks at a few of the points and either raises, with what was found and what to do, or notes a finding that
goes into the run record and onto the report. `docs/doctor.md` explains every code.
"""

from brittle.data.points import check_values
from brittle.doctor.checks import CHECKS, Diagnosis, Outcome, examine, run_all
from brittle.doctor.data import (
    GUARD_ROWS,
    about_accuracy,
    about_orientation,
    check_accuracy,
    check_expected,
    check_unchanged,
    confusion_in,
)
from brittle.doctor.rounding import Reference
from brittle.doctor.settings import leave_out, varying
from brittle.doctor.subject import LOOKED_AT, Finding, Subject, unweighted

__all__ = [
    "CHECKS",
    "GUARD_ROWS",
    "LOOKED_AT",
    "Diagnosis",
    "Finding",
    "Outcome",
    "Reference",
    "Subject",
    "about_accuracy",
    "about_orientation",
    "check_accuracy",
    "check_expected",
    "check_unchanged",
    "check_values",
    "confusion_in",
    "examine",
    "leave_out",
    "run_all",
    "unweighted",
    "varying",
]
