"""How a detector reads a score that an installed package offers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch
from helpers.calibrated import classifier, points, with_margins

import brittle
from brittle.detector import READINGS, Detector, kind_of
from brittle.errors import UnknownNameError
from brittle.scores import LogitMargin

PEAK = """
from dataclasses import dataclass
from brittle.scores.one_pass import OnePassScore

@dataclass(frozen=True)
class Peak(OnePassScore):
    name = "peak"
    title = quantity = reference = "peak"
    explanation = "The margin, with the other sign."
    safer = "lower"
    least, most = -1e100, 0.0

    def value(self, shown):
        first, second = shown.top
        return second - first

@dataclass(frozen=True)
class Unranked(Peak):
    name = "unranked"
    safer = None
"""


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package that offers two scores of one pass."""
    (tmp_path / "peaks.py").write_text(PEAK)
    monkeypatch.syspath_prepend(tmp_path)

    def found(*, group: str) -> list[EntryPoint]:
        values = {"peak": "peaks:Peak", "unranked": "peaks:Unranked"} if group == "brittle.scores" else {}
        return [EntryPoint(name, value, group) for name, value in values.items()]

    monkeypatch.setattr("brittle.model.loading.named_code.entry_points", found)
    yield
    sys.modules.pop("peaks", None)


@pytest.mark.usefixtures("offered")
def test_a_score_of_an_installed_package_decides_as_one_of_brittle_would(tmp_path: Path) -> None:
    assert "peak" not in READINGS
    scores = [import_module("peaks").Peak(), LogitMargin()]
    margins = torch.linspace(0.0, 1.0, 400).tolist()
    table = with_margins(brittle.score(classifier(), points(400), scores), margins)
    found, like = (Detector.fit(table, epsilon=0.5, tpr=0.9, score=score) for score in ("peak", "logit_margin"))
    assert found.threshold == like.threshold
    assert replace(found, score="logit_margin", parameters=like.parameters) == like
    path = found.save(tmp_path / "peak.json")
    again = Detector.load(path)
    fresh = points(50, seed=3)
    flags = again.apply(classifier(), fresh)["brittle"].tolist()
    assert flags == like.apply(classifier(), fresh)["brittle"].tolist()
    assert again.wrap(classifier())(fresh)[2].tolist() == flags


@pytest.mark.usefixtures("offered")
def test_a_score_that_ranks_nothing_and_one_that_is_not_there_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="found 'unranked'"):
        kind_of("unranked")
    with pytest.raises(UnknownNameError, match=r"peak, unranked; found 'paek'; did you mean peak\?"):
        kind_of("paek")
