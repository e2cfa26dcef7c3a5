"""Safeguards of `doctor/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.safeguards.named_tests import DEAD, LEAN, PLANTED
from checks.taken_out import mutation

SAFEGUARDS = (
    # What is decided.
    mutation(
        "a layer without bounds is named before the run", "doctor/checks.py",
        '    Check("certificates", certificates.check_certificates, FINITE),\n', "",
        "doctor/test_certificates.py::test_a_run_tells_it_before_it_scores_and_records_it",
    ),
    mutation(
        "a certificate is tried as the run decides", "doctor/subject.py",
        "        parts = (self.decided, self.inputs,", "        parts = (self.classifier, self.inputs,",
        "doctor/test_certificates.py::test_every_decision_is_tried_as_the_run_decides",
    ),
    mutation(
        "certificates cost beside all else", "doctor/cost.py",
        " if not isinstance(need, Certified)):", "):",
        "doctor/test_certificates.py::test_the_cost_of_the_rest_is_told_without_certificates",
    ),
    mutation(
        "a score that was asked for alone is not left out", "doctor/left_out.py",
        "if not reading or len(reading) == len(scores) or", "if not reading or",
        "doctor/test_left_out.py::test_alone_it_is_an_error",
    ),
    mutation(
        "a copy is asked for its head", "doctor/left_out.py",
        "        twin.model = other\n", "",
        "doctor/test_left_out.py::test_the_model_is_left_as_it_was",
    ),
    mutation(
        "other numbers in the padding are tried", "doctor/padding.py",
        "replace(aside, varies=None, inputs=None)", "aside",
        "doctor/test_several_tensors.py::test_padding_that_leaks_is_noted",
    ),
    mutation(
        "rows stand beside the other tensors of their own points", "doctor/subject.py",
        "        return self.classifier(inputs, self.aside.only(rows))\n",
        "        return self.classifier(inputs, self.aside.only(rows * 0))\n",
        "doctor/test_several_tensors.py::test_a_sound_model_passes_every_check",
    ),
    mutation(
        "columns of labels are looked for among the features", "doctor/subject.py",
        "            raise found from error", "            return",
        "doctor/test_label_columns.py::test_the_columns_are_named_and_the_advice_works",
    ),
    mutation(
        "outputs that look like labels are asked about", "doctor/outputs.py",
        "float(low) < LOW", "False",
        "doctor/test_outputs.py::test_outputs_that_look_like_labels_are_asked_about",
    ),
    # What a finished run grows by.
    mutation(
        "digest of the data's file after a run", "doctor/data.py",
        "        if now != then:\n", "        if False:\n",
        "doctor/test_planted_defects.py::test_a_file_that_is_overwritten_during_the_run_is_seen",
    ),
    # The checks before a run.
    mutation(
        "rows that depend on their batch", "doctor/company.py",
        "        if found is not None:\n            _refuse(", "        if False:\n            _refuse(",
        f"{PLANTED}[attention across rows]",
    ),
    mutation(
        "batches of many sizes", "doctor/company.py",
        "_in_pieces(subject, points[0], (subject.rows // 2, *SIZES))", "points[1]",
        f"{LEAN}[another function of batches of 32]",
    ),
    mutation(
        "batches as large as those of the run", "doctor/company.py",
        "_beside(subject, BRIGHT, subject.rows, last=True)", "points[1]",
        "doctor/test_company.py::test_batches_as_large_as_those_of_the_run_are_looked_at[the first 500 rows]",
    ),
    mutation(
        "dark inputs beside the points", "doctor/company.py",
        "_beside(subject, DARK, most, last=False)", "points[1]",
        f"{LEAN}[a branch where the mean is low]",
    ),
    mutation(
        "noisy copies in other batches", "doctor/company.py",
        "_in_pieces(subject, noisy[0], NOISY_SIZES)", "noisy[1]",
        f"{LEAN}[a branch where the largest is high]",
    ),
    mutation(
        "an output kept by the shape of the input", "doctor/company.py",
        "    if alike and", "    if False and",
        "doctor/test_state.py::test_memory_is_seen_before_the_run[a memo by shape]",
    ),
    mutation(
        "a step of the network is no defect", "doctor/rounding.py",
        "if not jumps(classifier, inputs[row : row + 1], found.largest, aside and aside.only(torch.tensor([row]))):",
        "if True:",
        "doctor/test_rounding.py::test_a_step_of_the_network_excuses_what_rounding_does",
    ),
    mutation(
        "randomness is no step", "doctor/rounding.py",
        "    if 2 * largest_difference(alone, again) >= largest:\n", "    if False:\n",
        "doctor/test_company.py::test_a_network_that_is_random_is_not_excused",
    ),
    mutation(
        "rounding is that of the logits that compete", "doctor/rounding.py",
        "    return share * ((first - sizes) + gap)",
        "    return share * ((first - sizes).amax(1, keepdim=True) + 0 * sizes + gap)",
        "doctor/test_outputs.py::test_a_mask_is_no_defect_and_hides_none[-1000000000.0-replaced]",
    ),
    mutation(
        "rounding of a margin is that of its two logits", "doctor/gradients.py",
        "[part.gather(1, both).double()", "[part.double()",
        "doctor/test_outputs.py::test_a_mask_is_no_defect_and_hides_none[-1000000000.0-replaced]",
    ),
    mutation(
        "the last digits of a mask are no change", "doctor/vanished.py",
        "torch.maximum(sizes, sizes.gather(1, own))", "sizes.amax(1, keepdim=True)",
        "doctor/test_outputs.py::test_saturated_gradients_are_seen_beside_a_mask",
    ),
    mutation(
        "a mask of minus infinity is named", "doctor/outputs.py",
        "        _refuse_masks(logits)\n", "",
        "doctor/test_outputs.py::test_a_mask_of_minus_infinity_is_named",
    ),
    mutation(
        "a probability is no logit", "doctor/outputs.py",
        '    "binary-logit": _about_one_logit,\n', '    "binary-logit": _about_probabilities,\n',
        "doctor/test_outputs.py::test_every_declaration_is_checked[one probability as binary-logit]",
    ),
    mutation(
        "a copy of the model that saw other inputs first", "doctor/state.py",
        '    subject.check_same("in a copy of the model that saw other inputs first", logits)\n', "",
        "doctor/test_state.py::test_memory_is_seen_before_the_run[statistics of the first batch]",
    ),
    mutation(
        "the first points at the end of the checks", "doctor/state.py",
        "    logits = subject.check_same(NOW)\n", "    logits = subject.logits\n",
        "doctor/test_state.py::test_what_changes_while_the_checks_are_made_is_seen_at_their_end",
    ),
    mutation(
        "gradients that are masked", "doctor/gradients.py",
        "    if found is not None and least > (limit := allowed.limit(found)):\n",
        "    if (limit := 0.0) and found:\n",
        f"{PLANTED}[a made-up gradient]",
    ),
    mutation(
        "probabilities that underflow are no copies", "doctor/duplicates.py",
        "if _underflown(subject, logits[:, group])", "if False",
        "doctor/test_outputs.py::test_probabilities_that_underflow_are_no_copies",
    ),
    mutation(
        "classes that agree by chance", "doctor/duplicates.py",
        "    if repeated:  # some", "    if False:  # some",
        "doctor/test_outputs.py::test_classes_that_agree_by_chance_in_the_first_rows_are_no_copies",
    ),
    mutation(
        "a number of rows is named where the first batch fails", "doctor/subject.py",
        "            if known is error:\n                known =", "            if False:\n                known =",
        "doctor/test_fixed_batch.py::test_the_number_of_rows_is_named",
    ),
    mutation(
        "a number of rows is named where the first batch fits", "doctor/company.py",
        "    if failed and len(failed)", "    if False and len(failed)",
        "doctor/test_fixed_batch.py::test_the_number_of_rows_is_named",
    ),
    mutation(
        "several numbers of rows are not one", "doctor/fixed_batch.py",
        "        return all(self.failure(other) is not None for other in others)\n", "        return bool(others)\n",
        "doctor/test_fixed_batch.py::test_a_model_that_takes_several_sizes_is_not_said_to_take_one",
    ),
    mutation(
        "mean and std do not hide the layout", "doctor/shapes.py",
        '"input_shape", "mean", "std")', '"input_shape")',
        "doctor/test_shapes.py::test_mean_and_std_of_channels_do_not_hide_the_layout",
    ),
    mutation(
        "buffers are no parameters", "doctor/state.py",
        "in (model.parameters(), model.buffers())", "in ([*model.parameters(), *model.buffers()], [])",
        "doctor/test_facts.py::test_buffers_are_no_parameters",
    ),
    mutation(
        "another preprocessing is tried", "doctor/preprocessing.py",
        "    if better:\n", "    if False:\n",
        "doctor/test_preprocessing.py::test_what_was_forgotten_is_named_with_what_to_type[made twice-0.0]",
    ),
    mutation(
        "the paired test of another preprocessing", "doctor/preprocessing.py",
        "max(_tail(gained, gained + lost, 0.5), ", "max(0.0, ",
        "doctor/test_preprocessing.py::test_the_tests_are_those_of_scipy",
    ),
    mutation(
        "another preprocessing is compared on more points", "doctor/preprocessing.py",
        "    if promising and not better", "    if False and not better",
        "doctor/test_preprocessing.py::test_what_the_first_points_leave_open_the_others_decide",
    ),
    mutation(
        "a guess is no preprocessing", "doctor/preprocessing.py",
        "_tail(int(other.sum()), len(other), commonest))", "0.0)",
        "doctor/test_preprocessing.py::test_a_guess_of_one_class_for_all_is_no_preprocessing",
    ),
    mutation(
        "dead points are not masked", "doctor/vanished.py",
        "torch.where(zero & still, _change", "torch.where(zero, _change",
        f"{DEAD}[half dead]",
    ),
    mutation(
        "what has no gradient where it changes is masked", "doctor/vanished.py",
        "torch.where(zero & still, _change", "torch.where(zero & ~still, _change",
        "doctor/test_vanished.py::test_masked_gradients_are_found_beside_dead_points_too[sign]",
    ),
    mutation(
        "many probes have the tighter limit", "doctor/gradients.py",
        ">= MANY else self.in_few", ">= 1e9 else self.in_few",
        "doctor/test_vanished.py::test_masked_gradients_are_found_beside_dead_points_too[a fifth of two networks]",
    ),
    # What is shown.
    mutation(
        "a single number stands beside a 0 in the passes of a run", "doctor/reference.py",
        "classifier.numbers(self.inputs, self.aside)", "classifier.read(self.inputs, self.aside).flatten(1)",
        "decisions/test_runs.py::test_a_model_may_return_a_single_number",
    ),
    mutation(
        "16 bits, in sums of scores", "doctor/outputs.py",
        " and _would_vary(logits) > allowed * whole", "",
        "doctor/test_outputs.py::test_scores_in_16_bits_are_no_probabilities",
    ),
    mutation(
        "16 bits, in repeated passes", "doctor/rounding.py",
        "return explained / SAME_BATCH if precision > COARSE else explained", "return explained",
        "doctor/test_outputs.py::test_dropout_shows_in_16_bits",
    ),
    mutation(
        "units of the inputs, at a step", "doctor/rounding.py",
        "smallest = size * classifier.bounds.largest(inputs)", "smallest = size",
        "doctor/test_rounding.py::test_no_unit_of_the_inputs_makes_every_difference_a_step",
    ),
    mutation(
        "models that cannot be copied", "doctor/first_pass.py",
        "except Exception as error:", "except (RuntimeError, TypeError) as error:",
        "doctor/test_state.py::test_a_model_that_cannot_be_copied_is_looked_at_without_a_copy",
    ),
    mutation(
        "a decision is asked again", "doctor/decision.py",
        '            _check_same(decision, first, decision.margins(others, outputs), "when it is asked again")\n',
        "            pass\n",
        "decisions/test_by_user.py::test_a_function_that_looks_at_more_than_its_row_is_refused",
    ),
    mutation(
        "a decision is asked for a row alone", "doctor/decision.py",
        '        _check_same(decision, first, alone, "when it is given that row alone")\n', "",
        "decisions/test_by_user.py::test_a_function_that_looks_at_more_than_its_row_is_refused",
    ),
)  # fmt: skip
