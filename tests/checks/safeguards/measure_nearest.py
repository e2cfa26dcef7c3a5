"""Safeguards of `measure/nearest/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.taken_out import mutation

SAFEGUARDS = (
    mutation(
        "what is outside the bounds by rounding is no change", "measure/nearest/search.py",
        "torch.where(points == self.origin[rows], points, self.bounds.clip(points))", "self.bounds.clip(points)",
        "measure/nearest/test_features_changed.py::test_values_outside_the_bounds_by_rounding_are_no_change",
    ),
    # What is decided.
    mutation(
        "descents go on towards what they reach nearest", "measure/nearest/apgd.py",
        "return order[rank < count].sort().values", "return order[rank >= rank.max() - count].sort().values",
        "measure/nearest/test_apgd.py::test_the_nearest_of_each_point_go_on",
    ),
    mutation(
        "where no competitor is named the greatest is aimed at", "measure/nearest/search.py",
        "-torch.inf).argmax(dim=1)", "torch.inf).argmin(dim=1)",
        "measure/nearest/test_apgd.py::test_the_greatest_competitor_is_differentiated_where_none_is_named",
    ),
    mutation(
        "a point is left once descents agree", "measure/nearest/apgd.py",
        ".sum(dim=0) >= agreeing", ".sum(dim=0) >= 2 * agreeing",
        "measure/nearest/test_apgd.py::test_a_point_is_left_once_enough_descents_agree",
    ),
    mutation(
        "a point is searched on where descents disagree", "measure/nearest/apgd.py",
        "(ends <= (1 + AGREE) * best)", "(ends > 0)",
        "measure/nearest/test_apgd.py::test_a_point_is_left_once_enough_descents_agree",
    ),
    mutation(
        "descents that find nothing do not agree", "measure/nearest/apgd.py",
        "ends.isfinite() & (ends", "(ends == ends) & (ends",
        "measure/nearest/test_apgd.py::test_where_nothing_is_found_all_starts_are_tried",
    ),
    mutation(
        "a scout goes first", "measure/nearest/apgd.py",
        "if effort.scout_steps:", "if not effort.scout_steps:",
        "measure/nearest/test_apgd.py::test_a_step_of_the_scout_costs_a_pass_forward_and_one_back",
    ),
    mutation(
        "the scout sets out within reach of the boundary", "measure/nearest/apgd.py",
        "        length[going] /= 2\n", "",
        "measure/nearest/test_apgd.py::test_a_saturated_network_is_crossed_within_twice_the_length_of_the_steepest_line",
    ),
    mutation(
        "some starts are untargeted", "measure/nearest/apgd.py",
        "rivals = torch.full_like(rivals, ANY) if untargeted else rivals", "",
        "measure/nearest/test_apgd.py::test_untargeted_starts_go_towards_whichever_competitor_is_nearest",
    ),
    mutation(
        "descents set out from many starts", "measure/nearest/apgd.py",
        "for start in effort.starts:", "for start in effort.starts[:1]:",
        "test_nearest_exact.py::test_the_search_ends_at_the_exact_distance",
    ),
    mutation(
        "steps have momentum", "measure/nearest/apgd.py",
        "heading = schedule.momentum * heading + response", "heading = response",
        "test_nearest_exact.py::test_the_search_ends_at_the_exact_distance",
    ),
    mutation(
        "what is found anew is credited", "measure/nearest/search.py",
        "                found.merge(fresh)\n", "                pass\n",
        "measure/nearest/test_search.py::test_what_is_found_anew_counts_afterwards_and_not_before",
    ),
    mutation(
        "what wins anew guides what comes after", "measure/nearest/search.py",
        "torch.minimum(by_class, self.by_class)", "by_class",
        "measure/nearest/test_search.py::test_what_is_found_anew_counts_afterwards_and_not_before",
    ),
    mutation(
        "more effort begins with what less effort did", "measure/nearest/effort.py",
        "names[: names.index(effort) + 1]", "names[names.index(effort) :][:1]",
        "measure/nearest/test_effort.py::test_a_little_more_effort_loses_nothing",
    ),
    mutation(
        "what was settled once is kept", "measure/nearest/search.py",
        "            self.best.merge(best)\n", "",
        "measure/nearest/test_effort.py::test_a_little_more_effort_loses_nothing",
    ),
    mutation(
        "what was settled is not written over", "measure/nearest/search.py",
        "        self._watching = [self.best]\n        return self._settled", "        return self._settled",
        "measure/nearest/test_search.py::test_what_is_settled_stays_while_gradients_are_judged",
    ),
    mutation(
        "the plane is reached in L1 by the steepest coordinates first", "measure/nearest/taxicab.py",
        "downhill.abs().sort(dim=1, descending=True, stable=True)", "downhill.abs().sort(dim=1, stable=True)",
        "measure/nearest/test_norms.py::test_projection_inside_the_box_is_the_nearest_point",
    ),
    mutation(
        "the ball in L1 is cut by the box", "measure/nearest/taxicab.py",
        "torch.where(vectors > 0, high, -low).clamp_min(0)", "torch.full_like(sizes, torch.inf)",
        "measure/nearest/test_norms.py::test_projection_on_the_l1_ball_is_the_nearest_point",
    ),
    mutation(
        "in L0 the greatest gains are counted first", "measure/nearest/counting.py",
        "gains.sort(dim=1, descending=True)", "gains.sort(dim=1)",
        "measure/nearest/test_exchange.py::test_the_linearised_count_is_that_over_all_subsets",
    ),
    mutation(
        "what was just moved rests", "measure/nearest/exchange.py",
        "torch.where(changed | ~free, 0, gain)", "torch.where(changed, 0, gain)",
        "measure/nearest/test_exchange.py::test_an_exchange_changes_what_falls_and_no_more_than_allowed",
    ),
    mutation(
        "no more features change than are allowed", "measure/nearest/exchange.py",
        "torch.where(growing, torch.minimum(grown, allowed), allowed)", "torch.where(growing, grown, allowed)",
        "measure/nearest/test_exchange.py::test_an_exchange_changes_what_falls_and_no_more_than_allowed",
    ),
    mutation(
        "features are swapped where no more may change", "measure/nearest/exchange.py",
        "(SWAPPED * wanted).ceil().long(), wanted)", "(0 * wanted).long(), wanted)",
        "measure/nearest/test_exchange.py::test_an_exchange_changes_what_falls_and_no_more_than_allowed",
    ),
    mutation(
        "in L0 features that need not change are put back", "measure/nearest/features.py",
        "        points[live[good]] = tried[good]\n", "",
        "measure/nearest/test_features_changed.py::test_without_gradients_features_are_put_back_in_blocks",
    ),
    mutation(
        "L0 without finite bounds is refused", "measure/nearest/nearest.py",
        "if need.norm == COUNT and not classifier.bounds.finite:", "if False:",
        "measure/nearest/test_features_changed.py::test_without_finite_bounds_it_is_refused",
    ),
    mutation(
        "gradients have to explain the fall of the margin", "measure/nearest/nearest.py",
        "misled[rows] = unexplained(search, rows) > UNEXPLAINED", "misled[rows] = False",
        "measure/nearest/test_fall.py::test_gradients_that_are_not_those_of_the_network_are_masked",
    ),
    mutation(
        "gradients are followed along the whole way", "measure/nearest/fall.py",
        "(part + 0.5) / parts * way", "0.5 / parts * way",
        "measure/nearest/test_fall.py::test_true_gradients_are_not_masked",
    ),
    mutation(
        "candidates of an attack leave alone what does not vary", "measure/nearest/search.py",
        "        if self._clean.varies is None:\n", "        if True:\n",
        "data/test_beside.py::test_a_search_without_gradients_moves_what_varies_alone",
    ),
    # What is shown.
    mutation(
        "stand-ins leave forward values alone", "measure/nearest/straight_through.py",
        "smooth: Tensor) -> Tensor:\n        return value.clone()",
        "smooth: Tensor) -> Tensor:\n        return smooth.clone()",
        "measure/nearest/test_straight_through.py::test_what_is_computed_is_as_before_bit_for_bit",
    ),
    mutation(
        "comparisons pass gradients back", "measure/nearest/straight_through.py",
        "setattr(value, _SMOOTH, smooth)", "pass",
        "measure/nearest/test_straight_through.py::test_gradients_pass_steps",
    ),
    mutation(
        "straight-through gradients wait for those that vanish", "measure/nearest/nearest.py",
        "rows[vanishing[rows] == (name in WITHOUT_GRADIENTS)]",
        "rows[vanishing[rows] == (name == 'rays')]",
        "measure/nearest/test_straight_through.py::test_nothing_is_lost_or_spent_where_there_are_gradients",
    ),
    mutation(
        "without a step to replace the descent ends", "measure/nearest/straight_through.py",
        "return mode.replaced > 0", "return True",
        "measure/nearest/test_straight_through.py::test_without_steps_to_replace_it_ends_at_once",
    ),
    mutation(
        "bounds of each feature, in attacks", "measure/nearest/search.py",
        "self.bounds = self.declared if bounded else NONE", "self.bounds = NONE",
        "measure/nearest/test_bounds_of_attacks.py::"
        "test_no_counterexample_lies_outside_the_bounds_of_its_features",
    ),
    mutation(
        "logits may lie transposed", "measure/nearest/search.py",
        "torch.full(clean.logits.shape, torch.inf, dtype=torch.float64, device=clean.logits.device)",
        "torch.full_like(clean.logits, torch.inf, dtype=torch.float64)",
        "measure/nearest/test_nearest.py::test_logits_may_lie_in_any_order",
    ),
)  # fmt: skip
