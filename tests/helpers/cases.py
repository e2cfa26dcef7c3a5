"""Ninety cases of bad input: what becomes of each, and the tests that show it; run, it prints what has no test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

REFUSED, ROWS, OTHER_RUN, UNSAFE, STORAGE_FAILED = 3, 4, 5, 6, 7
"""Exit codes: nothing is scored; points without a number; another run; a file that is not read; storage."""


class Kind(Enum):
    """How a case ends."""

    STOPS = "stops with the error"
    ROW = "the point gets no number and the status"
    MARKED = "the point gets a number and the status"
    NOTED = "is scored with the note"
    RESULT = "is scored:"


@dataclass(frozen=True)
class Outcome:
    """What becomes of an input.

    Attributes:
        kind: how it ends.
        name: code of the error or note, name of the status, or, of a result, what holds of it.
        exit_code: what the command line exits with.
    """

    kind: Kind
    name: str
    exit_code: int

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name} (exit {self.exit_code})"


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        number: 1 to 90.
        given: the input.
        expected: what becomes of it; several where there are several ways.
        tests: the tests that show it, as `file::test` or `file::test[id]`.
        why: what of the case is left, and why; empty where nothing is.
        room: the part of the input it is about, from `ROOMS`.
    """

    number: int
    given: str
    expected: tuple[Outcome, ...]
    tests: tuple[str, ...] = ()
    why: str = ""
    room: str = ""

    def __str__(self) -> str:
        return f"{self.number:2} {self.given}: {'; '.join(map(str, self.expected)) or 'nothing yet'}"


def stops(code: str, exit_code: int = REFUSED) -> Outcome:
    return Outcome(Kind.STOPS, code, exit_code)


def row(status: str) -> Outcome:
    return Outcome(Kind.ROW, status, ROWS)


def marked(status: str) -> Outcome:
    return Outcome(Kind.MARKED, status, 0)


def noted(code: str) -> Outcome:
    return Outcome(Kind.NOTED, code, 0)


def result(sentence: str) -> Outcome:
    return Outcome(Kind.RESULT, sentence, 0)


def planted(*names: str) -> tuple[str, ...]:
    """Defects that stop a run."""
    return tuple(f"test_planted_defects.py::test_a_defect_is_named_and_nothing_is_scored[{name}]" for name in names)


def seen(*names: str) -> tuple[str, ...]:
    """Defects that are noted."""
    return tuple(f"test_planted_defects.py::test_what_does_not_stop_a_run_is_noted[{name}]" for name in names)


def fine(name: str) -> str:
    return f"test_checks.py::test_no_false_alarm[{name}]"


def image(*names: str) -> tuple[str, ...]:
    """Images that cannot be read, from a folder and from Parquet."""
    readers = ("encoded_folder", "encoded_parquet")
    test = "test_images.py::test_a_bad_image_leaves_the_others_alone"
    return tuple(f"{test}[3-{name}-{reader}]" for name in names for reader in readers)


OTHER_MODEL = "detector/test_identity.py::test_another_model_or_preprocessing_is_refused"
WITHOUT_GRADIENTS = "test_planted_defects.py::test_scores_without_gradients_are_offered_and_work"
UNLIKE = "test_cases.py::test_pixels_unlike_those_of_training_miss_the_accuracy"
SAME_NUMBERS = "test_planted_defects.py::test_control_flow_gives_the_same_numbers"
FORGOTTEN = "test_preprocessing.py::test_what_was_forgotten_is_named_with_what_to_type"
REORDERED = "test_preprocessing.py::test_images_in_another_order_are_named_and_what_is_typed_turns_them_back"
ONE_WAY = "derivatives are taken without vmap, so there is one way to compute and nothing slower to tell of"

