"""Scores on a graphics card: no tensor is left behind, and the numbers are those of a processor.

Without a card the tests use a stand-in (`helpers.cards`), on which no tensor of the processor may meet a tensor of the
card; tests that wait for a card are skipped then.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.cards import card
from torch import nn

import brittle
from brittle.scores import FeatureDistance, InputMargin, NoiseScore, RareEvent, Score
from brittle.scores.catalogue import CATALOGUE
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("short_search")

COUNT, CLASSES = 16, 3
EXACT, SAMPLED = 1e-4, 0.1
"""Allowed differences: of exact scores, relative or absolute; and between the means over points of sampled scores, as a
card draws other noise: about seven standard errors of 16 points with 60 copies each."""

WAITS = pytest.mark.skipif(not torch.cuda.is_available(), reason="waits for a graphics card")

FEWER: dict[str, Any] = {"monte_carlo": {"draws": 100}, "probability_change": {"draws": 100}}
"""Fewer draws than the default of a thousand."""

SCORES: list[Score] = [
    kind(sigma=0.1, **FEWER.get(name, {})) if issubclass(kind, NoiseScore) else kind()
    for name, kind in CATALOGUE.items()
    if name not in ("input_margin", "feature_distance", "rare_event")
]
SCORES += [InputMargin(effort="fast"), InputMargin("linf", effort="fast")]
LONG: list[Score] = [RareEvent(0.1), FeatureDistance(), InputMargin(), InputMargin(effort="fast", certify=True)]

DRAWN = ("laplacian", "rare_event")
"""Scores with separate draws."""


@pytest.fixture(params=["stand-in", pytest.param("cuda", marks=WAITS)])
def device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    if request.param == "cuda":
        yield torch.device("cuda")
        return
    with card() as stand_in:
        yield stand_in


def network() -> nn.Module:
    torch.manual_seed(0)
    layers = nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(4 * 4 * 4, 8), nn.ReLU(), nn.Linear(8, CLASSES)
    return nn.Sequential(*layers).eval()


def run(score: Score, device: torch.device | str, **how: Any) -> Table:
    x = torch.rand(COUNT, 1, 6, 6, generator=torch.Generator().manual_seed(1))
    classifier = brittle.Classifier(network(), bounds=(0, 1), device=device)
    how = {"skip_doctor": True, "batch_size": 1024} | how
    return brittle.score(classifier, (x, torch.arange(COUNT) % CLASSES), [score], **how)


@pytest.mark.every_other
@pytest.mark.parametrize(
    "score",
    [pytest.param(score, id=score.label) for score in SCORES]
    + [pytest.param(score, id=score.label, marks=pytest.mark.slow) for score in LONG],
)
def test_a_card_gives_the_numbers_of_a_processor(score: Score, device: torch.device) -> None:
    on_card = run(score, device).scores.to_pandas()
    on_processor = run(score, "cpu").scores.to_pandas()
    if score.name in DRAWN or any(getattr(need, "draws", None) for need in score.needs):
        assert float((on_card["value"] - on_processor["value"]).mean()) == pytest.approx(0, abs=SAMPLED)
        return
    assert (on_card["status"] == on_processor["status"]).all()
    for column in ("value", "low", "high"):
        expected = torch.tensor(on_processor[column])
        torch.testing.assert_close(torch.tensor(on_card[column]), expected, rtol=EXACT, atol=EXACT, equal_nan=True)


def test_a_run_on_a_card_resumes(device: torch.device, tmp_path: Path) -> None:
    """With the same scores, after the checks of the doctor."""
    complete = run(SCORES[0], device, out=tmp_path / "run", skip_doctor=False)
    (tmp_path / "run" / "scores-00000.parquet").unlink()
    assert run(SCORES[0], device, out=tmp_path / "run", resume=True, skip_doctor=False).scores.equals(complete.scores)


def test_the_stand_in_finds_a_tensor_left_behind() -> None:
    class Left(nn.Module):
        """A network with a tensor that does not move to the card."""

        def __init__(self) -> None:
            super().__init__()
            self.layer, self.scale = nn.Linear(4, 3), torch.ones(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x) * self.scale

    with card() as device, pytest.raises(brittle.errors.ModelError) as caught:
        brittle.score(brittle.Classifier(Left(), device=device), (torch.rand(5, 4), None), "logit_margin")
    assert "on the card" in str(caught.value)


@WAITS
def test_memory_of_a_card_that_runs_out_changes_no_number() -> None:
    """With memory for hardly more than ten rows in a pass."""
    complete = run(SCORES[0], "cuda", batch_size=64, skip_doctor=False)
    allocated = torch.cuda.memory_allocated()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((allocated + 2**22) / total)
    try:
        limited = run(SCORES[0], "cuda", batch_size=64, skip_doctor=False)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert "out_of_memory" in {warning.code for warning in limited.record.warnings}
    assert limited.scores["value"].to_pylist() == pytest.approx(complete.scores["value"].to_pylist(), abs=1e-3)
