"""Safeguards of `decisions/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.taken_out import mutation

SAFEGUARDS = (
    # What is decided.
    mutation(
        "False is no tie", "decisions/by_user.py",
        "torch.where(found, 1.0, -1.0)", "torch.where(found, 1.0, 0.0)",
        "decisions/test_scores.py::test_a_function_that_says_true_or_false_is_counted_as_its_margin",
    ),
    # Noise.
    mutation(
        "the code of a function holds what is deep inside it", "decisions/function_code.py",
        "DEEPEST = 40\n", "DEEPEST = 6\n",
        "noise/test_transform_code.py::test_the_digest_of_a_function_tells_it_from_others",
    ),
    mutation(
        "the code of a function holds what a function within it names", "decisions/function_code.py",
        "set(code.co_names).union(*map(_names, inner))", "set(code.co_names)",
        "noise/test_transform_code.py::test_the_digest_knows_what_of_its_module_a_function_names",
    ),
    mutation(
        "a function of the user's works on copies", "decisions/by_user.py",
        "self.compare(outputs.clone(), decided.clone())", "self.compare(outputs, decided)",
        "decisions/test_by_user.py::test_a_function_that_works_in_place_decides_as_one_that_does_not",
    ),
)  # fmt: skip