PIXELS = (
    Case(1, "one NaN pixel", (row("nonfinite_input"),),
         ("test_evaluation.py::test_a_nonfinite_pixel_costs_its_row_alone[nan-row 17: 1 NaN of 36]",
          "test_evaluation.py::test_the_other_rows_keep_their_bytes")),
    Case(2, "an infinite pixel, of either sign", (row("nonfinite_input"),),
         ("test_evaluation.py::test_a_nonfinite_pixel_costs_its_row_alone[inf-row 17: 1 infinite of 36]",
          "test_evaluation.py::test_a_nonfinite_pixel_costs_its_row_alone[-inf-row 17: 1 infinite of 36]")),
    Case(3, "a pixel below 0 by rounding", (result("without a note"),), (fine("rounding"),)),
    Case(4, "pixels 0 to 255 declared as 0 to 1", (stops("value_range"),), planted("bytes as values")),
    Case(5, "normalised pixels declared as 0 to 1", (stops("value_range"),), planted("normalised data")),
    Case(6, "pixels 0 to 1 for a model of 0 to 255",
         (stops("accuracy_guard"), noted("accuracy_suspicious"), noted("preprocessing")),
         (f"{UNLIKE}[255 times too dark]", *seen("no accuracy"), f"{FORGOTTEN}[0 to 255 forgotten-0.0]")),
    Case(7, "pixels normalised twice",
         (stops("accuracy_guard"), noted("accuracy_suspicious"), noted("preprocessing")),
         (f"{UNLIKE}[normalised twice]", *seen("no accuracy"), f"{FORGOTTEN}[made twice-0.0]")),
    Case(8, "bytes for a model of floats", (stops("dtype"),),
         ("test_checks.py::test_refused[dtype:uint8]", "test_arrays.py::test_inputs_of_another_form")),
    Case(9, "channels last", (stops("layout"),),
         ("test_checks.py::test_refused[layout:channels-last]", "test_arrays.py::test_inputs_of_another_form",
          "test_arrays.py::test_channels_last_is_transposed_when_told")),
    Case(10, "blue before red", (stops("accuracy_guard"), noted("accuracy_suspicious"), noted("preprocessing")),
         (f"{UNLIKE}[blue before red]", *seen("no accuracy"),
          f"{REORDERED}[images-with channels in the opposite order]")),
    Case(11, "grey, palette, transparent, CMYK and 16-bit images",
         (result("grey, palette and transparent ones become of the mode of the first"), row("image_mode")),
         ("test_images.py::test_the_first_image_decides_the_mode", "test_images.py::test_transparent_palettes_are_read",
          *image("cmyk", "16_bit"))),
    Case(12, "an image that says it is turned",
         (result("as its pixels lie, or turned if told, and counted"), noted("exif_orientation")),
         ("test_images.py::test_orientation_tags_are_ignored",
          "test_exif.py::test_an_image_is_turned_only_when_told",
          "test_exif.py::test_a_run_counts_the_images_that_are_turned",
          "test_exif.py::test_damaged_exif_data_say_nothing_and_cost_nothing")),
    Case(13, "a JPEG cut short", (row("decode_error"),), image("truncated_jpeg")),
    Case(14, "a file without a byte", (row("decode_error"),), image("empty")),
    Case(15, "text in a .png file", (row("decode_error"),), image("text")),
    Case(16, "13,000 x 13,000 pixels in a small file", (row("image_too_large"),),
         (*image("huge"), "test_images.py::test_a_large_image_is_not_decoded",
          "test_images.py::test_a_large_image_costs_no_memory")),
    Case(17, "images of two sizes", (stops("shape"),),
         ("test_images.py::test_images_of_two_sizes", "test_images.py::test_images_of_two_sizes_beyond_the_scan")),
    Case(18, "five frames in a file", (row("multi_frame"), row("format_not_allowed")),
         image("animated_png", "animated_webp", "gif", "tiff")),
    Case(19, "EPS, PostScript, SVG", (row("format_not_allowed"),),
         (*image("eps", "svg"), "test_images.py::test_reading_starts_no_program")),
    Case(20, "two points of one id", (stops("ids"),),
         ("test_arrays.py::test_ids_that_do_not_fit", "test_parquet.py::test_parquet_of_another_form")),
    Case(21, "no points", (stops("empty_dataset"),),
         ("test_points.py::test_no_points", "data/test_folder.py::test_a_folder_without_images")),
    Case(22, "one point", (result("no detector can be calibrated on it"), stops("too_few_points")),
         (fine("one row"), "test_points.py::test_one_point_is_enough", "test_calibration.py::test_points_needed",
          "test_calibration.py::test_too_few_brittle_points_are_refused")),
    Case(23, "data that change during a run", (stops("dataset"),),
         (*planted("data that are overwritten"),
          "test_planted_defects.py::test_a_file_that_is_overwritten_during_the_run_is_seen")),
    Case(24, "a random transform in the data", (stops("nondeterministic_data"),), planted("a random transform")),
)  # fmt: skip

