"""A surrogate of `p_robust`: its bound holds on problems with a known answer, and its network gives it in the pass."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch
from helpers.calibrated import counted, exported
from helpers.stand_ins import Misleading, margin, points
from helpers.tables import with_score
from numpy.typing import NDArray
from scipy.stats import binom, ncx2, norm
from torch import nn

import brittle
from brittle.data import array_points
from brittle.errors import ArtefactError, DataError, ModelError, ParameterError
from brittle.extensions.detector.conformal import Calibration, bound
from brittle.extensions.detector.surrogate import Surrogate, lower_ends
from brittle.intervals import clopper_pearson
from brittle.scores import LogitMargin, MonteCarlo
from brittle.store.table import Table

SIGMAS = (0.1, 0.3)
ALPHA, TAIL, DRAWS = 0.1, 0.2, 100


def linear(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Return the exact `p_robust` of points beside a plane, at unit noise."""
    return norm.cdf(rng.exponential(1.5, count))


def ball(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Return the exact `p_robust` of points inside a ball of radius 3 in 4 dimensions, at unit noise."""
    return ncx2.cdf(9.0, 4, rng.uniform(0.0, 9.0, count))


@pytest.mark.every_other
@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("problem", [linear, ball])
def test_the_bound_misses_the_truth_at_most_as_often_as_asked(problem: Any, by_class: bool) -> None:
    """Over 2,000 draws of 60 points that calibrate, with 100 copies each, and of a new point; false-fail rate 1e-6.

    The ranks are exact: the lower end of the new point lies below the bound as often as `alpha (1 - tail)` allows, up
    to a rank. A prediction that errs, more in class 1, is as good as any other.
    """
    rng, replicates, count = np.random.default_rng(0), 2000, 60
    misses, low_misses, shares = 0, 0, []
    for _ in range(replicates):
        truth, classes = problem(rng, count + 1), rng.integers(0, 2, count + 1)
        low = clopper_pearson(rng.binomial(DRAWS, truth), DRAWS, 1.0 - 2.0 * TAIL)[0]
        predictions = np.clip(truth + rng.normal(0.0, 0.05 + 0.1 * classes), 0.0, 1.0)
        tensors = [torch.from_numpy(part) for part in (predictions[:, None], low[:, None], classes)]
        calibration = Calibration(*(part[:count] for part in tensors), tail=TAIL)
        quantiles = calibration.quantiles(0.2 if by_class else ALPHA, by_class=by_class)
        quantiles = quantiles[classes[count] if by_class else 0][None]
        lower = float(bound(tensors[0][count:], quantiles))
        misses += lower > truth[count]
        low_misses += lower > low[count]
        shares.append(lower)
    alpha = 0.2 if by_class else ALPHA
    assert misses <= binom(replicates, alpha).ppf(1.0 - 1e-6)
    exact = alpha * (1.0 - TAIL)
    group = count / 2 if by_class else count
    assert binom(replicates, exact - 2.0 / group).ppf(1e-6) <= low_misses <= binom(replicates, exact).ppf(1.0 - 1e-6)
    assert np.mean(shares) > 0.15


@pytest.mark.every_other
@pytest.mark.parametrize("pairs", [1, 2, 5, 50])
@pytest.mark.parametrize("agreement", [0.0, 0.5, 0.9, 1.0])
def test_low_ends_fail_as_seldom_as_stated_of_pairs(
    pairs: int, agreement: float, classifier: brittle.Classifier
) -> None:
    """The two copies of a pair may agree, as those of a network that is even in the noise; by their exact law, at the
    probabilities just below every end."""
    ids = [str(k) for k in range(2 * pairs + 1)]
    run = brittle.score(classifier, points(len(ids), seed=0), [LogitMargin()])
    flips = np.arange(len(ids))[::-1] / (2 * pairs)
    run = with_score(run, "monte_carlo", flips, {"draws": 2 * pairs, "sigma": 0.1}, ends=(flips, flips))
    ends, tail = lower_ends([run["monte_carlo"]], ids, 0.99)
    lows = ends[:, 0].numpy()
    assert (np.diff(lows) >= 0.0).all()
    for low in np.unique(lows[lows > 0.0]):
        first = np.flatnonzero(lows >= low)[0]
        halves = 2.0 * min(low, 1.0 - low) * (1.0 - agreement)  # probability that one copy of a pair keeps it
        splits = np.arange(pairs + 1)
        both = (low - halves / 2.0) / (1.0 - halves) if halves < 1.0 else 0.0
        above = binom(pairs - splits, both).sf(np.ceil((first - splits) / 2.0) - 1.0)
        assert binom.pmf(splits, pairs, halves) @ above <= tail + 1e-9


def test_too_few_points_for_alpha_are_counted() -> None:
    numbers = torch.rand(200, 1, dtype=torch.float64)
    calibration = Calibration(numbers, numbers / 2.0, torch.arange(200) % 2, TAIL)
    assert calibration.quantiles(0.1, by_class=True).isfinite()[:, 0].tolist() == [True, True, False]
    assert calibration.quantiles(0.1)[0].isfinite().all()
    with pytest.raises(DataError, match="needs 1249 points") as caught:
        calibration.quantiles(0.001)
    assert caught.value.code == "too_few_points"


def kept(x: torch.Tensor, sigma: float) -> NDArray[np.float64]:
    """Return the exact `p_robust` of the network `Misleading`: its boundary is a plane."""
    return norm.cdf(margin(x).numpy() / sigma)


def run_of(x: torch.Tensor, classifier: brittle.Classifier) -> Table:
    run = brittle.score(classifier, x, [LogitMargin()])
    for seed, sigma in enumerate(SIGMAS[::-1]):
        run = counted(run, kept(x, sigma), sigma, seed)
    return run


def data(x: torch.Tensor) -> Any:
    return array_points(x, None, bounds=(0, 1))


@pytest.fixture(scope="module")
def surrogate(classifier: brittle.Classifier) -> Surrogate:
    x = points(800, seed=0)
    return Surrogate.fit_run(run_of(x, classifier), classifier, data(x), alpha=ALPHA, epochs=40)


def test_it_predicts_what_copies_would_count(classifier: brittle.Classifier, surrogate: Surrogate) -> None:
    """On 4,000 fresh points the order is right where that of the logit margin is not, the mean has an error of less
    than 0.02, and the bound misses as often as the beta-binomial law of one calibration allows (1e-6)."""
    fresh = points(4000, seed=1)
    frame = surrogate.apply(classifier, fresh, ALPHA)
    assert frame["point"].tolist() == [str(row) for row in range(4000)]
    assert [target.split("sigma=")[1][:3] for target in surrogate.recipe.targets] == ["0.1", "0.3"]
    assert (frame["p_robust_1"] >= frame["p_robust_2"]).all()
    assert (frame["bound_1"] >= frame["bound_2"]).all()
    for k, sigma in enumerate(SIGMAS):
        worth, truth = surrogate.worth[k], kept(fresh, sigma)
        predictions, lower = frame[f"p_robust_{k + 1}"].to_numpy(), frame[f"bound_{k + 1}"].to_numpy()
        assert worth.useful
        assert worth.tau > worth.tau_logit_margin + 0.1
        assert abs(predictions.mean() - truth.mean()) < 0.02
        assert surrogate.calibration is not None
        calibrating, tail = len(surrogate.calibration.low), surrogate.calibration.tail
        assert (lower > truth).sum() <= betabinom_upper(4000, calibrating, tail)
        assert lower.mean() > truth.mean() - 0.2
    assert surrogate.shift(frame["p_robust_1"]) > 1e-4
    moved = points(400, seed=2) * torch.tensor([0.2, 1.0]) + torch.tensor([0.4, 0.0])
    assert surrogate.shift(surrogate.apply(classifier, moved, ALPHA)["p_robust_1"]) < 1e-6


def betabinom_upper(fresh: int, count: int, tail: float) -> float:
    """Return the largest number of misses among `fresh` points of one calibration on `count` others, but for 1e-6."""
    from scipy.stats import betabinom

    rank = math.ceil((1.0 - ALPHA * (1.0 - tail)) * (count + 1))
    return float(betabinom(fresh, count + 1 - rank, rank).ppf(1.0 - 1e-6))


def test_file_and_exports_give_the_same_numbers(
    tmp_path: Path, surrogate: Surrogate, classifier: brittle.Classifier
) -> None:
    read = Surrogate.load(surrogate.save(tmp_path / "a.safetensors"))
    assert (read.recipe, read.points, read.worth) == (surrogate.recipe, surrogate.points, surrogate.worth)
    assert read.save(tmp_path / "b.safetensors").read_bytes() == (tmp_path / "a.safetensors").read_bytes()
    fresh = points(300, seed=3)
    fresh[:4, 0] = torch.tensor([math.nan, math.inf, 1.5, 0.5])
    for by_class in (False, True):
        wrapped = read.wrap(Misleading(), 0.2, by_class=by_class)
        wrapped(points(4, 0))
        logits, p_robust, lower = (part.detach() for part in wrapped(fresh))
        assert (p_robust.shape, lower.shape, lower.dtype) == ((300, 2), (300, 2), torch.float64)
        assert (lower[:4] == 0.0).all()
        assert (lower[4:, 0] > 0.0).float().mean() > 0.8
        assert torch.equal(logits, Misleading()(fresh)) or bool(logits[:2].isnan().any())
        frame = surrogate.apply(classifier, fresh[4:], 0.2, by_class=by_class)
        assert frame["bound_1"].to_numpy() == pytest.approx(lower[4:, 0].numpy(), abs=1e-6)
        program = exported(wrapped, points(4, 0))
        assert torch.equal(program(fresh)[2], lower)


def test_a_bound_is_that_of_the_fit_unless_asked_otherwise(surrogate: Surrogate) -> None:
    strict = replace(surrogate, worth=tuple(replace(target, alpha=0.3) for target in surrogate.worth))
    rows = points(20, seed=3)
    assert torch.equal(surrogate.wrap(Misleading())(rows)[2], surrogate.wrap(Misleading(), ALPHA)(rows)[2])
    assert torch.equal(strict.wrap(Misleading())(rows)[2], surrogate.wrap(Misleading(), 0.3)(rows)[2])


@pytest.mark.parametrize("alpha", [np.float32(0.2), Fraction(1, 5)])
def test_every_kind_of_number_that_fits_can_be_saved(
    tmp_path: Path, classifier: brittle.Classifier, alpha: Any
) -> None:
    x = points(200, seed=0)
    learned = Surrogate.fit_run(run_of(x, classifier), classifier, data(x), alpha=alpha, epochs=0)
    assert Surrogate.load(learned.save(tmp_path / "a.safetensors")).worth == learned.worth


def test_data_of_another_kind_are_refused_as_a_whole(classifier: brittle.Classifier, surrogate: Surrogate) -> None:
    """Bounds of 0 for images of another range would look like an answer."""
    for wrong, kind, code in (
        (points(20, seed=1) * 255.0, DataError, "value_range"),
        (points(20, seed=1)[:, :1], ModelError, "model_failed"),
    ):
        with pytest.raises(kind) as caught:
            surrogate.apply(classifier, wrong)
        assert caught.value.code == code


def test_a_network_that_moves_leaves_the_surrogate_in_place(surrogate: Surrogate) -> None:
    rows = points(20, seed=3)
    before = surrogate.wrap(Misleading())(rows)[2]
    surrogate.wrap(Misleading()).to("meta")
    assert torch.equal(surrogate.wrap(Misleading())(rows)[2], before)


def test_a_class_that_did_not_calibrate_has_no_bound(surrogate: Surrogate) -> None:
    """Whatever the form, and whether or not a larger class calibrates."""
    assert surrogate.calibration is not None
    rows = points(100, seed=3)
    predicted = Misleading()(rows).argmax(dim=1)
    for absent in (0, 1):
        alone = replace(surrogate.calibration, classes=torch.full_like(surrogate.calibration.classes, 1 - absent))
        lower = replace(surrogate, calibration=alone).wrap(Misleading(), by_class=True)(rows)[2][:, 0]
        assert (lower[predicted == absent] == 0.0).all()
        assert (lower[predicted != absent] > 0.0).any()


def test_a_shift_is_seen_of_numbers_alone_and_of_no_rounding(surrogate: Surrogate, learned: Surrogate) -> None:
    """The points that calibrate have not moved; two predictions alone do not tell of rounding in the last bits."""
    frame = surrogate.apply(brittle.Classifier(Misleading()), points(800, seed=0))
    order = np.random.default_rng(surrogate.recipe.seed).permutation(800)[400:600]
    before = frame["p_robust_1"].to_numpy()[order]
    assert surrogate.shift(before) == surrogate.shift([*before, math.nan]) == 1.0
    assert surrogate.calibration is not None
    predictions = surrogate.calibration.predictions[:1].expand(200, 2)
    few = replace(surrogate, calibration=replace(surrogate.calibration, predictions=predictions))
    assert few.shift(np.full(100, before[0])) == 1.0
    for wrong in ([], [math.nan], frame[["p_robust_1", "p_robust_2"]].to_numpy(), 0.5):
        with pytest.raises(ParameterError):
            surrogate.shift(wrong)
    with pytest.raises(ParameterError):
        learned.shift(before)


def test_a_file_with_other_points_is_refused(tmp_path: Path, surrogate: Surrogate) -> None:
    path = surrogate.save(tmp_path / "good.safetensors")
    with safetensors.safe_open(path, "pt") as file:
        metadata = file.metadata()
    good = safetensors.torch.load(path.read_bytes())
    some, classes = good["calibration.low"], good["calibration.classes"]
    wrong: list[dict[str, torch.Tensor]] = [
        {"calibration.low": some * 1.5 + 0.5},
        {"calibration.predictions": some - 1.0},
        {"calibration.predictions": good["calibration.predictions"].flip(1)},  # rises with sigma
        {"calibration.classes": classes + 2**40},
        {"calibration.classes": classes.double()},
        {f"calibration.{name}": good[f"calibration.{name}"][:0] for name in ("low", "predictions", "classes")},
    ]
    for changes in wrong:
        path.write_bytes(safetensors.torch.save(good | changes, metadata))
        with pytest.raises(ArtefactError, match="not a surrogate"):
            Surrogate.load(path)


def test_points_of_the_fit_are_named_and_no_others(classifier: brittle.Classifier, surrogate: Surrogate) -> None:
    with pytest.warns(brittle.BrittleWarning, match="800 of 800 points are those of the fit"):
        surrogate.apply(classifier, points(800, seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = surrogate.apply(classifier, points(800, seed=1))
    assert len(frame) == 800


def test_a_norm_beside_alpha_is_refused(classifier: brittle.Classifier) -> None:
    x = points(60, seed=0)
    with pytest.raises(ParameterError):
        Surrogate.fit_run(run_of(x, classifier), classifier, data(x), "l2", alpha=ALPHA)
    with pytest.raises(ParameterError):
        Surrogate.fit_run(run_of(x, classifier), classifier, data(x), alpha=ALPHA, form="paper")


def test_settings_without_a_meaning_are_refused(classifier: brittle.Classifier) -> None:
    x = points(60, seed=0)
    run = run_of(x, classifier)
    wrong: list[dict[str, Any]] = [{"alpha": 1e-320}, {"epochs": -1}, {"epochs": 1.5}, {"width": 0}]
    for settings in wrong:
        merged: dict[str, Any] = {"alpha": ALPHA} | settings
        with pytest.raises(ParameterError):
            Surrogate.fit_run(run, classifier, data(x), **merged)


def test_it_belongs_to_one_model_and_one_kind_of_target(surrogate: Surrogate, learned: Surrogate) -> None:
    other = Misleading()
    with torch.no_grad():
        other.head.weight.mul_(2.0)
    with pytest.raises(ModelError) as caught:
        surrogate.wrap(other)
    assert caught.value.code == "other_model"
    for use in (
        lambda: surrogate.score,
        lambda: learned.wrap(Misleading()),
        lambda: surrogate.wrap(Misleading(), 0.5),
        lambda: surrogate.wrap(Misleading(), alpha=0.0),
    ):
        with pytest.raises(ParameterError):
            use()


def test_what_is_worth_nothing_is_not_offered(classifier: brittle.Classifier) -> None:
    """Probabilities that follow from nothing that the network sees."""
    x = points(400, seed=0)
    run = brittle.score(classifier, x, [LogitMargin()])
    run = counted(run, np.random.default_rng(0).uniform(0.4, 1.0, 400), 0.1, 0)
    with pytest.raises(DataError, match="no surrogate is offered") as caught:
        Surrogate.fit_run(run, classifier, data(x), alpha=ALPHA, form="margins", epochs=20)
    assert caught.value.code == "too_few_points"
    with pytest.raises(DataError) as caught:
        Surrogate.fit_run(brittle.score(classifier, x, [LogitMargin()]), classifier, data(x), alpha=ALPHA)
    assert caught.value.code == "no_such_score"


def test_a_low_bound_is_offered_and_called_of_no_use(classifier: brittle.Classifier) -> None:
    """Those that calibrate choose nothing: of surrogates chosen for their high bounds, more fail than `alpha` says."""
    x = points(400, seed=0)
    truth = np.clip(kept(x, 0.3) - 0.5 * (np.random.default_rng(1).random(400) < 0.15), 0.0, 1.0)
    run = counted(brittle.score(classifier, x, [LogitMargin()]), truth, 0.1, 0)
    (worth,) = Surrogate.fit_run(run, classifier, data(x), alpha=ALPHA, form="head", epochs=20).worth
    assert worth.tau_low > 0.0
    assert 0.0 < worth.bound <= worth.bound_constant
    assert not worth.useful
    assert str(worth).endswith("of no use")


def test_a_run_that_stops_keeps_its_own_intervals(classifier: brittle.Classifier) -> None:
    """Their confidence is then the tail, and a bound stays one."""
    x = points(400, seed=0)
    run = brittle.score(classifier, x, [LogitMargin()])
    truth = kept(x, 0.3)
    ends = (1.0 - np.minimum(truth + 0.1, 1.0), 1.0 - truth + 0.1)
    parameters = {"draws": 1000, "limit": 0.9, "sigma": 0.3}
    run = with_score(run, "monte_carlo", 1.0 - truth, parameters, ends=ends)
    learned = Surrogate.fit_run(run, classifier, data(x), alpha=ALPHA, form="head", epochs=40)
    assert learned.calibration is not None
    assert learned.calibration.tail == pytest.approx(0.005)


class Headless(nn.Module):
    """Network whose logits no linear layer gives."""

    def __init__(self, mean: float = 0.0, std: float = 1.0) -> None:
        super().__init__()
        self.scale, self.mean = nn.Parameter(torch.tensor(std)), mean

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        signed = self.scale * x[:, 0] + self.mean - 0.5
        return torch.stack((signed.sign() * signed.square(), -signed.sign() * signed.square()), dim=1)


class InPlace(Headless):
    """Network that changes its input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.add_(3.0) - 3.0)


