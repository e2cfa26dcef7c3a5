"""Safeguards of the files at the top of the package, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.taken_out import mutation

SAFEGUARDS = (
    # What is decided.
    mutation(
        "labels that were alike when shortened stay whole", "estimate.py",
        "text if times[text] == 1 else label", "text",
        "test_estimate.py::test_what_people_read_of_a_label_is_short_and_stays_unique",
    ),
    # What is shown.
    mutation(
        "a parameter that is no number has a sentence", "estimate.py",
        "isinstance(one, float) and not math.isfinite(one)", "one is math.isfinite",
        "report/page/test_render.py::test_a_parameter_that_is_no_number_is_named[nan]",
    ),
)  # fmt: skip