LABELS = (
    Case(25, "labels outside the classes", (row("labels"), stops("labels")),
         ("test_evaluation.py::test_a_label_out_of_range_costs_its_row", *planted("labels of another task"))),
    Case(26, "labels that count from 1", (stops("labels"),), planted("labels from 1")),
    Case(27, "labels as int32, as a column, as floats, one-hot",
         (result("whole numbers and columns of them"), stops("labels")),
         (fine("int32 labels"), "test_arrays.py::test_labels_of_any_whole_type",
          "test_arrays.py::test_labels_of_another_form")),
    Case(28, "classes in another order", (noted("accuracy_suspicious"),), seen("permuted classes")),
    Case(29, "no labels", (result("nothing is said of correctness, and the report says so"),),
         (fine("no labels"), "run/test_scoring.py::test_without_labels_correctness_is_unknown",
          "test_render.py::test_what_a_run_lacks_is_said")),
)  # fmt: skip

OUTPUT = (
    Case(30, "NaN logits always", (stops("nonfinite_logits"),), planted("NaN logits")),
    Case(31, "NaN logits under noise", (row("nonfinite_logits"),),
         ("test_evaluation.py::test_nan_logits_under_noise_never_count_as_agreement",
          "test_catalogue.py::test_nan_under_noise_is_no_agreement")),
    Case(32, "infinite logits", (stops("nonfinite_logits"), row("nonfinite_logits")),
         (*planted("infinite logits"), "test_cases.py::test_infinite_logits_under_noise_are_no_agreement")),
    Case(33, "constant logits", (stops("constant_output"),), planted("constant logits")),
    Case(34, "probabilities", (stops("probabilities"), result("their logarithms, once declared")),
         (*planted("softmax", "softmax in bfloat16"), "test_checks.py::test_refused", fine("probabilities declared"),
          "test_classifier.py::test_probabilities_and_one_logit")),
    Case(35, "log-probabilities", (noted("softmax_twice"),), seen("log-softmax")),
    Case(36, "sigmoids", (stops("outputs"),), planted("sigmoids")),
    Case(37, "a saturated softmax", (stops("masked_gradient"), result("by scores without gradients")),
         (*planted("saturated softmax"), f"{WITHOUT_GRADIENTS}[saturated softmax]")),
    Case(38, "no gradient at some points", (row("masked_gradient"),),
         ("test_cases.py::test_a_point_without_a_gradient_keeps_its_sampled_score",
          "test_evaluation.py::test_zero_gradient_is_said_and_monte_carlo_still_counts")),
    Case(39, "two largest logits", (marked("tie"),),
         ("test_catalogue.py::test_tie_is_said", "test_detector.py::test_broken_logits_and_ties_are_brittle")),
    Case(40, "one class twice", (noted("duplicate_classes"),),
         (*seen("a class twice"), "test_separation.py::TestSingularCovariances::test_exact_duplicates")),
    Case(41, "one logit", (stops("output_shape"),), planted("one logit")),
    Case(42, "two classes", (result("linear estimates are exact"),),
         ("test_taylor.py::test_two_classes_taylor_is_exact", "test_catalogue.py::test_two_classes")),
    Case(43, "an integral over hundreds of classes", (stops("cost"), marked("classes_kept")),
         (*planted("an integral over 300 margins"), "test_linearize.py::test_above_100_classes_the_nearest_are_kept",
          "test_linearize.py::test_what_is_left_out_only_lowers_the_number_and_is_said")),
    Case(44, "a mapping, an object, a tuple", (result("by their logits, as the record says"), stops("output_shape")),
         ("test_classifier.py::test_logits_are_found[mapping]", "test_classifier.py::test_logits_are_found[object]",
          "run/test_record.py::test_the_record_says_what_of_the_output_was_taken", *planted("a tuple"))),
    Case(45, "logits of another shape", (stops("output_shape"),),
         (*planted("a feature map"), "test_classifier.py::test_outputs_that_are_no_class_scores")),
    Case(46, "a model that drops the batch axis", (stops("output_shape"),),
         (*planted("squeeze"), "test_classifier.py::test_a_model_that_drops_the_batch_axis_at_one")),
)  # fmt: skip

