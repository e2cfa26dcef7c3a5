"""Safeguards of `detector/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.taken_out import mutation

SAFEGUARDS = (
    # What is decided.
    mutation(
        "a detector of another decision is refused", "detector/identity.py",
        "        if model.decision is not None:\n", "        if False:\n",
        "detector/test_identity.py::test_another_decision_has_no_detector",
    ),
    # Threads, and what a caller has switched.
    mutation(
        "one training sets the number of threads", "detector/pseudo_margin/training.py",
        "    with _one_training:", "    if True:",
        "detector/pseudo_margin/test_training.py::test_the_number_of_threads_is_put_back",
    ),
    # The detector.
    mutation(
        "a score that is no number is brittle", "detector/threshold.py",
        "    return ~(np.isfinite(scores) & (scores >= threshold))\n", "    return scores < threshold\n",
        "detector/test_detector.py::test_flag_fails_closed",
    ),
    mutation(
        "logits that are no numbers are brittle", "detector/network.py",
        "reaches, tied = score >= total - total + self._threshold, first <= second\n",
        "reaches, tied = ~(score < self._threshold), first <= second\n",
        "detector/test_detector.py::test_broken_logits_and_ties_are_brittle",
    ),
    mutation(
        "a tie is brittle", "detector/network.py",
        "self._threshold, first <= second\n", "self._threshold, first < second\n",
        "detector/test_detector.py::test_broken_logits_and_ties_are_brittle",
    ),
    mutation(
        "inputs outside the bounds are brittle", "detector/network.py",
        "(reaches & inside) <= tied", "reaches <= tied",
        "detector/test_network.py::test_inputs_outside_the_bounds_are_brittle",
    ),
    mutation(
        "epsilon is a margin that there can be", "detector/consistency.py",
        "    if not SMALLEST <= epsilon <= most:\n", "    if False:\n",
        "detector/test_consistency.py::test_every_number_is_one_that_it_can_be[detector]",
    ),
    mutation(
        "a threshold lies among the scores", "detector/consistency.py",
        "    if not least < threshold <= math.nextafter(most, math.inf):\n", "    if not math.isfinite(threshold):\n",
        "detector/test_consistency.py::test_every_number_is_one_that_it_can_be[detector]",
    ),
    mutation(
        "rates have their own intervals", "detector/consistency.py",
        "    if abs(rate.low - own.low) > ROUNDING or abs(rate.high - own.high) > ROUNDING:\n", "    if False:\n",
        "detector/test_consistency.py::test_every_number_is_one_that_it_can_be[detector]",
    ),
    mutation(
        "rates are of the points that were counted", "detector/consistency.py",
        "        if rate.points != points:\n", "        if False:\n",
        "detector/test_consistency.py::test_rates_are_of_the_points_that_were_counted",
    ),
    mutation(
        "points that were counted add up", "detector/results.py",
        "self.points != whole or self.without_score > used or not (chosen and halves):\n", "not halves:\n",
        "detector/test_consistency.py::test_every_number_is_one_that_it_can_be[detector]",
    ),
    mutation(
        "no score is trusted without a reason", "detector/results.py",
        "        if self.trusted and (self.auroc is None or self.auroc_low < GOOD_AUROC):\n", "        if False:\n",
        "detector/test_consistency.py::test_every_number_is_one_that_it_can_be[detector]",
    ),
    mutation(
        "preprocessing that single precision has", "detector/ranges.py",
        "    if not numbers or not all(least <= number <= LARGEST for number in numbers):\n", "    if False:\n",
        "detector/test_consistency.py::test_every_number_is_one_that_it_can_be[detector]",
    ),
    mutation(
        "settings of a training that there can be", "detector/ranges.py",
        "    if not low <= value <= high:\n", "    if False:\n",
        "detector/pseudo_margin/test_file.py::test_every_number_is_one_that_it_can_be",
    ),
    mutation(
        "distances between classes", "detector/pseudo_margin/file.py",
        "    if not bool((lengths >= 0).all()) or", "    if",
        "detector/pseudo_margin/test_file.py::test_lengths_are_distances",
    ),
    mutation(
        "undecided points lower a rate", "detector/results.py",
        "        most = points + undecided - undecided_flagged\n", "        most = points\n",
        "detector/test_results.py::test_the_interval_is_that_of_every_way_to_count_the_undecided[0.9]",
    ),
    mutation(
        "undecided points raise a rate", "detector/results.py",
        "        more = undecided_flagged\n", "        more = 0\n",
        "detector/test_results.py::test_the_interval_is_that_of_every_way_to_count_the_undecided[0.9]",
    ),
    mutation(
        "undecided points are not robust", "detector/known_points.py",
        "(states == HOLDS)[used]", "(states != BREAKS)[used]",
        "detector/test_known_points.py::test_points_are_counted_by_their_intervals",
    ),
    mutation(
        "a score is not chosen on what calibrates it", "detector/calibration.py",
        "_told_apart(scores[name], brittle.choice, robust.choice)",
        "_told_apart(scores[name], brittle.first, robust.first)",
        "detector/test_calibration.py::test_a_score_is_chosen_on_points_that_serve_for_nothing_else",
    ),
    mutation(
        "a softmax is not judged by itself", "detector/fitting.py",
        " or column.setting.sigma is None:\n", ":\n",
        "detector/test_known_points.py::test_what_says_nothing_of_noise_is_refused",
    ),
    mutation(
        "noise that a column has", "detector/consistency.py",
        "        if name in (\"sigma\", \"limit\", \"precision\", \"draws\"):\n", "        if False:\n",
        "detector/test_criterion.py::test_noise_that_no_column_has_is_refused",
    ),
    mutation(
        "the first format has its own keys alone", "detector/first_format.py",
        "if isinstance(part, dict) and not part.keys() & added.keys() else part", "if isinstance(part, dict) else part",
        "detector/test_first_format.py::test_what_the_first_format_did_not_have_is_refused",
    ),
    # What is shown.
    mutation(
        "there is no detector of a number of changes", "detector/entries.py",
        "    if COUNT in found:\n", "    if not found:\n",
        "detector/test_calibration.py::test_a_run_in_l0_alone_has_no_detector",
    ),
    mutation(
        "texts of the detector's CSV", "detector/flags.py",
        "[None if text is None else cell(text) for text in", "[text for text in",
        "store/files/test_csv_text.py::test_texts_in_csv_are_harmless_and_come_back",
    ),
)  # fmt: skip
