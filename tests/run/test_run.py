"""A run: rows that cannot be evaluated get no number and disturb nobody; the same bytes on every rerun."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers.inputs import SIGMA
from helpers.laws import estimate
from helpers.problems import Wrapped, inputs, nan_under_noise, small_classifier, small_network

import brittle
from brittle.errors import DataError, ParameterError
from brittle.estimate import Status
from brittle.model.loading.weights import state_digest
from brittle.run import make_job
from brittle.scores import MMSE, LogitMargin, Moments, MonteCarlo, Score, Softmax, Taylor
from brittle.store.table import parameters_json

COUNT = 20
SCORES = [Softmax(), LogitMargin(), Taylor(SIGMA), MMSE(SIGMA, draws=4), Moments(SIGMA, draws=8)]


def labels(count: int = COUNT) -> torch.Tensor:
    return torch.arange(count) % 4


def run(x: torch.Tensor, y: torch.Tensor | None, classifier: brittle.Classifier | None = None, **options):
    return brittle.score(classifier or small_classifier(), (x, y), options.pop("scores", SCORES), **options)


def without(table: brittle.Table, point: str) -> list[dict]:
    return [row for row in table.scores.to_pylist() if row["point"] != point]


def broken_at(position: int, value: float) -> torch.Tensor:
    x = inputs(COUNT)
    x[position, 0, 2, 3] = value
    return x


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (float("nan"), "row 17: 1 NaN of 36"),
        (float("inf"), "row 17: 1 infinite of 36"),
        (float("-inf"), "row 17: 1 infinite of 36"),
    ],
)
def test_a_nonfinite_pixel_costs_its_row_alone(value: float, seen: str) -> None:
    table = run(broken_at(17, value), labels())
    bad = [row for row in table.scores.to_pylist() if row["point"] == "17"]
    assert len(bad) == len(SCORES)
    assert {(row["status"], row["value"], row["passes"], row["detail"]) for row in bad} == {
        ("nonfinite_input", None, 0, seen)
    }
    assert table.provenance["failed_points"] == 1
    left_out = torch.arange(COUNT) != 17
    clean = brittle.score(
        small_classifier(),
        brittle.data.array_points(inputs(COUNT)[left_out], ids=np.flatnonzero(left_out).astype(str)),
        SCORES,
    )
    for row, expected in zip(without(table, "17"), clean.scores.to_pylist(), strict=True):
        assert row["point"] == expected["point"]
        assert row["value"] == pytest.approx(expected["value"], abs=1e-5)


def test_the_other_rows_keep_their_bytes() -> None:
    sound, broken = run(inputs(COUNT), labels()), run(broken_at(3, float("nan")), labels())
    assert without(sound, "3") == without(broken, "3")


@pytest.mark.parametrize("label", [-1, 4])
def test_a_label_out_of_range_costs_its_row(label: int) -> None:
    y = labels()
    y[5] = label
    table = run(inputs(COUNT), y)
    bad = [row for row in table.scores.to_pylist() if row["value"] is None]
    assert {(row["point"], row["status"], row["detail"]) for row in bad} == {
        ("5", "label_range", f"row 5: label {label}, the model has 0..3")
    }


def nan_at_dark_corners(x: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    return torch.where((x[:, 0, 0, 0] < 0.1)[:, None], torch.nan, logits)


def test_nan_logits_at_one_clean_point() -> None:
    x = inputs(COUNT).clamp_min(0.2)
    x[7, 0, 0, 0] = 0.05
    table = run(x, labels(), brittle.Classifier(Wrapped(nan_at_dark_corners)), scores=[Softmax(), LogitMargin()])
    bad = [row for row in table.scores.to_pylist() if row["value"] is None]
    assert {(row["point"], row["status"], row["detail"]) for row in bad} == {
        ("7", "nonfinite_logits", "row 7: 4 of 4 logits are NaN or infinite")
    }
    assert table.points.column("predicted").to_pylist()[7] is None


def test_nan_logits_under_noise_never_count_as_agreement() -> None:
    scores = [MonteCarlo(SIGMA, draws=50), Moments(SIGMA, draws=50), MMSE(SIGMA, draws=50), Softmax()]
    table = run(inputs(5), labels(5), brittle.Classifier(Wrapped(nan_under_noise)), scores=scores)
    for row in table.scores.to_pylist():
        if row["score"] == "softmax":
            assert row["value"] is not None
        else:
            assert row["value"] is None
            assert row["status"] == "nonfinite_logits"
            assert row["detail"].endswith("of 50 noisy copies gave NaN or infinite logits")


def test_nan_gradient_is_said() -> None:
    """The square root of 0 has no derivative, and 0 times it is NaN."""
    root = brittle.Classifier(Wrapped(lambda x, z: z + 0.0 * x.flatten(1)[:, :1].sqrt()))
    x = inputs(6)
    x[2, 0, 0, 0] = 0.0
    table = run(x, labels(6), root, scores=[Taylor(SIGMA), LogitMargin()])
    for row in table.scores.to_pylist():
        failed = (row["point"], row["score"]) == ("2", "taylor")
        assert row["status"] == ("nonfinite_gradient" if failed else "ok")
        assert row["detail"] == ("16 of 16 entries of the Gram matrix are NaN or infinite" if failed else None)
        assert (row["value"] is None) == failed


def test_margins_that_noise_does_not_change() -> None:
    """Logits that add up in another order under noise, and are the same but for rounding."""

    def constant(x: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        tenths = torch.full((len(x), 7), 0.1, dtype=torch.float64)
        shuffled = torch.where(x.flatten(1)[:, :1] > 0.5, tenths.cumsum(1)[:, -1:], 7 * tenths[:, :1])
        return shuffled * torch.tensor([3.1, 1.7, -0.4, 2.2], dtype=torch.float64)

    for score, status in ((Moments(SIGMA, draws=40), "no_variation"), (MonteCarlo(SIGMA, draws=8), "ok")):
        found = estimate(brittle.Classifier(Wrapped(constant)), inputs(6), score)
        assert {Status(code).slug for code in found.status.tolist()} == {status}


def test_linearisations_with_different_competitors_beside_each_other() -> None:
    scores = [Taylor(SIGMA), Taylor(SIGMA, classes=2), MMSE(SIGMA, draws=4)]
    together = run(inputs(4), labels(4), scores=scores)
    for score in scores:
        alone = run(inputs(4), labels(4), scores=[score])
        expected = [row["value"] for row in together.scores.to_pylist() if row["parameters"] == parameters_of(score)
                    and row["score"] == score.name]  # fmt: skip
        assert [row["value"] for row in alone.scores.to_pylist()] == pytest.approx(expected, abs=1e-6)


def parameters_of(score: Score) -> str:
    return parameters_json(score.parameters)


def test_zero_gradient_is_said_and_monte_carlo_still_counts() -> None:
    step = brittle.Classifier(Wrapped(lambda x, z: (z * 3).round() + 0.0 * z.detach() + 0.0 * x.flatten(1)[:, :4]))
    scores = [Taylor(SIGMA), MonteCarlo(SIGMA, draws=20)]
    table = run(inputs(6), labels(6), step, scores=scores, skip_doctor=True)
    for row in table.scores.to_pylist():
        expected = {"taylor": {"zero_gradient", "tie"}, "monte_carlo": {"ok", "noisy_ties", "tie"}}[row["score"]]
        assert row["status"] in expected
        assert (row["value"] is None) == (row["status"] == "zero_gradient")
    ties = [row for row in table.scores.to_pylist() if row["status"] == "noisy_ties"]
    assert ties
    assert all("of 20 noisy copies tie" in row["detail"] for row in ties)


@pytest.mark.parametrize("size", [None, 4096])
def test_too_many_failures_stop_the_run(size: int | None) -> None:
    x = inputs(1200)
    x[900:, 0, 0, 0] = float("nan")
    with pytest.raises(DataError, match=r"got no number \(at most 10 of 1000 may\); one of them: point") as caught:
        run(x, labels(1200), scores=[Softmax()], batch_size=size)
    assert caught.value.code == "too_many_failures"


@pytest.mark.parametrize("size", [1, 7, 32, 256])
def test_a_score_does_not_depend_on_the_batch(size: int) -> None:
    one, other = run(inputs(COUNT), labels()), run(inputs(COUNT), labels(), batch_size=size)
    for row, expected in zip(one.scores.to_pylist(), other.scores.to_pylist(), strict=True):
        assert (row["point"], row["score"]) == (expected["point"], expected["score"])
        assert row["value"] == pytest.approx(expected["value"], abs=1e-5)


def test_the_order_of_points_does_not_matter() -> None:
    ids = [f"point {number}" for number in range(COUNT)]
    forward = brittle.score(small_classifier(), brittle.data.array_points(inputs(COUNT), ids=ids), SCORES)
    backward = brittle.score(
        small_classifier(), brittle.data.array_points(inputs(COUNT).flip(0), ids=ids[::-1]), SCORES
    )
    values = [{(r["point"], r["score"]): r["value"] for r in table.scores.to_pylist()} for table in (forward, backward)]
    assert values[0] == pytest.approx(values[1], abs=1e-5)


def test_same_bytes_on_a_rerun(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run(inputs(COUNT), labels(), out=tmp_path / name)
    for shard in ("points-00000.parquet", "scores-00000.parquet"):
        assert (tmp_path / "one" / shard).read_bytes() == (tmp_path / "two" / shard).read_bytes()


def test_shards_do_not_depend_on_the_batch_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brittle.run.job.SHARD", 8)
    lengths = []
    for size in (2, 7, 100):
        table = run(inputs(COUNT), labels(), out=tmp_path / str(size), scores=[Softmax()], batch_size=size)
        assert table.points.column("point").to_pylist() == [str(number) for number in range(COUNT)]
        lengths.append(sorted(path.name for path in (tmp_path / str(size)).glob("*.parquet")))
    assert lengths[0] == lengths[1] == lengths[2]
    assert len(lengths[0]) == 2 * 3


def test_long_runs_have_larger_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brittle.run.job.SHARD", 4)
    monkeypatch.setattr("brittle.run.job.MOST_SHARDS", 3)
    for count, points, shards in ((1, 4, 1), (12, 4, 3), (13, 8, 2), (24, 8, 3), (25, 12, 3)):
        job = make_job(small_classifier(), inputs(count), [Softmax()], 0, None, 0.99)
        assert (job.shard_points, job.shards) == (points, shards)
        rows = [row for number in range(shards) for batch in job.batches(number) for row in batch.rows]
        assert rows == list(range(count))


def test_another_seed_is_another_draw() -> None:
    scores = [MonteCarlo(SIGMA, draws=20)]
    one, other = (run(inputs(COUNT), labels(), scores=scores, seed=seed) for seed in (0, 1))
    assert one.scores.column("value") != other.scores.column("value")


def test_the_record_tells_everything() -> None:
    classifier = small_classifier()
    seen = []
    table = run(inputs(COUNT), labels(), classifier, progress=lambda *counts: seen.append(counts), command=["a", "b"])
    record = table.provenance
    assert record["model"]["classes"] == 4
    assert record["model"]["state_sha256"] == state_digest(small_network())
    assert record["data"]["points"] == COUNT
    assert record["data"]["input_shape"] == [1, 6, 6]
    assert record["command"] == ["a", "b"]
    assert record["passes"] == sum(table.points.column("passes").to_pylist())
    assert seen[-1] == (COUNT, COUNT, record["passes"])
    assert record["finished"] is not None
    assert {"torch", "numpy", "python"} <= set(record["versions"])


@pytest.mark.parametrize("skip_doctor", [False, True])
@pytest.mark.parametrize(
    ("change", "taken"),
    [
        (lambda x, z: z, None),
        (lambda x, z: {"logits": z}, 'output["logits"]'),
        (lambda x, z: SimpleNamespace(logits=z), "output.logits"),
    ],
    ids=["tensor", "mapping", "object"],
)
def test_the_record_says_what_of_the_output_was_taken(
    change: Callable, taken: str | None, skip_doctor: bool, tmp_path: Path
) -> None:
    """It is seen in the passes that are made anyway, and a run that goes on says the same."""
    plain, classifier = brittle.Classifier(Wrapped(lambda x, z: z)), brittle.Classifier(Wrapped(change))
    expected = run(inputs(COUNT), labels(), plain, skip_doctor=skip_doctor)
    options = {"out": tmp_path / "run", "resume": True, "skip_doctor": skip_doctor}
    table = run(inputs(COUNT), labels(), classifier, **options)
    assert table.provenance["model"]["taken"] == taken
    assert table.scores.equals(expected.scores)
    assert classifier.passes == plain.passes
    (tmp_path / "run" / "points-00000.parquet").unlink()
    assert run(inputs(COUNT), labels(), classifier, **options).provenance["model"] == table.provenance["model"]


def test_passes_are_shared_between_scores() -> None:
    scores = [Taylor(SIGMA), Taylor(2 * SIGMA), MonteCarlo(SIGMA, draws=30), Moments(SIGMA, draws=30)]
    table = run(inputs(COUNT), labels(), scores=scores)
    assert set(table.points.column("passes").to_pylist()) == {1 + 4 + 30}
    assert {row["score"]: row["passes"] for row in table.scores.to_pylist()} == {
        "taylor": 5,
        "monte_carlo": 31,
        "moments": 31,
    }


def test_wide_has_one_row_per_point() -> None:
    frame = run(inputs(COUNT), labels()).wide()
    assert len(frame) == COUNT
    label = "moments(draws=8, sigma=0.2)"
    assert np.allclose(frame[f"{label}.p_robust"], 1 - frame[f"{label}.flip_probability"])
    assert (frame[f"{label}.low"] <= frame[f"{label}.flip_probability"]).all()
    assert frame["logit_margin"].min() >= 0
    assert set(frame["correct"]) <= {True, False}


def test_a_bare_model_is_told_to_be_wrapped() -> None:
    with pytest.raises(ParameterError, match=r"found Sequential; wrap it: brittle.Classifier\(model\)"):
        brittle.score(small_network(), (inputs(2), None), SCORES)


def test_without_labels_correctness_is_unknown() -> None:
    frame = run(inputs(4), None).wide()
    assert frame["label"].isna().all()
    assert frame["correct"].isna().all()
