"""Names of the model's classes: read from a file, and labels of data that name their own are mapped by name."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from helpers.data_files import CLASSES, LABELS, LEVELS, from_folder, inputs, only, refused

from brittle.data import choose_points, open_points
from brittle.data.labels import in_classes, name_classes, read_class_names

OUTPUTS = ("cow", "dog", "ant", "bee")


def test_labels_are_mapped_by_name(tmp_path: Path) -> None:
    plain = from_folder(tmp_path, LEVELS, LABELS)
    points = open_points(tmp_path / "images", class_names=OUTPUTS)
    assert [OUTPUTS[label] for label in points.labels or ()] == [CLASSES[label] for label in LABELS]
    assert only(points).labels == points.labels
    assert (points.class_names, only(points).ids, len(points)) == (OUTPUTS, only(plain).ids, len(plain))
    assert np.array_equal(inputs(points), inputs(plain))
    some = choose_points(points, only(points).ids[2:4])
    assert some.labels == only(some).labels == (points.labels or ())[2:4]
    same = open_points(tmp_path / "images", class_names=CLASSES)
    assert same.labels == LABELS


@pytest.mark.parametrize(
    ("names", "match"),
    [
        (("cow", "dog"), "2 of the 3 classes .*: 'ant', 'bee'"),
        (("ant", "bee", "cow", "ant"), "each once; found"),
        ((), "expected names of classes"),
    ],
)
def test_names_that_lack_one_of_the_data(names: tuple[str, ...], match: str, tmp_path: Path) -> None:
    points = from_folder(tmp_path, LEVELS, LABELS)
    refused("parameter", match, name_classes, points, names)


def test_a_file_of_names(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("\ufeffcow\r\n green dog \nänt\n", encoding="utf-8")
    assert read_class_names(tmp_path / "names.txt") == ("cow", "green dog", "änt")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"cow\n\nant\n", "line 2 of .*names.txt .--class-names. has no name"),
        (b"cow\nant\ncow\n", "line 3 of .* has the name 'cow' of line 1 again"),
        (b"", "is empty; give one name a line"),
        (b"\xff\xfe\n", "cannot be read as text in UTF-8"),
        (b"a" * (1 << 22) + b"\n", "has more than 4,194,304 bytes"),
    ],
    ids=range(5),
)
def test_a_file_of_another_form(content: bytes, match: str, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_bytes(content)
    refused("parameter", match, read_class_names, tmp_path / "names.txt")
    refused("parameter", "cannot be read", read_class_names, tmp_path / "none.txt")


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_names_spelled_otherwise_are_refused_unless_they_stand_at_the_same_places(
    order: tuple[int, ...], tmp_path: Path
) -> None:
    points = from_folder(tmp_path, LEVELS, LABELS)
    spelled = [CLASSES[at].title() for at in order]
    if order == (0, 1, 2):
        assert in_classes(points, spelled) is points
        assert in_classes(points, [*spelled, "Dog"]) is points
    else:
        refused("parameter", "but for spelling", in_classes, points, spelled)
        refused("parameter", "but for spelling", in_classes, points, [*spelled, "Dog"])
        refused("parameter", "are not among the 3 names", in_classes, points, [*spelled[:2], "Dog"])
    named = open_points(tmp_path / "images", class_names=[CLASSES[at] for at in order])
    assert in_classes(named, spelled) is named, "that says it"
    assert in_classes(points, ["x", "y", "z"]) is points, "other words"
