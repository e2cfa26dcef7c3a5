"""A pseudo-margin learns the order that the logit margin misses, is repeatable, and is read without running code."""

from __future__ import annotations

import copy
import itertools
import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from test_detector import with_margins, without
from torch import Tensor, nn

import brittle
from brittle.analysis import kendall_tau
from brittle.data import array_points
from brittle.detector import Detector
from brittle.detector.pseudo_margin import PseudoMargin, PseudoMarginScore
from brittle.errors import ArtefactError, DataError, ModelError, ParameterError
from brittle.scores import LogitMargin

SMALL = {"layers": 2, "width": 32, "epochs": 60, "batch": 32}


class Misleading(nn.Module):
    """Two classes decided by one input; a second input, which moves no decision, sets the size of the logits.

    The logit margin is `|x_0 - 1/2| exp(3 x_1)`, the distance to the boundary `|x_0 - 1/2|`. The features hold both.
    """

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 2, bias=False)
        with torch.no_grad():
            self.head.weight.copy_(torch.tensor([[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]]))

    def forward(self, x: Tensor) -> Tensor:
        signed = x[:, 0] - 0.5
        return self.head(torch.stack((signed * torch.exp(3 * x[:, 1]), x[:, 1], signed.abs() - x[:, 1]), dim=1))


def points(count: int, seed: int) -> Tensor:
    return torch.rand(count, 2, generator=torch.Generator().manual_seed(seed))


def margin(x: Tensor) -> Tensor:
    return (x[:, 0].double() - 0.5).abs()


@pytest.fixture(scope="module")
def classifier() -> brittle.Classifier:
    return brittle.Classifier(Misleading())


def everything() -> Tensor:
    """400 points to learn from, and 600 more."""
    return torch.cat((points(400, seed=0), points(600, seed=5)))


@pytest.fixture(scope="module")
def learned(classifier: brittle.Classifier) -> PseudoMargin:
    x = everything()
    run = with_margins(brittle.score(classifier, x, [LogitMargin()]), margin(x).tolist())
    return PseudoMargin.fit_run(without(run, 400), classifier, array_points(x, None, bounds=(0, 1)), **SMALL)


def test_it_orders_points_that_the_logit_margin_does_not(classifier: brittle.Classifier, learned: PseudoMargin) -> None:
    fresh = points(500, seed=1)
    with torch.no_grad():
        logits, features = classifier.observe(fresh)
    before = kendall_tau(margin(fresh), (logits[:, 0] - logits[:, 1]).abs())
    after = kendall_tau(margin(fresh), learned.predict(features))
    assert before < 0.7
    assert after > 0.9
    assert after > before + 0.2
    assert learned.recipe.validation_loss < 0.01
    assert (learned.recipe.points, learned.recipe.norm, len(learned.points)) == (400, "linf", 400)


@pytest.mark.parametrize("labels", [None, torch.arange(60) % 2])
def test_data_are_taken_as_they_are_scored(classifier: brittle.Classifier, labels: Tensor | None) -> None:
    x = points(60, seed=0)
    data = x if labels is None else (x, labels)
    run = with_margins(brittle.score(classifier, data, [LogitMargin()]), margin(x).tolist())
    settings = SMALL | {"epochs": 2}
    learned = PseudoMargin.fit_run(run, classifier, data, **settings)
    assert (
        learned.digest
        == PseudoMargin.fit_run(run, classifier, array_points(x, labels, bounds=(0, 1)), **settings).digest
    )
    assert len(learned.points) == 60


def test_the_size_of_the_paper_learns() -> None:
    x = points(200, seed=2)
    learned = PseudoMargin.fit(x, margin(x), epochs=40)
    assert [layer.out_features for layer in learned.regressor.body if isinstance(layer, nn.Linear)] == [512] * 5 + [1]
    fresh = points(300, seed=3)
    assert kendall_tau(margin(fresh), learned.predict(fresh)) > 0.6