@pytest.mark.parametrize("kind", ["estimator", "network", "preprocessed network", "network in place"])
def test_without_a_head_it_learns_from_logits_and_rows(kind: str) -> None:
    """The pass predicts what was learned from the same rows."""
    x = points(600, seed=0).double()
    preprocessing: Any = {"mean": (0.4, 0.1), "std": (0.5, 2.0)} if kind == "preprocessed network" else {}
    model: Any = Headless(preprocessing["mean"][0], preprocessing["std"][0]) if preprocessing else Headless()
    model = InPlace() if kind == "network in place" else model
    if kind == "estimator":
        linear_model = pytest.importorskip("sklearn.linear_model")
        model = linear_model.LogisticRegression(C=100.0).fit(x.numpy(), x[:, 0].numpy() > 0.5)
    classifier = brittle.Classifier(model, bounds=(0, 1), **preprocessing)
    inputs = x if kind == "estimator" else x.float()
    run = counted(brittle.score(classifier, inputs, [LogitMargin()], skip_doctor=True), kept(x, 0.1), 0.1, 0)
    learned = Surrogate.fit_run(run, classifier, data(inputs), alpha=ALPHA, form="head", epochs=60)
    assert learned.recipe.reads_logits
    assert learned.worth[0].tau > 0.8
    order = np.random.default_rng(0).permutation(600)[300:450]
    measured = 1.0 - run[learned.recipe.targets[0]].value.to_numpy()[order]
    rows = inputs[order]
    outputs = learned.wrap(model)(rows.numpy() if kind == "estimator" else rows.clone())
    p_robust, lower = (np.asarray(part if kind == "estimator" else part.detach())[:, 0] for part in outputs[1:])
    assert np.abs(p_robust - measured).mean() < 0.05
    frame = learned.apply(classifier, rows)
    assert lower == pytest.approx(frame["bound"].to_numpy(), abs=1e-6)
    assert p_robust == pytest.approx(frame["p_robust"].to_numpy(), abs=1e-6)


