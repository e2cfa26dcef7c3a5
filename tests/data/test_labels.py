"""Class names of a model are read from a file, and labels of data with class names are mapped by name."""

from __future__ import annotations

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
    chosen_points = choose_points(points, only(points).ids[2:4])
    assert chosen_points.labels == only(chosen_points).labels == (points.labels or ())[2:4]
    same_points = open_points(tmp_path / "images", class_names=CLASSES)
    assert same_points.labels == LABELS


@pytest.mark.parametrize(
    ("names", "match"),
    [
        (("cow", "dog"), "2 of the 3 classes .*: 'ant', 'bee'"),
        (("ant", "bee", "cow", "ant"), "each once; found"),
        ((), "expected names of classes"),
    ],
)
def test_names_that_lack_a_class_of_the_data_are_refused(names: tuple[str, ...], match: str, tmp_path: Path) -> None:
    points = from_folder(tmp_path, LEVELS, LABELS)
    refused("parameter", match, name_classes, points, names)


def test_a_file_of_class_names_is_read(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("\ufeffcow\r\n green dog \nänt\n", encoding="utf-8")
    assert read_class_names(tmp_path / "names.txt") == ("cow", "green dog", "änt")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"cow\n\nant\n", "names.txt .--class-names. has '' in line 2"),
        (b"cow\nant\ncow\n", "has 'cow' in line 3; give each class once"),
        (b"", "is empty; give each class once"),
        (b"\xff\xfe\n", "cannot be read as text in UTF-8"),
    ],
    ids=range(4),
)
def test_an_invalid_file_of_class_names_is_refused(content: bytes, match: str, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_bytes(content)
    refused("parameter", match, read_class_names, tmp_path / "names.txt")
    refused("parameter", "cannot be read", read_class_names, tmp_path / "none.txt")


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1)])
def test_names_in_another_spelling_must_keep_their_order(order: tuple[int, ...], tmp_path: Path) -> None:
    points = from_folder(tmp_path, LEVELS, LABELS)
    spellings = [CLASSES[at].title() for at in order]
    for names in (spellings, [*spellings, "Dog"]):
        if order == (0, 1, 2):
            assert in_classes(points, names) is points
        else:
            refused("parameter", "but for spelling", in_classes, points, names)
    named_points = open_points(tmp_path / "images", class_names=[CLASSES[at] for at in order])
    assert in_classes(named_points, spellings) is named_points, "its names match"
    assert in_classes(points, ["x", "y", "z"]) is points, "unrelated names"


def test_texts_are_labels_in_every_file(tmp_path: Path) -> None:
    """Classes are sorted as in a table, or in the order of the names in the same file."""
    texts, x = np.array(["bee", "ant", "bee ", "cow"]), np.zeros((4, 2), np.float32)
    rows = "".join(f"0,0,{text}\n" for text in texts)
    (tmp_path / "table.csv").write_text(f"a,b,label\n{rows}")
    expected = open_points(tmp_path / "table.csv")
    np.savez(tmp_path / "x.npz", x=x, y=texts)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", texts[:, None])
    for points in (open_points(tmp_path / "x.npz"), open_points(tmp_path / "x.npy", labels=tmp_path / "y.npy")):
        assert (points.labels, points.class_names) == (expected.labels, expected.class_names)
        assert points.class_names == ("ant", "bee", "cow")
    np.savez(tmp_path / "named.npz", x=x, y=texts, class_names=["cow", "bee", "ant", "dog"])
    named_points = open_points(tmp_path / "named.npz")
    assert (named_points.labels, named_points.class_names) == ((1, 2, 1, 0), ("cow", "bee", "ant", "dog"))
    np.savez(tmp_path / "incomplete.npz", x=x, y=texts, class_names=["cow", "bee"])
    refused("labels", "ant", open_points, tmp_path / "incomplete.npz")
    np.savez(tmp_path / "digits.npz", x=x, y=np.array(["3", "0", "2", "1"]))
    digits = open_points(tmp_path / "digits.npz")
    assert (digits.labels, digits.class_names) == ((3, 0, 2, 1), None)