def test_same_arguments_same_weights_whatever_the_program_drew_before() -> None:
    x = points(100, seed=0)

    def fit(seed: int, threads: int) -> PseudoMargin:
        torch.rand(7)
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            return PseudoMargin.fit(x, margin(x), seed=seed, **SMALL | {"epochs": 3})
        finally:
            assert torch.get_num_threads() == threads
            torch.set_num_threads(before)

    state = torch.random.get_rng_state()
    one, two, other = fit(0, 1), fit(0, 2), fit(1, 1)
    assert one.digest == two.digest != other.digest
    assert one.recipe == two.recipe
    torch.random.set_rng_state(state)
    expected = torch.rand(7), torch.rand(3)
    torch.random.set_rng_state(state)
    fit(0, 1)
    assert torch.equal(torch.rand(3), expected[1]), "learning draws from the program's own stream"


def test_what_is_dropped_and_clipped() -> None:
    x = points(100, seed=0)
    distance = margin(x)
    distance[:5] = math.nan
    distance[5:9] = math.inf
    x[9, 0] = math.nan
    recipe = PseudoMargin.fit(x, distance, **SMALL | {"epochs": 2}).recipe
    usable = distance[10:].numpy()
    assert (recipe.points, recipe.dropped) == (94, 6)
    assert recipe.scale == pytest.approx(np.quantile(usable, 0.99))
    assert recipe.clipped == 4 + int((usable > recipe.scale).sum())


def test_predictions_are_margins_and_fail_closed(learned: PseudoMargin) -> None:
    features = torch.randn(50, 3) * 100
    features[0, 1], features[1, 1] = math.nan, math.inf
    found = learned.predict(features)
    assert found.dtype == torch.float64
    assert found[:2].isnan().all()
    assert ((found[2:] >= 0) & (found[2:] <= learned.recipe.scale)).all()
    assert torch.equal(learned.predict(features[2:3]), learned.predict(features)[2:3]) or torch.allclose(
        learned.predict(features[2:3]), found[2:3], rtol=1e-5
    )


@pytest.mark.parametrize(
    ("features", "margins", "error"),
    [
        (torch.rand(19, 2), torch.rand(19), DataError),
        (torch.rand(30, 2), torch.full((30,), math.inf), DataError),
        (torch.rand(30, 2), torch.zeros(30), DataError),
        (torch.rand(30, 2), torch.rand(29), ParameterError),
        (torch.rand(30), torch.rand(30), ParameterError),
    ],
)
def test_what_cannot_be_learned(features: Tensor, margins: Tensor, error: type[Exception]) -> None:
    with pytest.raises(error):
        PseudoMargin.fit(features, margins)


def test_it_is_printed_in_a_line(learned: PseudoMargin) -> None:
    said = repr(learned)
    assert said.startswith(f"PseudoMargin({learned.recipe.points} points, 3 features, norm=")
    assert "\n" not in said
    assert len(said) < 120


def test_wrong_features_and_model(learned: PseudoMargin) -> None:
    with pytest.raises(ParameterError, match=r"\[B, 3\]"):
        learned.predict(torch.rand(2, 4))
    other = brittle.Classifier(nn.Linear(2, 2))
    x = points(60, seed=0)
    run = with_margins(brittle.score(other, x, [LogitMargin()]), margin(x).tolist())
    data = array_points(x, None, bounds=(0, 1))
    with pytest.raises(ModelError, match="state_sha256"):
        PseudoMargin.fit_run(run, brittle.Classifier(Misleading()), data)
    with pytest.raises(ModelError, match=r"preprocessing: mean None here \(0\.5,\)"):
        PseudoMargin.fit_run(run, brittle.Classifier(other.model, mean=0.5), data)
    with pytest.raises(DataError, match=r"of the data .*found .*give those of the run"):
        PseudoMargin.fit_run(run, other, array_points(points(60, seed=1), None, bounds=(0, 1)))
    with pytest.raises(ParameterError, match=r"expected the brittle\.Table of a run, found str"):
        PseudoMargin.fit_run("run", other, data)
    with pytest.raises(ParameterError, match=r"expected a brittle\.Classifier, found Linear"):
        PseudoMargin.fit_run(run, other.model, data)
    with pytest.raises(DataError, match="x is a str; a tensor or a NumPy array is needed"):
        PseudoMargin.fit_run(run, other, "data.npz")
    with pytest.raises(ParameterError, match="without their data"):
        PseudoMargin.fit(x, margin(x), points=[str(row) for row in range(60)])
    with pytest.raises(DataError, match="one input_margin in l2"):
        PseudoMargin.fit_run(run, other, data, norm="l2")


