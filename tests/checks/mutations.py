"""Takes safeguards out one at a time, in a copy of the tree, and shows that a test turns red for each of them.

    PYTHONPATH=tests python -m checks.mutations [NAME ...]

A safeguard that no test misses can be lost without anybody noticing. The tests that are named here pass on a copy that
nothing was taken out of; then each must fail, and not merely break, on a copy that lacks its safeguard.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from checks.taken_out import PASSED, Mutation, copy_tree, mutation, run_tests, survives

MODE, CALLER = "model/test_evaluation_mode.py::test_", "model/test_caller_modes.py::test_"
TURNS, IN_USE = "model/test_turns.py::test_", "model/test_in_use.py::test_"
LEAN = "doctor/test_company.py::test_rows_that_lean_on_each_other_are_refused"
DEAD = "doctor/test_vanished.py::test_dead_points_are_counted_and_no_gradient_is_called_masked"
PLANTED = "doctor/test_planted_defects.py::test_a_defect_is_named_and_nothing_is_scored"

MUTATIONS = (
    mutation(
        "rounding is looked at away from the point", "measure/certified/proof.py",
        ".abs().maximum(self._rounding())", ".abs()",
        "measure/certified/test_graph.py::test_rounding_away_from_the_point_is_allowed_for",
    ),
    mutation(
        "what is outside the bounds by rounding is no change", "measure/nearest/search.py",
        "torch.where(points == self.origin[rows], points, self.bounds.clip(points))", "self.bounds.clip(points)",
        "measure/nearest/test_features_changed.py::test_values_outside_the_bounds_by_rounding_are_no_change",
    ),
    mutation(
        "no certificate for half precision", "measure/certified/tracing.py",
        "classifier.dtype in (torch.float16, torch.bfloat16)", "classifier.dtype in ()",
        "measure/certified/test_graph.py::test_half_precision_has_no_certificate",
    ),
    mutation(
        "bounds go through what was compiled", "measure/certified/tracing.py", "export(plain(model),", "export(model,",
        "model/test_uncompiled.py::test_what_was_compiled_is_measured_as_the_network_itself",
    ),
    mutation(
        "what was compiled runs as PyTorch alone", "model/classifier.py",
        "standard_modes(self.device), uncompiled():", "standard_modes(self.device):",
        "model/test_uncompiled.py::test_what_was_compiled_is_measured_as_the_network_itself",
    ),
    # What is decided.
    mutation(
        "a label has its own block of the Gram", "measure/linearization.py",
        "        pair, one = [0, 1 + number], slice(number, number + 1)\n",
        "        pair, one = [0, 1], slice(number, number + 1)\n",
        "decisions/test_each_label.py::test_each_column_is_that_of_the_labels_own_run",
    ),
    mutation(
        "a detector of another decision is refused", "detector/identity.py",
        "        if model.decision is not None:\n", "        if False:\n",
        "detector/test_identity.py::test_another_decision_has_no_detector",
    ),
    mutation(
        "a certificate is about the margins of its decision", "measure/certified/crown.py",
        "levels = levels + constants.gather(1, chosen).T", "levels = levels + 0 * constants.gather(1, chosen).T",
        "measure/certified/test_decisions.py::test_no_input_inside_the_radius_decides_otherwise",
    ),
    mutation(
        "a certificate that could not be computed is no failed proof", "scores/input_margin.py",
        "            status = torch.where(lacking, int(Status.NO_CERTIFICATE), status)\n", "",
        "scores/test_input_margin.py::test_without_a_certificate_the_layer_is_said",
    ),
    mutation(
        "below a softmax at the end are logits", "measure/certified/probabilities.py",
        'last.operator == "softmax"', 'last.operator == ""',
        "measure/certified/test_decisions.py::test_a_softmax_at_the_end_changes_no_certificate",
    ),
    mutation(
        "only the largest probability is certified", "measure/certified/probabilities.py",
        "if not isinstance(decision, PredictedClass):", "if False:",
        "measure/certified/test_decisions.py::"
        "test_other_decisions_from_probabilities_have_no_certificate_and_what_to_do_is_said",
    ),
    mutation(
        "what is changed in place is not lost", "measure/certified/tracing.py",
        "    check_writes(module.graph, _canonical)\n", "",
        "measure/certified/test_graph.py::test_what_is_changed_in_place_is_bounded_as_it_runs_or_named",
    ),
    mutation(
        "a neighbour's bounds cost a point nothing", "measure/certified/crown.py",
        "chosen & ~known)", "chosen & (chosen & ~known).any())",
        "measure/certified/test_radius.py::test_what_several_layers_see_is_bounded_for_each_point_alone",
    ),
    mutation(
        "a refuted certificate certifies nothing", "scores/input_margin.py",
        "low, passes = certified.radius.where(~refuted, 0.0),", "low, passes = certified.radius,",
        "scores/test_input_margin.py::test_a_certificate_beyond_a_counterexample_certifies_nothing_at_that_point",
    ),
    mutation(
        "a refuted certificate is told", "scores/input_margin.py",
        "            status = mark(status, refuted, Status.REFUTED)\n", "",
        "scores/test_input_margin.py::test_a_network_that_computes_otherwise_than_its_layers_is_told",
    ),
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
        "a certificate that scores share is paid once", "analysis/certificate_passes.py",
        "key = tuple(column.parameters.get(name) for name in _DECIDING)", "key = (column.label,)",
        "analysis/test_certificate_passes.py::test_scores_that_share_a_certificate_count_it_once",
    ),
    mutation(
        "what was left out is noted", "run/scoring.py",
        "findings=(*job.left_out, *diagnosis.findings)", "findings=diagnosis.findings",
        "doctor/test_left_out.py::test_the_run_has_the_others_and_says_which_it_lacks",
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
        "what is drawn is what Vega-Lite knows", "report/charts_style.py",
        "aria=False,", 'aria="none",',
        "report/test_figure.py::test_every_specification_is_one_of_vega_lite",
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
        "certificates in L1 divide by the largest slope", "measure/certified/region.py",
        "torch.linalg.vector_norm(flat, DUAL_ORDER[self.norm], dim=2)", "torch.linalg.vector_norm(flat, dim=2) / 2",
        "measure/nearest/test_bounds_of_attacks.py::test_no_certificate_reaches_beyond_a_counterexample",
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
        "disagreement of attacks is told", "scores/input_margin.py",
        "tuple(said if one else None for one in disagreeing) if any(disagreeing) else None", "None",
        "scores/test_input_margin.py::test_attacks_that_disagree_are_told_in_the_detail",
    ),
    mutation(
        "a proof holds inside its ball alone", "measure/certified/search.py",
        "radii.where(good, radii.minimum(reach))", "reach",
        "measure/certified/test_exact_distances.py::test_the_radius_is_at_most_the_exact_distance",
    ),
    mutation(
        "a proof is less than what it lies above", "measure/certified/region.py",
        "-self.room.lower, self.room.upper", "self.room.upper, -self.room.lower",
        "measure/certified/test_region.py::test_a_linear_function_is_positive_up_to_its_reach_and_no_farther",
    ),
    mutation(
        "the parts of a ball are all of it", "measure/certified/branching.py",
        "both.signs[count:].scatter_(1, parts.next[:, None], -1)",
        "both.signs[count:].scatter_(1, parts.next[:, None], 1)",
        "measure/certified/test_branching.py::test_no_radius_is_beyond_what_a_grid_finds",
    ),
    mutation(
        "what is added for an assumed sign lowers a bound alone", "measure/certified/slopes.py",
        "one.clamp_(min=0)", "one.clamp_(min=-1)",
        "measure/certified/test_branching.py::test_no_radius_is_beyond_what_a_grid_finds",
    ),
    mutation(
        "a line below a rectifier is between its pieces", "measure/certified/slopes.py",
        "one.clamp_(0, 1)", "one.clamp_(0.5, 2)",
        "measure/certified/test_branching.py::test_no_radius_is_beyond_what_a_grid_finds",
    ),
    mutation(
        "all parts of a ball have to be proved", "measure/certified/branching.py",
        'parts.root, parts.reach, "amin")', 'parts.root, parts.reach, "amax", include_self=False)',
        "measure/certified/test_branching.py::test_no_radius_is_beyond_what_a_grid_finds",
    ),
    mutation(
        "a product lies between planes beside it", "measure/certified/steps.py",
        "Lines(Line(straight, -radius), Line(", "Lines(Line(straight, 0 * radius), Line(",
        "measure/certified/test_operators.py::test_no_value_leaves_the_bounds",
    ),
    mutation(
        "rows on another axis are bounded one at a time", "measure/certified/tracing.py",
        "if not len(inputs) or _rows_first(network, inputs) else", "if True else",
        "measure/certified/test_operators.py::test_no_value_leaves_the_bounds",
    ),
    mutation(
        "a line clears the inside of a bend", "measure/certified/curves.py",
        "            if sign * piece.bend < 0:\n", "            if sign * piece.bend > 0:\n",
        "measure/certified/test_relaxations.py::test_lines_and_ends_lie_around_their_function",
    ),
    mutation(
        "a plane above shares", "measure/certified/softmax.py",
        "_sums(tangent * (1 - middle))", "_sums(tangent)",
        "measure/certified/test_softmax.py::test_planes_and_boxes_lie_around_softmax",
    ),
    mutation(
        "padding is never the largest", "measure/certified/maxima.py",
        "torch.where(outside, fill.view", "torch.where(outside, -fill.view",
        "measure/certified/test_operators.py::test_no_value_leaves_the_bounds",
    ),
    mutation(
        "a radius is at most the exact distance", "measure/certified/steps.py",
        "more = walk.activation(relu, Bounded(other.value - one.value, apart))",
        "more = walk.activation(relu, Bounded(other.value - one.value, apart.map(lambda end: end * 0.5)))",
        "measure/certified/test_exact_distances.py::test_the_radius_is_at_most_the_exact_distance",
    ),
    mutation(
        "a call sends the other tensors of its points", "scores/call.py",
        "rows, confidence, batch.aside)", "rows, confidence, batch.aside and replace(batch.aside, varies=None))",
        "scores/test_call_beside.py::test_a_call_gives_what_a_run_gives",
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
        "a pass is remembered with what is beside its inputs", "model/pass_memory.py",
        "    parts += [] if aside is None else [aside.tensors[name] for name in sorted(aside.tensors)]\n", "",
        "model/test_pass_memory.py::test_what_is_beside_an_input_counts",
    ),
    mutation(
        "all labels together speak for a run", "analysis/columns.py",
        "in together or known if", "in known if",
        "decisions/test_each_label.py::test_the_run_speaks_of_all_labels_together",
    ),
    mutation(
        "a label is asked of its own classifier", "run/evaluation.py",
        "    own, before = deciding(classifier, label), classifier.passes\n",
        "    own, before = deciding(classifier, replace(label, position=0)), classifier.passes\n",
        "decisions/test_each_label.py::test_each_column_is_that_of_the_labels_own_run",
    ),
    mutation(
        "labels that were alike when shortened stay whole", "estimate.py",
        "text if times[text] == 1 else label", "text",
        "test_estimate.py::test_what_people_read_of_a_label_is_short_and_stays_unique",
    ),
    mutation(
        "labels that are no whole numbers are refused", "data/arrays.py",
        "    odd = np.argwhere((labels != np.floor(labels)) | ", "    odd = np.argwhere(",
        "test_mistakes.py::test_a_mistake_on_the_command_line_gets_its_sentence",
    ),
    mutation(
        "the model's file is looked for before data are read", "cli/score.py",
        "    opening.check()\n", "",
        "cli/test_opening.py::test_a_mistake_about_the_model_is_told_before_data_are_read",
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
    mutation(
        "what does not vary is as it is at the point", "model/aside.py",
        "        if self.varies is None or self.inputs is None:\n", "        if True:\n",
        "data/test_beside.py::test_gradients_count_what_varies_alone",
    ),
    mutation(
        "padding changes no draw", "noise/stream.py",
        "        if self._varies is None or not self._noise.alike:\n", "        if True:\n",
        "data/test_beside.py::test_more_padding_changes_no_score",
    ),
    mutation(
        "candidates of an attack leave alone what does not vary", "measure/nearest/search.py",
        "        if self._clean.varies is None:\n", "        if True:\n",
        "data/test_beside.py::test_a_search_without_gradients_moves_what_varies_alone",
    ),
    mutation(
        "marks of the beginning and the end of a text do not vary", "model/texts.py",
        "found[MASK] * (1 - special)", "found[MASK]",
        "data/test_texts.py::test_the_words_vary_and_their_marks_do_not",
    ),
    mutation(
        "copies are looked at by what was decided at their own point", "measure/forward.py",
        "classifier(inputs, self.aside.only(rows))", "classifier(inputs, self.aside.only(rows * 0))",
        "decisions/test_scores.py::test_counts_are_those_of_single_copies",
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
        "a score that a decision does not serve is refused in a run", "run/arguments.py",
        "    check_all_serve(scores, classifier)\n", "",
        "decisions/test_scores.py::test_a_score_serves_a_decision_or_refuses_it_by_name",
    ),
    mutation(
        "runs over different decisions are not compared", "analysis/comparison.py",
        "    _check_decisions(first, second)\n", "",
        "decisions/test_runs.py::test_runs_over_different_decisions_are_not_compared",
    ),
    mutation(
        "a point that differs from itself is refused", "model/classifier.py",
        "        self.decision.check_taken(-logits[:, 1:])\n", "",
        "decisions/test_scores.py::test_a_function_by_which_a_point_differs_from_itself_is_refused",
    ),
    mutation(
        "False is no tie", "decisions/by_user.py",
        "torch.where(found, 1.0, -1.0)", "torch.where(found, 1.0, 0.0)",
        "decisions/test_scores.py::test_a_function_that_says_true_or_false_is_counted_as_its_margin",
    ),
    # Noise.
    mutation(
        "linear scores refuse noise that is not added", "noise/transform.py",
        "        if linear:\n", "        if False:\n",
        "noise/test_transform.py::test_scores_that_need_a_covariance_or_pairs_refuse_it_by_name",
    ),
    mutation(
        "a Gram matrix is multiplied with the power of its own point", "noise/relative.py",
        "vectors * self.own.square()", "vectors * self.own.square().mean(dim=0, keepdim=True)",
        "noise/test_relative.py::test_taylor_is_exact_for_linear_models",
    ),
    mutation(
        "a draw that a function writes over is copied first", "noise/stream.py",
        " and type(self._noise) in ANEW:", ":",
        "noise/test_families.py::test_a_function_may_write_each_draw_over_the_one_before",
    ),
    mutation(
        "draws are multiplied with the size of their own point", "noise/stream.py",
        "        if scales is not None:\n", "        if False:\n",
        "noise/test_relative.py::test_draws_have_the_size_of_the_point",
    ),
    mutation(
        "families whose covariance depends on the point share no Gram matrix", "noise/relative.py",
        "        return at_one(self)\n", "        return None\n",
        "noise/test_relative.py::test_taylor_is_exact_for_linear_models",
    ),
    mutation(
        "a corruption knows the bounds of the values", "noise/corruption.py",
        "        if least < low - SLACK * (high - low) or most > high + SLACK * (high - low):\n", "        if False:\n",
        "noise/test_corruption.py::test_what_is_no_image_or_out_of_range_is_refused",
    ),
    mutation(
        "categories have no noise", "noise/tables.py",
        "        scale = torch.where(still, 0.0, found.scale)\n", "        scale = found.scale\n",
        "noise/test_tables.py::test_scales_are_those_of_the_columns_and_0_of_categories",
    ),
    mutation(
        "swaps of other rows are other noise", "noise/tables.py",
        "        content = rows.contiguous().double().numpy().tobytes()", "        content = b\"\"",
        "noise/test_tables.py::test_only_the_columns_that_are_named_are_swapped",
    ),
    mutation(
        "noise with a level of its own takes no sigma", "cli/noise_options.py",
        "    if sigmas and has_level(text):\n", "    if False:\n",
        "cli/test_noise_options.py::test_what_does_not_fit_together_is_said",
    ),
    mutation(
        "a level in another unit is not said to be in pixels", "store/settings.py",
        "UNIT not in family and not", "not",
        "cli/test_noise_options.py::test_rotations_by_command_with_the_report",
    ),
    mutation(
        "noise that is not added has no mirror image", "noise/stream.py",
        "        if tuple(signs) != (1,):\n", "        if False:\n",
        "noise/test_transform.py::test_no_copy_has_a_mirror_image",
    ),
    mutation(
        "a transform with randomness of its own is refused", "noise/transform.py",
        "    if not torch.equal(one, other):\n", "    if False:\n",
        "noise/test_transform.py::test_a_function_that_cannot_be_noise_is_refused",
    ),
    mutation(
        "a transform gives finite numbers", "noise/transform.py",
        "    if not bool(found.isfinite().all()):\n", "    if False:\n",
        "noise/test_transform.py::test_a_function_that_cannot_be_noise_is_refused",
    ),
    mutation(
        "the generators that all share are seeded for a copy", "noise/transform.py",
        "    seed(generator.initial_seed())\n", "",
        "noise/test_transform.py::test_generators_that_all_share_are_seeded_for_each_copy",
    ),
    mutation(
        "moments refuses noise without pairs", "scores/moments.py",
        "        if not self.noise.added:\n", "        if False:\n",
        "noise/test_transform.py::test_scores_that_need_a_covariance_or_pairs_refuse_it_by_name",
    ),
    mutation(
        "two functions of one name are refused", "scores/outside.py",
        "    if known.setdefault(called, noise).fn is not noise.fn:\n", "    if False:\n",
        "noise/test_transform_code.py::test_two_functions_of_one_name_are_refused",
    ),
    mutation(
        "a run knows the code of its transform", "noise/transform.py",
        '"code": code_digest(fn)}', '"code": called}',
        "noise/test_transform_code.py::test_a_run_is_not_resumed_with_another_function",
    ),
    mutation(
        "a run knows classes of noise that stand in no file", "scores/outside.py",
        "return (files or {}) | {", "return files and {",
        "noise/test_transform_code.py::test_a_run_is_not_resumed_with_another_class_of_the_same_name",
    ),
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
    # Models outside PyTorch.
    mutation(
        "columns in another order than those of the model are refused", "run/arguments.py",
        "    _check_columns(classifier, points)\n", "",
        "model/test_array_models.py::test_columns_in_another_order_are_refused",
    ),
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
        "images are read as the folder of the model declares", "cli/options.py",
        "return ImageSteps() if own else found", "return ImageSteps()",
        "model/loading/test_image_steps.py::test_images_are_read_as_the_model_declares",
    ),
    mutation(
        "sizes that a user gives stand in the place of the declared ones", "cli/options.py",
        "return ImageSteps() if own else found", "return found",
        "model/loading/test_image_steps.py::test_options_stand_in_the_place_of_what_is_declared",
    ),
    mutation(
        "what the main program defines is not sent to a worker", "run/workers/handed.py",
        '== "__main__"', '== "nowhere"',
        "run/workers/test_handed.py::test_what_no_other_process_can_import_is_refused",
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
        "labels are the values that an estimator was fitted on", "run/arguments.py",
        "names, classifier.class_values)", "names, None)",
        "model/test_array_models.py::test_labels_are_those_that_the_estimator_was_fitted_on",
    ),
    mutation(
        "types that skops does not trust are refused", "model/loading/skops_file.py",
        "model = None if untrusted else skops.loads(content)", "model = skops.loads(content, trusted=untrusted)",
        "model/loading/test_skops_file.py::test_an_untrusted_type_is_not_made",
    ),
    # The run folder.
    mutation(
        "bytes of a shard are flushed to the disk", "store/files/writing.py",
        "                os.fsync(file.fileno())\n", "",
        "store/test_folder.py::test_a_file_gets_its_name_when_its_bytes_are_on_the_disk",
    ),
    mutation(
        "buffered bytes are written before the flush", "store/files/writing.py",
        "                file.flush()\n", "",
        "store/test_folder.py::test_a_file_gets_its_name_when_its_bytes_are_on_the_disk",
    ),
    mutation(
        "the folder is flushed after the rename", "store/files/writing.py",
        "        _flush(path.parent)\n", "",
        "store/test_folder.py::test_a_file_gets_its_name_when_its_bytes_are_on_the_disk",
    ),
    Mutation(
        "files are renamed into place", "store/files/writing.py",
        (
            ("os.fdopen(os.open(temporary, _NEW, 0o666), ", "os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT), "),
            ("            temporary.replace(path)  # once it is closed: Windows renames no open file\n", ""),
        ),
        "tests/store/test_folder.py::test_a_file_gets_its_name_when_its_bytes_are_on_the_disk",
    ),
    mutation(
        "only regular files are written over", "store/files/writing.py",
        "    if stat.S_ISREG(mode):\n", "    if True:\n",
        "test_places.py::test_nothing_but_a_regular_file_is_written[a detector-pipe]",
    ),
    mutation(
        "what comes in between is not written over", "store/files/writing.py",
        "            check_target(path)\n", "",
        "store/files/test_writing.py::test_what_comes_in_between_is_not_replaced",
    ),
    mutation(
        "half a file is removed", "store/files/writing.py",
        "            temporary.unlink(missing_ok=True)\n", "            pass\n",
        "store/files/test_writing.py::test_a_file_is_whole_or_not_there",
    ),
    mutation(
        "a file that is replaced keeps its permissions", "store/files/writing.py",
        "                _take_permissions(file, path)\n", "",
        "store/files/test_writing.py::test_a_file_that_is_replaced_keeps_its_permissions_and_its_other_names",
    ),
    mutation(
        "a page reads robustness by class from its overview", "report/contents.py",
        "same = column is self.overview.numbers and", "same = False and",
        "report/page/test_render.py::test_what_chapters_share_is_computed_once",
    ),
    mutation(
        "a report is written as every file", "report/page/render.py",
        '    write(path, render(contents, chapters).encode("utf-8"))\n',
        '    path.write_text(render(contents, chapters), encoding="utf-8", newline="\\n")\n',
        "store/files/test_writing.py::test_every_file_is_written_by_one_function",
    ),
    mutation(
        "the folder of the demo's run is no link", "cli/commands.py",
        '    check_folder(out / "run")\n', "",
        "test_places.py::test_the_run_of_the_demo_is_in_its_folder",
    ),
    mutation(
        "the lock is no link", "store/files/lock.py",
        'opening("O_NOFOLLOW", "O_NONBLOCK")\n', 'opening("O_NONBLOCK")\n',
        "store/files/test_lock.py::test_a_lock_that_became_a_link_in_between_is_not_followed",
    ),
    mutation(
        "the lock is a regular file", "store/files/lock.py",
        "        if not stat.S_ISREG(os.fstat(self._file).st_mode):\n", "        if False:\n",
        "store/files/test_lock.py::test_a_lock_that_became_a_link_in_between_is_not_followed",
    ),
    mutation(
        "the lock has no other name", "store/files/lock.py",
        "        if opened.st_nlink > 1:\n", "        if False:\n",
        "store/files/test_lock.py::test_a_lock_that_is_none_is_not_written_over",
    ),
    mutation(
        "somebody's file is no lock", "store/files/lock.py",
        "        if not self._is_lock():\n", "        if False:\n",
        "store/files/test_lock.py::test_a_lock_that_is_none_is_not_written_over",
    ),
    mutation(
        "files of others in the folder of a run stay", "store/shards.py",
        "    return bool(_STRAY.fullmatch(name))\n", '    return name.endswith((".tmp", ".parquet"))\n',
        "test_places.py::test_files_of_others_in_the_folder_of_a_run_stay",
    ),
    mutation(
        "digest of a shard that is read", "store/shards.py",
        "    if hashlib.sha256(content).hexdigest() != shard.sha256:\n", "    if False:\n",
        "store/test_shards.py::test_flipped_bits_are_all_named",
    ),
    mutation(
        "digest of a shard that is kept on resume", "store/folder.py",
        '            if hashlib.sha256(path.read_bytes()).hexdigest() != file.sha256:\n', "            if False:\n",
        "run/test_resume.py::test_only_what_is_missing_is_computed",
    ),
    mutation(
        "files outside the folder are not kept on resume", "store/folder.py",
        "if edition_of(file.file, kind, entry.number) is None or path.is_symlink() or not path.is_file():\n",
        "if not path.is_file():\n",
        "store/test_folder.py::test_a_shard_outside_the_folder_is_computed_again",
    ),
    mutation(
        "what a dead process left is removed", "store/folder.py",
        "            if is_stray(path.name) and path.name not in known:\n",
        '            if path.suffix == ".parquet" and path.name not in known:\n',
        "store/test_folder.py::test_what_a_dead_process_left_is_removed",
    ),
    mutation(
        "one writer at a time", "store/files/lock.py",
        "        if not lock_descriptor(self._file, blocking=False):\n", "        if False:\n",
        "store/files/test_lock.py::test_a_second_process_is_refused",
    ),
    mutation(
        "embeddings are read as tokens are", "model/texts.py",
        "                if not apart <= AGREES * max(1.0, float(alone.abs().max())):\n", "                if False:\n",
        "model/test_texts.py::test_a_model_that_does_not_is_refused",
    ),
    mutation(
        "another tokenizer is another run", "store/record.py",
        "    tokenizer_sha256: str | None = field(default=None, metadata=SAME)\n",
        "    tokenizer_sha256: str | None = field(default=None, metadata=OTHER)\n",
        "cli/test_text_commands.py::test_the_record_says_what_was_read",
    ),
    mutation(
        "names in the manifest stay in the folder", "store/manifest.py",
        '    if Path(file).name != file or file in (".", "..") or "\\\\" in file or "\\0" in file:\n',
        "    if False:\n",
        "store/test_shards.py::test_a_manifest_cannot_lead_out_of_its_folder",
    ),
    mutation(
        "links do not lead out of the folder", "store/files/records.py",
        "    if path.is_symlink() and path.resolve().parent != path.parent.resolve():\n", "    if False:\n",
        "store/test_shards.py::test_a_link_cannot_lead_out_of_its_folder",
    ),
    mutation(
        "NaN is no number in a record", "store/files/strict_json.py",
        ", parse_constant=_refuse_constant)\n", ")\n",
        "store/files/test_strict_json.py::test_what_is_no_number_is_refused",
    ),
    # What a resumed run is.
    mutation(
        "another experiment is not resumed", "run/scoring.py",
        "    check_same(one, other, place)\n", "",
        "run/test_identity.py::test_another_experiment_is_refused_by_name",
    ),
    mutation(
        "other points are another experiment", "store/record.py",
        "    ids_sha256: str | None = field(default=None, metadata=SAME)\n",
        "    ids_sha256: str | None = field(default=None, metadata=OTHER)\n",
        "run/test_resume.py::test_a_run_over_some_points_goes_on_with_these_alone",
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
        "numbers of finished copies stand beside the states of others", "analysis/decisions.py",
        "    return min(fitting, key=lambda one: one.preference or 0.0, default=judge)\n", "    return judge\n",
        "analysis/test_decisions.py::test_a_finished_run_keeps_its_numbers_when_its_points_are_decided",
    ),
    mutation(
        "numbers of a few copies stand beside no states", "analysis/decisions.py",
        "_counted_everywhere(one) >= fewest\n", "_counted_everywhere(one) > 0\n",
        "analysis/test_decisions.py::test_only_a_count_of_enough_copies_at_every_point_stands_beside_the_states",
    ),
    mutation(
        "points that cannot be measured are not drawn for", "measure/stopping.py",
        "clean.finite if clean.wanted is None else clean.finite & clean.wanted)\n", "clean.finite)\n",
        "run/test_growing.py::test_more_draws_give_the_table_of_a_run_with_as_many_from_the_first",
    ),
    mutation(
        "readers take the rows of the scores of the run", "store/reading.py",
        "rows_of(rows, known) if kind == \"scores\" else rows)\n", "rows)\n",
        "run/test_growing.py::test_a_run_that_grows_is_what_it_was_until_it_has_grown",
    ),
    mutation(
        "inputs have the length that the record says", "store/inputs.py",
        "    if any(size not in (None, *(each * numbers for each in _TYPES)) for size in sizes):\n", "    if False:\n",
        "store/test_inputs.py::test_a_cell_of_another_length_is_refused",
    ),
    mutation(
        "inputs that were measured are finite", "store/inputs.py",
        "    if not np.isfinite(unpack(column, numbers)[kept]).all():\n", "    if False:\n",
        "store/test_inputs.py::test_a_number_that_was_measured_is_finite",
    ),
    mutation(
        "a run without inputs holds none", "store/inputs.py",
        "    if shape is None or not keeps(shape):\n", "    if shape is None:\n",
        "store/test_inputs.py::test_inputs_of_a_run_that_keeps_none_are_refused",
    ),
    mutation(
        "inputs are looked at when a run is read", "store/reading.py",
        "    if problem is not None:\n", "    if False:\n",
        "store/test_inputs.py::test_a_cell_of_another_length_is_refused",
    ),
    mutation(
        "a value that all rows share is held once", "store/shards.py",
        "[one.name for one in schema if one.type in _TEXTS]", "[]",
        "store/test_inputs.py::test_a_large_value_that_all_rows_share_is_held_once",
    ),
    mutation(
        "inputs are kept in the precision of the network", "run/evaluation.py",
        "(seen if seen.dtype == torch.float64 else seen.float())", "seen.float()",
        "run/test_evaluation.py::test_small_inputs_that_are_no_images_are_kept_as_the_network_gets_them",
    ),
    mutation(
        "a shard that is replaced is whole until then", "store/folder.py",
        "_commit(self.path, file_name(kind, number, edition), content)\n",
        "_commit(self.path, file_name(kind, number), content)\n",
        "run/test_growing.py::test_kills_lose_nothing",
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
    Mutation(
        "the digest of the data decides the identity", "store/record.py",
        (
            (
                "    split: str | None = field(default=None, metadata=SAME)\n"
                "    sha256: str | None = field(default=None, metadata=SAME)\n",
                "    split: str | None = field(default=None, metadata=SAME)\n"
                "    sha256: str | None = field(default=None, metadata=OTHER)\n",
            ),
        ),
        "tests/run/test_identity.py::test_another_experiment_is_refused_by_name",
    ),
    Mutation(
        "the version of PyTorch decides the identity", "store/record.py",
        (("    torch: str = field(metadata=SAME)\n", "    torch: str = field(metadata=OTHER)\n"),),
        "tests/run/test_identity.py::test_every_field_of_the_identity_is_compared",
    ),
    mutation(
        "data that change during a run", "run/scoring.py",
        "        doctor.check_unchanged(job.points, diagnosis.digest)\n", "",
        f"{PLANTED}[data that are overwritten]",
    ),
    mutation(
        "digest of the data's file after a run", "doctor/data.py",
        "        if now != then:\n", "        if False:\n",
        "doctor/test_planted_defects.py::test_a_file_that_is_overwritten_during_the_run_is_seen",
    ),
    # Numbers.
    mutation(
        "a chosen point has the id that was asked for", "data/chosen.py",
        "            if own != now:\n", "            if False:\n",
        "data/test_chosen.py::test_data_that_change_are_not_read_as_if_they_had_not",
    ),
    mutation(
        "a loader that shuffles is refused", "data/datasets.py",
        "    if shuffles:\n", "    if False:\n",
        "data/test_datasets.py::test_a_loader_that_shuffles_is_told",
    ),
    mutation(
        "how images were resized makes another run", "data/options.py",
        '        names = ("resize", "center_crop", ', '        names = ("center_crop", ',
        "data/test_fitting.py::test_a_run_knows_how_its_images_were_fitted",
    ),
    mutation(
        "labels are mapped by name", "data/class_names.py",
        "{at: known.index(name) for at, name in enumerate(own)}", "None",
        "data/test_class_names.py::test_labels_are_mapped_by_name",
    ),
    mutation(
        "a header of an array is not believed", "data/npy.py",
        "            if expected != there or not kind.itemsize:\n", "            if False:\n",
        "data/test_npy.py::test_a_damaged_file",
    ),
    mutation(
        "a feature that is missing is refused", "data/tabular.py",
        "    if len(missing):\n", "    if False:\n",
        "data/test_tabular.py::test_tables_of_another_form_get_one_sentence",
    ),
    mutation(
        "a row of another length is refused", "data/csv_file.py",
        "        if len(cells) != width:\n", "        if False:\n",
        "data/test_tabular.py::test_tables_of_another_form_get_one_sentence",
    ),
    mutation(
        "thumbnails are drawn when they are asked for", "data/points.py",
        "    def __len__(self) -> int:\n        return len(self.rows)\n",
        "    def __post_init__(self) -> None:\n        _ = self.images\n\n"
        "    def __len__(self) -> int:\n        return len(self.rows)\n",
        "data/test_points.py::test_nothing_is_drawn_before_it_is_asked_for",
    ),
    mutation(
        "a gradient imports no SymPy", "model/classifier.py",
        "            total = torch.dot(values, seeds)\n            return torch.autograd.grad(\n"
        "                total, inputs,",
        "            return torch.autograd.grad(\n                values, inputs, seeds,",
        "cli/test_last_words.py::test_a_run_imports_nothing_slow_that_it_does_not_need",
    ),
    mutation(
        "ids that are not there are refused", "data/chosen.py",
        "    if missing:\n", "    if False:\n",
        "data/test_chosen.py::test_ids_that_are_not_there_are_counted_and_named",
    ),
    mutation(
        "failures count by their place among the chosen points", "store/account.py",
        '        early = points["point"].to_pylist()[: max(0, FIRST_ROWS - first)]\n',
        "        rows = zip(points[\"point\"].to_pylist(), points[\"row\"].to_pylist(), strict=True)\n"
        "        early = [point for point, row in rows if row < FIRST_ROWS]\n",
        "run/test_scoring.py::test_too_many_failures_among_chosen_points_stop_the_run",
    ),
    mutation(
        "NaN logits under noise are a status", "scores/monte_carlo.py",
        "mark(initial_status(sampled.tied), votes.nonfinite > 0, Status.NONFINITE_LOGITS)\n",
        "initial_status(sampled.tied)\n",
        "run/test_evaluation.py::test_nan_logits_under_noise_never_count_as_agreement",
    ),
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
        "votes that exclude an estimate contradict it", "scores/evidence.py",
        "        status = mark(status, by_votes.excludes(value), Status.CONTRADICTED)\n",
        "",
        "scores/test_evidence.py::test_what_the_votes_exclude_is_contradicted",
    ),
    mutation(
        "ties under noise are a status", "scores/evidence.py",
        "        status = mark(status, votes.ties > 0, Status.NOISY_TIES)\n",
        "",
        "scores/test_evidence.py::test_ties_under_noise_are_counted_apart",
    ),
    mutation(
        "a tie is no flip at the lower end", "scores/evidence.py",
        "in (votes.flips_without_ties, votes.flips)",
        "in (votes.flips, votes.flips)",
        "scores/test_evidence.py::test_ties_under_noise_are_counted_apart",
    ),
    mutation(
        "intervals that say nothing are a status", "scores/evidence.py",
        "mark(status, interval.high - interval.low >= VACUOUS_FROM, Status.VACUOUS)",
        "status",
        "scores/test_evidence.py::test_an_interval_that_says_nothing_has_a_status",
    ),
    mutation(
        "what no draw reaches is extrapolated", "scores/evidence.py",
        "torch.where(value * draws < 1.0,",
        "torch.where(value < 0.0,",
        "scores/test_evidence.py::test_every_flip_probability_says_what_stands_behind_it",
    ),
    mutation(
        "margins that are not normal are counted", "scores/moments.py",
        "doubt = doubtful(model.value, sampled.margins.spread, sampled.votes) | model.by_votes.excludes(model.value)",
        "doubt = torch.zeros_like(model.flat)",
        "scores/test_evidence.py::test_a_wrong_number_is_told_or_held",
    ),
    mutation(
        "few pairs test no normal model", "scores/evidence.py",
        "    if votes.units < FEWEST_UNITS:\n",
        "    if False:\n",
        "scores/test_evidence.py::test_few_pairs_do_not_vouch_for_a_normal_model",
    ),
    mutation(
        "networks that bend have wider intervals", "scores/by_copies.py",
        "    return interval.hull(copies.by_model, bends).hull(by_votes, doubt | by_votes.excludes(value))\n",
        "    return interval\n",
        "scores/test_evidence.py::test_an_interval_of_no_width_has_a_reason",
    ),
    mutation(
        "a deviation of few pairs is not known exactly", "scores/evidence.py",
        "    return low.sqrt(), high.sqrt()\n",
        "    return torch.ones_like(low), torch.ones_like(high)\n",
        "scores/test_evidence.py::test_intervals_hold_on_linear_networks",
    ),
    mutation(
        "products of different pairs have no bias", "measure/gradient_variance.py",
        "torch.where(several, found, of_means + odd / 2)", "(of_means + even + odd) / 2",
        "measure/test_gradient_variance.py::test_it_is_the_mean_of_two_grams",
    ),
    mutation(
        "mmse counts what the gradients vary", "scores/mmse.py",
        "linear.quadratic() if self.form == \"quadratic\" else linear", "linear",
        "scores/test_mmse.py::test_a_curved_margin_is_estimated_with_its_variance",
    ),
    mutation(
        "one margin for several competitors is a status", "scores/mmse.py",
        "torch.full_like(found.tied, found.classes > 2)", "torch.zeros_like(found.tied)",
        "scores/test_evidence.py::test_the_nearest_margin_says_what_it_leaves_out",
    ),
    mutation(
        "numbers below every draw are shown as a bound", "report/wording.py",
        "return f\"below {at_most(max(high, SMALLEST))}, by {model}\"",
        "return f\"{flip:.3g}, by {model}\"",
        "scores/test_evidence.py::test_a_number_that_was_not_seen_is_shown_as_a_bound",
    ),
    mutation(
        "the report shows a number that was not seen as a bound", "report/chapters/fragile/chapter.py",
        "    if _is_extrapolated(row) and contents.chosen is not None:\n", "    if False:\n",
        "report/chapters/fragile/test_chapter.py::test_a_number_that_was_not_seen_is_a_bound",
    ),
    mutation(
        "a share of flips that disagrees is a doubt", "scores/evidence.py",
        "(share - value).abs() > AGREE_WITHIN * error", "share < 0",
        "scores/test_evidence.py::test_a_share_of_flips_that_disagrees_is_a_doubt",
    ),
    mutation(
        "a change reaches out to what was not drawn", "scores/probability_change.py",
        "torch.minimum(low, by_model.amin(dim=0)), torch.maximum(high, by_model.amax(dim=0))", "low, high",
        "scores/test_evidence.py::test_intervals_hold_on_linear_networks",
    ),
    mutation(
        "kinks are a status", "scores/laplacian.py",
        "        status = mark(status, second.kink, Status.KINK)\n", "",
        "measure/test_curvature.py::test_ties_in_max_pooling_are_kinks",
    ),
    mutation(
        "operations that differentiate once are seen", "model/classifier.py",
        "        if differentiable and differentiates_once(gradient):\n", "        if False:\n",
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
        "self._called(call, ready, aside)\n        check_mode(self.model)\n", "self._called(call, ready, aside)\n",
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
        "elementary attention is switched alone", "measure/curvature.py",
        "        with PASSES.alone(), sdpa_kernel(SDPBackend.MATH):", "        with sdpa_kernel(SDPBackend.MATH):",
        f"{TURNS}attention_is_elementary_for_nobody_else",
    ),
    mutation(
        "a network is traced alone", "measure/certified/tracing.py",
        "        with PASSES.alone(), _quiet():", "        with _quiet():",
        f"{TURNS}nobody_passes_through_a_network_that_is_traced",
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
        "a network that fails to be traced says nothing", "measure/certified/tracing.py",
        "without_warnings(), without_last_words():\n            yield", "without_warnings():\n            yield",
        "cli/test_last_words.py::test_nothing_but_our_own_sentences_is_on_stderr[branch]",
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
    mutation(
        "one training sets the number of threads", "detector/pseudo_margin/training.py",
        "    with _one_training:", "    if True:",
        "detector/pseudo_margin/test_training.py::test_the_number_of_threads_is_put_back",
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
        "inputs that were made in inference mode", "measure/forward.py",
        "inputs.clone().requires_grad_(True) if differentiate", "inputs.detach().requires_grad_(True) if differentiate",
        f"{CALLER}inputs_that_were_made_in_inference_mode",
    ),
    mutation(
        "autocast of the caller", "model/caller_modes.py",
        "                modes.enter_context(torch.autocast(kind, enabled=False))\n", "                pass\n",
        f"{CALLER}every_score_has_the_same_bytes[autocast]",
    ),
    mutation(
        "normal draws of one dtype", "noise/families.py",
        "    return torch.randn(size, generator=generator, dtype=torch.float32,",
        "    return torch.randn(size, generator=generator,",
        "noise/test_families.py::test_the_default_dtype_changes_no_draw[gaussian]",
    ),
    mutation(
        "lattices of one dtype", "orthant/lattice.py",
        "% size).double() / size\n", "% size) / size\n",
        f"{CALLER}every_score_has_the_same_bytes[float64]",
    ),
    mutation(
        "lazy layers", "model/placement.py",
        "    if lazy:\n", "    if False:\n",
        f"{CALLER}lazy_layers_that_have_seen_no_input",
    ),
    # Noise families of others.
    mutation(
        "scores refuse noise without a covariance", "noise/base.py",
        "        if linear and not self.has_covariance:\n", "        if False:\n",
        "noise/test_promise.py::test_a_score_needs_the_covariance_or_does_without",
    ),
    mutation(
        "no covariance is inherited by other draws", "noise/base.py",
        "        return said is not Noise and issubclass(said, drawn)\n", "        return said is not Noise\n",
        "noise/test_promise.py::test_a_score_needs_the_covariance_or_does_without",
    ),
    mutation(
        "measurements refuse noise without a covariance", "noise/base.py",
        "        if not self.has_covariance:\n            raise", "        if False:\n            raise",
        "noise/test_promise.py::test_no_measurement_takes_a_covariance_that_is_not_said",
    ),
    mutation(
        "draws of a wrong size", "noise/promise.py",
        "    if isinstance(draw, Tensor) and draw.shape == (size,) and not draw.is_complex():\n", "    if True:\n",
        "noise/test_promise.py::test_draws_that_are_no_noise",
    ),
    mutation(
        "draws with NaN", "noise/stream.py",
        "        check_finite(self._noise, draws)\n", "",
        "noise/test_promise.py::test_a_draw_that_turns_bad_later",
    ),
    mutation(
        "draws are what a family promises", "noise/stream.py",
        "        if type(noise) not in (*OWN, Relative, Decibels, PerFeature):\n", "        if False:\n",
        "noise/test_promise.py::test_a_family_that_breaks_its_promise",
    ),
    mutation(
        "families that would be taken for one", "noise/base.py",
        "        if beside:\n", "        if False:\n",
        "noise/test_promise.py::test_families_that_could_not_be_told_apart",
    ),
    mutation(
        "a model works on a copy of its input", "model/classifier.py",
        "if self.mean or self.std else moved.clone()\n", "if self.mean or self.std else moved\n",
        "model/test_classifier.py::test_the_callers_data_are_not_changed",
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
        "logits are copied from what the model returns", "model/outputs.py",
        'if outputs == "probs" else scores.clone()\n', 'if outputs == "probs" else scores\n',
        "doctor/test_state.py::test_logits_and_features_are_the_callers_own",
    ),
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
        "weights of an ONNX file are parameters", "model/loading/onnx_network.py",
        "                if name in statistics:\n", "                if True:\n",
        "model/loading/test_onnx_network.py::test_it_has_the_parameters_of_the_same_network_and_statistics_are_none",
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
    mutation(
        "only reports of ours are replaced", "cli/common.py",
        "    if not ours:\n", "    if False:\n",
        "cli/test_score.py::test_another_file_is_kept",
    ),
    mutation(
        "images that are turned are counted", "run/job.py",
        "                turned += sum(batch.turned or ())\n", "",
        "data/test_exif.py::test_a_run_counts_the_images_that_are_turned",
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
        "no key twice", "store/files/strict_json.py",
        "    if len(found) < len(pairs):\n", "    if False:\n",
        "detector/test_detector_file.py::test_strictness",
    ),
    mutation(
        "NaN is no number in a detector", "store/files/strict_json.py",
        ", parse_constant=_refuse_constant)\n", ")\n",
        "detector/test_detector_file.py::test_strictness",
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
        "text in the report is escaped", "report/page/render.py",
        "        autoescape=True,\n", "        autoescape=False,\n",
        "report/page/test_render.py::test_hostile_text_in_every_field_is_shown_as_text",
    ),
    mutation(
        "content security policy of the report", "report/page/page.html.jinja",
        '<meta http-equiv="Content-Security-Policy" content="{{ policy }}">\n', "",
        "report/page/test_render.py::test_the_page_is_well_formed_and_inert",
    ),
    mutation(
        "the policy names the script of the page", "report/page/policy.py",
        "[f\"script-src '{digest(script)}'\"]", "[\"script-src 'unsafe-inline'\"]",
        "report/page/test_render.py::test_the_page_is_well_formed_and_inert",
    ),
    mutation(
        "the policy names the style of the page", "report/page/policy.py",
        "f\"style-src '{digest(style)}'\"]", "\"style-src 'unsafe-inline'\"]",
        "report/page/test_render.py::test_the_page_is_well_formed_and_inert",
    ),
    mutation(
        "no text ends the data of the page", "report/page/packed.py",
        r'.replace("<", "\\u003c")', "",
        "report/page/test_packed.py::test_no_text_ends_the_element",
    ),
    mutation(
        "no character hides on the page", "report/page/js/text.js",
        r"text.replace(/\p{C}|[^\P{Z} ]/gu, ", "text.replace(/(?!)/gu, ",
        "browser/test_hostile.py::test_no_character_hides_on_the_page",
    ),
    mutation(
        "nearest other inputs stay with their run", "report/page/js/card.js",
        "return columns[state.by].run === 0;", "return true;",
        "browser/test_other_runs.py::test_the_nearest_other_inputs_of_this_run_are_not_given_to_another",
    ),
    mutation(
        "states are of the copies that were drawn for the limit", "report/page/js/selection.js",
        "  const column = judgeOf(columns[state.by]);\n", "  const column = columns[state.by];\n",
        "browser/test_decided.py::test_states_are_of_the_copies_for_the_limit_and_numbers_of_the_finished_ones",
    ),
    mutation(
        "points that were chosen are called so at every limit", "report/page/js/overview.js",
        "return shown(`${chosen}${noise}", "return shown(`${noise}",
        "browser/test_first_screen.py::test_the_first_screen_says_what_the_analysis_says[chosen points]",
    ),
    mutation(
        "the page says where copies are too few", "report/page/js/overview.js",
        "${said}${tooFew()}${lost}", "${said}${lost}",
        "browser/test_first_screen.py::test_the_first_screen_says_what_the_analysis_says[too few copies]",
    ),
    mutation(
        "confidence holds no point on the page", "report/page/js/selection.js",
        "if (!judges) return 5;", "if (Number.isNaN(bound)) return 5;",
        "browser/test_first_screen.py::test_the_confidence_of_the_network_holds_and_breaks_no_point",
    ),
    mutation(
        "confidence holds no point", "store/columns.py",
        "        if not self.judges:\n", "        if not self.is_probability:\n",
        "analysis/test_overview.py::test_the_confidence_of_a_network_holds_and_breaks_no_point",
    ),
    mutation(
        "a limit is asked for where points are judged", "report/page/js/controls.js",
        "byId(\"judging\").hidden = !judges;", "byId(\"judging\").hidden = false;",
        "browser/test_first_screen.py::test_a_limit_is_asked_for_where_points_are_judged[False]",
    ),
    Mutation(
        "a card judges no point by confidence", "report/page/js/card.js",
        (
            ("if (!judges || Number.isNaN", "if (Number.isNaN"),
            ("VERDICTS[states[point]]", "VERDICTS[states[point] % 3]"),
        ),
        "tests/browser/test_first_screen.py::test_the_confidence_of_the_network_holds_and_breaks_no_point",
    ),
    mutation(
        "a run of margins has a first screen", "report/chapters/overview/chapter.py",
        "(contents.tells_robustness or found.margins)", "contents.tells_robustness",
        "report/chapters/overview/test_overview_chapter.py::test_a_run_of_margins_says_how_near_the_next_prediction_is",
    ),
    mutation(
        "the demo names the program as the shell finds it", "cli/demo.py",
        "found is not None and typed.samefile(found)", "found is not None",
        "cli/test_demo.py::test_the_demo_names_the_program_as_the_shell_finds_it",
    ),
    mutation(
        "at least the share of points is as near as is said", "analysis/margin_words.py",
        "math.ceil(share * len(values)) - 1", "math.floor(share * len(values)) - 1",
        "analysis/test_margin_words.py::test_at_least_that_share_is_as_near",
    ),
    mutation(
        "there is no detector of a number of changes", "detector/entries.py",
        "    if COUNT in found:\n", "    if not found:\n",
        "detector/test_calibration.py::test_a_run_in_l0_alone_has_no_detector",
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
        "the demo records a command that scores", "cli/commands.py",
        '("brittle", "score", *words), *given.args', '("brittle", "demo"), *given.args',
        "cli/test_demo.py::test_every_suggested_command_of_the_demo_runs_as_it_is_copied",
    ),
    mutation(
        "a limit is judged before what goes with it", "scores/until.py",
        '    check_share("limit", limit)\n', "",
        "test_limit.py::test_in_python[score without until-1.5]",
    ),
    mutation(
        "what a gesture opens is brought into view", "report/page/js/dom.js",
        "top + SEEN <= innerHeight) return false;", "top + SEEN <= Infinity) return false;",
        "browser/test_going.py::test_on_a_phone_a_point_of_the_list_shows_its_card_and_closing_it_the_list",
    ),
    mutation(
        "a selection is brought into view", "report/page/js/list.js",
        "if (bring(byId(STACKED.matches ? \"list\" : \"selected\")))", "if (innerWidth < 0)",
        "browser/test_going.py::test_on_a_phone_what_is_selected_on_the_first_screen_is_shown",
    ),
    mutation(
        "a point of the plot is brought into view", "report/page/js/scatter.js",
        "    bring(byId(\"card\"));\n", "",
        "browser/test_going.py::test_on_a_phone_a_point_of_the_plot_shows_its_card",
    ),
    mutation(
        "nothing glides where people object", "report/page/js/dom.js",
        "? \"auto\" : \"smooth\"", "? \"smooth\" : \"smooth\"",
        "browser/test_going.py::test_the_page_glides_only_where_people_do_not_object[True]",
    ),
    mutation(
        "the focus stays on what is drawn anew", "report/page/js/dom.js",
        "  if (!keep || held?.isConnected) return;\n", "  if (held) return;\n",
        "browser/test_going.py::test_the_focus_stays_on_what_is_drawn_anew",
    ),
    mutation(
        "numbers filter as they are typed", "report/page/js/controls.js",
        "    end.addEventListener(\"input\", later(filter, NUMBER_PAUSE));\n", "",
        "browser/test_selecting.py::test_numbers_filter_as_they_are_typed_and_what_is_left_is_said",
    ),
    mutation(
        "a limit that is none is told", "report/page/js/controls.js",
        "  byId(\"limit-told\").textContent = text;\n", "",
        "browser/test_first_screen.py::test_a_limit_that_is_none_is_told_and_the_last_one_stays[1.5]",
    ),
    mutation(
        "whole words are found first", "report/page/js/selection.js",
        "whole.includes(1) ?", "whole.includes(2) ?",
        "browser/test_selecting.py::test_whole_words_are_found_before_parts_of_words",
    ),
    mutation(
        "classes keep their order on the page", "report/page/js/overview.js",
        "other.all[2] / other.sum - one.all[2] / one.sum", "other.tally[2] / other.sum - one.tally[2] / one.sum",
        "browser/test_selecting.py::test_classes_keep_their_order_and_show_how_much_of_each_is_selected",
    ),
    mutation(
        "what is undecided now holds no longer", "report/page/js/state.js",
        "after: [\"undecided\", \"breaks\"] }", "after: [\"breaks\"] }",
        "browser/test_other_runs.py::test_every_change_has_its_word_and_its_points_whichever_run_is_on_show[B]",
    ),
    mutation(
        "changes are seen without another run on show", "report/page/js/selection.js",
        "columns[state.by].run || state.against", "columns[state.by].run",
        "browser/test_other_runs.py::test_every_change_has_its_word_and_its_points_whichever_run_is_on_show[this run]",
    ),
    mutation(
        "commands are those of the run on show", "report/page/js/overview.js",
        "runs[columns[state.by].run].next", "runs[0].next",
        "browser/test_other_runs.py::test_the_steps_are_those_of_the_run_on_show",
    ),
    mutation(
        "what attacks found is an upper bound on the card", "report/page/js/card.js",
        "return high === value && ", "return high === null && ",
        "browser/test_card.py::test_what_attacks_found_is_called_an_upper_bound",
    ),
    mutation(
        "small differences are magnified", "report/page/js/pictures.js",
        "times < MOST_TIMES", "times < 2",
        "browser/test_card.py::test_a_difference_is_magnified_by_what_it_can_bear",
    ),
    mutation(
        "wrong points leave right ones in sight", "report/page/js/scatter.js",
        "const TURNS = 16;", "const TURNS = 1;",
        "browser/test_room.py::test_wrong_points_do_not_cover_right_ones_where_both_are_many",
    ),
    mutation(
        "words under a plot end inside it", "report/page/js/paint.js",
        "pen.measureText(text).width <= room);", "room > 0);",
        "browser/test_room.py::test_words_of_a_plot_end_inside_it",
    ),
    mutation(
        "choices are read in full on a phone", "report/page/explore.css",
        "  .controls .whole select, .views .whole select { display: block; width: 100%; }\n",
        "  #explore select { max-width: 13rem; }\n",
        "browser/test_room.py::test_what_is_chosen_is_read_in_full_on_a_phone",
    ),
    mutation(
        "words of the list stay whole on a phone", "report/page/explore.css",
        "  #head, .row { font-size: .75rem; }\n", "",
        "browser/test_room.py::test_no_word_of_the_list_is_broken_on_a_phone",
    ),
    mutation(
        "what was put right is no warning", "report/page/render.py",
        "frozenset({\"train_mode\", \"log_softmax\"})", "frozenset({\"log_softmax\"})",
        "report/page/test_render.py::test_what_was_put_right_is_no_warning",
    ),
    mutation(
        "a parameter that is no number has a sentence", "estimate.py",
        "isinstance(one, float) and not math.isfinite(one)", "one is math.isfinite",
        "report/page/test_render.py::test_a_parameter_that_is_no_number_is_named[nan]",
    ),
    mutation(
        "a table that the page saves holds no formula", "report/page/js/save.js",
        "GUARDED.test(text) ? `'${text}` : text;", "text;",
        "browser/test_hostile.py::test_a_saved_table_runs_nothing_and_brittle_reads_its_ids",
    ),
    mutation(
        "a table that the page saves holds the ids of the run", "report/page/js/save.js",
        r'shown(text.replaceAll("\\", "\\\\"))', "shown(text)",
        "browser/test_hostile.py::test_a_saved_table_runs_nothing_and_brittle_reads_its_ids",
    ),
    mutation(
        "the most robust points are surely so", "analysis/extremes.py",
        '.sort_values("high", kind="stable", na_position="last")', "",
        "analysis/test_extremes.py::test_the_most_robust_are_surely_so",
    ),
    mutation(
        "a score that knows no noise decides nothing in a histogram", "report/chapters/distribution/bins.py",
        " if knows else [UNDECIDED] * len(values)", "",
        "report/chapters/distribution/test_bins.py::test_a_score_that_knows_no_noise_is_labelled_so_and_decides_nothing",
    ),
    mutation(
        "estimators are compared by p_robust", "report/chapters/other_runs/pair.py",
        '    if row["quantity"] != FLIP_PROBABILITY:\n', "    if row:\n",
        "report/chapters/other_runs/test_pair.py::test_a_run_beside_another_is_the_comparison",
    ),
    mutation(
        "a class of few points is not extreme by luck", "report/contents.py",
        'key=lambda row: row["high"])', 'key=lambda row: row["mean"])',
        "report/test_contents.py::test_a_class_of_few_points_is_not_extreme_by_luck",
    ),
    mutation(
        "formulas in a CSV file", "store/files/csv_text.py",
        "if escaped.startswith((*GUARDED, MARK)) else escaped", "if False else escaped",
        "store/files/test_csv_text.py::test_texts_in_csv_are_harmless_and_come_back",
    ),
    mutation(
        "a text with an apostrophe comes back", "store/files/csv_text.py",
        "if escaped.startswith((*GUARDED, MARK)) else escaped", "if escaped.startswith(GUARDED) else escaped",
        "store/files/test_csv_text.py::test_texts_in_csv_are_harmless_and_come_back",
    ),
    mutation(
        "control characters in a CSV file", "store/files/csv_text.py",
        '    escaped = printable(text.replace("\\\\", "\\\\\\\\"))\n', "    escaped = text\n",
        "store/files/test_csv_text.py::test_texts_in_csv_are_harmless_and_come_back",
    ),
    mutation(
        "texts of the detector's CSV", "detector/flags.py",
        "[None if text is None else cell(text) for text in", "[text for text in",
        "store/files/test_csv_text.py::test_texts_in_csv_are_harmless_and_come_back",
    ),
    mutation(
        "texts of the comparison's CSV", "cli/compare.py",
        "cell(one) if isinstance(one, str) else one", "one",
        "cli/test_compare.py::test_a_spreadsheet_runs_nothing_of_what_the_command_wrote",
    ),
    mutation(
        "control characters on the terminal", "cli/common.py",
        'print("\\n".join(map(printable, text.split("\\n"))), file=stream)', "print(text, file=stream)",
        "store/test_hostile_text.py::test_no_command_says_what_a_terminal_would_obey",
    ),
    mutation(
        "the mixture trusts its model", "scores/shrinkage.py",
        "ratio = apart + apart.square()", "ratio = 0 * apart",
        "scores/test_shrinkage.py::test_hardly_ever_behind_the_better_of_its_parts",
    ),
    mutation(
        "a worker computes with a class as its module has it", "run/workers/handed.py",
        "if _digest(found) != digest:", "if False:",
        "run/workers/test_handed.py::test_a_class_that_was_changed_in_memory_is_refused",
    ),
    mutation(
        "margins that jump over 0 are smoothed", "scores/shrinkage.py",
        "return (beyond / DISBELIEF).square()", "return 0 * beyond",
        "scores/test_shrinkage.py::test_margins_that_jump_over_0_are_counted",
    ),
    mutation(
        "the default's interval is less sure than it says", "scores/shrinkage.py",
        "value, model.by_votes, only_counted", "value, counted(sampled.votes, 0.9)[1], only_counted",
        "scores/test_shrinkage.py::test_the_interval_is_that_by_counting",
    ),
    mutation(
        "a second stage draws the first one again", "measure/sampling.py",
        "MIRRORED, self.pairs, clean)", "SINGLE, self.pairs, clean)",
        "measure/test_sampling.py::test_points_near_a_boundary_have_all_draws_and_the_others_the_first",
    ),
    mutation(
        "intervals by counting are said to rest on a model", "store/columns.py",
        ".mask(held, Evidence.COUNTED.slug)", "",
        "store/test_columns.py::test_an_interval_that_holds_the_count_rests_on_it",
    ),
    mutation(
        "two looks that spend the whole error each", "scores/shrinkage.py",
        "(1.0 - confidence) / STAGES", "(1.0 - confidence)",
        "scores/test_shrinkage.py::test_in_two_stages_every_look_has_half_of_the_error",
    ),
    mutation(
        "columns whose points stop", "store/columns.py",
        ' or self.parameters.get("adaptive") is True', "",
        "store/test_columns.py::test_a_table_says_which_points_stop",
    ),
    mutation(
        "draws by need beside a count", "scores/choose.py",
        '{"adaptive": False, **given}', "{**given}",
        "scores/test_options.py::test_beside_a_count_no_point_stops",
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
        "an interval without ends where no point differs", "analysis/comparison.py",
        'AT_EVERY_POINT if is_nowhere(row) else with_interval(row, "difference")', 'with_interval(row, "difference")',
        "analysis/test_comparison.py::test_a_run_and_itself_do_not_differ",
    ),
    mutation(
        "scores that one of two runs alone holds", "cli/compare.py",
        ", *unpaired(*tables)]", "]",
        "cli/test_compare.py::test_what_only_one_run_holds_is_named_with_a_command_that_mends_it",
    ),
    mutation(
        "a single number stands beside a 0 in the passes of a run", "doctor/reference.py",
        "classifier.numbers(self.inputs, self.aside)", "classifier.read(self.inputs, self.aside).flatten(1)",
        "decisions/test_runs.py::test_a_model_may_return_a_single_number",
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
    mutation(
        "parts of a batch out of their places", "scores/base.py",
        "order = torch.cat([rows for rows, _ in parts]).argsort()", "order = torch.cat([rows for rows, _ in parts])",
        "scores/test_shrinkage.py::test_in_two_stages_every_look_has_half_of_the_error",
    ),
    mutation(
        "noise that is not normal, in the moments", "scores/moments.py",
        "torch.tensor(self.clip or not self.noise.is_normal)", "torch.tensor(self.clip)",
        "scores/test_evidence.py::test_no_normal_model_is_trusted_where_the_noise_is_not_normal",
    ),
    mutation(
        "noise that is not normal, in linear models", "scores/linear.py",
        "normal=noise.is_normal", "normal=True",
        "scores/test_evidence.py::test_no_normal_model_is_trusted_where_the_noise_is_not_normal",
    ),
    mutation(
        "noise that is not normal, in the nearest margin", "scores/mmse.py",
        "normal=self.noise.is_normal", "normal=True",
        "scores/test_evidence.py::test_no_normal_model_is_trusted_where_the_noise_is_not_normal",
    ),
    mutation(
        "the error of the multivariate sigmoid", "scores/linear.py",
        "exact=False", "exact=True",
        "scores/test_evidence.py::test_the_formula_of_the_multivariate_sigmoid_has_an_error",
    ),
    mutation(
        "a family that draws anew", "noise/base.py",
        'return self.normal and issubclass(_where(type(self), "normal"), _where(type(self), "draw"))',
        "return self.normal",
        "scores/test_evidence.py::test_a_family_that_draws_anew_is_normal_only_where_it_says_so",
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
        "bounds of each feature, in clipping", "model/bounds.py",
        "return inputs.clamp(*self.ends(inputs))", "return inputs.clamp(*self.envelope)",
        "model/test_bounds.py::test_clipping_is_that_of_each_feature",
    ),
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
        "bounds of each feature, of data", "model/bounds.py",
        "((inputs >= least) & (inputs <= most)).flatten(1).all(dim=1)",
        "(inputs >= least).flatten(1).all(dim=1)",
        "model/test_bounds.py::test_an_input_outside_in_one_feature_is_outside",
    ),
    mutation(
        "noise without a range to take a tenth of", "cli/score_options.py",
        "if spread is None and choice.default_noise:", "if False:",
        "cli/test_bounds_option.py::test_without_one_range_the_size_of_the_noise_is_asked_for",
    ),
    mutation(
        "models that cannot be copied", "doctor/first_pass.py",
        "except Exception as error:", "except (RuntimeError, TypeError) as error:",
        "doctor/test_state.py::test_a_model_that_cannot_be_copied_is_looked_at_without_a_copy",
    ),
    mutation(
        "what a model may raise", "model/failures.py",
        "AssertionError, LookupError, ArithmeticError, AttributeError)", "AssertionError, IndexError)",
        "doctor/test_outputs.py::test_whatever_a_model_raises_is_told",
    ),
    mutation(
        "single rows whose gradients are recorded", "run/standing.py",
        "if (len(inputs) < 2 and not recorded) or", "if len(inputs) < 2 or",
        "doctor/test_state.py::test_a_network_that_asks_whether_gradients_are_recorded_stops_the_run",
    ),
    mutation(
        "masks as large as numbers get", "scores/evidence.py",
        ".masked_fill(flat, 0.0)", "",
        "scores/test_evidence.py::test_a_mask_as_large_as_numbers_get",
    ),
    # Rare events.
    mutation(
        "stretched noise forbids a number that misses a cliff", "scores/rare_ways.py",
        "precise_holds=foreseen & (found.strays <= MOST_SURPRISES)", "precise_holds=meets",
        "scores/test_rare_event.py::test_a_cliff_that_no_margin_leads_to_forbids_ok",
    ),
    mutation(
        "stretched flips that were not foreseen forbid ok", "scores/rare_ways.py",
        "foreseen & (found.strays <= MOST_SURPRISES)", "foreseen",
        "scores/test_rare_ways.py::test_one_thing_forbids_ok",
    ),
    mutation(
        "shrunk noise that flips forbids a number", "scores/rare_ways.py",
        "foreseen = meets & reached & ~shrunk", "foreseen = meets & reached",
        "scores/test_rare_event.py::test_a_cliff_that_no_margin_leads_to_forbids_ok",
    ),
    mutation(
        "no number leaves the interval by counting", "scores/rare_ways.py",
        "top = torch.minimum(highest, count.high)", "top = highest",
        "scores/test_rare_ways.py::test_a_number_never_leaves_the_interval_by_counting",
    ),
    mutation(
        "flips that rays leave again are counted right", "measure/rare/stretched.py",
        " - math.log(back_share)", "",
        "measure/rare/test_stretched.py::test_rays_that_leave_the_flips_again",
    ),
    mutation(
        "copies that are counted where the model is silent", "scores/shrinkage.py",
        "silent = model.flat | model.indefinite", "silent = model.flat & False",
        "scores/test_shrinkage.py::test_there_is_a_number_wherever_counting_gives_one",
    ),
    mutation(
        "stopped counts without bias", "scores/monte_carlo.py",
        "value[without_ties] = rule.unbiased_shares(flips[without_ties], draws[without_ties])", "pass",
        "scores/test_until.py::test_the_mean_over_points_is_right_though_each_stopped",
    ),
    mutation(
        "copies that a rule stops are clipped as those of the scores", "scores/until.py",
        "draws=most_draws, clip=clip, limit", "draws=most_draws, limit",
        "scores/test_until.py::test_a_clipped_copy_cannot_leave_the_bounds",
    ),
    mutation(
        "questions of one limit are told apart", "report/chapters/decisions/chapter.py",
        "text if short.count(text) == 1 else column.label for", "text for",
        "report/chapters/decisions/test_chapter.py::test_columns_that_were_asked_the_same_are_told_apart",
    ),
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
        "orders that stopped before", "measure/stopping_rule.py",
        "orders[:, going[stopped]] = 0.0", "pass",
        "measure/test_stopping_rule.py::test_it_is_the_share_of_orders_that_begin_with_a_flip",
    ),
    # What a notebook shows.
    mutation(
        "text in a notebook is escaped", "display/markup.py",
        "    return escape(show(value, limit))", "    return Markup(show(value, limit))",
        "display/test_tables.py::test_text_from_a_user_is_text",
    ),
    mutation(
        "characters in a notebook can be read", "display/markup.py",
        "    return escape(show(value, limit))", "    return escape(value)",
        "display/test_tables.py::test_text_from_a_user_is_text",
    ),
    mutation(
        "the page in a notebook has no rights", "display/page.py",
        'sandbox="allow-scripts allow-downloads" ', "",
        "display/test_page.py::test_the_frame_holds_the_page_that_is_written_and_gives_it_no_rights",
    ),
    mutation(
        "the page in a notebook has an origin of its own", "display/page.py",
        'sandbox="allow-scripts allow-downloads" ', 'sandbox="allow-scripts allow-downloads allow-same-origin" ',
        "display/test_page.py::test_the_frame_holds_the_page_that_is_written_and_gives_it_no_rights",
    ),
    mutation(
        "links in a frame stay in it", "display/page.py",
        "}about:srcdoc#", "}#",
        "display/test_page.py::test_links_within_the_page_stay_in_the_frame",
    ),
    mutation(
        "a table that is broken can be printed", "display/tables.py",
        "except Exception as error:  # noqa: BLE001 - whoever", "except NotImplementedError as error:  # whoever",
        "display/test_tables.py::test_a_table_that_does_not_hold_together_is_shown_all_the_same",
    ),
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
    mutation(
        "memory that runs out is called that", "model/failures.py",
        "any(words in reason for words in NO_MEMORY)", "False",
        "test_mistakes.py::test_a_mistake_on_the_command_line_gets_its_sentence",
    ),
    mutation(
        "the end of an archive is looked at", "data/webdataset.py",
        "            _check_end(file, archive.offset)\n", "",
        "data/test_webdataset.py::test_damaged_and_compressed_archives",
    ),
    mutation(
        "no link in an archive is followed", "data/webdataset.py",
        "if not member.isreg() or member.issparse():", "if False:",
        "data/test_webdataset.py::test_what_is_odd_is_refused",
    ),
    mutation(
        "compressed Arrow files are refused", "store/files/plain_arrow.py",
        "elif kind != _BATCH or compressed or schema is None:", "elif kind != _BATCH or schema is None:",
        "data/test_saved_dataset.py::test_what_could_harm_is_refused",
    ),
    mutation(
        "a saved data set names files of its folder alone", "data/saved_dataset.py",
        "if Path(name).name != name or path.resolve().parent != folder.resolve():", "if False:",
        "data/test_saved_dataset.py::test_what_could_harm_is_refused",
    ),
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
        "where nothing was found there is nothing to check", "studies/margin_consistency/summary.py",
        'finite = own[np.isfinite(own["margin"])]', "finite = own",
        "studies/test_margin_consistency_study.py::test_what_was_checked_is_counted",
    ),
)  # fmt: skip
"""The safeguards, by the room of the house that they stand in."""


def main(arguments: Sequence[str]) -> int:
    """All of it, or the mutations that are named; prints a table."""
    parser = argparse.ArgumentParser(
        prog="python -m checks.mutations", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a safeguard; without one, all are taken out")
    parser.add_argument("--file", default="", help="only safeguards whose file or test holds this text")
    parser.add_argument("--list", action="store_true", help="print name, file and test of each, and run nothing")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - {one.name for one in MUTATIONS}:
        parser.error(f"no safeguard is called {', '.join(sorted(unknown))}; --list prints the names")
    chosen = [
        one
        for one in MUTATIONS
        if (not given.names or one.name in given.names) and (given.file in one.file or given.file in one.test)
    ]
    if not chosen:
        parser.error(f"no safeguard is left: none of these has {given.file!r} in its file or in its test")
    if given.list:
        print(*(f"{one.name:60}  {one.file:36}  {one.test}" for one in chosen), sep="\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        copy_tree(place)
        for one in chosen:
            one.applied((place / one.path).read_text(encoding="utf-8"))
        began = time.monotonic()
        code, said = run_tests(place, sorted({one.test for one in chosen}))
        if code != PASSED:
            print(said, f"the tests do not pass on the tree as it is (exit code {code})", sep="\n", file=sys.stderr)
            return 2
        print(f"on the tree as it is: {said.rstrip().rpartition(chr(10))[2]}")
        alive = []
        for one in chosen:
            survived, seen = survives(place, one)
            alive += [one.name] * survived
            print(f"{'SURVIVED' if survived else 'caught':8}  {one.name:50}  {one.file:24}  {one.test:104}  {seen}")
            sys.stdout.flush()
    seconds = time.monotonic() - began
    print(
        f"{len(chosen)} safeguards taken out, {len(chosen) - len(alive)} caught, {len(alive)} survived; {seconds:.0f} s"
    )
    return int(bool(alive))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