def test_a_row_of_a_frame_means_the_same_in_any_frame() -> None:
    """Alone, as text, without the other categories or with these in another order."""
    pytest.importorskip("sklearn")
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    x, colours = points(400, seed=0)[:, 0].double(), np.random.default_rng(0).choice(["blue", "green", "red"], 400)
    frame = pd.DataFrame({"a": x.numpy(), "c": pd.Categorical(colours)})
    columns = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    estimator = make_pipeline(columns, LogisticRegression(C=100.0)).fit(frame, frame.a + (colours == "red") > 0.5)
    classifier = brittle.Classifier(estimator, bounds="none")
    run = brittle.score(classifier, frame, [MonteCarlo(0.1, draws=100, limit=None)], skip_doctor=True)
    learned = Surrogate.fit_run(run, classifier, (frame, None), alpha=0.2, epochs=30)
    wrapped, lower = learned.wrap(estimator), learned.wrap(estimator)(frame)[2]
    assert lower.std() > 0.01
    for colour in ("blue", "green", "red"):
        rows = np.flatnonzero(colours == colour)[:5]
        reordered = frame.c.cat.reorder_categories(["red", "blue", "green"])
        for column in (frame.c[rows].astype(str), frame.c[rows].cat.remove_unused_categories(), reordered[rows]):
            some = pd.DataFrame({"a": frame.a[rows], "c": column}).reset_index(drop=True)
            assert wrapped(some)[2] == pytest.approx(lower[rows], abs=1e-6)
            assert learned.apply(classifier, (some, None))["bound"].to_numpy() == pytest.approx(
                lower[rows, 0], abs=1e-6
            )