# With a detector.


def test_detector_with_a_pseudo_margin(classifier: brittle.Classifier, learned: PseudoMargin, tmp_path: Path) -> None:
    """It is calibrated on points it was not trained on, flags far fewer robust points, and can be exported."""
    x = everything()
    run = with_margins(brittle.score(classifier, x, [LogitMargin(), learned.score]), margin(x).tolist())
    by_logits = Detector.fit(run, epsilon=0.1)
    found = Detector.fit(run, epsilon=0.1, score="pseudo_margin", pseudo_margin=learned)
    assert found.counts.learned_from == 400
    assert found.counts.brittle + found.counts.robust == 600
    assert found.false_positives.high < by_logits.false_positives.low
    assert found.verdict.trusted
    found = Detector.load(found.save(tmp_path / "detector.json"))
    read = PseudoMargin.load(learned.save(tmp_path / "pseudo.safetensors"))
    wrapped = found.wrap(classifier, pseudo_margin=read)
    fresh = points(1000, seed=6)
    wrapped(points(4, 0))
    exported = torch.export.export(
        wrapped, (points(4, 0),), dynamic_shapes={"inputs": {0: torch.export.Dim("batch")}}, strict=False
    ).module()
    flags = found.apply(classifier, fresh, pseudo_margin=read)
    _, score, brittle_points = wrapped(fresh)
    assert np.array_equal(brittle_points.numpy(), found.flag(score))
    assert torch.equal(exported(fresh)[2], brittle_points)
    assert np.mean(flags["brittle"].to_numpy() == brittle_points.numpy()) > 0.998
    assert found.flag(margin(fresh)).dtype == bool
    for wrong in (None, PseudoMargin.fit(points(50, 0), margin(points(50, 0)), **SMALL)):
        with pytest.raises(ModelError, match="pseudo-margin"):
            found.wrap(classifier, pseudo_margin=wrong)
        with pytest.raises(ModelError, match="pseudo-margin"):
            found.apply(classifier, fresh, pseudo_margin=wrong)
    with pytest.raises(ParameterError, match="pseudo_margin"):
        Detector.fit(run, epsilon=0.1, score="pseudo_margin")


def test_only_points_that_were_learned_from_are_left_out(classifier: brittle.Classifier, learned: PseudoMargin) -> None:
    """Other data have the same row numbers, which say nothing; those left out are named where too few remain."""
    x = points(500, seed=7)
    other = with_margins(brittle.score(classifier, x, [learned.score]), margin(x).tolist())
    fit = {"epsilon": 0.1, "score": "pseudo_margin", "pseudo_margin": learned}
    assert Detector.fit(other, **fit).counts.learned_from == 0
    x = everything()
    run = with_margins(brittle.score(classifier, x, [learned.score]), margin(x).tolist())
    with pytest.raises(DataError, match=r"found \d+ \(left out: 400 learned from\)"):
        Detector.fit(without(run, 420), **fit)


def test_a_pseudo_margin_of_another_model_or_norm(classifier: brittle.Classifier, learned: PseudoMargin) -> None:
    x = points(200, seed=7)
    for recipe, code in (({"norm": "l2"}, "pseudo_margin_norm"), ({"model": "0" * 64}, "pseudo_margin_model")):
        other = replace(learned, recipe=replace(learned.recipe, **recipe))
        run = with_margins(brittle.score(classifier, x, [other.score]), margin(x).tolist())
        with pytest.raises(ModelError, match="was learned from") as caught:
            Detector.fit(run, 0.1, score="pseudo_margin", pseudo_margin=other)
        assert caught.value.code == code


