"""The rule of a detector fails closed, and its flags make a table."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from helpers.calibrated import SIMPLE, classifier, lenient, points
from torch import Tensor, nn

import brittle
from brittle.errors import DataError, ParameterError, StorageError
from brittle.estimate import Status
from brittle.extensions.detector.calibration import judge
from brittle.extensions.detector.detector import Detector
from brittle.extensions.detector.flags import FLAGS, write_flags
from brittle.extensions.detector.results import Judgement
from brittle.scores import LogitMargin
from brittle.store.table import Table


def test_the_verdict_follows_the_auroc() -> None:
    rng = np.random.default_rng(0)
    margins = rng.random(300)

    def judged(scores: np.ndarray, epsilon: float) -> Judgement:
        return judge(margins, scores, margins <= epsilon, margins > epsilon, 0.99)

    good, bad, weak = (judged(scores, 0.3) for scores in (margins, rng.random(300), margins + rng.random(300)))
    assert good.trusted
    assert good.tau == pytest.approx(1.0)
    assert [str(verdict).split(":")[0] for verdict in (good, bad, weak)] == ["trusted", "useless", "weak"]
    assert "pseudo-margin" in str(bad)
    one_class = judged(margins, 2.0)
    assert (one_class.trusted, one_class.auroc) == (False, None)


def test_flag_fails_closed(detector: Detector) -> None:
    edge = detector.threshold
    safe, below = np.nextafter(edge, math.inf), np.nextafter(edge, -math.inf)
    flags = detector.flag([math.nan, None, math.inf, -math.inf, below, edge, safe])  # pyright: ignore[reportArgumentType] right when it runs
    assert flags.tolist() == [True, True, True, True, True, False, False]
    assert detector.flag(torch.tensor([math.nan, 1e9])).tolist() == [True, False]


class Listed(nn.Module):
    """Network from an input `k / 8` to row `k` of a list of logits, scaled by a weight of 1, which has a digest."""

    def __init__(self, rows: list[list[float]]) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.rows = torch.tensor(rows)

    def forward(self, x: Tensor) -> Tensor:
        return self.rows[(8 * x[:, 0]).round().long()] * self.scale


@pytest.mark.parametrize("score", [name for name in SIMPLE if name != "feature_margin"])
def test_broken_logits_and_ties_are_brittle(detector: Detector, score: str) -> None:
    rows = [[1, 1, 0], [math.nan, 1, 0], [math.inf, 1, 0], [0, 1, -math.inf], [math.inf, math.inf, 0], [3, 1, 0]]
    network = Listed(rows)
    logits, _, brittle_points = lenient(detector, score, network).wrap(network)(torch.arange(6.0)[:, None] / 8)
    assert brittle_points.tolist() == [True] * 5 + [False]
    assert logits.shape == (6, 3)


class Scaled(nn.Module):
    """Network that returns its inputs as logits, scaled by a weight of 1."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


def test_a_tie_is_brittle_when_applied(detector: Detector) -> None:
    network = Scaled()
    x = torch.tensor([[1.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 1.5, 0.2], [0.1, 0.0, 1.5]])
    flags = lenient(detector, "max_probability", network).apply(brittle.Classifier(network, bounds=(-2, 2)), x)
    assert flags["brittle"].tolist() == [True, False, False, False]
    assert flags["status"][0] == Status.TIE.slug


def test_an_output_that_is_no_probability_is_brittle(detector: Detector) -> None:
    network = Listed([[0.7, 0.3, 0.0], [1.2, 0.1, 0.1], [-0.1, 0.8, 0.3]])
    wrapped = lenient(detector, "logit_margin", network, "probs").wrap(network)
    assert wrapped(torch.arange(3.0)[:, None] / 8)[2].tolist() == [False, True, True]


def test_apply_flags_what_the_wrapped_network_flags(detector: Detector) -> None:
    """And every point without a score, however many: `brittle.score` stops at more than 1 in 100."""
    x = points(300, seed=4)
    x[100:200, 2] = math.nan
    labels = torch.randint(3, (300,), generator=torch.Generator().manual_seed(0))
    flags = detector.apply(classifier(), (x, labels))
    assert list(flags) == FLAGS.names
    assert flags["status"][107] == Status.NONFINITE_INPUT.slug
    assert flags["score"].isna().tolist() == [100 <= row < 200 for row in range(300)]
    assert flags["brittle"][100:200].all()
    sound = [row for row in range(300) if not 100 <= row < 200]
    _, score, brittle_points = detector.wrap(classifier())(x[sound])
    assert flags["brittle"][sound].tolist() == brittle_points.tolist()
    assert 0 < int(brittle_points.sum()) < 200
    assert flags["label"].tolist() == labels.tolist()
    assert np.allclose(flags["score"][sound], score.detach().numpy(), rtol=0, atol=1e-5)
    with pytest.raises(DataError, match="too_many_failures"):
        brittle.score(classifier(), x, [LogitMargin()])


def test_its_text_names_score_threshold_and_criterion(table: Table, detector: Detector) -> None:
    entropy = Detector.fit(table, epsilon=0.15, score="entropy")
    assert f"brittle when -entropy < {entropy.threshold!r}" in str(entropy)
    assert entropy.flag([-math.log(3), 0.0]).tolist() == [True, False]
    text = str(detector)
    for part in (repr(detector.threshold), "margins up to 0.15 in linf", "held-out", "verdict on the threshold"):
        assert part in text


def test_flags_are_written(tmp_path: Path, detector: Detector) -> None:
    flags = detector.apply(classifier(), points(8))
    names = ["=HYPERLINK(1)", "+1", "-1", "@x", "\tx", "plain", None, 'a,"b"\nc']
    flags["name"] = names
    flags.loc[3, "score"] = None
    written = pq.read_table(write_flags(flags, tmp_path / "flags.parquet"))
    assert written.schema == FLAGS
    assert written["name"].to_pylist() == names
    assert [written[name].null_count for name in ("score", "label", "predicted")] == [1, 8, 0]
    assert written["score"].drop_null().to_pylist() == flags["score"].dropna().tolist()
    with pytest.raises(ParameterError, match=r"\.csv, \.parquet"):
        write_flags(flags, tmp_path / "flags.xlsx")
    with pytest.raises(StorageError, match="folder must exist"):
        write_flags(flags, tmp_path / "absent" / "flags.csv")
