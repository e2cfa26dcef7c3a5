"""Tests that several safeguards name, by the beginning of their path or whole."""

from __future__ import annotations

MODE, CALLER = "model/test_evaluation_mode.py::test_", "model/test_caller_modes.py::test_"
TURNS, IN_USE = "model/test_turns.py::test_", "model/test_in_use.py::test_"
LEAN = "doctor/test_company.py::test_rows_that_lean_on_each_other_are_refused"
DEAD = "doctor/test_vanished.py::test_dead_points_are_counted_and_no_gradient_is_called_masked"
PLANTED = "doctor/test_planted_defects.py::test_a_defect_is_named_and_nothing_is_scored"
