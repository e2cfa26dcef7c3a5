"""Safeguards of `run/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.safeguards.named_tests import PLANTED
from checks.taken_out import mutation

SAFEGUARDS = (
    # What is decided.
    mutation(
        "what was left out is noted", "run/scoring.py",
        "findings=(*job.left_out, *diagnosis.findings)", "findings=diagnosis.findings",
        "doctor/test_left_out.py::test_the_run_has_the_others_and_says_which_it_lacks",
    ),
    mutation(
        "a label is asked of its own classifier", "run/evaluation.py",
        "    own, before = deciding(classifier, label), classifier.passes\n",
        "    own, before = deciding(classifier, replace(label, position=0)), classifier.passes\n",
        "decisions/test_each_label.py::test_each_column_is_that_of_the_labels_own_run",
    ),
    mutation(
        "a score that a decision does not serve is refused in a run", "run/arguments.py",
        "    check_all_serve(scores, classifier)\n", "",
        "decisions/test_scores.py::test_a_score_serves_a_decision_or_refuses_it_by_name",
    ),
    # Models outside PyTorch.
    mutation(
        "columns in another order than those of the model are refused", "run/arguments.py",
        "    _check_columns(classifier, points)\n", "",
        "model/test_array_models.py::test_columns_in_another_order_are_refused",
    ),
    mutation(
        "what the main program defines is not sent to a worker", "run/workers/handed.py",
        '== "__main__"', '== "nowhere"',
        "run/workers/test_handed.py::test_what_no_other_process_can_import_is_refused",
    ),
    mutation(
        "labels are the values that an estimator was fitted on", "run/arguments.py",
        "names, classifier.class_values)", "names, None)",
        "model/test_array_models.py::test_labels_are_those_that_the_estimator_was_fitted_on",
    ),
    # What a resumed run is.
    mutation(
        "another experiment is not resumed", "run/scoring.py",
        "    check_same(one, other, place)\n", "",
        "run/test_identity.py::test_another_experiment_is_refused_by_name",
    ),
    # What a finished run grows by.
    mutation(
        "ties of the first draws are read off the interval", "run/growing.py",
        "torch.from_numpy(sequence_successes(low, draws, self.job.confidence))\n", "torch.from_numpy(flips)\n",
        "run/test_growing.py::test_more_draws_give_the_table_of_a_run_with_as_many_from_the_first",
    ),
    mutation(
        "a point whose counts are not there begins anew", "run/growing.py",
        "        return 0 if row[\"value\"] is None else one.most\n",
        "        return None if row[\"value\"] is None else one.most\n",
        "run/test_growing.py::test_more_draws_give_the_table_of_a_run_with_as_many_from_the_first",
    ),
    mutation(
        "inputs are kept in the precision of the network", "run/rows.py",
        "(seen if seen.dtype == torch.float64 else seen.float())", "seen.float()",
        "run/test_evaluation.py::test_small_inputs_that_are_no_images_are_kept_as_the_network_gets_them",
    ),
    mutation(
        "a run that is not whole does not grow", "run/scoring.py",
        "    if growth is not None and not whole:\n", "    if False:\n",
        "run/test_growth.py::test_a_run_that_is_not_whole_is_finished_first",
    ),
    mutation(
        "a run that grows has the same predictions", "run/growing.py",
        "            if there is not None and now != there:\n", "            if False:\n",
        "run/test_growing.py::test_another_model_of_the_same_description_is_noticed",
    ),
    mutation(
        "fewer draws than there are, are refused", "run/growth.py",
        "    if score.draws < most:\n", "    if False:\n",
        "run/test_growth.py::test_what_is_refused",
    ),
    mutation(
        "data that change during a run", "run/scoring.py",
        "        doctor.check_unchanged(job.points, diagnosis.digest)\n", "",
        f"{PLANTED}[data that are overwritten]",
    ),
    # Workers, and who is let in.
    mutation(
        "a worker that opened something else is refused", "run/workers/worker.py",
        "        if found:\n", "        if False:\n",
        "run/workers/test_worker.py::test_a_worker_that_opens_something_else_is_refused",
    ),
    mutation(
        "a worker that falls silent is ended", "run/workers/worker.py",
        "        process.kill()\n", "",
        "run/workers/test_worker.py::test_a_worker_that_falls_silent_and_lives_on_is_ended",
    ),
    mutation(
        "a worker ends with its parent", "run/workers/service.py",
        "    os._exit(1)\n", "    return\n",
        "run/workers/test_worker.py::test_a_worker_ends_with_its_parent",
    ),
    mutation(
        "a cluster without a token is refused", "run/workers/cluster.py",
        "if self.address != LOCAL and not self.insecure and not has_token():", "if False:",
        "run/workers/test_cluster_asked.py::test_an_address_without_a_token_is_refused",
    ),
    mutation(
        "a cluster that others reach is refused", "run/workers/cluster.py",
        'if self.address == LOCAL and (host_and_port(address) or ("", 0))[0] != LOOPBACK:', "if False:",
        "run/workers/test_cluster_asked.py::test_a_cluster_that_others_reach_is_refused",
    ),
    mutation(
        "a cluster of this machine is told so", "run/workers/cluster.py",
        'ONE_MACHINE: "0", **token}', "**token}",
        "run/workers/test_cluster.py::test_a_cluster_of_this_machine_is_told_so",
    ),
    mutation(
        "the shard of a worker that died waits again", "run/workers/posts.py",
        "            self._waiting.appendleft(number)\n", "            pass\n",
        "run/workers/test_posts.py::test_every_shard_comes_once",
    ),
    mutation(
        "the second answer for a shard does not count", "run/workers/posts.py",
        "not isinstance(answer, PackedShard) or post.number not in self._left", "not isinstance(answer, PackedShard)",
        "run/workers/test_posts.py::test_a_shard_that_comes_late_comes_once",
    ),
    mutation(
        "a shard that is late is given to a second worker", "run/workers/posts.py",
        "workers[post.number] == 1), None)", "False), None)",
        "run/workers/test_posts.py::test_a_shard_that_comes_late_comes_once",
    ),
    # The checks before a run.
    mutation(
        "rows of a shard are looked at alone", "run/standing.py",
        "            if found is not None:\n", "            if False:\n",
        "doctor/test_company.py::test_what_the_first_rows_do_not_show_stops_the_run",
    ),
    mutation(
        "noisy passes of a shard are looked at", "run/standing.py",
        "or self._passes & (self._passes - 1) == 0", "or self._passes == 1",
        "doctor/test_company.py::test_of_many_passes_fewer_and_fewer_are_looked_at",
    ),
    mutation(
        "the first points at the end of a shard", "run/standing.py",
        "        if self.reference is not None:\n", "        if False:\n",
        "doctor/test_state.py::test_a_network_that_changes_in_mid_run_ends_it",
    ),
    mutation(
        "a worker sees other inputs before the first points", "run/job.py",
        "            self.classifier.read(*subject.others_with_tensors())\n", "",
        "doctor/test_state.py::test_statistics_of_the_first_batch_differ_between_processes",
    ),
    mutation(
        "the first points in a worker", "run/workers/worker.py",
        "        check_alike(self.expected.reference, hello[\"reference\"], where)\n", "        pass\n",
        "doctor/test_state.py::test_a_worker_that_gets_other_logits_is_refused",
    ),
    mutation(
        "images that are turned are counted", "run/job.py",
        "                turned += sum(batch.turned or ())\n", "",
        "data/test_exif.py::test_a_run_counts_the_images_that_are_turned",
    ),
    # What is shown.
    mutation(
        "a worker computes with a class as its module has it", "run/workers/handed.py",
        "if _digest(found) != digest:", "if False:",
        "run/workers/test_handed.py::test_a_class_that_was_changed_in_memory_is_refused",
    ),
    mutation(
        "counts by which a run could grow, in a refusal", "run/growth.py",
        " - {_key(score) for score in stopped if score.name not in lost}", "",
        "run/test_growth.py::test_only_what_keeps_a_run_from_growing_is_named",
    ),
    mutation(
        "scores that differ in more than one value each", "run/identity.py",
        "if len(old) != len(new) or any(one not in rests[1] for one in rests[0]):", "if len(old) != len(new):",
        "run/test_identity.py::test_where_scores_differ_by_parameters_these_are_told",
    ),
    mutation(
        "single rows whose gradients are recorded", "run/standing.py",
        "if (len(inputs) < 2 and not recorded) or", "if len(inputs) < 2 or",
        "doctor/test_state.py::test_a_network_that_asks_whether_gradients_are_recorded_stops_the_run",
    ),
    # What a notebook shows.
    mutation(
        "a notebook is not written to without end", "run/progress.py",
        "        if time.monotonic() - last >= SECONDS_BETWEEN_CHANGES:\n", "        if True:\n",
        "run/test_progress.py::test_a_notebook_is_not_written_to_too_often",
    ),
    mutation(
        "a run that is interrupted says where", "run/progress.py",
        "    finally:\n        handle.update(", "    except NotImplementedError:\n        handle.update(",
        "run/test_progress.py::test_a_run_that_ends_early_says_where",
    ),
    # What is said of mistakes, and data of other people.
    mutation(
        "notes come before the scoring", "run/scoring.py",
        "                options.told(finding.code, finding.sentence)\n", "                pass\n",
        "test_mistakes.py::test_notes_come_before_the_scoring_and_once",
    ),
    mutation(
        "a note is told once", "run/notes.py",
        "        if (code, sentence) not in self._told:", "        if True:",
        "test_mistakes.py::test_notes_come_before_the_scoring_and_once",
    ),
)  # fmt: skip