STATE = (
    Case(47, "training mode", (noted("train_mode"), stops("train_mode")),
         (*seen("training mode"), "test_classifier.py::test_evaluation_mode_is_left_as_it_was",
          "test_classifier.py::test_a_module_that_refuses_evaluation_mode")),
    Case(48, "dropout that stays on", (stops("nondeterministic_model"),), planted("dropout that stays")),
    Case(49, "rows that depend on their batch", (stops("batch_dependent"),),
         planted("batch norm without statistics", "attention across rows")),
    Case(50, "a model that overwrites its input", (noted("mutates_input"),),
         (*seen("input overwritten"), "test_planted_defects.py::test_an_overwritten_input_changes_no_score")),
    Case(51, "a model that changes itself", (stops("mutates_state"),),
         planted("a counter of calls", "weights that drift")),
    Case(52, "weights on two devices", (stops("devices"),), ("test_classifier.py::test_weights_on_two_devices",)),
    Case(53, "NaN in the weights", (stops("weights"),),
         (*planted("NaN weight"), "test_load.py::test_weights_must_be_finite[nan]")),
    Case(54, "weights of another network", (stops("weights"),), ("test_load.py::test_weights_must_fit",)),
    Case(55, "half precision", (noted("low_precision"),),
         (*seen("bfloat16", "half precision"),
          "test_planted_defects.py::test_the_probabilities_of_a_low_precision_model_are_near_those_of_its_twin"),
         "probabilities keep within 0.005 on average over the points; a single one in bfloat16 moved by 0.016"),
)  # fmt: skip

GRADIENTS = (
    Case(56, "no_grad, detach, round inside", (stops("masked_gradient"),),
         planted("no_grad", "detach", "rounded input", "rounded logits")),
    Case(57, "a NaN gradient", (row("nonfinite_gradient"),), ("test_evaluation.py::test_nan_gradient_is_said",)),
    Case(58, "branches on values, item(), nonzero(), checkpoints", (result("the same numbers as without"),),
         (SAME_NUMBERS,), ONE_WAY),
    Case(59, "writing into a fresh buffer", (result("the same numbers as without"),), (SAME_NUMBERS,), ONE_WAY),
    Case(60, "NumPy inside", (stops("not_differentiable"), result("by scores without gradients")),
         (*planted("numpy inside"), f"{WITHOUT_GRADIENTS}[numpy inside]")),
    Case(61, "gradients that are multiples of each other", (result("exact, to 1e-6"),),
         ("test_separation.py::TestSingularCovariances::test_repeated_and_opposite_coordinates_of_unlike_scale",
          "test_separation.py::TestSingularCovariances::test_duplicates_leave_the_probability_of_the_rest")),
    Case(62, "a condition number above 1e12", (marked("ill_conditioned"),),
         ("test_taylor.py::test_margins_that_are_almost_dependent_are_flagged_and_still_right",
          "test_separation.py::TestSingularCovariances::test_condition_number")),
)  # fmt: skip

