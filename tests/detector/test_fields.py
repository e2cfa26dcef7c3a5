"""Numbers of a detector's file: each is one that it can be, and they agree with each other."""

from __future__ import annotations

import functools
import itertools
import json
import operator
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.calibrated import refused

from brittle.detector import Detector
from brittle.errors import DetectorFormatError

HUGE, TINY, MINUS_ZERO, ONE, WHOLE = 1e308, 1e-320, -0.0, [1], 2**62
ABSURD = (-1, MINUS_ZERO, 0, 1, WHOLE, HUGE, -HUGE, TINY, 0.5, True, False, "1", "8/255", None, [], {}, ONE)
"""Values for a number; those that a field may have are told by `ALLOWED`."""

ALLOWED: dict[str, tuple[object, ...]] = {
    "threshold": (1, WHOLE, 0.5, TINY),  # a margin between logits; the next double above one that is 0 is as small
    "criterion.epsilon": (1, 0.5),  # within bounds from 0 to 1
    "tpr": (TINY, 0.5),  # 162 points are enough
    "confidence": (TINY, 0.5),  # the intervals follow from it
    "seed": (0, 1, WHOLE),  # any seed gives a split
    "model.bounds": (None,),  # none
    "model.bounds[0]": (-1, MINUS_ZERO, 0, TINY, 0.5),  # declared by the user, in any unit
    "model.bounds[1]": (1, WHOLE, 0.5),
    "model.mean[0]": (-1, MINUS_ZERO, 0, 1, WHOLE, TINY, 0.5),  # is subtracted
    "model.std[0]": (1, WHOLE, 0.5),
    "model.mean": (None, ONE),
    "model.std": (None, ONE),
    "counts.brittle": (WHOLE,),  # any numbers of points
    "counts.robust": (WHOLE,),
    "counts.undecided": (0, 1, WHOLE),
    "counts.masked": (0, 1, WHOLE),
    "counts.without_number": (0, 1, WHOLE),
    "counts.learned_from": (0, 1, WHOLE),
    "counts.without_score": (0, 1),
    "counts.score_chosen": (False,),
    "counts.flagged_brittle": (0, 1),  # of those that there are
    "counts.flagged_robust": (0, 1),
    "verdict.tau": (None,),  # unknown
    "verdict.tau_low": (-1, MINUS_ZERO, 0, TINY, 0.5),  # an interval that is wider than need be
    "verdict.tau_high": (1,),
    "verdict.auroc": (None,),
    "verdict.auroc_low": (MINUS_ZERO, 0, TINY, 0.5),
    "verdict.auroc_high": (1,),
}
"""Where the unit or the data are the user's, and nothing else in the file speaks against a value."""

ALLOWED_OF_NOISE: dict[str, tuple[object, ...]] = {
    "criterion.limit": (TINY, 0.5),
}
"""The same for a detector of the average case, in the parts where it differs."""

OF_BOTH = ("criterion",)
"""Parts of the file that a detector of the average case fills otherwise."""


def numbers_in(value: object, where: str = "") -> Iterator[str]:
    """The places of numbers in a JSON value."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from numbers_in(one, f"{where}.{key}".removeprefix("."))
    elif isinstance(value, list):
        yield where
        for number, one in enumerate(value):
            yield from numbers_in(one, f"{where}[{number}]")
    elif isinstance(value, int | float):
        yield where


def put(value: Any, where: str, other: object) -> Any:
    """A copy of a JSON value with `other` at a place."""
    changed = json.loads(json.dumps(value))
    *path, last = (int(key) if key.isdigit() else key for key in re.findall(r"\w+", where))
    holder = functools.reduce(operator.getitem, path, changed)
    holder[last] = other
    return changed


def refusal(path: Path) -> str | None:
    """Why a file is no detector; None where it is one."""
    try:
        Detector.load(path)
    except DetectorFormatError as error:
        return str(error)
    return None


@pytest.mark.parametrize("case", ["detector", "noise_detector"])
def test_every_number_is_one_that_it_can_be(case: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Each is set to each of the absurd ones: refused with its name, or among the few that it may have."""
    good = json.loads(request.getfixturevalue(case).save(tmp_path / "detector.json").read_text())
    places = [where for where in numbers_in(good) if not where.startswith("criterion.noise")]  # only said
    allowed_here = ALLOWED
    if case == "noise_detector":  # where it differs from the other
        places, allowed_here = [where for where in places if where.split(".")[0] in OF_BOTH], ALLOWED_OF_NOISE
    assert len(places) >= (1 if case == "noise_detector" else 25)
    wrong = []
    for where, other in itertools.product(places, ABSURD):
        changed = put(good, where, other)
        (tmp_path / "f.json").write_text(json.dumps(changed))
        allowed = json.dumps(changed) == json.dumps(good) or any(other is one for one in allowed_here.get(where, ()))
        said = refusal(tmp_path / "f.json")
        names = re.sub(r"\[\d\]", "", where).split(".")
        if (said is None) != allowed or (said is not None and not any(name in said for name in names)):
            wrong.append((where, other, said))
    assert wrong == [], "\n".join(map(str, wrong))


@pytest.mark.parametrize(
    ("where", "value", "name"),
    [
        ("tpr", 0.999, "tpr 0.999 needs 999"),
        ("threshold", -1, "threshold -1"),
        ("parameters", {"sigma": -1}, "logit_margin has no such parameters"),
        ("verdict.auroc_low", 0.999, "auroc"),
        ("counts.without_score", 401, "without_score"),
        ("counts.flagged_undecided_held_out", 1, "flagged_undecided_held_out"),
    ],
)
def test_numbers_that_cannot_be(where: str, value: object, name: str, tmp_path: Path, detector: Detector) -> None:
    good = json.loads(detector.save(tmp_path / "detector.json").read_text())
    assert name in refused(tmp_path, json.dumps(put(good, where, value)))