def test_a_row_that_the_estimator_refuses_fails_alone() -> None:
    """One of an unknown category, in a wrapped network and in a frame; where every row is refused, that is an error."""
    pytest.importorskip("sklearn")
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    colours = np.random.default_rng(0).choice(["blue", "red"], 200)
    frame = pd.DataFrame({"a": points(200, seed=0)[:, 0].double().numpy(), "c": pd.Categorical(colours)})
    columns = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    estimator = make_pipeline(columns, LogisticRegression(C=100.0)).fit(frame, frame.a > 0.5)
    classifier = brittle.Classifier(estimator, bounds="none")
    run = brittle.score(classifier, frame, [MonteCarlo(0.1, draws=50, limit=None)], skip_doctor=True)
    learned = Surrogate.fit_run(run, classifier, (frame, None), alpha=0.3, epochs=10)
    rows = frame[:20].assign(c=[*colours[:19], "violet"])
    wrapped = learned.wrap(estimator)
    with pytest.warns(brittle.BrittleWarning, match="1 of 20 rows .* row 19.*violet"):
        logits, p_robust, lower = wrapped(rows)
    assert np.isnan(logits[19]).all()
    assert np.isnan(p_robust[19])
    assert lower[19] == 0.0
    assert [part[:19] for part in (p_robust, lower)] == [pytest.approx(part) for part in wrapped(rows[:19])[1:]]
    with pytest.warns(brittle.BrittleWarning):
        table = learned.apply(classifier, (rows, None))
    assert table["bound"].to_numpy() == pytest.approx(lower[:, 0])
    assert table["status"].tolist() == ["ok"] * 19 + ["nonfinite_logits"]
    with pytest.raises(ModelError) as caught:
        wrapped(rows[19:].reset_index(drop=True))
    assert caught.value.code == "model_failed"


def test_rows_with_missing_numbers_teach_nothing_and_have_no_bound() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    x: Any = points(300, seed=0).double().numpy()
    x[:40, 1] = math.nan
    estimator = ensemble.HistGradientBoostingClassifier(max_iter=10).fit(x, x[:, 0] > 0.5)
    classifier = brittle.Classifier(estimator, bounds=(0, 1))
    run = brittle.score(classifier, x, [MonteCarlo(0.2, draws=100, limit=None)], skip_doctor=True)
    learned = Surrogate.fit_run(run, classifier, x, alpha=0.2, epochs=30)
    assert (learned.recipe.points, len(learned.points)) == (130, 260)
    lower = learned.apply(classifier, x)["bound"].to_numpy()
    assert (lower[:40] == 0.0).all()
    assert (lower[40:] > 0.0).any()
