"""Safeguards of `analysis/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.taken_out import mutation

SAFEGUARDS = (
    # What is decided.
    mutation(
        "a certificate that scores share is paid once", "analysis/certificate_passes.py",
        "key = tuple(column.parameters.get(name) for name in _DECIDING)", "key = (column.label,)",
        "analysis/test_certificate_passes.py::test_scores_that_share_a_certificate_count_it_once",
    ),
    mutation(
        "all labels together speak for a run", "analysis/columns.py",
        "in together or known if", "in known if",
        "decisions/test_each_label.py::test_the_run_speaks_of_all_labels_together",
    ),
    mutation(
        "runs over different decisions are not compared", "analysis/comparison.py",
        "    _check_decisions(first, second)\n", "",
        "decisions/test_runs.py::test_runs_over_different_decisions_are_not_compared",
    ),
    # What a finished run grows by.
    mutation(
        "numbers of finished copies stand beside the states of others", "analysis/decisions.py",
        "    return min(fitting, key=lambda one: one.preference or 0.0, default=judge)\n", "    return judge\n",
        "analysis/test_decisions.py::test_a_finished_run_keeps_its_numbers_when_its_points_are_decided",
    ),
    mutation(
        "numbers of a few copies stand beside no states", "analysis/decisions.py",
        "_counted_everywhere(one) >= fewest\n", "_counted_everywhere(one) > 0\n",
        "analysis/test_decisions.py::test_only_a_count_of_enough_copies_at_every_point_stands_beside_the_states",
    ),
    # What is shown.
    mutation(
        "at least the share of points is as near as is said", "analysis/margin_words.py",
        "math.ceil(share * len(values)) - 1", "math.floor(share * len(values)) - 1",
        "analysis/test_margin_words.py::test_at_least_that_share_is_as_near",
    ),
    mutation(
        "copies that showed one point to hold are enough", "analysis/copies.py",
        " and count not in set(copies[held].tolist())]", "]",
        "analysis/test_copies.py::test_a_point_that_holds_by_a_model_shows_that_its_copies_are_enough",
    ),
    mutation(
        "the gap that is needed is corrected for the pairs", "analysis/class_differences.py",
        "TAILS[2.0 * TAILS * pairs <= ", "TAILS[2.0 * TAILS <= ",
        "analysis/test_class_differences.py::test_the_gap_that_is_needed_is_known_for_ones_and_zeros",
    ),
    mutation(
        "the most robust points are surely so", "analysis/extremes.py",
        '.sort_values("high", kind="stable", na_position="last")', "",
        "analysis/test_extremes.py::test_the_most_robust_are_surely_so",
    ),
    mutation(
        "an interval without ends where no point differs", "analysis/comparison_text.py",
        'AT_EVERY_POINT if is_nowhere(row) else with_interval(row, "difference")', 'with_interval(row, "difference")',
        "analysis/test_comparison.py::test_a_run_and_itself_do_not_differ",
    ),
    # Rare events.
    mutation(
        "quantiles of a weighted mean by its own law", "analysis/weighted_mean.py",
        "np.where(places == 0.0, 0.5, np.cosh(places))", "np.cosh(places)",
        "analysis/test_weighted_mean.py::test_quantiles_of_different_numbers",
    ),
    mutation(
        "the integral goes on as long as anything is left", "analysis/weighted_mean.py",
        "        if modulus[:, -1].max() < NEGLIGIBLE:\n            break\n", "        break\n",
        "analysis/test_weighted_mean.py::test_quantiles_of_different_numbers",
    ),
    mutation(
        "small numbers keep their size among many", "analysis/weighted_mean.py",
        "np.geomspace(least, 1.0, MOST", "np.linspace(least, 1.0, MOST",
        "analysis/test_weighted_mean.py::test_quantiles_of_many_numbers_of_any_size",
    ),
    mutation(
        "many numbers keep their skewness", "analysis/weighted_mean.py",
        "root = np.hypot(skewness, 2.0)", "root = np.hypot(skewness * 0.0, 2.0)",
        "analysis/test_weighted_mean.py::test_quantiles_of_many_numbers_of_any_size",
    ),
    mutation(
        "points without a class are no extremes", "analysis/extremes.py",
        "points.iloc[:0].assign(", "points.assign(",
        "analysis/test_extremes.py::test_where_no_point_has_a_class_there_are_no_extremes",
    ),
)  # fmt: skip