def test_the_digest_covers_the_scale(learned: PseudoMargin) -> None:
    other = replace(learned, regressor=copy.deepcopy(learned.regressor))
    assert other.digest == learned.digest
    assert learned.regressor.scale == learned.recipe.scale
    again = replace(other)
    again.regressor.scale.mul_(2)
    assert again.digest != learned.digest


def test_it_is_a_score(classifier: brittle.Classifier, learned: PseudoMargin) -> None:
    x = points(20, seed=8)
    x[3, 0] = math.nan
    run = brittle.score(classifier, x, [PseudoMarginScore(learned)])
    values = run.scores["value"].to_pylist()
    assert values[3] is None
    with torch.no_grad():
        features = classifier.observe(x)[1]
    expected = learned.predict(features)
    assert np.allclose([v for v in values if v is not None], expected[~expected.isnan()], rtol=1e-5)
    assert run.provenance["scores"][0]["parameters"] == {"sha256": learned.digest, "norm": "linf"}


# The file.


def test_round_trip(tmp_path: Path, learned: PseudoMargin) -> None:
    read = PseudoMargin.load(learned.save(tmp_path / "a.safetensors"))
    assert (read.recipe, read.points, read.digest) == (learned.recipe, learned.points, learned.digest)
    features = torch.randn(40, 3)
    assert torch.equal(read.predict(features), learned.predict(features))
    assert read.save(tmp_path / "b.safetensors").read_bytes() == (tmp_path / "a.safetensors").read_bytes()
    odd = replace(learned, points=("a\nb", "", "ü\ud800", *learned.points[3:]))
    assert PseudoMargin.load(odd.save(tmp_path / "odd.safetensors")).points == odd.points
    assert PseudoMargin.load(replace(learned, points=()).save(tmp_path / "odd.safetensors")).points == ()


