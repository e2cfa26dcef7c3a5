"""Safeguards of `scores/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.taken_out import mutation

SAFEGUARDS = (
    # What is decided.
    mutation(
        "a certificate that could not be computed is no failed proof", "scores/input_margin.py",
        "            status = torch.where(lacking, int(Status.NO_CERTIFICATE), status)\n", "",
        "scores/test_input_margin.py::test_without_a_certificate_the_layer_is_said",
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
        "disagreement of attacks is told", "scores/input_margin.py",
        "tuple(said if one else None for one in disagreeing) if any(disagreeing) else None", "None",
        "scores/test_input_margin.py::test_attacks_that_disagree_are_told_in_the_detail",
    ),
    mutation(
        "a call sends the other tensors of its points", "scores/call.py",
        "rows, confidence, batch.aside)", "rows, confidence, batch.aside and replace(batch.aside, varies=None))",
        "scores/test_call_beside.py::test_a_call_gives_what_a_run_gives",
    ),
    # Noise.
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
        "a run knows classes of noise that stand in no file", "scores/outside.py",
        "return (files or {}) | {", "return files and {",
        "noise/test_transform_code.py::test_a_run_is_not_resumed_with_another_class_of_the_same_name",
    ),
    # Numbers.
    mutation(
        "NaN logits under noise are a status", "scores/monte_carlo.py",
        "mark(initial_status(sampled.tied), votes.nonfinite > 0, Status.NONFINITE_LOGITS)\n",
        "initial_status(sampled.tied)\n",
        "run/test_evaluation.py::test_nan_logits_under_noise_never_count_as_agreement",
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
    # What is shown.
    mutation(
        "a limit is judged before what goes with it", "scores/until.py",
        '    check_share("limit", limit)\n', "",
        "test_limit.py::test_in_python[score without until-1.5]",
    ),
    mutation(
        "the mixture trusts its model", "scores/shrinkage.py",
        "ratio = apart + apart.square()", "ratio = 0 * apart",
        "scores/test_shrinkage.py::test_hardly_ever_behind_the_better_of_its_parts",
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
        "two looks that spend the whole error each", "scores/shrinkage.py",
        "(1.0 - confidence) / STAGES", "(1.0 - confidence)",
        "scores/test_shrinkage.py::test_in_two_stages_every_look_has_half_of_the_error",
    ),
    mutation(
        "draws by need beside a count", "scores/choose.py",
        '{"adaptive": False, **given}', "{**given}",
        "scores/test_options.py::test_beside_a_count_no_point_stops",
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
)  # fmt: skip
