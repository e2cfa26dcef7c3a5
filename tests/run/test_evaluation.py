"""One batch: rows that cannot be evaluated get no number and do not disturb the others."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.inputs import SIGMA
from helpers.problems import Wrapped, inputs
from helpers.small_runs import COUNT, SCORES, labels, run
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

import brittle
from brittle.analysis.features import kept_counterexamples, kept_inputs
from brittle.scores import InputMargin, LogitMargin, Moments, MonteCarlo, Shrinkage, Softmax, Taylor

pytestmark = pytest.mark.usefixtures("short_search")


def without(table: brittle.Table, point: str) -> list[dict]:
    return [row for row in table.scores.to_pylist() if row["point"] != point]


def broken_at(position: int, value: float) -> torch.Tensor:
    x = inputs(COUNT)
    x[position, 0, 2, 3] = value
    return x


@pytest.mark.parametrize(
    ("value", "detail"), [(float("nan"), "row 17: 1 NaN of 36"), (float("-inf"), "row 17: 1 infinite of 36")]
)
def test_a_nonfinite_pixel_costs_its_row_alone(value: float, detail: str) -> None:
    table = run(broken_at(17, value), labels())
    bad = [row for row in table.scores.to_pylist() if row["point"] == "17"]
    assert len(bad) == len(SCORES)
    assert {(row["status"], row["value"], row["passes"], row["detail"]) for row in bad} == {
        ("nonfinite_input", None, 0, detail)
    }
    assert table.record.account.failed == 1


def test_the_other_rows_keep_their_bytes() -> None:
    scores = [*SCORES, Shrinkage(SIGMA, draws=40)]
    sound, broken = (run(x, labels(), scores=scores) for x in (inputs(COUNT), broken_at(3, float("nan"))))
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


def test_nan_logits_at_a_clean_point_cost_its_row_alone() -> None:
    x = inputs(COUNT).clamp_min(0.2)
    x[7, 0, 0, 0] = 0.05
    table = run(x, labels(), brittle.Classifier(Wrapped(nan_at_dark_corners)), scores=[Softmax(), LogitMargin()])
    bad = [row for row in table.scores.to_pylist() if row["value"] is None]
    assert {(row["point"], row["status"], row["detail"]) for row in bad} == {
        ("7", "nonfinite_logits", "row 7: 4 of 4 logits are NaN or infinite")
    }
    assert table.points.column("predicted").to_pylist()[7] is None


def test_a_nan_gradient_has_a_status() -> None:
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


def test_a_zero_gradient_has_a_status_and_copies_still_count() -> None:
    step = brittle.Classifier(Wrapped(lambda x, z: (z * 3).round() + 0.0 * z.detach() + 0.0 * x.flatten(1)[:, :4]))
    scores = [Taylor(SIGMA), MonteCarlo(SIGMA, draws=20, limit=None)]
    table = run(inputs(6), labels(6), step, scores=scores, skip_doctor=True)
    for row in table.scores.to_pylist():
        expected = {"taylor": {"zero_gradient", "tie"}, "monte_carlo": {"ok", "noisy_ties", "tie"}}[row["score"]]
        assert row["status"] in expected
        assert (row["value"] is None) == (row["status"] == "zero_gradient")
    ties = [row for row in table.scores.to_pylist() if row["status"] == "noisy_ties"]
    assert ties
    assert all("of 20 noisy copies tie" in row["detail"] for row in ties)


def test_passes_are_shared_between_scores() -> None:
    scores = [Taylor(SIGMA), Taylor(2 * SIGMA), MonteCarlo(SIGMA, draws=30, limit=None), Moments(SIGMA, draws=30)]
    table = run(inputs(COUNT), labels(), scores=scores)
    assert set(table.points.column("passes").to_pylist()) == {1 + 4 + 30}
    assert {row["score"]: row["passes"] for row in table.scores.to_pylist()} == {
        "taylor": 5,
        "monte_carlo": 31,
        "moments": 31,
    }


def tabular(numbers: int, dtype: torch.dtype = torch.float32, shape: tuple[int, ...] | None = None):
    """Make a small network over random rows of `numbers` features, and these rows, in double precision."""
    rng = torch.Generator().manual_seed(numbers)
    layers = [torch.nn.Flatten(), torch.nn.Linear(numbers, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)]
    network = torch.nn.Sequential(*layers).to(dtype)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng) / len(parameter) ** 0.5)
    x = torch.rand(12, *(shape or (numbers,)), generator=rng, dtype=torch.float64)
    return brittle.Classifier(network.eval(), bounds=(0, 1)), x


@pytest.mark.parametrize("data", [torch.float32, torch.float64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1, 2, 1, 3), (256,)])
def test_small_inputs_except_images_are_kept_as_the_model_reads(
    shape: tuple[int, ...], dtype: torch.dtype, data: torch.dtype
) -> None:
    classifier, x = tabular(int(np.prod(shape)), dtype, shape)
    table = brittle.score(classifier, x.to(data), [LogitMargin()])
    assert np.array_equal(kept_inputs(table), x.to(data).to(dtype).double().flatten(1).numpy())
    width = 8 if dtype == torch.float64 else 4
    assert {len(cell) for cell in table.points["input"].to_pylist()} == {width * np.prod(shape)}


@pytest.mark.parametrize("shape", [(1, 2, 3), (257,)])
def test_images_and_large_inputs_are_not_kept(shape: tuple[int, ...]) -> None:
    classifier, x = tabular(int(np.prod(shape)), shape=shape)
    table = brittle.score(classifier, x.float(), [LogitMargin(), InputMargin("l2", certify=False)])
    assert table.points["input"].null_count == len(x)
    assert len(table.counterexamples) > 0
    assert table.counterexamples["input"].null_count == len(table.counterexamples)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_kept_counterexample_has_its_distance_and_class(norm: str) -> None:
    """By NumPy alone: the weights of the network, the rows, and the norm of their difference."""
    classifier, x = tabular(6, torch.float64)
    score = InputMargin(norm, certify=False)
    table = brittle.score(classifier, x, [LogitMargin(), score])
    near = kept_counterexamples(table, score)
    order = {"l2": 2, "linf": np.inf}[norm]
    assert np.linalg.norm(near - x.numpy(), order, axis=1) == pytest.approx(table[score].value.to_numpy(), rel=1e-12)
    assert isinstance(classifier.model, torch.nn.Module)
    weights = [tensor.numpy() for tensor in classifier.model.state_dict().values()]
    logits = np.maximum(near @ weights[0].T + weights[1], 0.0) @ weights[2].T + weights[3]
    classes = np.array(table.counterexamples["predicted"].to_pylist())
    assert table.counterexamples["point"].to_pylist() == table.points["point"].to_pylist()
    assert np.all(classes != np.array(table.points["predicted"].to_pylist()))
    assert logits[np.arange(len(x)), classes] == pytest.approx(logits.max(axis=1), abs=1e-12)


def test_the_probability_of_a_label_is_the_models() -> None:
    """By its softmax, or by `predict_proba` if a score reads it; missing without a label or a class."""
    x, y = load_wine(return_X_y=True)
    y = (y + (np.arange(len(y)) % 7 == 0)) % 3
    forest = RandomForestClassifier(9, random_state=0).fit(x, y)
    torch.manual_seed(0)
    network, images, kinds = torch.nn.Linear(13, 3), torch.randn(20, 13), np.arange(20) % 3
    images[4, 2] = torch.nan
    with torch.no_grad():
        expected = network(images).softmax(dim=1).numpy()[range(20), kinds]
    counted, none = MonteCarlo(sigma=0.1, draws=4, limit=None), np.full(20, np.nan)
    cases = (
        (forest, (x, y), Softmax(), forest.predict_proba(x)[range(len(y)), y]),
        (forest, (x[:20], y[:20]), counted, none),
        (brittle.Classifier(network, bounds=None), (images, kinds), counted, expected),
        (brittle.Classifier(network, bounds=None), images, counted, none),
        (brittle.Classifier(network, bounds=None, decision="multilabel"), (images, np.eye(3)[kinds]), counted, none),
    )
    for model, data, score, probabilities in cases:
        table = brittle.score(model, data, scores=[score], skip_doctor=True)
        shares = table.points["label_probability"].to_pandas().to_numpy(dtype=float)
        np.testing.assert_allclose(shares, probabilities, atol=1e-6)
