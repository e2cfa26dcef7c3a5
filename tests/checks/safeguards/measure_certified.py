"""Safeguards of `measure/certified/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.safeguards.named_tests import TURNS
from checks.taken_out import mutation

SAFEGUARDS = (
    mutation(
        "rounding is looked at away from the point", "measure/certified/proof.py",
        ".abs().maximum(self._rounding())", ".abs()",
        "measure/certified/test_graph.py::test_rounding_away_from_the_point_is_allowed_for",
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
    # What is decided.
    mutation(
        "a certificate is about the margins of its decision", "measure/certified/crown.py",
        "levels = levels + constants.gather(1, chosen).T", "levels = levels + 0 * constants.gather(1, chosen).T",
        "measure/certified/test_decisions.py::test_no_input_inside_the_radius_decides_otherwise",
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
        "certificates in L1 divide by the largest slope", "measure/certified/region.py",
        "torch.linalg.vector_norm(flat, DUAL_ORDER[self.norm], dim=2)", "torch.linalg.vector_norm(flat, dim=2) / 2",
        "measure/nearest/test_bounds_of_attacks.py::test_no_certificate_reaches_beyond_a_counterexample",
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
    # Threads, and what a caller has switched.
    mutation(
        "a network is traced alone", "measure/certified/tracing.py",
        "        with PASSES.alone(), _quiet():", "        with _quiet():",
        f"{TURNS}nobody_passes_through_a_network_that_is_traced",
    ),
    mutation(
        "a network that fails to be traced says nothing", "measure/certified/tracing.py",
        "without_warnings(), without_last_words():\n            yield", "without_warnings():\n            yield",
        "cli/test_last_words.py::test_nothing_but_our_own_sentences_is_on_stderr[branch]",
    ),
    # Values without an axis.
    mutation(
        "a value without an axis has costs", "measure/certified/branching.py",
        "torch.cat([some[step].reshape(len(roots), -1) for step", "torch.cat([some[step].flatten(1) for step",
        "measure/certified/test_branching.py::test_a_relu_of_one_number_a_row_is_certified_below_what_is_found",
    ),
)  # fmt: skip
