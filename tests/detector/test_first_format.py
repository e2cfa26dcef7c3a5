"""Detectors of the first format are read, and nothing that the format did not have is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.calibrated import refused

from brittle.detector import Detector, MarginCriterion

OLD = Path(__file__).with_name("format_1.json")


def test_a_file_of_the_first_format_is_the_detector_that_it_was(detector: Detector, tmp_path: Path) -> None:
    """The file was written by the version that knew no other format, of the detector that is fitted here again."""
    old, known = Detector.load(OLD), json.loads(OLD.read_text())
    assert old.criterion == MarginCriterion(known["epsilon"], known["norm"], known["margin"])
    assert (old.threshold, old.tpr, old.seed) == (known["threshold"], known["tpr"], known["seed"])
    assert vars(old.counts) | {"without_margin": old.counts.without_number} == (
        vars(old.counts) | known["counts"] | {"undecided": 0, "choice": 0}
    )
    for rate, said in ((old.true_positives, "true_positives"), (old.false_positives, "false_positives")):
        assert vars(rate) == known[said] | {"undecided": 0, "undecided_flagged": 0}
    assert old.model == detector.model
    assert old.threshold == pytest.approx(detector.threshold, abs=1e-5)  # the order of the points is the same
    assert Detector.load(old.save(tmp_path / "new.json")) == old


@pytest.mark.parametrize(
    "changes",
    [
        {"criterion": {"limit": 0.9, "column": "monte_carlo", "noise": {"sigma": 0.1}}},
        {"format": True},
        {"format": 1.0},
        {"epsilon": None},
        {"counts": {"undecided": 0}},
        {"counts": {"without_number": 0}},
        {"true_positives": {"undecided": 0}},
        {"counts": None},
        {"more": 1},
    ],
)
def test_what_the_first_format_did_not_have_is_refused(changes: dict[str, object], tmp_path: Path) -> None:
    content = json.loads(OLD.read_text())
    for name, value in changes.items():
        content[name] = content[name] | value if isinstance(value, dict) and name in content else value
    refused(tmp_path, json.dumps(content))


@pytest.mark.parametrize("missing", sorted(json.loads(OLD.read_text())))
def test_every_key_of_the_first_format_is_needed(missing: str, tmp_path: Path) -> None:
    content = json.loads(OLD.read_text())
    del content[missing]
    refused(tmp_path, json.dumps(content))
