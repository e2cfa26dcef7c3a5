"""Numbers of a detector's file: each is one that it can be, and they agree with each other."""

from __future__ import annotations

import functools
import itertools
import json
import operator
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.calibrated import refused

from brittle.detector import Detector, Rate
from brittle.errors import DetectorFormatError, ParameterError

HUGE, TINY, MINUS_ZERO, ONE, WHOLE = 1e308, 1e-320, -0.0, [1], 2**62
ABSURD = (-1, MINUS_ZERO, 0, 1, WHOLE, HUGE, -HUGE, TINY, 0.5, True, False, "1", "8/255", None, [], {}, ONE)
"""Values for a number; those that a field may have are told by `ALLOWED`."""

ALLOWED: dict[str, tuple[object, ...]] = {
    "threshold": (1, 0.5, TINY),  # a margin between logits; the next double above one that is 0 is as small
    "criterion.epsilon": (1, 0.5),  # within bounds from 0 to 1
    "tpr": (0.5,),  # 162 points are enough for a rate of 0.5
    "seed": (0, 1, WHOLE),  # any seed gives a split
    "model.bounds": (None,),  # none
    "model.bounds[0]": (-1, MINUS_ZERO, 0, TINY, 0.5),  # declared by the user, in any unit
    "model.bounds[1]": (1, 0.5),
    "model.mean[0]": (-1, MINUS_ZERO, 0, 1, TINY, 0.5),  # is subtracted
    "model.std[0]": (1, 0.5),
    "model.mean": (None, ONE),
    "model.std": (None, ONE),
    "counts.without_score": (1,),  # one of the 323 was flagged for want of a score
    "verdict.trusted": (False,),  # fails closed
    "verdict.tau": (None,),  # unknown
    "verdict.tau_low": (-1, MINUS_ZERO, 0, TINY, 0.5),  # an interval that is wider than need be
    "verdict.tau_high": (1,),
    "verdict.auroc_high": (1,),
}
"""Where the unit or the data are the user's, and nothing else in the file speaks against a value."""

ALLOWED_OF_NOISE: dict[str, tuple[object, ...]] = {
    "criterion.limit": (0.5,),
    "criterion.noise.limit": (0.5,),  # drawn for another limit
    "criterion.noise.sigma": (1, WHOLE, 0.5),  # in any unit
    "counts.without_score": (1,),
}
"""The same for a detector of the average case, in the parts where it differs."""

OF_BOTH = ("criterion", "counts", "true_positives", "false_positives")
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
    places, allowed_here = list(numbers_in(good)), ALLOWED
    if case == "noise_detector":  # where it differs from the other
        places, allowed_here = [where for where in places if where.split(".")[0] in OF_BOTH], ALLOWED_OF_NOISE
    assert len(places) > (25 if case == "noise_detector" else 40)
    assert allowed_here.keys() <= set(places)
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
    ("where", "value", "match"),
    [
        (
            "criterion.epsilon",
            1e308,
            r"margins in linf of inputs within bounds 1 apart lie in .* found epsilon 1e\+308",
        ),
        ("criterion.epsilon", 8, "found epsilon 8"),
        ("true_positives.low", -1, r"true_positives: 139 of 161 .* found .* in \[-1"),
        ("true_positives.value", 0.5, r"true_positives: 139 of 161 .* found 0\.5 in"),
        ("tpr", -1, "tpr must lie between 0 and 1, .*; found -1"),
        ("tpr", 1e-320, "tpr must lie between 0 and 1, and not round to either; found 1e-320"),
        ("tpr", 0.999, "needs 999 brittle points to calibrate on; found 162"),
        ("confidence", 0.9, r"139 of 161 .* at a confidence of 0\.9; found"),
        ("threshold", -1, r"logit_margin lies in \[0, .*; found the threshold -1"),
        ("counts.points", 2**62, "do not add up"),
        ("criterion.margin", {"norm": "linf", "steps": -1}, "margins have no such parameters"),
        ("criterion.margin", {"norm": "l2"}, "parameters of margins in linf are written otherwise"),
        ("parameters", {"sigma": -1}, "logit_margin for linf has no such parameters"),
        ("verdict.auroc_low", 0.1, "trusted whose AUROC may be below"),
    ],
)
def test_numbers_that_cannot_be(where: str, value: object, match: str, tmp_path: Path, detector: Detector) -> None:
    good = json.loads(detector.save(tmp_path / "detector.json").read_text())
    assert re.search(match, refused(tmp_path, json.dumps(put(good, where, value))))


def test_rates_are_of_the_points_that_were_counted(tmp_path: Path, detector: Detector) -> None:
    """Rates with intervals of their own, but of other points."""
    fewer = Rate.of(np.arange(20) < 18, detector.confidence)
    for name in ("true_positives", "false_positives"):
        with pytest.raises(ParameterError, match=f"{name}: expected .* points, as counted; found 20"):
            replace(detector, **{name: fewer})
