"""A detector as a file: a bit-exact round trip, and any other file is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.calibrated import refused

from brittle.errors import StorageError
from brittle.extensions.detector.detector import Detector


@pytest.mark.parametrize("threshold", [0.1 + 0.2, 1e-310, math.nextafter(1.0, 2.0)])
def test_file_round_trip_is_bit_exact(tmp_path: Path, detector: Detector, threshold: float) -> None:
    saved = replace(detector, threshold=threshold)
    read = Detector.load(saved.save(tmp_path / "detector.json"))
    assert read == saved
    assert read.threshold.hex() == threshold.hex()
    assert read.save(tmp_path / "again.json").read_bytes() == (tmp_path / "detector.json").read_bytes()


def changed(path: Path, key: str, value: object) -> str:
    """Return the text of a detector's file with `value` at a dotted `key`, such as `counts.brittle`."""
    content: Any = json.loads(path.read_text())
    holder = content
    *parts, last = key.split(".")
    for part in parts:
        holder = holder[part]
    holder[last] = value
    return json.dumps(content)


WRONG: list[tuple[str, object, str]] = [
    ("more", 1, "unknown key 'more'"),
    ("threshold", math.nan, "NaN is not a number"),
    ("threshold", True, "threshold"),
    ("threshold", -1, "threshold -1"),
    ("brittle", "\x1b[31m", "printable"),
    ("seed", -1, "seed"),
    ("format", 3, "format 1, found 3"),
    ("score", "moments", "a detector reads"),
    ("score", "/tmp/mine.py:Peak", "a detector reads"),
    ("parameters", {"sigma": -1}, "logit_margin has no such parameters"),
    ("parameters", [[[[[]]]]], "parameters"),
    ("tpr", 0.999, "tpr 0.999 needs 999"),
    ("confidence", 0, "confidence"),
    ("model.state_sha256", "0", "state_sha256"),
    ("model.bounds", [0, 1, 2], "bounds"),
    ("model.bounds", [1, 0], "bounds"),
    ("model.std", [0.0], "std"),
    ("model.mean", [1e300], "mean"),
    ("model.outputs", "words", "outputs"),
    ("criterion.epsilon", -1, "epsilon"),
    ("criterion.epsilon", 1e300, "epsilon"),
    ("criterion.limit", 0.9, "epsilon and limit"),
    ("criterion.parameters", {"norm": "l7"}, "l7"),
    ("counts.flagged_brittle", 10**6, "1000000 of"),
    ("counts.flagged_undecided_held_out", 1, "flagged_undecided_held_out"),
    ("counts.without_score", 401, "without_score"),
    ("counts.brittle", 1, "of 0"),
    ("verdict.auroc_low", 0.999, "auroc"),
    ("verdict.tau", 2, "tau"),
]


def test_values_that_a_detector_cannot_hold_are_refused_by_name(tmp_path: Path, detector: Detector) -> None:
    good = detector.save(tmp_path / "detector.json")
    for key, value, message in WRONG:
        assert message in refused(tmp_path, changed(good, key, value)), (key, value)
    with pytest.raises(StorageError, match="cannot be read") as caught:
        Detector.load(tmp_path / "absent.json")
    assert caught.value.code == "unreadable"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("parameters", {"draws": 20}, "sigma must be a positive finite number"),
        ("parameters", {"draws": 20, "sigma": "0.1"}, "sigma must be a positive finite number"),
        ("parameters", {"draws": 20, "sigma": 0.0}, "sigma must be a positive finite number"),
        ("limit", 1.0, "limit"),
        ("limit", None, "epsilon must be positive"),
    ],
)
def test_noise_that_no_column_has_is_refused(
    key: str, value: object, message: str, noise_detector: Detector, tmp_path: Path
) -> None:
    good = noise_detector.save(tmp_path / "detector.json")
    assert Detector.load(good) == noise_detector
    assert message in refused(tmp_path, changed(good, f"criterion.{key}", value))


def test_text_that_is_no_detector_is_refused_at_once(tmp_path: Path, detector: Detector) -> None:
    """Half a million escaped quotes, and many keys with a duplicate, take no time either."""
    text = detector.save(tmp_path / "detector.json").read_text()
    keys = ",".join(f'"{number}":1' for number in range(90_000))
    for content, message in (
        (text.replace(repr(detector.threshold), "1e999"), "1e999"),
        (text.replace('"threshold"', '"tpr": 0.1, "threshold"'), "stands twice"),
        (text.replace('"seed": 1', '"seed": ' + "9" * 5000), "not valid JSON"),
        (" " * 1_000_001, "bytes"),
        ("[" * 10_000 + "]" * 10_000, "not valid JSON"),
        ('"' + '\\"' * 499_000, ""),
        ("{" + keys + ',"0":1}', "stands twice"),
        (b"\xff" + text.encode(), "UTF-8"),
        *((content, "") for content in ("", "null", "[]", "1", "{}", '"detector"', "{", text + "x")),
    ):
        assert message in refused(tmp_path, content)
