"""Classes that noisy copies become: against bands of known probability, and against each copy alone."""

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
from brittle.analysis import class_votes
from brittle.analysis.class_votes import confusions
from brittle.analysis.point_card import format_point_card
from brittle.errors import DataError, ParameterError, StorageError
from brittle.noise import Gaussian, Transform
from brittle.scores import Moments, MonteCarlo, Score, Shrinkage, Taylor

SIGMA, POINTS = 0.5, 300
EDGES = torch.tensor([-0.6, 0.0, 0.4])


def bands(x: Tensor) -> Tensor:
    """Score four classes side by side on a line: the largest logit is that of the number's band."""
    place = torch.bucketize(x[:, 0].contiguous(), EDGES)
    return -(place[:, None] - torch.arange(4)).abs().to(x)


def probabilities(x: Tensor) -> np.ndarray:
    """Probability of each band under normal noise, `[N, 4]`."""
    ends = stats.norm.cdf((EDGES.numpy()[None] - x.numpy()) / SIGMA)
    return np.diff(np.concatenate([np.zeros((len(x), 1)), ends, np.ones((len(x), 1))], axis=1), axis=1)


def draw_points(seed: int = 0) -> Tensor:
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
    """Score 1,200 intervals at 99%, dependent within a point: more than 36 miss in 1e-6 of cases."""
    x = draw_points()
    table = brittle.score(brittle.Classifier(bands, bounds=None), x, [SCORES[kind]], seed=1)
    missed, shares = 0, np.zeros((POINTS, 4))
    for band in range(4):
        votes: Any = class_votes(table, of=band)
        true = probabilities(x)[:, band]
        missed += int(((votes["low"] > true) | (votes["high"] < true)).sum())
        shares[:, band] = votes["share"]
        assert votes["point"].tolist() == table.points["point"].to_pylist()
    assert missed <= 36
    assert np.abs(shares.sum(axis=1) - 1).max() < 1e-12
    assert np.abs((shares - probabilities(x)).mean(axis=0)).max() < 0.02 or kind.startswith("until")


def test_shares_are_the_votes_of_the_copies() -> None:
    """The share of the predicted class is the counted probability; shares of all classes agree with other copies."""
    network, x = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 5)), torch.randn(20, 3)
    table = brittle.score(brittle.Classifier(network, bounds=None), x, [MonteCarlo(2.0, draws=300, limit=None)])
    votes: Any = class_votes(table)
    predicted = dict(zip(table.points["point"].to_pylist(), table.points["predicted"].to_pylist(), strict=True))
    own_votes = votes[votes["class"] == votes["point"].map(predicted)].set_index("point")
    p_robust = table["monte_carlo"].p_robust
    assert np.allclose(own_votes["share"].reindex(p_robust.index).fillna(0.0), p_robust, atol=1e-12)
    assert (votes.groupby("point")["copies"].sum() == 300).all()
    copies = torch.randn(100_000, 3, generator=torch.Generator().manual_seed(9)) * 2.0 + x[4]
    with torch.no_grad():
        truth = torch.bincount(network(copies).argmax(1), minlength=5).numpy() / 1e5
    point_votes = votes[votes["point"] == "4"].set_index("class")
    assert (point_votes["low"] < truth[point_votes.index] + 0.01).all()
    assert (point_votes["high"] > truth[point_votes.index] - 0.01).all()


def test_a_tie_of_other_classes_is_no_vote() -> None:
    def network(x: Tensor) -> Tensor:
        far = x[:, 0] > 0.5
        return 5.0 * torch.stack([(~far).float(), far.float(), far.float()], 1)

    table = brittle.score(
        brittle.Classifier(network, bounds=None), torch.zeros(1, 1), [MonteCarlo(0.5, draws=1000, limit=None)]
    )
    tail = stats.norm.cdf(-1)
    for band, low, high in ((0, 1 - tail, 1.0), (1, 0.0, tail), (2, 0.0, tail)):
        (row,) = class_votes(table, of=band).to_dict("records")
        assert row["low"] <= low
        assert row["high"] >= high - 1e-12
        assert row["copies"] == 0 or band == 0


