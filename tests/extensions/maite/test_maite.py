"""Image classifiers and data sets of MAITE are scored as the same model and arrays in PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from helpers.artefacts import refused
from scipy.stats import beta
from torch import Tensor, nn

import brittle
from brittle.data import dataset_points
from brittle.errors import ParameterError
from brittle.scores import LogitMargin, Shrinkage

NAMES = {0: "ant", 1: "bee", 2: "cat"}
SCORES = [Shrinkage(sigma=0.2, draws=40, limit=None), LogitMargin()]


class Images:
    """A data set of an image, one-hot targets and metadata."""

    def __init__(self, x: Tensor, y: Tensor, form: Callable[[Tensor], Any] = Tensor.numpy) -> None:
        self.metadata = {"id": "images", "index2label": NAMES}
        self.items = [
            (form(image), np.eye(3, dtype=np.float32)[label], {"id": f"image {place}"})
            for place, (image, label) in enumerate(zip(x, y.tolist(), strict=True))
        ]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int) -> tuple[Any, Any, dict[str, Any]]:
        return self.items[place]


class Model:
    """A model that takes a sequence of images and returns an array of scores for each."""

    metadata: dict[str, Any]

    def __init__(self, network: nn.Module, form: Callable[[Tensor], Any] = Tensor.numpy) -> None:
        self.metadata, self.network, self.form = {"id": "network"}, network, form

    def __call__(self, images: Sequence[Any]) -> Sequence[Any]:
        assert isinstance(images, Sequence)
        assert np.shape(images[0]) == (1, 4, 4)
        with torch.no_grad():
            batch = torch.stack([torch.as_tensor(image) for image in images])
            return [self.form(scores) for scores in self.network(batch)]


@pytest.fixture
def plain() -> tuple[nn.Module, Tensor, Tensor]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
        return network, torch.rand(30, 1, 4, 4), torch.arange(30) % 3


@pytest.mark.parametrize("form", [Tensor.numpy, Tensor.clone], ids=["arrays", "tensors"])
def test_the_table_is_that_of_the_network(
    plain: tuple[nn.Module, Tensor, Tensor], form: Callable[[Tensor], Any]
) -> None:
    network, x, y = plain
    ours = brittle.score(network, (x, y), SCORES).frame(whole=True)
    theirs = brittle.score(Model(network, form), Images(x, y, form), SCORES).frame(whole=True)
    numbers = [name for name in ours.columns if ours[name].dtype.kind == "f"]
    assert numbers
    assert all((ours[name] == theirs[name]).all() for name in ("point", "label", "predicted", "correct"))
    assert np.allclose(ours[numbers], theirs[numbers], rtol=0, atol=1e-6, equal_nan=True)
    assert dataset_points(Images(x, y)).class_names == tuple(NAMES.values())


def test_stand_ins_satisfy_the_protocols(plain: tuple[nn.Module, Tensor, Tensor]) -> None:
    classification = pytest.importorskip("maite.protocols.image_classification")
    network, x, y = plain
    model, images = Model(network), Images(x, y)
    assert isinstance(model, classification.Model)
    assert isinstance(images, classification.Dataset)
    predictions, *_ = pytest.importorskip("maite.tasks").predict(model=model, dataset=images, batch_size=7)
    classifier = brittle.Classifier(model)
    (batch,) = dataset_points(images).batches(30)
    logits = classifier(batch.inputs)
    assert np.allclose(np.concatenate(predictions), logits.numpy(), rtol=0, atol=1e-6)
    assert classifier.forward_only


def test_several_labels_stay_as_they_are(plain: tuple[nn.Module, Tensor, Tensor]) -> None:
    network, x, y = plain
    images = Images(x, y)
    images.items = [(image, np.array([1, 1, 0]), metadata) for image, _, metadata in images.items]
    table = brittle.score(Model(network), images, [Shrinkage(sigma=0.2, draws=40, limit=None)], decision="multilabel")
    assert len(table.frame()) == 30
    refused("labels", "item 0", dataset_points, images)


def test_a_plain_label_beside_metadata_is_a_class(plain: tuple[nn.Module, Tensor, Tensor]) -> None:
    _, x, y = plain
    points = dataset_points([(image, label, {"id": 0}) for image, label in zip(x, y.tolist(), strict=True)])
    assert points.labels == tuple(y.tolist())


def test_other_weights_are_another_model(plain: tuple[nn.Module, Tensor, Tensor]) -> None:
    """A run must not resume with other weights."""
    network, *_ = plain
    changed_network = copy.deepcopy(network)
    with torch.no_grad():
        next(changed_network.parameters()).add_(0.5)
    networks = (network, network, changed_network)
    original, again, changed = (brittle.Classifier(Model(module)).model for module in networks)
    assert original.digest == again.digest != changed.digest  # type: ignore[attr-defined]


def darken(batch: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """Augment a batch by darker images."""
    return [0.5 * image for image in batch[0]], batch[1], batch[2]


darken.metadata = {"id": "darker"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("augmentation", [None, darken], ids=["as they are", "augmented"])
def test_the_metric_of_an_evaluation_is_that_of_a_table(
    plain: tuple[nn.Module, Tensor, Tensor], augmentation: Any
) -> None:
    """The metric covers the augmented images; states and intervals by hand from the table of the network."""
    network, x, y = plain
    metric = brittle.RobustnessMetric(Model(network), scores=SCORES[:1], confidence=0.9)
    maite = pytest.importorskip("maite.protocols.image_classification")
    assert isinstance(metric, maite.Metric)
    assert isinstance(metric, maite.Model)
    evaluate = pytest.importorskip("maite.tasks").evaluate
    options = {"model": metric, "metric": metric, "dataset": Images(x, y), "augmentation": augmentation}
    _, values = (evaluate(**options, batch_size=7)[0] for _ in range(2))  # the second begins anew
    inputs = x if augmentation is None else 0.5 * x
    frame = brittle.score(network, (inputs, y), SCORES[:1], confidence=0.9).frame()
    assert values["p_robust"] == pytest.approx(frame["p_robust"].mean(), abs=1e-6)
    assert values["p_robust_low"] < values["p_robust"] < values["p_robust_high"]
    sure, possible = ((frame["state"].isin(states)).sum() for states in (["holds"], ["holds", "undecided"]))
    low = beta.ppf(0.05, sure, 31 - sure)
    high = beta.ppf(0.95, possible + 1, 30 - possible) if possible < 30 else 1.0
    wrong = 0.05  # probability that an interval at 90% misses on one side
    assert values["holds"] == pytest.approx(sure / 30)
    assert values["holds_low"] == pytest.approx(max(0.0, (low - wrong) / (1 - wrong)), abs=1e-6)
    assert values["holds_high"] == pytest.approx(min(1.0, high / (1 - wrong)), abs=1e-6)
    assert metric.table is not None
    assert metric.table.points["label"].to_pylist() == y.tolist()


def test_a_metric_that_saw_no_images_says_so(plain: tuple[nn.Module, Tensor, Tensor]) -> None:
    network, x, y = plain
    metric = brittle.RobustnessMetric(Model(network), scores=SCORES[:1])
    refused("empty_dataset", "items", metric.compute)
    with pytest.raises(ParameterError):
        metric.update([x[0]], [y[0]], [{"id": 0}])


def test_a_metric_keeps_images_as_they_were_sent(plain: tuple[nn.Module, Tensor, Tensor]) -> None:
    """Whatever the model does to them, and whatever overwrites them."""
    network, x, y = plain

    class Scaling(Model):
        def __call__(self, batch: Any) -> Any:
            scores = super().__call__([image.clone() for image in batch])
            for image in batch:
                image.zero_()
            return scores

    metric = brittle.RobustnessMetric(Scaling(network), classifier=network, scores=SCORES[:1])
    images = [image.clone() for image in x]
    metric.update(metric(images), list(y), [{"id": row} for row in range(len(x))])
    assert float(max(image.abs().max() for image in images)) == 0.0
    expected = brittle.score(network, (x, y), SCORES[:1]).frame()["p_robust"].mean()
    assert metric.compute()["p_robust"] == pytest.approx(expected, abs=1e-6)
