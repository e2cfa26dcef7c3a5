"""Outcomes of points: each is counted once."""

from __future__ import annotations

from helpers.tables import make_table, with_rows

from brittle.analysis import outcomes


def test_outcomes_count_points_once_and_name_examples() -> None:
    table = make_table(points=9, broken=7)
    frame = outcomes(table, examples=2)
    assert len(frame) == 1
    row = frame.iloc[0]
    assert (row["labels"], row["status"], row["points"], row["has_value"]) == ((), "nonfinite_input", 7, False)
    assert row["sentence"] == "The input holds NaN or infinite values."
    assert row["first"] == [(0, "test/00000.png", "1 NaN of 3072"), (1, "test/00001.png", "1 NaN of 3072")]


def test_outcomes_of_single_scores_and_unknown_statuses() -> None:
    table = make_table(points=4, scores=("taylor",), sigmas=(0.1,))
    rows = table.long()
    rows["status"] = ["ok", "zero_gradient", "from_the_future", "tie"]
    frame = outcomes(with_rows(table, rows))
    assert frame.set_index("status")["has_value"].to_dict() == {
        "zero_gradient": False,
        "from_the_future": True,
        "tie": True,
    }
    assert set(frame["labels"]) == {("taylor(sigma=0.1)",)}
    assert "does not know" in frame.set_index("status").loc["from_the_future", "sentence"]


def test_scores_with_one_status_for_the_same_points_share_a_row() -> None:
    table = make_table(points=4, scores=("taylor", "taylor_mvs"), sigmas=(0.1, 0.2))
    rows = table.long()
    rows.loc[rows["point"].str.endswith("2"), "status"] = "zero_gradient"
    frame = outcomes(with_rows(table, rows))
    assert frame["points"].tolist() == [1]
    assert frame["labels"][0] == tuple(c.label for c in table.columns)


def test_a_status_with_and_without_a_number_has_two_rows() -> None:
    table = make_table(points=4, scores=("taylor",), sigmas=(0.1,))
    rows = table.long()
    rows["status"] = ["ok", "ill_conditioned", "ill_conditioned", "ok"]
    rows.loc[1, "value"] = None
    frame = outcomes(with_rows(table, rows))
    assert frame[["has_value", "points"]].to_numpy().tolist() == [[False, 1], [True, 1]]
    assert [examples[0][0] for examples in frame["first"]] == [1, 2]