PARAMETERS = (
    Case(63, "sigma 0", (stops("sigma"),),
         ("test_catalogue.py::test_sigma_out_of_range", "cli/test_score.py::test_refusals")),
    Case(64, "sigma negative, NaN or infinite", (stops("sigma"),),
         ("test_catalogue.py::test_sigma_out_of_range", "cli/test_score.py::test_refusals")),
    Case(65, "sigma far beyond the range of the values", (noted("sigma"),), seen("far too much noise")),
    Case(66, "sigma below rounding", (stops("sigma_too_small"),), planted("noise below rounding")),
    Case(67, "one network in three pixel scales", (result("the same probabilities"),),
         ("test_linear_models.py::test_units_do_not_matter", "test_render.py::test_the_page_tells_its_story")),
    Case(68, "0, 1, -4 or 1e12 draws", (stops("draws"),), ("test_catalogue.py::test_draws_out_of_range",)),
    Case(69, "a confidence or rate outside 0 to 1", (stops("confidence"), stops("tpr")),
         ("test_checks.py::test_refused",
          "test_cases.py::test_a_rate_lies_between_0_and_1")),
)  # fmt: skip

STORAGE = (
    Case(70, "a place that cannot be written", (stops("unwritable", STORAGE_FAILED),),
         ("test_cases.py::test_an_unwritable_place_is_said_before_the_model_is_loaded",
          "store/test_folder.py::test_an_unwritable_folder_is_said_before_anything_is_computed")),
    Case(71, "a disk that fills up", (stops("unwritable", STORAGE_FAILED),),
         ("store/test_folder.py::test_a_full_disk_loses_nothing",)),
    Case(72, "resuming another run", (stops("other_run", OTHER_RUN),),
         ("run/test_identity.py::test_another_experiment_is_refused_by_name",
          "run/test_identity.py::test_every_field_of_the_identity_is_compared",
          "run/test_identity.py::test_a_field_that_is_of_no_kind_cannot_be_made")),
    Case(73, "a damaged shard", (stops("run_damaged", STORAGE_FAILED), result("by resuming, that shard alone")),
         ("test_shards.py::test_flipped_bits_are_all_named",
          "test_shards.py::test_verify_says_what_is_wrong",
          "test_resume.py::test_only_what_is_missing_is_computed")),
    Case(74, "two processes for one folder", (stops("locked", STORAGE_FAILED),),
         ("test_lock.py::test_a_second_process_is_refused",)),
    Case(75, "files that a killed process left", (result("they are not read, and removed by resuming"),),
         ("test_cases.py::test_what_a_killed_process_left_is_not_read",
          "store/test_folder.py::test_what_a_dead_process_left_is_removed")),
    Case(76, "a clock that jumps, another time zone", (result("the same bytes"),),
         ("test_cases.py::test_clock_and_time_zone_decide_nothing",)),
    Case(77, "names of any bytes", (result("they come back exactly, and are shown escaped"),),
         ("test_hostile_text.py::test_names_come_back_exactly", "test_hostile_text.py::test_names_are_shown_escaped",
          "test_hostile_text.py::test_failed_points_are_told_in_lines_that_can_be_read")),
)  # fmt: skip

