"""What a finished run may be asked for beyond what it holds, and what is refused in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.problems import inputs, small_classifier
from helpers.resumed import SHARD, run

from brittle.errors import BrittleError, ResumeError
from brittle.run import JobOptions, execute, make_job
from brittle.run.growth import growth_of, without_growth
from brittle.run.job import Job
from brittle.run.record import describe
from brittle.run.workers.crew import Crew
from brittle.scores import LogitMargin, Moments, MonteCarlo, Score

SIGMA = 0.5
PLAIN = MonteCarlo(SIGMA, draws=20)
FEW, MORE = MonteCarlo(SIGMA, draws=40, limit=0.9), MonteCarlo(SIGMA, draws=80, limit=0.9)
OTHER, NARROW = MonteCarlo(SIGMA, draws=40, limit=0.8), MonteCarlo(SIGMA, draws=40, precision=0.1)
MARGIN, MOMENTS = LogitMargin(), Moments(SIGMA)


def job(scores: Sequence[Score]) -> Job:
    return make_job(small_classifier(), inputs(2), scores, 0, None, 0.99)


@pytest.mark.parametrize(
    ("held", "asked", "then"),
    [
        ([MARGIN, FEW], [MARGIN, MORE], [MARGIN, MORE]),
        ([MARGIN, FEW, MOMENTS], [MARGIN, MORE, MOMENTS], [MARGIN, MORE, MOMENTS]),
        ([MOMENTS], [MOMENTS, FEW], [MOMENTS, FEW]),
        ([PLAIN, MOMENTS], [FEW, MOMENTS], [PLAIN, MOMENTS, FEW]),
        ([MOMENTS, FEW], [MOMENTS, OTHER], [MOMENTS, FEW, OTHER]),
        ([MOMENTS, FEW, OTHER], [MOMENTS, MORE], [MOMENTS, MORE, OTHER]),
        ([MOMENTS, FEW], [MOMENTS, NARROW], [MOMENTS, FEW, NARROW]),
    ],
)
def test_what_a_run_grows_to(held: list[Score], asked: list[Score], then: list[Score]) -> None:
    before = describe(job(held))
    found, growth = growth_of(job(asked), before, "run")
    assert growth is not None
    assert list(found.scores) == then
    assert [*growth.added] == [score for score in then if score not in (*held, MORE)]
    assert [one.score for one in growth.continued] == [score for score in then if score == MORE]
    assert growth.expected(before, describe(found)) == describe(found)
    again, nothing = growth_of(job(asked), describe(found), "run")
    assert nothing is None
    assert list(again.scores) == then


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        ([MOMENTS, MARGIN], [MARGIN, MOMENTS]),
        ([MOMENTS, MARGIN], [MOMENTS, FEW]),
        ([MOMENTS], [MOMENTS, FEW, MARGIN]),
        ([MOMENTS, FEW], [MOMENTS]),
        ([MOMENTS, PLAIN], [MOMENTS, MonteCarlo(SIGMA, draws=40)]),
        ([MOMENTS, MonteCarlo(0.1, draws=40, limit=0.9)], [MOMENTS, FEW]),
    ],
)
def test_what_is_another_run(held: list[Score], asked: list[Score]) -> None:
    wanted = job(asked)
    assert growth_of(wanted, describe(job(held)), "run") == (wanted, None)


@pytest.mark.parametrize(
    ("held", "asked", "gone", "come"),
    [
        ([MOMENTS, MARGIN], [MOMENTS, FEW], [MARGIN], []),
        ([MOMENTS, PLAIN], [MARGIN, FEW], [MOMENTS], [MARGIN]),
        ([MOMENTS], [MOMENTS, FEW, MARGIN], [], [MARGIN]),
        ([MOMENTS, FEW], [MOMENTS], [FEW], []),
        (
            [MOMENTS, MonteCarlo(0.1, draws=40, limit=0.9)],
            [MOMENTS, FEW],
            [MonteCarlo(0.1, draws=40, limit=0.9)],
            [FEW],
        ),
        ([MARGIN, FEW], [MORE], [MARGIN], []),
    ],
    ids=str,
)
def test_only_what_keeps_a_run_from_growing_is_named(
    held: list[Score], asked: list[Score], gone: list[Score], come: list[Score]
) -> None:
    """Counts that the run would grow by, and those that need not be asked for again, stand in nobody's way."""
    one, other = without_growth(job(asked), describe(job(held)), describe(job(asked)))
    there, now = ({score.label for score in record.scores} for record in (one, other))
    assert there - now == {score.label for score in gone}
    assert now - there == {score.label for score in come}


def test_records_that_differ_in_their_order_stay_as_they_are() -> None:
    records = describe(job([MOMENTS, MARGIN])), describe(job([MARGIN, MOMENTS]))
    assert without_growth(job([MARGIN, MOMENTS]), *records) == records


RULE: dict[str, Any] = {"until": "decided", "limit": 0.9}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("brittle.run.job.SHARD", SHARD)
    run(tmp_path / "run", most_draws=40, skip_doctor=True, **RULE)
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ({"most_draws": 20}, "other_run", "at most 20 draws are asked for; give 40 or more"),
        ({"most_draws": 80, "seed": 1}, "other_run", "seed 0 there, 1 now"),
        ({"most_draws": 80, "first": 1}, "other_run", "data.sha256"),
        ({"most_draws": 80, "confidence": 0.9}, "other_run", "confidence 0.99 there, 0.9 now"),
        (
            {"most_draws": 80, "scores": [Moments(0.2)]},
            "other_run",
            "scores moments: draws 4 there, 100 now; sigma 0.1 there, 0.2 now;",
        ),
    ],
)
def test_what_is_refused(options: dict[str, Any], code: str, said: str, place: Path) -> None:
    with pytest.raises(ResumeError, match=said) as caught:
        run(place, **RULE, **options)
    assert caught.value.code == code


def test_a_run_that_is_not_whole_is_finished_first(place: Path) -> None:
    (place / "scores-00001.parquet").unlink()
    with pytest.raises(ResumeError, match="go on with it as it was asked for first") as caught:
        run(place, most_draws=80, **RULE)
    assert caught.value.code == "other_run"
    run(place, most_draws=40, **RULE)
    assert run(place, most_draws=80, **RULE).record.scores[-1].parameters["draws"] == 80


def test_other_processes_are_refused(tmp_path: Path) -> None:
    options = JobOptions(skip_doctor=True)
    execute(job([MARGIN, FEW]), tmp_path / "run", options)
    with pytest.raises(BrittleError, match="leave out --workers"):
        execute(job([MARGIN, MORE]), tmp_path / "run", JobOptions(workers=Crew([], 2)))
