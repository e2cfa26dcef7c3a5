"""Safeguards of `noise/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.taken_out import mutation

SAFEGUARDS = (
    # What is decided.
    mutation(
        "padding changes no draw", "noise/stream.py",
        "        if self._varies is None or not self._noise.alike:\n", "        if True:\n",
        "data/test_beside.py::test_more_padding_changes_no_score",
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
        "a run knows the code of its transform", "noise/transform.py",
        '"code": code_digest(fn)}', '"code": called}',
        "noise/test_transform_code.py::test_a_run_is_not_resumed_with_another_function",
    ),
    # Threads, and what a caller has switched.
    mutation(
        "normal draws of one dtype", "noise/families.py",
        "    return torch.randn(size, generator=generator, dtype=torch.float32,",
        "    return torch.randn(size, generator=generator,",
        "noise/test_families.py::test_the_default_dtype_changes_no_draw[gaussian]",
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
    # What is shown.
    mutation(
        "a family that draws anew", "noise/base.py",
        'return self.normal and issubclass(_where(type(self), "normal"), _where(type(self), "draw"))',
        "return self.normal",
        "scores/test_evidence.py::test_a_family_that_draws_anew_is_normal_only_where_it_says_so",
    ),
)  # fmt: skip
