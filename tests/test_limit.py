"""An invalid limit gets one sentence in every place."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.known_groups import BREAK, HOLD, made
from helpers.problems import inputs, small_classifier

import brittle
from brittle.analysis import decide, overview, point_list
from brittle.cli.commands import main
from brittle.errors import ParameterError
from brittle.extensions.detector.detector import Detector
from brittle.scores import MonteCarlo, Shrinkage

NONE = (0.0, 1.0, 90, float("nan"))
RUN = made([HOLD, BREAK])

GIVEN: dict[str, Callable[[float], object]] = {
    "overview": lambda limit: overview(RUN, limit),
    "point_list": lambda limit: point_list(RUN, limit=limit),
    "decide": lambda limit: decide(RUN, limit),
    "score": lambda limit: brittle.score(small_classifier(), inputs(2), "shrinkage", limit=limit),
    "Shrinkage": lambda limit: Shrinkage(0.1, limit=limit),
    "MonteCarlo": lambda limit: MonteCarlo(0.1, limit=limit),
    "Detector.fit": lambda limit: Detector.fit(RUN, limit=limit),
}
"""Places in Python with a limit."""

TYPED = (
    ["show", "run"],
    ["show", "run", "--state", "holds"],
    ["score", "absent.pt2", "absent.npz", "--out", "new", "--scores", "monte_carlo"],
    ["score", "absent.pt2", "absent.npz", "--out", "new"],
    ["detector", "fit", "run"],
)
"""Commands with a limit."""


@pytest.mark.parametrize("limit", NONE)
@pytest.mark.parametrize("place", GIVEN)
def test_in_python(place: str, limit: float) -> None:
    with pytest.raises(ParameterError, match=f"limit .*{limit!r}"):
        GIVEN[place](limit)


@pytest.mark.parametrize("limit", NONE)
@pytest.mark.parametrize("command", TYPED, ids=" ".join)
def test_on_the_command_line(
    command: list[str],
    limit: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    RUN.save("run")
    assert main([*command, f"--limit={limit}"]) == ParameterError.exit_code
    assert re.fullmatch(f"brittle: parameter: limit .*{float(limit)!r}\n", capsys.readouterr().err)
    assert not Path("new").exists()


@pytest.mark.parametrize("draws", [0, 1.5, 7, "many", True, (60, 2.0)])
def test_invalid_draws_get_one_as_well(draws: Any) -> None:
    with pytest.raises(ParameterError, match="draws") as raised:
        brittle.score(small_classifier(), inputs(2), "monte_carlo", draws=draws)
    assert raised.value.code == "parameter"
