"""A detector as a file: bit exact, and nothing else is taken for one."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.calibrated import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from brittle.detector import Detector, MarginCriterion
from brittle.errors import DetectorFormatError, ModelError

CRITERION = MarginCriterion(8 / 255, "linf", {"norm": "linf"})


@pytest.mark.parametrize("threshold", [0.1 + 0.2, 1e-310, 1 / 3, math.nextafter(1.0, 2.0), math.ulp(0.0)])
def test_file_round_trip_is_bit_exact(tmp_path: Path, detector: Detector, threshold: float) -> None:
    ours = replace(detector, threshold=threshold, criterion=CRITERION)
    read = Detector.load(ours.save(tmp_path / "detector.json"))
    assert read == ours
    assert read.threshold.hex() == threshold.hex()
    assert read.save(tmp_path / "again.json").read_bytes() == (tmp_path / "detector.json").read_bytes()


def test_strictness(tmp_path: Path, detector: Detector) -> None:
    text = detector.save(tmp_path / "detector.json").read_text()
    good = json.loads(text)

    def changed(**changes: object) -> str:
        return json.dumps(good | changes)

    assert "unknown key 'more'" in refused(tmp_path, changed(more=1))
    assert "threshold" in refused(tmp_path, json.dumps({k: v for k, v in good.items() if k != "threshold"}))
    assert "NaN is not a number" in refused(tmp_path, changed(threshold=math.nan))
    assert "Infinity is not a number" in refused(tmp_path, changed(threshold=math.inf))
    assert "1e999" in refused(tmp_path, text.replace(repr(detector.threshold), "1e999"))
    assert "stands twice" in refused(tmp_path, text.replace('"threshold"', '"tpr": 0.1, "threshold"'))
    assert "bytes" in refused(tmp_path, " " * 1_000_001)
    assert "not valid JSON" in refused(tmp_path, "[" * 10_000 + "]" * 10_000)
    assert "parameters" in refused(tmp_path, changed(parameters=[[[[[[[[[[]]]]]]]]]]))
    assert "UTF-8" in refused(tmp_path, b"\xff" + text.encode())
    assert "printable" in refused(tmp_path, changed(brittle="\x1b[31m"))
    assert "threshold" in refused(tmp_path, changed(threshold="1"))
    assert "threshold" in refused(tmp_path, changed(threshold=True))
    assert "seed" in refused(tmp_path, changed(seed=1.0))
    assert "not valid JSON" in refused(tmp_path, text.replace('"seed": 1', '"seed": ' + "9" * 5000))
    assert "3" in refused(tmp_path, changed(format=3))
    assert "a detector reads" in refused(tmp_path, changed(score="moments"))
    assert "norm" in refused(tmp_path, changed(criterion=good["criterion"] | {"norm": "l7"}))
    assert "state_sha256" in refused(tmp_path, changed(model=good["model"] | {"state_sha256": "0"}))
    assert "bounds" in refused(tmp_path, changed(model=good["model"] | {"bounds": [0, 1, 2]}))
    assert "epsilon" in refused(tmp_path, changed(criterion=good["criterion"] | {"epsilon": -1}))
    assert "1000000 of" in refused(tmp_path, changed(counts=good["counts"] | {"flagged_brittle": 10**6}))
    assert "of 0" in refused(tmp_path, changed(counts=good["counts"] | {"brittle": 1}))
    for other in ("", "null", "[]", "1", "{}", '"detector"', "{", text + "x"):
        refused(tmp_path, other)
    with pytest.raises(ModelError, match="cannot be read"):
        Detector.load(tmp_path / "absent.json")


def test_hostile_strings_cost_linear_time(tmp_path: Path) -> None:
    """Half a million escaped quotes, and as many keys of which one stands twice, are refused at once."""
    refused(tmp_path, '"' + '\\"' * 499_000)
    keys = ",".join(f'"{number}":1' for number in range(90_000))
    assert "stands twice" in refused(tmp_path, "{" + keys + ',"0":1}')


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_the_named_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    refused(tmp_path_factory.getbasetemp(), content)


def test_mutated_files_are_refused_or_are_detectors(tmp_path: Path, detector: Detector) -> None:
    text = detector.save(tmp_path / "detector.json").read_bytes()
    rng, pieces = (
        random.Random(0),
        [b"{", b"}", b"[", b"]", b'"', b"null", b"1e999", b"-", b",", b"\\u0000", b"\xf0", b"9" * 400],
    )
    survivors = 0
    for _ in range(400):
        start = rng.randrange(len(text))
        mutant = text[:start] + rng.choice(pieces) + text[start + rng.randrange(4) :]
        (tmp_path / "mutant.json").write_bytes(mutant)
        try:
            survivors += isinstance(Detector.load(tmp_path / "mutant.json"), Detector)
        except DetectorFormatError:
            continue
    assert survivors < 200
