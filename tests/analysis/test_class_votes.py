"""Which classes noisy copies become: against bands of known probability, and against each copy alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from helpers.damaged import parquet_bytes, signed
from scipy import stats
from torch import Tensor

import brittle
from brittle.analysis import class_votes, confusions
from brittle.analysis.point_card import format_point_card
from brittle.errors import DataError, ParameterError, StorageError
from brittle.noise import Gaussian, Transform
from brittle.scores import Moments, MonteCarlo, Score, Shrinkage, Taylor

SIGMA, POINTS = 0.5, 300
EDGES = torch.tensor([-0.6, 0.0, 0.4])


def bands(x: Tensor) -> Tensor:
    """Four classes side by side on a line: the largest logit is that of the band in which the number lies."""
    place = torch.bucketize(x[:, 0].contiguous(), EDGES)
    return -(place[:, None] - torch.arange(4)).abs().to(x)


def probabilities(x: Tensor) -> np.ndarray:
    """Of each band under normal noise, `[N, 4]`."""
    ends = stats.norm.cdf((EDGES.numpy()[None] - x.numpy()) / SIGMA)
    return np.diff(np.concatenate([np.zeros((len(x), 1)), ends, np.ones((len(x), 1))], axis=1), axis=1)


def drawn(seed: int = 0) -> Tensor:
    return torch.rand(POINTS, 1, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def skewed(x: Tensor, generator: torch.Generator) -> Tensor:
    return x + SIGMA * torch.randn(x.shape, generator=generator, dtype=x.dtype)


SCORES: dict[str, Score] = {
    "pairs": MonteCarlo(SIGMA, draws=400, limit=None),
    "single copies": MonteCarlo(noise=Transform(skewed), draws=60, limit=None),
    "as many at every point": Moments(SIGMA, draws=100),
    "until decided": MonteCarlo(SIGMA, draws=400, limit=0.6),
    "until decided, with mirror images": Shrinkage(SIGMA, draws=400, limit=0.6),
}


@pytest.mark.parametrize("kind", SCORES)
def test_intervals_hold_the_probability_of_a_band(kind: str) -> None:
    """Of 1,200 intervals at 99%, of which those of a point depend on each other: more than 36 miss in 1e-6 of cases."""
    x = drawn()
    table = brittle.score(brittle.Classifier(bands, bounds=None), x, [SCORES[kind]], seed=1)
    missed, shares = 0, np.zeros((POINTS, 4))
    for band in range(4):
        found: Any = class_votes(table, of=band)
        true = probabilities(x)[:, band]
        missed += int(((found["low"] > true) | (found["high"] < true)).sum())
        shares[:, band] = found["share"]
        assert found["point"].tolist() == table.points["point"].to_pylist()
    assert missed <= 36
    assert np.abs(shares.sum(axis=1) - 1).max() < 1e-12
    assert np.abs((shares - probabilities(x)).mean(axis=0)).max() < 0.02 or kind.startswith("until")


def test_they_are_the_votes_of_the_copies() -> None:
    """The share of the predicted class is what counting says; those of all classes are what other copies show."""
    network, x = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 5)), torch.randn(20, 3)
    table = brittle.score(brittle.Classifier(network, bounds=None), x, [MonteCarlo(2.0, draws=300, limit=None)])
    votes: Any = class_votes(table)
    predicted = dict(zip(table.points["point"].to_pylist(), table.points["predicted"].to_pylist(), strict=True))
    own = votes[votes["class"] == votes["point"].map(predicted)].set_index("point")
    kept = table["monte_carlo"].p_robust
    assert np.allclose(own["share"].reindex(kept.index).fillna(0.0), kept, atol=1e-12)
    assert (votes.groupby("point")["copies"].sum() == 300).all()
    again = torch.randn(100_000, 3, generator=torch.Generator().manual_seed(9)) * 2.0 + x[4]
    with torch.no_grad():
        truth = torch.bincount(network(again).argmax(1), minlength=5).numpy() / 1e5
    asked = votes[votes["point"] == "4"].set_index("class")
    assert ((asked["low"] < truth[asked.index] + 0.01) & (asked["high"] > truth[asked.index] - 0.01)).all()


def test_a_tie_of_others_is_a_vote_for_none() -> None:
    def network(x: Tensor) -> Tensor:
        far = x[:, 0] > 0.5
        return 5.0 * torch.stack([(~far).float(), far.float(), far.float()], 1)

    table = brittle.score(
        brittle.Classifier(network, bounds=None), torch.zeros(1, 1), [MonteCarlo(0.5, draws=1000, limit=None)]
    )
    out = stats.norm.cdf(-1)
    for band, low, high in ((0, 1 - out, 1.0), (1, 0.0, out), (2, 0.0, out)):
        (row,) = class_votes(table, of=band).to_dict("records")
        assert row["low"] <= low
        assert row["high"] >= high - 1e-12
        assert row["copies"] == 0 or band == 0


def test_the_label_is_asked_for_where_there_is_one() -> None:
    x = torch.tensor([[-1.0], [0.1], [0.39], [0.9]])
    y = torch.tensor([0, 3, 3, 3])
    classifier: Any = brittle.Classifier(bands, bounds=None)
    classifier.class_names = ["a", "b", "c", "d"]
    table = brittle.score(classifier, (x, y), [MonteCarlo(SIGMA, draws=400, limit=None)])
    found: Any = class_votes(table, of="label")
    assert found["class"].tolist() == [0, 3, 3, 3]
    named: Any
    named, numbered = class_votes(table, of="d"), class_votes(table, of=3)
    assert named.equals(numbered)
    assert named.iloc[1:].reset_index(drop=True).equals(found.iloc[1:].reset_index(drop=True))
    frame: Any = table.frame().set_index("point")
    assert frame.loc[["1", "2"], "turns_into"].tolist() == ["b", "d"]
    own = found.set_index("point")["copies"]["2"]
    assert f"d ({own}, its label)" in format_point_card(table, "2")
    bare = brittle.score(classifier, x, [MonteCarlo(SIGMA, draws=400, limit=None)])
    assert class_votes(bare, of="label").empty
    votes: Any = class_votes(bare)
    assert votes.groupby("point")["share"].sum().tolist() == pytest.approx([1.0] * 4)


def test_what_noise_turns_a_class_into_is_the_mean_over_the_points_that_are_predicted_so() -> None:
    """Labels change nothing: a wrong prediction that holds is no work of the noise."""
    x = drawn()
    table = brittle.score(
        brittle.Classifier(bands, bounds=None), (x, torch.arange(POINTS) % 2), [MonteCarlo(SIGMA, limit=None)]
    )
    found: Any = confusions(table)
    true, predicted = probabilities(x), table.points["predicted"].to_numpy()
    assert found["share"].is_monotonic_decreasing
    assert sorted(set(found["class"])) == sorted(set(predicted))
    for row in found.to_dict("records"):
        own = predicted == row["class"]
        assert row["points"] == own.sum()
        assert row["class"] != row["becomes"]
        assert row["share"] == pytest.approx(true[own, row["becomes"]].mean(), abs=0.01)
    votes: Any = class_votes(table, of=1)
    assert found.set_index(["class", "becomes"])["share"][0, 1] == pytest.approx(
        votes["share"].to_numpy()[predicted == 0].mean()
    )


@pytest.mark.parametrize("of", ["nobody", 4, -1, True, 1.5])
def test_what_is_no_class_is_refused(of: Any) -> None:
    table = brittle.score(
        brittle.Classifier(bands, bounds=None), drawn()[:4], [MonteCarlo(SIGMA, draws=20, limit=None)]
    )
    with pytest.raises(ParameterError):
        class_votes(table, of=of)


def test_what_counts_no_classes_is_refused() -> None:
    x, network = torch.rand(6, 3), torch.nn.Linear(3, 3)
    labels = brittle.score(
        brittle.Classifier(network, decision="multilabel"), x, [MonteCarlo(0.1, draws=20, limit=None)]
    )
    tangent = brittle.score(brittle.Classifier(network), x, [Taylor(0.1)])
    for table in (labels, tangent):
        with pytest.raises(DataError) as error:
            class_votes(table)
        assert error.value.code == "no_such_score"
        assert "turns_into" not in table.frame().columns


def test_a_run_keeps_them_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    table = brittle.score(
        brittle.Classifier(bands, bounds=None), drawn()[:8], [MonteCarlo(Gaussian(SIGMA).sigma, limit=None)]
    )
    table.save(run)
    assert class_votes(brittle.read_table(run)).equals(class_votes(table))
    whole = pq.read_table(run / "scores-00000.parquet")
    good = np.frombuffer(whole["votes"][0].as_py(), "<i4")
    bad = [good[:-1], good[:1], [*good[:2], -1, 1, 1], [1, 2, 0, 0, 2], [500, 3], [500, 2, 1, 9, 9, 1, 9, 9]]
    for numbers in (np.array(one, "<i4").tobytes() for one in bad):
        cells = [numbers, *whole["votes"].to_pylist()[1:]]
        place = whole.schema.get_field_index("votes")
        changed = whole.set_column(place, whole.schema.field("votes"), pa.array(cells, pa.binary()))
        signed(run, "scores-00000.parquet", parquet_bytes(changed))
        with pytest.raises(StorageError) as error:
            brittle.read_table(run)
        assert error.value.code == "shard_damaged"


def test_a_point_whose_copies_all_tie_counts_among_those_of_its_class() -> None:
    """Without labels a class is that of the prediction; the second point's two logits are always the same."""

    def network(x: Tensor) -> Tensor:
        return torch.stack([x[:, 0] * x[:, 1], torch.zeros(len(x))], 1)

    x = torch.tensor([[0.05, 1.0], [0.05, 0.0]])
    noise = MonteCarlo(noise=Transform(first_alone), draws=60, limit=None)
    table = brittle.score(brittle.Classifier(network, bounds=None), x, [noise], skip_doctor=True)
    (found,) = confusions(table).to_dict("records")
    (votes,) = class_votes(table, of=1).query("point == '0'").to_dict("records")
    assert (found["class"], found["becomes"], found["points"]) == (0, 1, 2)
    assert found["share"] == pytest.approx(votes["share"] / 2)


def test_a_card_tells_of_copies_that_all_turn_and_of_none_that_are_all_kept() -> None:
    """Any change of the second point turns it; nothing turns the first, which lies far inside its class."""

    def network(x: Tensor) -> Tensor:
        return torch.stack([torch.where(x[:, 0] == 0.0, 1.0, -1.0) + (x[:, 0] < -5).float() * 9, 0.0 * x[:, 0]], 1)

    x = torch.tensor([[-9.0], [0.0]])
    table = brittle.score(
        brittle.Classifier(network, bounds=None), x, [MonteCarlo(0.1, draws=40, limit=None)], skip_doctor=True
    )
    assert table["monte_carlo"].p_robust.tolist() == [1.0, 0.0]
    assert "class 1 (40)" in format_point_card(table, "1")
    assert "class 0 (40)" not in format_point_card(table, "0")


def first_alone(x: Tensor, generator: torch.Generator) -> Tensor:
    noise = 0.1 * torch.randn(x.shape, generator=generator, dtype=x.dtype)
    return x + noise * torch.tensor([1.0, 0.0], dtype=x.dtype)
