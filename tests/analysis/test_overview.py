"""Overview of a run: counts by hand over made-up runs, and the sentences about them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from helpers.known_groups import BREAK, HOLD, OPEN, made
from helpers.tables import make_table, with_rows, with_scores, without_score

from brittle.analysis.overview import FROM_SAFE, POINTS_TO_NAME, Overview, margin_sentences, overview
from brittle.analysis.overview_text import (
    FEWEST_FOR_DETECTOR,
    format_overview,
    how_brittle,
    how_sure,
    next_steps,
    where,
    where_to_run,
)
from brittle.analysis.point_card import format_point_card
from brittle.analysis.point_list import point_list
from brittle.estimate import LIMIT, Parameter
from brittle.extensions.detector.calibration import points_needed


def with_command(screen: Overview, command: tuple[str, ...] | None) -> Overview:
    return replace(screen, record=replace(screen.record, command=command))


def test_points_are_counted_by_kind() -> None:
    ends = [HOLD] * 4 + [OPEN] * 3 + [BREAK] * 2 + [None]
    correct = [True, True, False, None, True, False, False, True, False, True]
    screen = overview(made(ends, correct))
    assert screen.groups.to_dict("index") == {
        "right": {"holds": 2, "undecided": 1, "breaks": 1},
        "wrong": {"holds": 1, "undecided": 2, "breaks": 1},
        "no label": {"holds": 1, "undecided": 0, "breaks": 0},
    }
    assert (screen.points, screen.without_number, screen.labelled, screen.correct) == (10, 1, 9, 5)
    assert screen.limit == LIMIT
    assert how_brittle(screen) == (
        "Under noise of sigma 0.1, 4 of 9 predictions (44%) hold: kept with probability 0.9 or more. 2 break and 3 are "
        "undecided. 5 of 9 labels (56%) are predicted right."
    )
    assert how_sure(screen).endswith("1 of 10 points (10%) has no number.")


@pytest.mark.parametrize("precision", [0.1, 0.3, 1e-5, 1.0])
def test_intervals_that_are_wider_than_the_precision_are_counted(precision: float) -> None:
    """The draws that are advised make the widest as narrow: a width falls with their root."""
    run = made([HOLD, OPEN, OPEN, BREAK, None])
    (score,) = run.record.scores
    limited = replace(score, parameters={**score.parameters, "precision": precision})
    rows = run.long().assign(parameters=f'{{"draws":400,"precision":{precision},"sigma":0.1}}')
    widths = (rows["high"] - rows["low"]).dropna().tolist()
    wide = [width for width in widths if width > precision]
    text = how_brittle(overview(with_scores(with_rows(run, rows), [limited])))
    match = re.search(r"(\d+) of (\d+) intervals .*--precision (\S+) after 400 noisy copies: (.*)", text)
    assert (match is None) == (not wide)
    if match is not None:
        assert (int(match[1]), int(match[2]), float(match[3])) == (len(wide), len(widths), precision)
        enough, draws = 400 * (max(wide) / precision) ** 2, re.search(r"--draws (\d+)", match[4])
        assert (draws is None) == (enough > 10_000_000)
        assert draws is None or enough <= int(draws[1]) <= 2 * enough


def test_the_limit_of_the_draws_is_the_default() -> None:
    run = made([HOLD, OPEN])
    (score,) = run.record.scores
    limited = replace(score, parameters={**score.parameters, "limit": 0.5})
    scores = run.long().assign(parameters='{"draws":400,"limit":0.5,"sigma":0.1}')
    decided = with_scores(with_rows(run, scores), [limited])
    assert overview(decided).limit == 0.5
    assert overview(decided, 0.9).limit == 0.9


def test_a_class_is_named_only_if_it_differs_from_every_other() -> None:
    worse = made([BREAK] * 60 + [HOLD] * 120, classes=[0] * 60 + [1] * 60 + [2] * 60)
    screen = overview(worse)
    assert screen.named is not None
    assert where(screen).startswith("The least robust class is airplane: ")
    assert screen.classes["name"].iloc[0] == "airplane"
    alike = overview(made([BREAK, HOLD, OPEN] * 60, classes=[0, 1, 2] * 20 + [1, 2, 0] * 20 + [2, 0, 1] * 20))
    assert alike.named is None
    assert where(alike).startswith("The 3 classes, of 60 points each, are not shown to differ in p_robust")
    tied = overview(made([BREAK] * 120 + [HOLD] * 60, classes=[0] * 60 + [1] * 60 + [2] * 60))
    assert tied.named is None
    assert "2 of 3 may be" in where(tied)
    size = POINTS_TO_NAME - 1
    small = overview(made([(1.0, 1.0)] * size + [HOLD] * 400, classes=[0] * size + [1] * 200 + [2] * 200))
    assert small.bias is not None
    assert small.bias.differ
    assert small.named is None


def test_the_confidence_of_a_network_has_no_states() -> None:
    table = make_table(points=20, scores=("softmax",))
    screen = overview(table)
    assert screen.column is not None
    assert (screen.is_decisive, screen.bias) == (False, None)
    assert [screen.count(state) for state in FROM_SAFE] == [0, 0, 0]
    assert how_brittle(screen).startswith(
        "Softmax is no measurement under noise: it has no interval, so no point is held or broken by it. "
    )
    assert (where(screen), how_sure(screen)) == ("", "")
    (step,) = next_steps(screen)
    assert step.command == f"brittle show RUN --by '{screen.column.label}'"
    assert point_list(table, screen.column)["state"].isna().all()
    assert point_list(table, screen.column, state="holds").empty
    assert "no point is held or broken by it" in format_point_card(table, table.points["point"].to_pylist()[0])
    scored = make_table(points=20, scores=("monte_carlo", "softmax"))
    assert overview(scored).is_decisive
    assert not overview(scored, column=scored["softmax"]).is_decisive


def test_the_folder_of_a_run_is_that_of_its_command() -> None:
    screen = overview(made([OPEN, BREAK]))
    for command, folder in (
        (("brittle", "score", "m", "d", "--out", "a run"), "'a run'"),
        (("brittle", "score", "m", "d", "--out=here/run"), "here/run"),
        (("brittle", "score", "m", "d"), "RUN"),
        (("python", "x.py", "--out", "elsewhere"), "RUN"),
        (None, "RUN"),
    ):
        run = with_command(screen, command)
        assert next_steps(run)[1].command == f"brittle show {folder} --state breaks --right --limit 0.9"
        assert where_to_run(run).startswith("RUN is" if folder == "RUN" else "The commands run in the folder where")


def test_small_and_failed_runs() -> None:
    single = overview(made([OPEN]))
    assert "0 of 1 prediction (0%) holds" in how_brittle(single)
    assert "1 is undecided" in how_brittle(single)
    assert where(single) == ""
    unlabelled = overview(made([HOLD, BREAK], [None, None]))
    assert "nothing is known of how many are right" in how_brittle(unlabelled)
    failed = overview(made([None, None]))
    assert "No point has a p_robust" in how_brittle(failed)
    assert how_sure(failed) == ""
    assert [step.command for step in next_steps(failed)] == [
        "brittle show RUN --by 'monte_carlo(draws=400, sigma=0.1)'"
    ]
    partial = overview(made([HOLD, None]))
    assert [step.command for step in next_steps(partial)] == ["brittle show RUN --state failed"]
    margins = overview(make_table(points=5, scores=("logit_margin",)))
    assert [step.command for step in next_steps(margins)] == ["brittle show RUN --by logit_margin"]
    empty = overview(without_score(make_table(points=5), "monte_carlo", "moments", "mmse", "taylor", "softmax"))
    assert empty.column is None
    assert "No point has a p_robust" in format_overview(empty)


@pytest.mark.parametrize(
    ("evidence", "sentence"),
    [
        ("counted", "All intervals count noisy copies"),
        ("modelled", "2 of 2 intervals rest on a model of the margins that the noisy copies bear out"),
        ("extrapolated", "2 of 2 intervals rest on a model alone, of noise that no noisy copy drew"),
        ("sampled", "2 of 2 intervals rest on rare flips that a search came near"),
    ],
)
def test_the_evidence_of_the_states_is_named(evidence: str, sentence: str) -> None:
    assert sentence in how_sure(overview(made([HOLD, BREAK], evidence=evidence)))


def test_the_wrong_points_are_one_step_whatever_their_state() -> None:
    screen = overview(made([HOLD, HOLD, OPEN, BREAK, None], [True, False, False, False, False]))
    (step,) = (step for step in next_steps(screen) if step.kind == "wrong")
    assert (step.points, step.command, step.state) == (4, "brittle show RUN --wrong --limit 0.9", "")


def with_margins(screen: Overview) -> Overview:
    """Return `screen` for a run that has the logit margin, too."""
    (margin,) = make_table(points=1, scores=("logit_margin",)).record.scores
    return replace(screen, record=replace(screen.record, scores=(*screen.record.scores, margin)))


def test_steps_carry_their_command() -> None:
    screen = with_margins(overview(made([HOLD] * 60 + [OPEN] * 3 + [BREAK] * 50, [False] * 5 + [True] * 108)))
    assert [step.command for step in next_steps(screen, "a run")] == [
        "brittle score --model models:cnn --data cifar10 --sigma 0.05,0.1,0.25 --out 'a run-decided' "
        "--scores shrinkage --limit 0.9",
        "brittle show 'a run' --state breaks --right --limit 0.9",
        "brittle show 'a run' --wrong --limit 0.9",
        "brittle detector fit 'a run' --limit 0.9",
    ]
    assert [step.points for step in next_steps(screen)] == [3, 50, 5, 50]
    for command, starts in {
        ("brittle", "score", "m.pt2", "d", "--limit=none", "--draws", "20", "60", "--precision", "0.1", "--out", "r"): (
            "brittle score m.pt2 d --out r-decided --scores shrinkage --limit 0.9"
        ),
        ("brittle", "score", "m", "d", "--scores", "moments", "mmse", "--set", "mmse.draws=8", "--workers", "4"): (
            "brittle score m d --workers 4 --out RUN-decided --scores shrinkage --limit 0.9"
        ),
        ("rm", "score", "-rf", "x"): "brittle score MODEL DATA --out RUN-decided",
        ("brittle", "demo"): "brittle score MODEL DATA --out RUN-decided",
        None: 'brittle.score(..., "shrinkage", limit=0.9)',
    }.items():
        assert next_steps(with_command(screen, command))[0].command.startswith(starts)


@pytest.mark.parametrize(
    ("draws", "limit", "command", "advice"),
    [
        (400, 0.9, ("brittle", "score", "m", "d", "--out", "r"), "brittle more r"),
        (4000, 0.9, ("brittle", "score", "m", "d"), "brittle more RUN"),
        (4000, 0.9, None, "brittle.score(..., draws=40000)"),
        (
            400,
            0.8,
            ("brittle", "score", "m", "d"),
            "brittle score m d --out RUN-decided --scores shrinkage --limit 0.9",
        ),
        (400, 0.8, None, 'brittle.score(..., "shrinkage", limit=0.9)'),
    ],
)
def test_a_run_that_drew_for_the_limit_goes_on(
    draws: int, limit: float, command: tuple[str, ...] | None, advice: str
) -> None:
    """Other runs start a new count."""
    screen = overview(made([OPEN]), 0.9)
    assert screen.column is not None
    parameters: dict[str, Parameter] = {"draws": draws, "limit": limit, "sigma": 0.1}
    counted = with_command(replace(screen, column=replace(screen.column, parameters=parameters)), command)
    assert next_steps(counted)[0].command == advice


def test_undecided_points_have_copies_and_probabilities() -> None:
    """The range of the probabilities of the undecided points alone, one number where they have one, at the limit that
    their copies were drawn for."""

    def describe(*ends: tuple[float, float], limit: float = 0.9) -> str:
        screen = overview(made(ends), limit)
        assert screen.column is not None
        parameters: dict[str, Parameter] = {"draws": 400, "limit": 0.9, "sigma": 0.1}
        return how_brittle(replace(screen, column=replace(screen.column, parameters=parameters)))

    copies = "after up to 400 noisy copies"
    open_ends = (0.06, 0.16), (0.08, 0.2)
    assert f"2 are undecided {copies} (kept with probability 0.86 to 0.89)" in describe(HOLD, *open_ends, BREAK)
    assert f"1 is undecided {copies} (kept with probability 0.89)" in describe(open_ends[0], BREAK)
    assert "copies" not in describe(HOLD, BREAK)
    assert "copies" not in describe(*open_ends, limit=0.85)


def test_a_detector_is_advised_where_it_can_be_calibrated() -> None:
    """The default rate is 0.95."""
    fewest = FEWEST_FOR_DETECTOR
    assert fewest == 2 * points_needed(0.95)
    for breaks, is_advised in ((fewest, True), (fewest - 1, False)):
        steps = next_steps(with_margins(overview(made([HOLD] * 100 + [BREAK] * breaks))))
        assert any("detector fit" in step.command for step in steps) == is_advised
    assert not any("detector fit" in step.command for step in next_steps(overview(made([HOLD] * 60 + [BREAK] * 60))))
    screen = with_margins(overview(made([HOLD] * 100 + [BREAK] * fewest)))
    for facts in ({"state_sha256": None}, {"decision": "top:2"}, {"bounds": None, "bounds_shape": (4,)}):
        uncalibrated = replace(screen, record=replace(screen.record, model=replace(screen.record.model, **facts)))
        assert not any("detector fit" in step.command for step in next_steps(uncalibrated))


DISTANCES = re.compile(r"For half of the points .* at most ([\d.]+) away, for one in ten at most ([\d.]+) \(")


@pytest.mark.parametrize("points", [1, 9, 11, 400])
def test_at_least_the_stated_share_is_as_near(points: int) -> None:
    """A single point may be left out; a certificate never lies beyond the distance of the attack."""
    table = make_table(points=points, scores=("input_margin",), certified=True)
    (text,) = margin_sentences(table)
    (column,) = table.columns
    match = DISTANCES.search(text)
    assert match is not None
    for distance_text, share in ((match[1], 0.5), (match[2], 0.1)):
        distance = float(distance_text) * 1.005  # three digits are shown
        assert (column.value <= distance).sum() >= share * points
        assert (column.value < float(distance_text) * 0.995).sum() < share * points
    certified = re.search(r"Certified: for half of the points none is nearer than ([\d.]+)\. ", text)
    assert certified is not None
    assert (column.low >= float(certified[1]) * 0.995).sum() >= 0.5 * points
    assert float(certified[1]) <= float(match[1])


def test_points_without_a_counterexample_are_counted() -> None:
    table = make_table(points=40, scores=("input_margin",), not_found=30)
    (text,) = margin_sentences(table)
    assert "For half" not in text
    assert text.startswith("For one in ten of the points the nearest input with another prediction is at most ")
    assert ". None was found for 30 of 40 points (75%). " in text
    (text,) = margin_sentences(make_table(points=40, scores=("input_margin",), not_found=40))
    assert "for fewer than one in ten points. None was found for 40 of 40 points (100%)." in text
