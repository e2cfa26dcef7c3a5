"""Safeguards of `store/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.taken_out import Mutation, mutation

SAFEGUARDS = (
    # Noise.
    mutation(
        "a level in another unit is not said to be in pixels", "store/settings.py",
        "UNIT not in family and not", "not",
        "cli/test_noise_options.py::test_rotations_by_command_with_the_report",
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
        "other points are another experiment", "store/record.py",
        "    ids_sha256: str | None = field(default=None, metadata=SAME)\n",
        "    ids_sha256: str | None = field(default=None, metadata=OTHER)\n",
        "run/test_resume.py::test_a_run_over_some_points_goes_on_with_these_alone",
    ),
    # What a finished run grows by.
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
        "a shard that is replaced is whole until then", "store/folder.py",
        "_commit(self.path, file_name(kind, number, edition), content)\n",
        "_commit(self.path, file_name(kind, number), content)\n",
        "run/test_growing.py::test_kills_lose_nothing",
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
    # Numbers.
    mutation(
        "failures count by their place among the chosen points", "store/account.py",
        '        early = points["point"].to_pylist()[: max(0, FIRST_ROWS - first)]\n',
        "        rows = zip(points[\"point\"].to_pylist(), points[\"row\"].to_pylist(), strict=True)\n"
        "        early = [point for point, row in rows if row < FIRST_ROWS]\n",
        "run/test_scoring.py::test_too_many_failures_among_chosen_points_stop_the_run",
    ),
    # The detector.
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
    # What is shown.
    mutation(
        "confidence holds no point", "store/columns.py",
        "        if not self.judges:\n", "        if not self.is_probability:\n",
        "analysis/test_overview.py::test_the_confidence_of_a_network_holds_and_breaks_no_point",
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
        "intervals by counting are said to rest on a model", "store/columns.py",
        ".mask(held, Evidence.COUNTED.slug)", "",
        "store/test_columns.py::test_an_interval_that_holds_the_count_rests_on_it",
    ),
    mutation(
        "columns whose points stop", "store/columns.py",
        ' or self.parameters.get("adaptive") is True', "",
        "store/test_columns.py::test_a_table_says_which_points_stop",
    ),
    # What is said of mistakes, and data of other people.
    mutation(
        "compressed Arrow files are refused", "store/files/plain_arrow.py",
        "elif kind != _BATCH or compressed or schema is None:", "elif kind != _BATCH or schema is None:",
        "data/test_saved_dataset.py::test_what_could_harm_is_refused",
    ),
)  # fmt: skip
