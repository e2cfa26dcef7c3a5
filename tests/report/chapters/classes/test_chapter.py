"""Robustness by class."""

from __future__ import annotations

from helpers.pages import result_of
from helpers.tables import make_table, with_value

from brittle.report.chapters.classes import ClassesChapter
from brittle.report.chapters.classes.chapter import MAX_CLASSES
from brittle.report.chapters.classes.charts import classes_chart
from brittle.report.figure import Figure, draw


def test_classes_of_one_name_stay_apart() -> None:
    result = result_of(ClassesChapter(), make_table(points=40, classes=3, class_names=("cat", "cat", "dog")))
    assert set(result.frame["name"]) == {"cat (0)", "cat (1)", "dog"}


def test_no_class_is_named_before_the_classes_differ() -> None:
    label = "taylor(sigma=0.1)"
    table = make_table(points=150, classes=3, scores=("taylor",), sigmas=(0.1,), images=False)
    labels = table.points["label"].to_pylist()
    alike = result_of(ClassesChapter(), with_value(table, label, [0.2] * 150))
    assert alike.ends == ()
    assert "no class is named the least robust" in alike.test
    apart = result_of(ClassesChapter(), with_value(table, label, [(0.1, 0.5, 0.9)[one] for one in labels]))
    assert [number.value for number in apart.ends] == ["bird", "airplane"]
    assert all("Told apart from every other class." in number.note for number in apart.ends)
    assert "the classes differ" in apart.test
    pair = result_of(ClassesChapter(), with_value(table, label, [(0.1, 0.9, 0.9)[one] for one in labels]))
    assert "Not told apart from" in pair.ends[0].note


def test_a_figure_that_leaves_classes_out_marks_the_gap() -> None:
    table = make_table(points=800, classes=100, scores=("taylor",), sigmas=(0.1,), images=False)
    result = result_of(ClassesChapter(), table)
    rows = result.frame.sort_values("order")
    gap = f"\u22ee  {len(result.grid.rows) - MAX_CLASSES} not drawn"
    assert rows["name"].tolist()[MAX_CLASSES // 2] == gap
    assert rows["mean"].isna().tolist().count(True) == 1
    assert gap in draw(Figure(classes_chart, result.frame), "classes")
    assert result.ends == ()  # eight points to a class are too few to name one


def test_a_reader_of_screens_hears_the_result() -> None:
    result = result_of(ClassesChapter(), make_table(points=90, classes=3))
    first, last = result.grid.rows[0], result.grid.rows[-1]
    assert (
        result.spoken
        == f"Mean p_robust by class, from {first[0]} {first[2]} ({first[3]}) to {last[0]} {last[2]} ({last[3]})."
    )