def test_votes_for_the_label_are_of_labelled_points() -> None:
    x = torch.tensor([[-1.0], [0.1], [0.39], [0.9]])
    y = torch.tensor([0, 3, 3, 3])
    classifier: Any = brittle.Classifier(bands, bounds=None)
    classifier.class_names = ["a", "b", "c", "d"]
    table = brittle.score(classifier, (x, y), [MonteCarlo(SIGMA, draws=400, limit=None)])
    label_votes: Any = class_votes(table, of="label")
    assert label_votes["class"].tolist() == [0, 3, 3, 3]
    votes_by_name: Any
    votes_by_name, votes_by_number = class_votes(table, of="d"), class_votes(table, of=3)
    assert votes_by_name.equals(votes_by_number)
    assert votes_by_name.iloc[1:].reset_index(drop=True).equals(label_votes.iloc[1:].reset_index(drop=True))
    frame: Any = table.frame().set_index("point")
    assert frame.loc[["1", "2"], "turns_into"].tolist() == ["b", "d"]
    copies = label_votes.set_index("point")["copies"]["2"]
    assert f"d ({copies}, its label)" in format_point_card(table, "2")
    unlabelled = brittle.score(classifier, x, [MonteCarlo(SIGMA, draws=400, limit=None)])
    assert class_votes(unlabelled, of="label").empty
    votes: Any = class_votes(unlabelled)
    assert votes.groupby("point")["share"].sum().tolist() == pytest.approx([1.0] * 4)


def test_confusions_are_means_over_the_points_of_a_prediction() -> None:
    """Labels change nothing: a wrong prediction that holds is not due to the noise."""
    x = draw_points()
    table = brittle.score(
        brittle.Classifier(bands, bounds=None), (x, torch.arange(POINTS) % 2), [MonteCarlo(SIGMA, limit=None)]
    )
    frame: Any = confusions(table)
    true, predicted = probabilities(x), table.points["predicted"].to_numpy()
    assert frame["share"].is_monotonic_decreasing
    assert sorted(set(frame["class"])) == sorted(set(predicted))
    for row in frame.to_dict("records"):
        members = predicted == row["class"]
        assert row["points"] == members.sum()
        assert row["class"] != row["becomes"]
        assert row["share"] == pytest.approx(true[members, row["becomes"]].mean(), abs=0.01)
    votes: Any = class_votes(table, of=1)
    assert frame.set_index(["class", "becomes"])["share"][0, 1] == pytest.approx(
        votes["share"].to_numpy()[predicted == 0].mean()
    )


@pytest.mark.parametrize("of", ["nobody", 4, -1, True, 1.5])
def test_an_invalid_class_is_refused(of: Any) -> None:
    table = brittle.score(
        brittle.Classifier(bands, bounds=None), draw_points()[:4], [MonteCarlo(SIGMA, draws=20, limit=None)]
    )
    with pytest.raises(ParameterError):
        class_votes(table, of=of)


def test_scores_without_class_votes_are_refused() -> None:
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


def test_votes_are_stored_and_damaged_votes_are_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    table = brittle.score(
        brittle.Classifier(bands, bounds=None), draw_points()[:8], [MonteCarlo(Gaussian(SIGMA).sigma, limit=None)]
    )
    table.save(run)
    assert class_votes(brittle.read_table(run)).equals(class_votes(table))
    scores = pq.read_table(run / "scores-00000.parquet")
    good = np.frombuffer(scores["votes"][0].as_py(), "<i4")
    bad = [good[:-1], good[:1], [*good[:2], -1, 1, 1], [1, 2, 0, 0, 2], [500, 3], [500, 2, 1, 9, 9, 1, 9, 9]]
    for numbers in (np.array(votes, "<i4").tobytes() for votes in bad):
        cells = [numbers, *scores["votes"].to_pylist()[1:]]
        place = scores.schema.get_field_index("votes")
        damaged = scores.set_column(place, scores.schema.field("votes"), pa.array(cells, pa.binary()))
        signed(run, "scores-00000.parquet", parquet_bytes(damaged))
        with pytest.raises(StorageError) as error:
            brittle.read_table(run)
        assert error.value.code == "shard_damaged"


def test_a_point_whose_copies_all_tie_counts_in_its_class() -> None:
    """The class of an unlabelled point is its prediction; the second point's two logits are always the same."""

    def network(x: Tensor) -> Tensor:
        return torch.stack([x[:, 0] * x[:, 1], torch.zeros(len(x))], 1)

    x = torch.tensor([[0.05, 1.0], [0.05, 0.0]])
    noise = MonteCarlo(noise=Transform(noise_on_first), draws=60, limit=None)
    table = brittle.score(brittle.Classifier(network, bounds=None), x, [noise], skip_doctor=True)
    (confusion,) = confusions(table).to_dict("records")
    (votes,) = class_votes(table, of=1).query("point == '0'").to_dict("records")
    assert (confusion["class"], confusion["becomes"], confusion["points"]) == (0, 1, 2)
    assert confusion["share"] == pytest.approx(votes["share"] / 2)


def test_a_card_counts_the_copies_that_turn() -> None:
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


def noise_on_first(x: Tensor, generator: torch.Generator) -> Tensor:
    noise = 0.1 * torch.randn(x.shape, generator=generator, dtype=x.dtype)
    return x + noise * torch.tensor([1.0, 0.0], dtype=x.dtype)
