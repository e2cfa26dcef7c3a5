"""Safeguards of `studies/`, beside the package, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.taken_out import mutation

SAFEGUARDS = (
    # What is said of mistakes, and data of other people.
    mutation(
        "a killed training goes on with its learning rate", "studies/train/loop.py",
        '        self.rates.load_state_dict(state["rates"])\n', "",
        "studies/train/test_training_loop.py::test_a_kill_in_the_middle_changes_no_weight",
    ),
    mutation(
        "each epoch of a training draws from a seed of its own", "studies/train/loop.py",
        '        torch.manual_seed(self._seed(f"epoch {self.epochs}"))\n', "",
        "studies/train/test_training_loop.py::test_a_kill_in_the_middle_changes_no_weight",
    ),
    mutation(
        "a checkpoint of other weights is not used", "studies/train/loop.py",
        'if state["made_by"] != made_by:', "if False:",
        "studies/train/test_training_loop.py::test_a_checkpoint_of_other_weights_is_not_used",
    ),
    mutation(
        "attacks in a training leave the statistics of batches", "studies/train/ways/ascent.py",
        "with evaluating(network), torch.enable_grad():", "with torch.enable_grad():",
        "studies/train/test_training_ways.py::test_an_attack_moves_no_statistics_of_batches",
    ),
    mutation(
        "the divergence of TRADES is that from the clean image", "studies/train/ways/trades.py",
        "(p.exp() * (p - q))", "(q.exp() * (q - p))",
        "studies/train/test_training_ways.py::test_divergences_are_those_of_scipy",
    ),
    mutation(
        "the penalty is the squared gradient norm", "studies/train/ways/gradient_norm.py",
        ".square().sum(dim=1)", ".norm(dim=1)",
        "studies/train/test_training_ways.py::test_the_gradient_norm_is_that_of_finite_differences",
    ),
    mutation(
        "the sigmoid of a training leaves the label out of its competitors", "studies/train/ways/sigmoid.py",
        "logits.detach().scatter(1, y[:, None], -torch.inf)", "logits.detach()",
        "studies/train/test_training_ways.py::test_the_sigmoid_is_that_of_the_library",
    ),
    mutation(
        "a network that was trained otherwise is not taken for another", "studies/train/every.py",
        'if meta is not None and (meta["recipe"], meta["seed"]) != (repr(recipe), seed):', "if False and meta:",
        "studies/train/test_training_command.py::test_a_network_is_trained_stored_and_listed",
    ),
    mutation(
        "a step of a study under another seed is done again", "studies/running.py",
        'path.is_file() and path.read_text(encoding="utf-8") == _identity(step)', "path.is_file()",
        "studies/test_study_running.py::test_another_seed_is_another_study",
    ),
    mutation(
        "two commands do not measure one network at once", "studies/running.py",
        'folder / f"{name}.lock"', 'folder / f"{name}{time.monotonic_ns()}.lock"',
        "studies/test_study_running.py::test_commands_side_by_side_share_the_networks",
    ),
    mutation(
        "a step knows the code that measures", "studies/measuring.py",
        '("networks", "measuring", *measures)', '("networks", "measuring")',
        "studies/test_study_running.py::test_another_code_is_another_digest",
    ),
    mutation(
        "a step knows the code of the library", "studies/measuring.py",
        "    paths = [*library, *(", "    paths = [*(",
        "studies/test_study_running.py::test_another_code_is_another_digest",
    ),
    mutation(
        "results wait for what another command is measuring", "studies/running.py",
        "        with locked(study, network.name, out):\n", "        if True:\n",
        "studies/test_study_running.py::test_commands_side_by_side_share_the_networks",
    ),
    mutation(
        "a step that raises leaves what was there", "studies/running.py",
        "    shutil.rmtree(part, ignore_errors=True)\n    started",
        "    shutil.rmtree(folder, ignore_errors=True)\n    started",
        "studies/test_study_running.py::test_a_step_that_raises_leaves_what_was_there",
    ),
    mutation(
        "results are those of a finished run", "studies/running.py",
        '    shutil.rmtree(place, ignore_errors=True)\n    for network', "    for network",
        "studies/test_study_running.py::test_there_are_results_only_of_a_run_that_was_finished",
    ),
    mutation(
        "two estimators of a user have two names", "studies/estimators/entrants.py",
        "if names.count(name) > 1]", "if names.count(name) > 9]",
        "studies/test_estimator_study.py::test_two_estimators_of_one_name_are_refused",
    ),
    mutation(
        "processes side by side are stopped with the first", "studies/beside.py",
        "            process.terminate()\n", "            pass\n",
        "studies/test_beside.py::test_they_are_stopped_where_the_first_one_raises",
    ),
    mutation(
        "a process side by side that failed is said", "studies/beside.py",
        "if failed := [code for code in codes if code]:", "if failed := [code for code in codes if code > 99]:",
        "studies/test_beside.py::test_one_that_fails_is_said",
    ),
    mutation(
        "a bound of zero is no number of powers of ten", "studies/average_case/constants.py",
        "        asked = asked[np.isfinite(asked)]\n", "        asked = np.nan_to_num(asked)\n",
        "studies/test_average_case_study.py::test_no_constant_mends_a_bound_of_zero",
    ),
    mutation(
        "where more than half are wrong, the wrong ones are weak", "studies/estimators/foretold.py",
        "return above if above.any() else outcome == middle", "return above",
        "studies/test_estimator_study.py::test_what_foretells_is_ranked",
    ),
    mutation(
        "passes of an estimator of a user go backward, too", "studies/estimators/entrants.py",
        "            output.register_hook(self._back)\n", "            pass\n",
        "studies/test_estimator_study.py::test_passes_are_rows_forward_and_backward",
    ),
    mutation(
        "intervals miss on both sides", "studies/estimators/errors.py",
        ' | (held["high"] < 1 - high)', "",
        "studies/test_estimator_study.py::test_errors_are_those_of_the_numbers_that_are_there",
    ),
    mutation(
        "counting is off by its reference, too", "studies/counting.py",
        " * math.sqrt(1 + count / reference)", "",
        "studies/test_estimator_study.py::test_copies_of_equal_error",
    ),
    mutation(
        "each block of copies has draws of its own", "studies/probabilistic_accuracy/blocks.py",
        "        for block in range(blocks):\n",
        "        for block in range(blocks):\n            generator.manual_seed(seed)\n",
        "studies/test_probabilistic_accuracy_study.py::test_flips_are_counted_in_blocks",
    ),
    mutation(
        "points that are predicted wrongly hold nothing", "studies/probabilistic_accuracy/summary.py",
        "called = right[:, None] & (flips == 0)", "called = flips == 0",
        "studies/test_probabilistic_accuracy_study.py::test_the_truth_and_the_usual_estimate_of_points_that_are_known",
    ),
    mutation(
        "the printed margins leave the predicted class out", "studies/estimators/printed.py",
        "[torch.arange(classes) != own[:, None]]", "[torch.arange(classes) != 0 * own[:, None]]",
        "studies/test_estimator_study.py::test_the_printed_linear_estimators_are_exact_on_linear_networks",
    ),
    mutation(
        "the sigmoid's factor scales its argument", "studies/average_case/sigmoid.py",
        "np.exp(-scale * places)", "np.exp(-places)",
        "studies/test_average_case_study.py::test_the_factor_is_the_best_one_in_one_dimension",
    ),
    mutation(
        "an estimator's bias has a sign", "studies/average_case/summary.py",
        'group["p_robust"].to_numpy() - (1 - flip)', '(1 - flip) - group["p_robust"].to_numpy()',
        "studies/test_average_case_study.py::test_errors_are_taken_from_the_count",
    ),
    mutation(
        "points that do not tell need no constant", "studies/average_case/constants.py",
        "tells = (off < low) | (off > high)", "tells = off == off",
        "studies/test_average_case_study.py::test_the_constant_that_a_bound_needs",
    ),
    mutation(
        "images are read by others than those trained on", "studies/average_case/images.py",
        "fit(network, (x[~held] - middle) / spread, y[~held])", "fit(network, (x - middle) / spread, y)",
        "studies/test_average_case_study.py::test_images_that_differ_are_told_apart_and_others_are_not",
    ),
    mutation(
        "a curvature is half an eigenvalue of the Hessian", "studies/average_case/curvature.py",
        ".copysign(along) / 2", ".copysign(along)",
        "studies/test_average_case_study.py::test_curvatures_of_a_quadratic_are_its_eigenvalues",
    ),
    mutation(
        "noise on the sphere has the length that is named", "studies/expected_change/counted.py",
        "return normal * (radius / lengths)", "return normal * radius",
        "studies/test_expected_change_study.py::test_noise_has_its_length_and_points_have_draws_of_their_own",
    ),
    mutation(
        "what the gradient does cancels in a pair", "studies/expected_change/counted.py",
        "torch.cat([point + noise, point - noise])", "torch.cat([point + noise, point + noise])",
        "studies/test_expected_change_study.py::test_the_change_on_a_line_is_exact",
    ),
    mutation(
        "the draws of the truth add nothing to an error", "studies/expected_change/summary.py",
        "square = ((found - truth)[there] ** 2).mean() - spread", "square = ((found - truth)[there] ** 2).mean()",
        "studies/test_expected_change_study.py::test_errors_are_without_what_the_draws_add",
    ),
    mutation(
        "a network stands beside the plain one of its own architecture", "studies/expected_change/summary.py",
        '            & (networks["architecture"] == one.architecture)\n', "",
        "studies/test_expected_change_study.py::test_models_stand_beside_the_plain_one_of_their_kind",
    ),
    mutation(
        "a prediction holds up to the first length at which it does not", "studies/expected_change/rules.py",
        ".cumprod().astype(bool)", ".astype(bool)",
        "studies/test_expected_change_study.py::test_a_prediction_holds_up_to_the_first_length_at_which_it_does_not",
    ),
    mutation(
        "ranks leave out what is missing", "studies/ranks.py",
        "there = ~np.isnan(one) & ~np.isnan(other)", "there = ~np.isnan(one) | True",
        "studies/test_study_numbers.py::test_ranks_leave_out_what_is_missing_and_keep_what_is_infinite",
    ),
    mutation(
        "a weak point has the lower score", "studies/ranks.py",
        "stats.mannwhitneyu(other, one)", "stats.mannwhitneyu(one, other)",
        "studies/test_study_numbers.py::test_auc_is_the_share_of_pairs_in_order",
    ),
    mutation(
        "the order of two classes says nothing", "studies/average_case/summary.py",
        "if len(classes) >= FEWEST_CLASSES else np.nan", "if len(classes) > 0 else np.nan",
        "studies/test_average_case_study.py::test_quantiles_and_the_noise_that_is_chosen",
    ),
    mutation(
        "a linear layer that does not give the logits is no head", "studies/margin_consistency/margins.py",
        "    except ModelError:\n        return False\n", "    except ModelError:\n        return True\n",
        "studies/test_two_classes.py::test_two_classes_give_a_page_and_the_same_bytes_again",
    ),
    mutation(
        "a network that gives NaN is left out", "studies/networks.py",
        " and not scores.isnan().any()", "",
        "studies/test_two_classes.py::test_a_network_that_gives_nan_is_left_out",
    ),
    mutation(
        "exact margins heed the bounds", "studies/margin_consistency/exact.py",
        "return np.clip(size * way, -point, 1 - point)", "return size * way",
        "studies/test_margin_consistency_study.py::test_margins_by_hand",
    ),
    mutation(
        "the descent stays inside the bounds", "studies/margin_consistency/descent.py",
        "return (x + change).clamp(0, 1)", "return x + change",
        "studies/test_margin_consistency_study.py::test_the_descent_finds_what_is_there_and_nothing_else",
    ),
    mutation(
        "points that are predicted wrongly are not compared", "studies/margin_consistency/summary.py",
        'return points[points["right"]]', "return points",
        "studies/test_margin_consistency_study.py::test_points_without_a_margin_tie_as_the_farthest_and_wrong_ones_are_left_out",
    ),
    mutation(
        "a network with a bend has no exact margins", "studies/margin_consistency/exact.py",
        "if error <= ALIKE * logits.abs().max() else None", "if error <= 9 * logits.abs().max() else None",
        "studies/test_margin_consistency_study.py::test_only_affine_networks_have_a_weight",
    ),
    mutation(
        "data sets are not taken together where they differ", "studies/margin_consistency/said.py",
        'own.groupby("dataset")[columns]', 'own.groupby("group")[columns]',
        "studies/test_margin_consistency_study.py::test_what_data_sets_differ_in_is_no_dependence",
    ),
    mutation(
        "where nothing was found there is nothing to check", "studies/margin_consistency/summary.py",
        'finite = own[np.isfinite(own["margin"])]', "finite = own",
        "studies/test_margin_consistency_study.py::test_what_was_checked_is_counted",
    ),
    mutation(
        "a mean curvature is half a mean eigenvalue", "studies/average_case/curvature.py",
        "(2 * COPIES)", "COPIES",
        "studies/test_average_case_study.py::test_curvatures_of_a_quadratic_are_its_eigenvalues",
    ),
    mutation(
        "each estimator has its own bound", "studies/average_case/constants.py",
        'MMSE_: "_mmse"', 'MMSE_: ""',
        "studies/test_average_case_study.py::test_each_estimator_has_its_own_bound",
    ),
    mutation(
        "adversarially trained networks have pseudo-margins", "studies/margin_consistency/study.py",
        "(*attacked[: size.weakest], *rest[: size.weakest])", "ordered[: 2 * size.weakest]",
        "studies/test_margin_consistency_study.py::test_pseudo_margins_are_learned_for_the_weakest_of_both_groups",
    ),
    mutation(
        "a pass of an estimator is not a copy that is counted", "studies/estimators/errors.py",
        "passes - 1, reference)", "passes, reference)",
        "studies/test_estimator_study.py::test_errors_are_those_of_the_numbers_that_are_there",
    ),
)  # fmt: skip
