"""Safeguards of `data/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.taken_out import mutation

SAFEGUARDS = (
    # What is decided.
    mutation(
        "labels that are no whole numbers are refused", "data/arrays.py",
        "    odd = np.argwhere((labels != np.floor(labels)) | ", "    odd = np.argwhere(",
        "test_mistakes.py::test_a_mistake_on_the_command_line_gets_its_sentence",
    ),
    mutation(
        "one of several columns of classes has to be named", "data/parquet.py",
        "    if found is None and len(classes) > 1:\n", "    if False:\n",
        "data/test_parquet.py::test_one_of_several_columns_of_classes_has_to_be_named",
    ),
    mutation(
        "the column called label comes before another one of classes", "data/parquet.py",
        "next((name for name in LABEL_COLUMNS if name in names), None) or _only(classes, ())",
        "_only(classes, LABEL_COLUMNS) or next((name for name in LABEL_COLUMNS if name in names), None)",
        "data/test_parquet.py::test_the_column_called_label_comes_before_another_one_of_classes",
    ),
    mutation(
        "two columns of images or of what belongs to them share no name", "data/parquet.py",
        "    check_distinct(schema.names, where)\n", "",
        "data/test_saved_dataset.py::test_two_columns_of_one_name_are_refused",
    ),
    mutation(
        "an index holds no classes of images", "data/parquet.py",
        "            check_no_index(names, [place], where)\n", "            pass\n",
        "data/test_parquet.py::test_an_index_is_no_column_of_labels",
    ),
    mutation(
        "a label that reads as the name of a column makes no header of its row", "data/csv_file.py",
        "if label is not None and values == [str(place) for place in range(len(values))]:", "if label is not None:",
        "data/test_tabular.py::test_a_label_that_reads_as_the_name_of_a_column_loses_no_row",
    ),
    mutation(
        "numbers that count from one may be names of columns", "data/csv_file.py",
        "for first in (0, 1))", "for first in (0,))",
        "data/test_tabular.py::test_numbers_that_count_may_be_names",
    ),
    mutation(
        "a number in the name of a file is no shard", "data/parquet.py",
        "(?:^|-)(?P<shard>", "-?(?P<shard>",
        "data/test_parquet.py::test_a_number_in_the_name_of_a_file_is_no_shard",
    ),
    mutation(
        "files that are joined are the shards of a split", "data/parquet.py",
        "    elif count > 1 and numbers not in", "    elif False and numbers not in",
        "data/test_parquet.py::test_files_that_are_not_the_shards_of_a_split_are_not_joined",
    ),
    mutation(
        "labels in a table are no larger than class indices", "data/tabular.py",
        " or abs(one) > LARGEST_LABEL)", ")",
        "data/test_tabular.py::test_labels_beyond_a_class_index_are_refused",
    ),
    mutation(
        "labels in an array are no larger than class indices", "data/arrays.py",
        " | (np.abs(labels.astype(np.float64)) > LARGEST_LABEL))", ")",
        "data/test_arrays.py::test_labels_beyond_a_class_index_are_refused",
    ),
    mutation(
        "labels in an archive are no larger than class indices", "data/webdataset.py",
        "    if abs(label) > LARGEST_LABEL:\n", "    if False:\n",
        "data/test_webdataset.py::test_what_is_odd_is_refused",
    ),
    mutation(
        "a number that is a name and another place names no column", "data/tabular.py",
        "    if place is None or place == named:\n", "    if True:\n",
        "data/test_tabular.py::test_a_number_that_is_a_name_and_another_place_is_refused",
    ),
    mutation(
        "a sample has one class", "data/webdataset.py",
        "if kind == LABEL_KIND and key not in labels:", "if kind == LABEL_KIND:",
        "data/test_webdataset.py::test_what_is_odd_is_refused",
    ),
    # Numbers.
    mutation(
        "grey images get their channel where the layout has it", "data/npz.py",
        'x = x[..., None] if options.layout == "nhwc" else x[:, None]', "x = x[:, None]",
        "data/test_arrays.py::test_grey_images_lie_as_they_do_in_the_array_in_every_layout",
    ),
    mutation(
        "three axes are grey images only under images", "data/npz.py",
        'keys["inputs"] in _called("images", options.split)', '"images" in keys["inputs"]',
        "data/test_arrays.py::test_three_axes_are_grey_images_only_under_images",
    ),
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
        "names spelled otherwise have to stand at the same places", "data/class_names.py",
        "(set(own).intersection(names) or _in_another_order(own, names))", "set(own).intersection(names)",
        "data/test_class_names.py::test_names_spelled_otherwise_are_refused_unless_they_stand_at_the_same_places",
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
        "ids that are not there are refused", "data/chosen.py",
        "    if missing:\n", "    if False:\n",
        "data/test_chosen.py::test_ids_that_are_not_there_are_counted_and_named",
    ),
    mutation(
        "labels, ids and paths are read file by file", "data/parquet.py",
        "    parts: list[_Rows] = []\n",
        "    parts: list[_Rows] = []\n    pa.concat_tables(map(pa.parquet.read_table, files))\n",
        "data/test_parquet.py::test_shards_may_hold_a_column_in_several_types",
    ),
    # What is said of mistakes, and data of other people.
    mutation(
        "features of lists in the metadata are read over", "data/parquet.py",
        'isinstance(feature, dict) and feature.get("_type")', 'feature.get("_type")',
        "data/test_parquet.py::test_features_of_lists_in_the_metadata_are_no_classes",
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
        "a saved data set names files of its folder alone", "data/saved_dataset.py",
        "if Path(name).name != name or path.resolve().parent != folder.resolve():", "if False:",
        "data/test_saved_dataset.py::test_what_could_harm_is_refused",
    ),
)  # fmt: skip
