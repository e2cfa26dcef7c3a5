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
)  # fmt: skip