def test_strictness(tmp_path: Path, learned: PseudoMargin) -> None:
    good = safetensors.torch.load(learned.save(tmp_path / "good.safetensors").read_bytes())
    recipe = brittle.store.files.strict_json.dump(learned.recipe)

    def refused(weights: dict[str, Tensor], metadata: dict[str, str] | None) -> str:
        path = tmp_path / "bad.safetensors"
        path.write_bytes(safetensors.torch.save(weights, metadata))
        with pytest.raises(ArtefactError, match="not a pseudo-margin") as caught:
            PseudoMargin.load(path)
        return str(caught.value)

    assert "JSON" in refused(good, None)
    assert "JSON" in refused(good, {"recipe": "x"})
    assert "unknown key" in refused(good, {"recipe": recipe.replace("{", '{"more": 1,', 1)})
    wide = recipe.replace('"width": 32', '"width": 1000000000')
    assert "recipe: 'body.0.bias" in refused(good, {"recipe": wide})
    assert "recipe" in refused(good, {"recipe": recipe.replace('"layers": 2', '"layers": 1000000000')})
    assert "mean" in refused({name: t for name, t in good.items() if name != "mean"}, {"recipe": recipe})
    assert "more" in refused(good | {"more": torch.zeros(1)}, {"recipe": recipe})
    assert "mean" in refused(good | {"mean": torch.zeros(3, dtype=torch.float64)}, {"recipe": recipe})
    assert "mean holds NaN" in refused(good | {"mean": torch.full_like(good["mean"], math.nan)}, {"recipe": recipe})
    assert "not positive" in refused(good | {"std": torch.zeros_like(good["std"])}, {"recipe": recipe})
    for ids, why in (
        (b"\xff\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'["0", 1]', "list of strings"),
        (b"{}", "list of strings"),
    ):
        content = torch.from_numpy(np.frombuffer(ids, np.uint8).copy())
        assert why in refused(good | {"points": content}, {"recipe": recipe})
    nameless = brittle.store.files.strict_json.dump(replace(learned.recipe, data=None))
    assert "which data" in refused(good, {"recipe": nameless})
    assert "scale" in refused(good | {"scale": good["scale"] * 2}, {"recipe": recipe})
    assert "scale" in refused(good | {"scale": good["scale"].float()}, {"recipe": recipe})
    assert "points" in refused(good | {"points": torch.zeros(3)}, {"recipe": recipe})
    with pytest.raises(ModelError, match="cannot be read"):
        PseudoMargin.load(tmp_path / "absent.safetensors")
    with pytest.raises(ParameterError, match=r"must end in \.safetensors; found 'a\.pt'"):
        learned.save(tmp_path / "a.pt")


HUGE, TINY, MINUS_ZERO, WHOLE = 1e308, 1e-320, -0.0, 2**62
ABSURD = (-1, MINUS_ZERO, 0, 1, WHOLE, HUGE, -HUGE, TINY, 0.5, True, "1", None, [], {})
"""Values for a number; those that a field of the recipe may have are told by `ALLOWED`."""

ALLOWED: dict[str, tuple[object, ...]] = {
    "seed": (1, WHOLE),
    "batch": (1,),  # points in a step
    "rate": (1, 0.5),
    "best_epoch": (1,),
    "validation_loss": (MINUS_ZERO, 0, 1, TINY, 0.5),  # a mean of squares of shares
    "dropped": (0, 1),  # any number of points had no margin
    "clipped": (0, 1),
}

PARTNER = {"epochs": "best_epoch", "points": "clipped"}
"""Numbers that are at most another one, which may be named instead."""


def test_every_number_is_one_that_it_can_be(tmp_path: Path, learned: PseudoMargin) -> None:
    """Each is set to each of the absurd ones: refused with its name, or among the few that it may have."""
    good = safetensors.torch.load(learned.save(tmp_path / "good.safetensors").read_bytes())
    recipe = json.loads(brittle.store.files.strict_json.dump(learned.recipe))
    places = [name for name, value in recipe.items() if isinstance(value, int | float)]
    assert len(places) == 14
    wrong = []
    for name, other in itertools.product(places, ABSURD):
        changed = json.dumps(recipe | {name: other})
        (tmp_path / "f.safetensors").write_bytes(safetensors.torch.save(good, {"recipe": changed}))
        allowed = changed == json.dumps(recipe) or any(other is one for one in ALLOWED.get(name, ()))
        try:
            PseudoMargin.load(tmp_path / "f.safetensors")
            said = None
        except ArtefactError as error:
            said = str(error)
        names = (name, PARTNER.get(name, name), "its recipe")
        if (said is None) != allowed or (said is not None and not any(one in said for one in names)):
            wrong.append((name, other, said))
    assert wrong == [], "\n".join(map(str, wrong))


@pytest.mark.parametrize("change", [lambda own: -own, lambda own: own + torch.eye(2), lambda own: own.tril() + 0.5])
def test_lengths_are_distances(change: Callable[[Tensor], Tensor], tmp_path: Path, learned: PseudoMargin) -> None:
    """A negative one would make every margin huge, and so safe."""
    good = safetensors.torch.load(learned.save(tmp_path / "good.safetensors").read_bytes())
    content = good | {"lengths": change(good["lengths"])}
    recipe = {"recipe": brittle.store.files.strict_json.dump(learned.recipe)}
    (tmp_path / "f.safetensors").write_bytes(safetensors.torch.save(content, recipe))
    with pytest.raises(ArtefactError, match="lengths holds values that are no distances"):
        PseudoMargin.load(tmp_path / "f.safetensors")


def test_mutated_files_give_the_named_error(tmp_path: Path, learned: PseudoMargin) -> None:
    content = learned.save(tmp_path / "good.safetensors").read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    rng, refused = random.Random(0), 0
    for number in range(300):
        start = rng.randrange(header)
        noise = rng.choice([bytes([rng.randrange(256)]), b"", b"9" * 30, b'"', b"F8_E5M2"])
        mutant = (
            content[: rng.randrange(len(content))]
            if number % 5 == 0
            else content[:start] + noise + content[start + 1 :]
        )
        (tmp_path / "mutant").write_bytes(mutant)
        try:
            PseudoMargin.load(tmp_path / "mutant")
        except ArtefactError:
            refused += 1
    assert refused > 200
