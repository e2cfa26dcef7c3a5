"""Safeguards of `measure/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.safeguards.named_tests import CALLER, TURNS
from checks.taken_out import mutation

SAFEGUARDS = (
    # What is decided.
    mutation(
        "a label has its own block of the Gram", "measure/linearization.py",
        "        pair, one = [0, 1 + number], slice(number, number + 1)\n",
        "        pair, one = [0, 1], slice(number, number + 1)\n",
        "decisions/test_each_label.py::test_each_column_is_that_of_the_labels_own_run",
    ),
    mutation(
        "copies are looked at by what was decided at their own point", "measure/forward.py",
        "classifier(inputs, self.aside.only(rows))", "classifier(inputs, self.aside.only(rows * 0))",
        "decisions/test_scores.py::test_counts_are_those_of_single_copies",
    ),
    # What a finished run grows by.
    mutation(
        "draws go on behind those that are there", "measure/stopping.py",
        "        stream.skip(drawn)\n", "",
        "measure/test_stopping.py::test_more_draws_go_on_from_fewer",
    ),
    mutation(
        "the last of fewer draws is looked at where it is a look", "measure/stopping.py",
        "            if look < self.drawn:\n", "            if look <= self.drawn:\n",
        "measure/test_stopping.py::test_more_draws_go_on_from_fewer",
    ),
    mutation(
        "points that cannot be measured are not drawn for", "measure/stopping.py",
        "clean.finite if clean.wanted is None else clean.finite & clean.wanted)\n", "clean.finite)\n",
        "run/test_growing.py::test_more_draws_give_the_table_of_a_run_with_as_many_from_the_first",
    ),
    # Numbers.
    mutation(
        "a tie under noise is a flip", "measure/noisy_margins.py",
        "return ~(nearest > 0) | ~finite,", "return ~(nearest >= 0) | ~finite,",
        "measure/test_sampling.py::test_a_copy_that_votes_for_no_class_is_a_flip[tie]",
    ),
    mutation(
        "NaN under noise is no agreement", "measure/noisy_margins.py",
        "return ~(nearest > 0) | ~finite,", "return nearest <= 0,",
        "measure/test_sampling.py::test_a_copy_that_votes_for_no_class_is_a_flip[NaN]",
    ),
    mutation(
        "products of different pairs have no bias", "measure/gradient_variance.py",
        "torch.where(several, found, of_means + odd / 2)", "(of_means + even + odd) / 2",
        "measure/test_gradient_variance.py::test_it_is_the_mean_of_two_grams",
    ),
    # Threads, and what a caller has switched.
    mutation(
        "elementary attention is switched alone", "measure/curvature.py",
        "        with PASSES.alone(), sdpa_kernel(SDPBackend.MATH):", "        with sdpa_kernel(SDPBackend.MATH):",
        f"{TURNS}attention_is_elementary_for_nobody_else",
    ),
    mutation(
        "inputs that were made in inference mode", "measure/forward.py",
        "inputs.clone().requires_grad_(True) if differentiate", "inputs.detach().requires_grad_(True) if differentiate",
        f"{CALLER}inputs_that_were_made_in_inference_mode",
    ),
    # What is shown.
    mutation(
        "a second stage draws the first one again", "measure/sampling.py",
        "MIRRORED, self.pairs, clean)", "SINGLE, self.pairs, clean)",
        "measure/test_sampling.py::test_points_near_a_boundary_have_all_draws_and_the_others_the_first",
    ),
    mutation(
        "clear points get the draws", "measure/sampling.py",
        ".abs() < NEAR *", ".abs() > NEAR *",
        "scores/test_shrinkage.py::test_two_stages_have_less_error_at_the_same_mean_number_of_draws",
    ),
    mutation(
        "the first copies of a second stage again", "measure/groups.py",
        "    stream.skip(first)\n", "",
        "measure/test_sampling.py::test_points_near_a_boundary_have_all_draws_and_the_others_the_first",
    ),
    # Rare events.
    mutation(
        "flips that rays leave again are counted right", "measure/rare/stretched.py",
        " - math.log(back_share)", "",
        "measure/rare/test_stretched.py::test_rays_that_leave_the_flips_again",
    ),
    mutation(
        "orders that stopped before", "measure/stopping_rule.py",
        "orders[:, going[stopped]] = 0.0", "pass",
        "measure/test_stopping_rule.py::test_it_is_the_share_of_orders_that_begin_with_a_flip",
    ),
    mutation(
        "copies are as fine as the model", "measure/forward.py",
        "to(classifier.device, classifier.precision(inputs))", "to(classifier.device)",
        "measure/test_forward.py::test_copies_are_as_fine_as_the_model",
    ),
)  # fmt: skip
