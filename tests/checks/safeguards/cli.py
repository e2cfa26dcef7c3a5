"""Safeguards of `cli/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.taken_out import mutation

SAFEGUARDS = (
    # What is decided.
    mutation(
        "the model's file is looked for before data are read", "cli/score.py",
        "    opening.check()\n", "",
        "cli/test_opening.py::test_a_mistake_about_the_model_is_told_before_data_are_read",
    ),
    # Noise.
    mutation(
        "noise with a level of its own takes no sigma", "cli/noise_options.py",
        "    if sigmas and has_level(text):\n", "    if False:\n",
        "cli/test_noise_options.py::test_what_does_not_fit_together_is_said",
    ),
    # Models outside PyTorch.
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
    # The run folder.
    mutation(
        "the folder of the demo's run is no link", "cli/commands.py",
        '    check_folder(out / "run")\n', "",
        "test_places.py::test_the_run_of_the_demo_is_in_its_folder",
    ),
    # The checks before a run.
    mutation(
        "only reports of ours are replaced", "cli/common.py",
        "    if not ours:\n", "    if False:\n",
        "cli/test_score.py::test_another_file_is_kept",
    ),
    # What is shown.
    mutation(
        "the demo names the program as the shell finds it", "cli/demo.py",
        "found is not None and typed.samefile(found)", "found is not None",
        "cli/test_demo.py::test_the_demo_names_the_program_as_the_shell_finds_it",
    ),
    mutation(
        "the demo records a command that scores", "cli/commands.py",
        '("brittle", "score", *words), *given.args', '("brittle", "demo"), *given.args',
        "cli/test_demo.py::test_every_suggested_command_of_the_demo_runs_as_it_is_copied",
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
        "scores that one of two runs alone holds", "cli/compare.py",
        ", *unpaired(*tables)]", "]",
        "cli/test_compare.py::test_what_only_one_run_holds_is_named_with_a_command_that_mends_it",
    ),
    mutation(
        "noise without a range to take a tenth of", "cli/score_options.py",
        "if spread is None and choice.default_noise:", "if False:",
        "cli/test_bounds_option.py::test_without_one_range_the_size_of_the_noise_is_asked_for",
    ),
)  # fmt: skip