ARTEFACTS = (
    Case(78, "a checkpoint with code in it", (stops("model_file", UNSAFE), stops("file_refused", UNSAFE)),
         ("test_untrusted.py::test_a_checkpoint_with_code_is_not_opened[.pt]",
          "test_load.py::test_other_weights_are_refused[.pt]")),
    Case(79, "a checkpoint that unpacks to 300 MB",
         (stops("file_refused", UNSAFE), stops("model_file", UNSAFE), stops("file_refused", UNSAFE)),
         ("test_untrusted.py::test_a_deflated_checkpoint_is_refused_at_once",)),
    Case(80, "a safetensors header that lies", (stops("file_refused", UNSAFE),),
         tuple(f"test_load.py::test_unsound_safetensors_are_refused[{kind}]"
               for kind in ("length", "overlap", "hole"))),
    Case(81, "a detector file of another form", (stops("detector_format", UNSAFE),),
         ("test_detector_file.py::test_strictness",
          "test_untrusted.py::test_a_detector_of_a_gigabyte_is_refused_at_once")),
    Case(82, "a detector of another model", (stops("other_model"), result("marked in every row, if forced")),
         (OTHER_MODEL, "test_flags.py::test_force_is_written_into_every_row")),
    Case(83, "a detector that gets NaN, infinity or a tie", (result("brittle"),),
         ("test_detector.py::test_flag_fails_closed", "test_detector.py::test_broken_logits_and_ties_are_brittle",
          "test_detector.py::test_a_tie_is_brittle_when_applied")),
    Case(84, "markup in names and labels", (result("shown as text"),),
         ("test_render.py::test_hostile_text_in_every_field_is_shown_as_text",
          "test_hostile_text.py::test_forty_hostile_strings_in_every_field_are_shown_as_text")),
    Case(85, "a formula in a table", (result("prefixed, so that it is text"),),
         ("test_csv_text.py::test_texts_in_csv_are_harmless_and_come_back", "test_flags.py::test_flags_are_written",
          "test_compare.py::test_a_spreadsheet_runs_nothing_of_what_the_command_wrote")),
    Case(86, "a manifest that leads out of its folder", (stops("file_refused", UNSAFE),),
         ("test_shards.py::test_a_manifest_cannot_lead_out_of_its_folder",
          "test_shards.py::test_a_link_cannot_lead_out_of_its_folder")),
    Case(87, "os:system as a model", (stops("user_code"),),
         ("test_untrusted.py::test_a_function_that_makes_no_network_is_refused_with_its_file",
          "test_load.py::test_the_current_folder_is_not_searched")),
    Case(88, "torch.py in the current folder", (result("it is not imported"),),
         ("test_untrusted.py::test_what_lies_in_the_current_folder_is_not_imported",)),
    Case(89, "extension types and pickles in Parquet", (stops("file_refused", UNSAFE),),
         ("test_plain_parquet.py::test_extension_types_and_pickles_in_parquet_are_refused",)),
    Case(90, "the address of a cluster without a token", (stops("insecure_cluster"),),
         ("test_cluster_asked.py::test_an_address_without_a_token_is_refused",
          "test_cluster_asked.py::test_where_a_token_may_lie",
          "test_cluster.py::test_a_cluster_that_asks_nobody_for_a_token")),
)  # fmt: skip

ROOMS = {
    "Pixels and files": PIXELS,
    "Labels": LABELS,
    "Model output": OUTPUT,
    "Model state and determinism": STATE,
    "Gradients": GRADIENTS,
    "Parameters": PARAMETERS,
    "Storage and resume": STORAGE,
    "Untrusted artefacts": ARTEFACTS,
}

CASES = tuple(replace(case, room=room) for room, cases in ROOMS.items() for case in cases)
"""All of them, in order."""


def coverage() -> str:
    """How many cases have a test, those that have none, and those of which a part is left, each with its reason."""
    with_test = [case for case in CASES if case.tests]
    lines = [f"{len(with_test)} of {len(CASES)} cases have a test"]
    for heading, some in (
        ("without a test", [case for case in CASES if not case.tests]),
        ("with a test, but with something left", [case for case in with_test if case.why]),
    ):
        if some:
            lines += ["", f"{heading}:", *(f"  {case} [{case.room}]\n     {case.why}" for case in some)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(coverage())
