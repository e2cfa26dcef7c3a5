"""Planted defects are named, and healthy networks raise no alarm: one row per model.

Every defect is planted into a network that is otherwise scored without a word, and is to be named by its own code.
The healthy networks have random weights, fixed by a seed, so nothing here can fail by chance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import zoo
from helpers.examined import examined
from helpers.problems import Wrapped, inputs, small_network
from torch import Tensor, nn

import brittle
from brittle import doctor
from brittle.data import Batch, array_points
from brittle.errors import BrittleError
from brittle.scores import InputMargin, Laplacian, Moments, MonteCarlo, Score, Softmax, Taylor

pytestmark = pytest.mark.usefixtures("short_search")

COUNT = 64
GRADIENTS: list[Score] = [Softmax(), Moments(0.2, draws=4), Taylor(0.2)]
"""Scores, one of which differentiates."""


class Unstable:
    """Points that change after some readings, like data with a random transform or an overwritten file."""

    def __init__(self, readings: int, change: float = 0.5) -> None:
        self.sound = array_points(inputs(COUNT), torch.arange(COUNT) % 4)
        self.readings, self.change, self.read = readings, change, 0

    labels = property(lambda self: self.sound.labels)
    class_names = property(lambda self: None)
    provenance = property(lambda self: self.sound.provenance)

    def __len__(self) -> int:
        return len(self.sound)

    def batches(self, *arguments: Any, **options: Any) -> Iterator[Batch]:
        self.read += 1
        for batch in self.sound.batches(*arguments, **options):
            if self.read > self.readings:
                inputs_after = batch.inputs.clone()
                inputs_after[:, 0, 2, 3] = (inputs_after[:, 0, 2, 3] - self.change).abs()
                batch = replace(batch, inputs=inputs_after)
            yield batch


class Part(nn.Module):
    """The small network with a change to its input, its features or its weights."""

    def __init__(self, change: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.network = small_network()
        self.change = change

    def forward(self, x: Tensor) -> Tensor:
        return self.change(self, x)


def part(change: Callable[[Any, Tensor], Tensor]) -> Callable[[], nn.Module]:
    return lambda: Part(change).eval()


def map_logits(change: Callable[[Tensor], Tensor]) -> Callable[[], nn.Module]:
    return lambda: Wrapped(lambda x, logits: change(logits))


def with_nan() -> nn.Module:
    network = small_network()
    with torch.no_grad():
        network[3].weight[2, 5] = torch.nan  # pyright: ignore[reportIndexIssue] a layer of a known kind
    return network


def without_grad(self: Any, x: Tensor) -> Tensor:
    with torch.no_grad():
        features = self.network[:3](x)
    return self.network[3:](features)


def overwrite(self: Any, x: Tensor) -> Tensor:
    return self.network(x.sub_(0.5))


def statistics(self: Any, x: Tensor) -> Tensor:
    return self.network(nn.functional.batch_norm(x, None, None, training=True))


def in_numpy(self: Any, x: Tensor) -> Tensor:
    return self.network(torch.from_numpy(x.numpy() * 1.0))


def sign_layer(self: Any, x: Tensor) -> Tensor:
    return self.network[3:](self.network[:3](x).sub(0.5).sign())


@dataclass(frozen=True)
class Defect:
    """A defect, with the code and the sentence that name it."""

    name: str
    code: str
    sentence: str
    model: Callable[[], nn.Module] = small_network
    x: Callable[[], Tensor] = lambda: inputs(COUNT)
    y: Callable[[], Tensor | None] = lambda: torch.arange(COUNT) % 4
    scores: list[Score] = field(default_factory=lambda: GRADIENTS)
    declared: dict[str, Any] = field(default_factory=dict)
    points: Callable[[], Any] | None = None


REFUSED = [
    Defect("NaN logits", "nonfinite_logits", "NaN logits in all of the 64 rows", map_logits(lambda z: z * torch.nan)),
    Defect("constant logits", "constant_output", "does not look at its input", map_logits(lambda z: 0 * z + 1)),
    Defect("NaN weight", "nonfinite_logits", "NaN logits in all of the 64 rows", with_nan),
    Defect("a tuple", "output_shape", "a tuple", map_logits(lambda z: (z, z))),  # type: ignore[arg-type, return-value]
    Defect("a feature map", "output_shape", r"\[64, 4, 1, 1\]", map_logits(lambda z: z[:, :, None, None])),
    Defect("squeeze", "output_shape", "squeeze", map_logits(lambda z: z.squeeze())),
    Defect("no_grad", "masked_gradient", r"its gradient it would change by 0 .disagreement 1.000", part(without_grad)),
    Defect("rounded logits", "masked_gradient", "round", map_logits(lambda z: z.round())),
    Defect("sign activations", "masked_gradient", "sign", part(sign_layer)),
    Defect(
        "saturated softmax", "masked_gradient", "all margins are 0 in .* of 64 rows",
        map_logits(lambda z: (1000 * z).softmax(1)), declared={"outputs": "probs"},
    ),
    Defect("numpy inside", "not_differentiable", "not where gradients are recorded", part(in_numpy)),
    Defect("one row of a mixing model", "batch_dependent", "row 0", part(statistics), lambda: inputs(1),
           lambda: torch.tensor([1])),
    Defect("no readable point", "no_usable_points", "none of the first 64", x=lambda: inputs(COUNT) * torch.nan),
    Defect("labels from 1", "labels", r"labels 1\.\.4", y=lambda: torch.arange(COUNT) % 4 + 1),
    Defect("labels of another task", "labels", "32 of 64 labels", y=lambda: torch.arange(COUNT) % 8),
    Defect("a random transform", "nondeterministic_data", "row 0 and others by up to 0.5", points=lambda: Unstable(2)),
    Defect("data that are overwritten", "dataset", "changed since it was opened", points=lambda: Unstable(4)),
    Defect("noise below rounding", "parameter", "1e-09", scores=[Moments(1e-9, draws=4)]),
    Defect(
        "an integral over 300 margins", "parameter", "300 margins",
        lambda: small_network(classes=301), scores=[Taylor(0.1, classes=300)],
    ),
]  # fmt: skip

NOTED = [
    Defect("far too much noise", "sigma", "times what the first 64 rows span", scores=[Moments(20.0, draws=4)]),
    Defect(
        "hardly any range", "value_range", "declared range", declared={"bounds": (0, 255)},
        scores=[Moments(5.0, draws=4)],
    ),
    Defect(
        "no gradient for a search", "masked_gradient", "goes on without gradients", map_logits(lambda z: z.round()),
        scores=[InputMargin(effort="fast")],
    ),
]  # fmt: skip


FINE = [
    Defect("rounding", "", "", x=lambda: inputs(COUNT) - 2.98e-08),
    Defect("no labels", "", "", y=lambda: None),
    Defect("no bounds", "", "", x=lambda: 3 * inputs(COUNT), declared={"bounds": "none"}, y=lambda: None),
    Defect("bounds per pixel", "", "", y=lambda: None, declared={"bounds": ([[-1.0] * 6] * 6, [[torch.inf] * 6] * 6)}),
    Defect("one row", "", "", x=lambda: inputs(1), y=lambda: torch.tensor([0])),
    Defect("labels of shape (N, 1)", "", "", y=lambda: (torch.arange(COUNT) % 4)[:, None]),
    Defect("training mode", "", "", lambda: small_network().train()),
    Defect("an output object", "", "", map_logits(lambda z: {"logits": z})),  # type: ignore[arg-type, return-value]
    Defect(
        "two classes at 70%", "", "", lambda: small_network(classes=2), lambda: inputs(1200),
        lambda: (small_network(classes=2)(inputs(1200)).argmax(1) + (torch.arange(1200) % 10 < 3)) % 2, [Softmax()],
    ),
]  # fmt: skip


def score(defect: Defect, **options: Any) -> brittle.Table:
    data = defect.points() if defect.points else (defect.x(), defect.y())
    return brittle.score(brittle.Classifier(defect.model(), **defect.declared), data, defect.scores, **options)


@pytest.mark.parametrize("defect", FINE, ids=lambda defect: defect.name)
def test_no_false_alarm(defect: Defect) -> None:
    table = score(defect)
    assert table.scores["value"].null_count == 0
    assert table.record.warnings == ()


@pytest.mark.parametrize("defect", REFUSED, ids=lambda defect: defect.name)
def test_a_defect_is_named_and_nothing_is_scored(defect: Defect) -> None:
    with pytest.raises(BrittleError, match=defect.sentence) as caught:
        score(defect)
    assert caught.value.code == defect.code
    assert caught.value.exit_code == 3
    assert "http" not in str(caught.value)


@pytest.mark.parametrize("defect", NOTED, ids=lambda defect: defect.name)
def test_minor_defects_are_noted(defect: Defect) -> None:
    sentences = {entry.code: entry.sentence for entry in score(defect).record.warnings}
    assert set(sentences) == {defect.code}
    assert re.search(defect.sentence, sentences[defect.code])


def points_for(dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(COUNT, *zoo.SHAPE, generator=generator, dtype=torch.float64).to(
        torch.float64 if dtype == torch.float64 else torch.float32
    )


def examine(network: Any, x: Tensor, scores: list[Score] = GRADIENTS) -> doctor.Subject:
    subject = examined(network, scores, x, torch.arange(len(x)) % zoo.CLASSES)
    with subject.classifier.evaluating():
        doctor.examine(subject)
    return subject


PRECISIONS = ((torch.float32, 1.0), (torch.float32, 3.0), (torch.float64, 3.0), (torch.bfloat16, 1.0))
"""Precisions with the gain of the weights."""


@pytest.mark.every_other
@pytest.mark.parametrize(("dtype", "gain"), PRECISIONS, ids=str)
@pytest.mark.parametrize("kind", list(zoo.KINDS))
def test_a_healthy_network_raises_no_alarm(kind: str, dtype: torch.dtype, gain: float) -> None:
    network = zoo.network(kind, dtype, gain=gain)
    findings = examine(network, points_for(dtype), [*GRADIENTS, InputMargin(), Laplacian()]).findings
    assert {finding.code for finding in findings} == ({"low_precision"} if dtype.itemsize == 2 else set())


@pytest.mark.parametrize(("draws", "forward", "backward"), [(40, 723, 80), (2000, 1667, 128)], ids=["short", "long"])
def test_checks_take_a_fixed_number_of_passes(draws: int, forward: int, backward: int) -> None:
    scores = [*GRADIENTS, MonteCarlo(0.2, draws=draws, limit=None)]
    classifier = examine(zoo.network("resnet"), points_for(torch.float32), scores).classifier
    readings = 11 * COUNT  # where labels leave something to gain
    assert (classifier.forward_passes, classifier.backward_passes) == (forward + readings, backward)


@pytest.mark.parametrize("data", ["black", "binary"])
@pytest.mark.parametrize("kind", ["conv max pooling", "resnet", "mlp relu"])
def test_pixels_at_the_bounds_are_no_defect(kind: str, data: str) -> None:
    """Kinks at pixel 0, ties of pooling over black, and a clamp to the bounds inside the model."""
    x = points_for(torch.float32)
    x = x * (x > 0.97) if data == "black" else x.round()
    network = zoo.network(kind)
    assert examine(lambda x: network(x.clamp(0.0, 1.0)), x).findings == []


def test_a_missed_accuracy_is_reported_with_its_explanation() -> None:
    """The refusal names inverted values, the reading that explains the labels, instead of all possible mistakes."""
    x, network = inputs(300), small_network()
    y = network(x).argmax(1)
    with pytest.raises(BrittleError, match=r"expected 0\.9.* inverted") as caught:
        brittle.score(brittle.Classifier(network), (1 - x, y), [Softmax()], expected_accuracy=0.9)
    assert caught.value.code == "accuracy_guard"
    with pytest.raises(BrittleError, match="no labels"):
        brittle.score(brittle.Classifier(network), x, [Softmax()], expected_accuracy=0.9)
    assert brittle.score(brittle.Classifier(network), (x, y), [Softmax()], expected_accuracy=0.9).record.warnings == ()


def test_an_overwritten_input_changes_no_score() -> None:
    clean = part(lambda self, x: self.network(x - 0.5))
    overwriting_values, clean_values = (
        brittle.score(brittle.Classifier(model()), (inputs(COUNT), None), GRADIENTS).scores["value"].to_pylist()
        for model in (part(overwrite), clean)
    )
    assert overwriting_values == clean_values


def test_skipping_the_checks_is_recorded() -> None:
    defect = next(defect for defect in REFUSED if defect.name == "sign activations")
    table = score(defect, skip_doctor=True, most_failures=None)
    assert table.record.doctor == "skipped"
    assert table.record.warnings == ()
    assert set(table.scores.to_pandas().query("score == 'taylor'")["status"]) == {"zero_gradient"}
    sound = score(Defect("none", "", ""))
    assert sound.record.doctor == "passed"


def test_every_check_runs_whatever_the_others_find() -> None:
    """Two unrelated defects are both reported; checks that need a forward pass are skipped."""
    points = array_points(inputs(COUNT) * 3, torch.arange(COUNT) % 4 + 1, bounds=(0, 1))
    batch = next(iter(points.batches(COUNT)))
    classifier = brittle.Classifier(small_network())
    outcomes = doctor.run_all(doctor.Subject(classifier, batch, points.labels, GRADIENTS, 0, 64, points))
    codes_by_check = {outcome.name: outcome.code for outcome in outcomes if outcome.state == "failed"}
    assert codes_by_check == {"range": "value_range", "labels": "labels"}
    assert not [outcome for outcome in outcomes if outcome.state == "skipped"]
    broken = brittle.Classifier(nn.Linear(7, 3))
    outcomes = doctor.run_all(doctor.Subject(broken, batch, points.labels, GRADIENTS, 0, 64, points))
    states = {outcome.name: outcome.state for outcome in outcomes}
    assert states["forward"] == "failed"
    assert states["gradients"] == states["noise"] == "skipped"


def test_a_file_overwritten_during_the_run_is_noticed(tmp_path: Path) -> None:
    """The changed point is outside the first look; the digest of the file shows the change."""
    x = inputs(300)
    np.savez(tmp_path / "data.npz", x=x.numpy())

    def overwrite(done: int, total: int, passes: int) -> None:
        np.savez(tmp_path / "data.npz", x=torch.cat((x[:299], 1 - x[299:])).numpy())

    points = brittle.data.open_points(tmp_path / "data.npz")
    classifier = brittle.Classifier(small_network())
    with pytest.raises(BrittleError, match=r"data\.npz changed since it was opened: sha256") as caught:
        brittle.score(classifier, points, [Softmax()], progress=overwrite)
    assert caught.value.code == "dataset"
    assert (
        brittle.score(classifier, brittle.data.open_points(tmp_path / "data.npz"), [Softmax()]).points.num_rows == 300
    )
