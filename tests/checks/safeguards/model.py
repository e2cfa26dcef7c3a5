"""Safeguards of `model/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.safeguards.named_tests import CALLER, IN_USE, MODE, TURNS
from checks.taken_out import Mutation, mutation

SAFEGUARDS = (
    mutation(
        "what was compiled runs as PyTorch alone", "model/classifier.py",
        "standard_modes(self.device), uncompiled():", "standard_modes(self.device):",
        "model/test_uncompiled.py::test_what_was_compiled_is_measured_as_the_network_itself",
    ),
    # What is decided.
    mutation(
        "a pass is remembered with what is beside its inputs", "model/pass_memory.py",
        "    parts += [] if aside is None else [aside.tensors[name] for name in sorted(aside.tensors)]\n", "",
        "model/test_pass_memory.py::test_what_is_beside_an_input_counts",
    ),
    mutation(
        "what does not vary is as it is at the point", "model/aside.py",
        "        if self.varies is None or self.inputs is None:\n", "        if True:\n",
        "data/test_beside.py::test_gradients_count_what_varies_alone",
    ),
    mutation(
        "marks of the beginning and the end of a text do not vary", "model/texts.py",
        "found[MASK] * (1 - special)", "found[MASK]",
        "data/test_texts.py::test_the_words_vary_and_their_marks_do_not",
    ),
    mutation(
        "a pass that says of no point is refused", "model/classifier.py",
        "        if aside is None or aside.decided is None:\n",
        "        if aside is None:\n"
        "            return self.decision.as_logits(outputs, self.decision.decide(outputs))\n"
        "        if aside.decided is None:\n",
        "decisions/test_scores.py::test_a_pass_that_does_not_say_of_which_point_is_refused",
    ),
    mutation(
        "a point that differs from itself is refused", "model/classifier.py",
        "        self.decision.check_taken(-logits[:, 1:])\n", "",
        "decisions/test_scores.py::test_a_function_by_which_a_point_differs_from_itself_is_refused",
    ),
    # Models outside PyTorch.
    mutation(
        "scores of pairs of classes are no class scores", "model/arrays.py",
        " and not self._pairs:\n", ":\n",
        "model/test_array_models.py::test_one_against_one_scores_are_refused",
    ),
    mutation(
        "the class of the largest score is the one predicted", "model/arrays.py",
        "        if differ.any():\n", "        if False:\n",
        "model/test_array_models.py::test_a_classifier_that_predicts_another_class_than_its_largest_score_is_refused",
    ),
    mutation(
        "a probability of 0 has a finite logarithm", "model/arrays.py",
        ".clip(SMALLEST_PROBABILITY)\n", "\n",
        "model/test_array_models.py::test_probabilities_become_their_logarithms_and_zero_a_finite_one",
    ),
    mutation(
        "an ONNX file reads no other file", "model/loading/onnx_file.py",
        '    if _OTHER_FILE.search(content) or content[4:8] == b"ORTM":\n', "    if False:\n",
        "model/loading/test_onnx_file.py::test_weights_in_another_file_are_refused_and_not_read",
    ),
    mutation(
        "inputs of an ONNX file keep their order", "model/loading/onnx_file.py",
        "len(kept) <= 1 or kept == [size for size in found if size != 1]", "True",
        "model/loading/test_onnx_file.py::test_numbers_are_never_put_in_another_order",
    ),
    mutation(
        "an ONNX graph that disagrees with onnxruntime is not used", "model/loading/onnx_network.py",
        "return None if share <= ALLOWED else", "return None if True else",
        "model/loading/test_onnx_network.py::test_a_graph_that_disagrees_is_not_used",
    ),
    mutation(
        "a masked class hides no disagreement of another", "model/loading/onnx_network.py",
        "    sizes = theirs.amax(dim=0) - theirs.amin(dim=0) + theirs.abs()\n",
        "    sizes = (theirs.amax() - theirs.amin()).expand_as(theirs)\n",
        "model/loading/test_onnx_network.py::test_a_class_that_is_masked_hides_no_disagreement",
    ),
    mutation(
        "a graph for a fixed number of rows is not traced", "model/loading/onnx_network.py",
        "if torch.compiler.is_compiling() and self._in_batches is not False:", "if False:",
        "model/loading/test_onnx_network.py::test_graphs_that_cannot_take_more_rows_are_run_in_batches",
    ),
    mutation(
        "types that skops does not trust are refused", "model/loading/skops_file.py",
        "model = None if untrusted else skops.loads(content)", "model = skops.loads(content, trusted=untrusted)",
        "model/loading/test_skops_file.py::test_an_untrusted_type_is_not_made",
    ),
    # The run folder.
    mutation(
        "embeddings are read as tokens are", "model/texts.py",
        "                if not apart <= AGREES * max(1.0, float(alone.abs().max())):\n", "                if False:\n",
        "model/test_texts.py::test_a_model_that_does_not_is_refused",
    ),
    # Numbers.
    mutation(
        "a gradient imports no SymPy", "model/derivatives.py",
        "        total = torch.dot(values, seeds)\n        return torch.autograd.grad(total, inputs,",
        "        return torch.autograd.grad(values, inputs, seeds,",
        "cli/test_last_words.py::test_a_run_imports_nothing_slow_that_it_does_not_need",
    ),
    mutation(
        "operations that differentiate once are seen", "model/derivatives.py",
        "    if gradient is not None and differentiable and differentiates_once(gradient):\n", "    if False:\n",
        "measure/test_curvature.py::test_no_second_derivative_is_one_sentence",
    ),
    mutation(
        "training mode is put back", "model/evaluation_mode.py",
        "            switched.one.training = True", "            pass",
        "model/test_classifier.py::test_evaluation_mode_is_left_as_it_was",
    ),
    # Threads, and what a caller has switched.
    mutation(
        "a mode is held as long as anybody evaluates", "model/evaluation_mode.py",
        "    return [switched.pop(id(one)) for one in ones if not switched[id(one)].holders]\n",
        "    return [switched.pop(id(one)) for one in ones if id(one) in switched]\n",
        f"{MODE}dropout_does_not_come_back_when_another_run_ends",
    ),
    mutation(
        "a model that is trained during a pass", "model/classifier.py",
        "called(call, seen, aside, self.perturb)\n        check_mode(self.model)\n",
        "called(call, seen, aside, self.perturb)\n",
        f"{MODE}training_in_the_middle_of_a_pass_stops_it",
    ),
    mutation(
        "a model that is trained at the end", "model/evaluation_mode.py",
        "        yield was_training\n        check_mode(model)\n", "        yield was_training\n",
        f"{MODE}training_at_the_end_of_a_run_stops_it",
    ),
    mutation(
        "eval() of a second run does not hide training", "model/evaluation_mode.py",
        "            _check_not_trained(held)\n", "",
        f"{MODE}a_second_run_does_not_hide_that_the_model_trains",
    ),
    mutation(
        "the parts beside an exported one are switched", "model/evaluation_mode.py",
        "            _evaluate(child, fixed)\n", "            pass\n",
        f"{MODE}an_exported_part_leaves_the_others_to_be_switched",
    ),
    mutation(
        "a classifier serves one thread", "model/in_use.py",
        "    if users and users[-1:] != [threading.get_ident()]:\n", "    if False:\n",
        f"{IN_USE}a_classifier_counts_for_one_thread",
    ),
    mutation(
        "features are those of this thread", "model/head.py",
        "            if threading.get_ident() == thread:", "            if True:",
        f"{IN_USE}features_of_another_thread_are_not_taken",
    ),
    mutation(
        "passes take turns", "model/turns.py",
        "self._inside >= 0 and not self._waiting", "True",
        f"{TURNS}turns",
    ),
    mutation(
        "the last puts the filters of warnings back", "model/quiet.py",
        "            _inside -= 1\n            if not _inside:\n",
        "            _inside -= 1\n            if _filters:\n",
        "model/test_quiet.py::test_filters_of_warnings_are_put_back",
    ),
    mutation(
        "a network that fails to run says nothing", "model/failures.py",
        "        with without_last_words():\n", "        if True:\n",
        "cli/test_last_words.py::test_nothing_but_our_own_sentences_is_on_stderr[fixed]",
    ),
    mutation(
        "onnxruntime logs nothing", "model/loading/onnx_file.py",
        "_FATAL_ONLY = 4\n", "_FATAL_ONLY = 3\n",
        "cli/test_last_words.py::test_nothing_but_our_own_sentences_is_on_stderr[wrong.onnx]",
    ),
    mutation(
        "other threads are heard", "model/quiet.py",
        "            return self.stream.write(text)\n", "            return 0\n",
        "model/test_quiet.py::test_other_threads_are_heard_meanwhile",
    ),
    Mutation(
        "gradients under no_grad", "model/caller_modes.py",
        (
            ("        modes.enter_context(torch.enable_grad())\n", ""),
            ("        modes.enter_context(torch.inference_mode(False))\n", ""),
        ),
        f"tests/{CALLER}every_score_has_the_same_bytes[no_grad]",
    ),
    mutation(
        "gradients under inference_mode", "model/caller_modes.py",
        "        modes.enter_context(torch.inference_mode(False))\n", "",
        f"{CALLER}every_score_has_the_same_bytes[inference_mode]",
    ),
    mutation(
        "autocast of the caller", "model/caller_modes.py",
        "                modes.enter_context(torch.autocast(kind, enabled=False))\n", "                pass\n",
        f"{CALLER}every_score_has_the_same_bytes[autocast]",
    ),
    mutation(
        "lazy layers", "model/placement.py",
        "    if lazy:\n", "    if False:\n",
        f"{CALLER}lazy_layers_that_have_seen_no_input",
    ),
    # Noise families of others.
    mutation(
        "a model works on a copy of its input", "model/sent_rows.py",
        "if mean or std else kept.clone()\n", "if mean or std else kept\n",
        "model/test_classifier.py::test_the_callers_data_are_not_changed",
    ),
    # The checks before a run.
    mutation(
        "logits are copied from what the model returns", "model/outputs.py",
        'if outputs == "probs" else scores.clone()\n', 'if outputs == "probs" else scores\n',
        "doctor/test_state.py::test_logits_and_features_are_the_callers_own",
    ),
    mutation(
        "weights of an ONNX file are parameters", "model/loading/onnx_network.py",
        "                if name in statistics:\n", "                if True:\n",
        "model/loading/test_onnx_network.py::test_it_has_the_parameters_of_the_same_network_and_statistics_are_none",
    ),
    # Archives.
    mutation(
        "every byte of an archive is of a record", "model/loading/archive_records.py",
        "            check_layout(content, archive)\n", "",
        "model/loading/test_zip_layout.py::test_surplus_bytes_in_an_archive_are_refused",
    ),
    mutation(
        "bytes between the records", "model/loading/zip_layout.py",
        "        if start != end:\n", "        if False:\n",
        "model/loading/test_zip_layout.py::test_surplus_bytes_in_an_archive_are_refused[between]",
    ),
    mutation(
        "bytes behind the records", "model/loading/zip_layout.py",
        "    if surplus := len(content) - place - ends:\n", "    if surplus := 0:\n",
        "model/loading/test_zip_layout.py::test_surplus_bytes_in_an_archive_are_refused[behind]",
    ),
    mutation(
        "records that no tensor reads", "model/loading/archive_tensors.py",
        "    if raw and loaded != sum(raw):", "    if False:",
        "model/loading/test_zip_layout.py::test_surplus_bytes_in_an_archive_are_refused[a record that nobody reads]",
    ),
    mutation(
        "bytes beside a tensor", "model/loading/archive_tensors.py",
        "        if free := size - _claimed(size, named.values()):\n", "        if free := 0:\n",
        "model/loading/test_zip_layout.py::test_surplus_bytes_in_an_archive_are_refused[a longer record]",
    ),
    mutation(
        "tensors that no graph reads", "model/loading/archive_tensors.py",
        "    if unread := sorted(tensors.keys() - read):\n", "    if unread := []:\n",
        "model/loading/test_zip_layout.py::test_surplus_bytes_in_an_archive_are_refused[a tensor that nobody reads]",
    ),
    mutation(
        "records that no checkpoint reads", "model/loading/archive_records.py",
        "    if not all(names) or held != read:\n", "    if False:\n",
        "model/loading/test_zip_layout.py::test_surplus_bytes_in_an_archive_are_refused",
    ),
    mutation(
        "one program in an archive", "model/loading/archive_records.py",
        "    if len(roots) > 1:\n", "    if False:\n",
        "model/loading/test_zip_layout.py::test_surplus_bytes_in_an_archive_are_refused[another program]",
    ),
    # What is shown.
    mutation(
        "bounds of each feature, in clipping", "model/bounds.py",
        "return inputs.clamp(*self.ends(inputs))", "return inputs.clamp(*self.envelope)",
        "model/test_bounds.py::test_clipping_is_that_of_each_feature",
    ),
    mutation(
        "bounds of each feature, of data", "model/bounds.py",
        "((inputs >= least) & (inputs <= most)).flatten(1).all(dim=1)",
        "(inputs >= least).flatten(1).all(dim=1)",
        "model/test_bounds.py::test_an_input_outside_in_one_feature_is_outside",
    ),
    mutation(
        "what a model may raise", "model/failures.py",
        "AssertionError, LookupError, ArithmeticError, AttributeError)", "AssertionError, IndexError)",
        "doctor/test_outputs.py::test_whatever_a_model_raises_is_told",
    ),
    # What is said of mistakes, and data of other people.
    mutation(
        "memory that runs out is called that", "model/failures.py",
        "any(words in reason for words in NO_MEMORY)", "False",
        "test_mistakes.py::test_a_mistake_on_the_command_line_gets_its_sentence",
    ),
    mutation(
        "a threshold of scikit-learn's own is refused", "model/arrays.py",
        "    if threshold != usual:", "    if False:",
        "model/test_array_models.py::test_a_threshold_of_its_own_is_refused_and_the_usual_one_is_not",
    ),
    mutation(
        "predictions are compared where scores are closest", "model/arrays.py",
        'np.argsort(np.where(clear, gap, np.inf), kind="stable")[:COMPARED]', "np.arange(len(gap))[:COMPARED]",
        "model/test_array_models.py::test_predictions_are_compared_where_scores_are_closest",
    ),
)  # fmt: skip
