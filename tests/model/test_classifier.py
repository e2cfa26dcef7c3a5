"""Classifiers: outputs of many forms, restored modes, and unchanged inputs."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import pytest
import torch
from helpers.artefacts import refused
from helpers.problems import Wrapped, inputs, small_network
from torch import nn

import brittle
from brittle.errors import ParameterError


@dataclass
class Output:
    """An output object as language and vision libraries return them."""

    logits: torch.Tensor


def wrap(change) -> brittle.Classifier:
    return brittle.Classifier(Wrapped(lambda x, logits: change(logits)))


class MappingWithAttributes(OrderedDict):
    """An output that is a mapping and an object at once, as language libraries return them."""

    @property
    def logits(self) -> torch.Tensor:
        return self["logits"]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda z: z, None),
        (lambda z: {"logits": z, "hidden": z}, 'output["logits"]'),
        (Output, "output.logits"),
        (lambda z: MappingWithAttributes(logits=z), 'output["logits"]'),
    ],
    ids=["tensor", "mapping", "object", "both"],
)
def test_logits_are_found(change, place: str | None) -> None:
    classifier = wrap(change)
    assert classifier.taken is None
    assert torch.equal(classifier(inputs(3)), small_network()(inputs(3)))
    assert classifier.taken == place


@pytest.mark.parametrize(
    ("change", "outputs", "match"),
    [
        (lambda z: (z, z[:, :1]), "logits", "tuple"),
        (lambda z: {"scores": z}, "logits", "'scores'"),
        (lambda z: z[:, :, None, None], "logits", r"\[3, 4, 1, 1\]"),
        (lambda z: z[:1].squeeze(), "logits", r"\[4\]"),
        (lambda z: z[:, :1], "logits", "binary-logit"),
        (lambda z: z, "binary-logit", "found 4"),
    ],
)
def test_outputs_other_than_class_scores_are_refused(change, outputs: str, match: str) -> None:
    classifier = brittle.Classifier(Wrapped(lambda x, logits: change(logits)), outputs=outputs)
    refused("output_shape", match, classifier, inputs(3))


def test_probabilities_and_one_logit_become_logits() -> None:
    plain = small_network()(inputs(3))
    probabilities = brittle.Classifier(Wrapped(lambda x, z: z.softmax(1)), outputs="probs")(inputs(3))
    assert torch.allclose(probabilities, plain.log_softmax(1), atol=1e-5)
    for change in (lambda x, z: z[:, :1], lambda x, z: z[:, 0]):
        binary = brittle.Classifier(Wrapped(change), outputs="binary-logit")(inputs(3))
        assert torch.equal(binary, torch.stack((torch.zeros(3), plain[:, 0]), dim=1))


def test_the_callers_data_are_not_changed() -> None:
    def overwrite(x: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        x.zero_()
        return logits

    x = inputs(3)
    brittle.Classifier(Wrapped(overwrite))(x)
    assert torch.equal(x, inputs(3))


def test_mean_and_std_are_applied_per_channel() -> None:
    batches = []
    classifier = brittle.Classifier(
        lambda x: batches.append(x) or x.flatten(1)[:, :2], bounds=(0, 255), mean=(1.0, 2.0), std=(2.0, 4.0)
    )
    classifier(torch.full((1, 2, 3, 3), 10.0))
    assert batches[0][0, :, 0, 0].tolist() == [4.5, 2.0]
    with pytest.raises(ParameterError, match="2 numbers for mean"):
        classifier(torch.zeros(1, 3, 3, 3))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"bounds": (1, 0)}, "found 1, 0"),
        ({"bounds": (0, float("nan"))}, "nan"),
        ({"std": 0.0}, "every std must be positive"),
        ({"mean": (0.1, float("inf"))}, "mean must be finite numbers"),
        ({"outputs": "scores"}, "logits, probs, binary-logit; found 'scores'"),
    ],
)
def test_impossible_declarations_are_refused(arguments: dict, sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        brittle.Classifier(small_network(), **arguments)


def test_a_module_that_ignores_evaluation_mode_is_refused() -> None:
    class Stubborn(nn.Module):
        def train(self, mode: bool = True) -> Stubborn:
            return self

    classifier = brittle.Classifier(nn.Sequential(Stubborn(), small_network()))
    refused("train_mode", ": 0", classifier.evaluating().__enter__)


def test_weights_on_two_devices_are_refused() -> None:
    refused("device", "cpu, meta", brittle.Classifier, nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, device="meta")))


def test_a_model_that_fails_is_quoted() -> None:
    refused("model_failed", r"\[2, 1, 9, 9\]: RuntimeError", brittle.Classifier(small_network()), inputs(2, (1, 9, 9)))


def test_half_precision_logits_are_widened() -> None:
    classifier = brittle.Classifier(small_network(dtype=torch.bfloat16))
    assert classifier(inputs(2)).dtype == torch.float32


def test_an_exported_program_is_scored() -> None:
    network = small_network()
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(network, (inputs(2),), dynamic_shapes=({0: batch},))
    linear = brittle.linearize(brittle.Classifier(program.module()), inputs(3))
    assert torch.allclose(linear.gram, brittle.linearize(brittle.Classifier(network), inputs(3)).gram, rtol=1e-5)


def test_classes_have_their_declared_names() -> None:
    """Labels may be class names, and the table has these names."""
    names = ["ant", "bee", "cat", "dog"]
    classifier, x = brittle.Classifier(small_network(), bounds=None, class_names=names), inputs(5)
    by_name, by_place = (
        brittle.score(classifier, (x, y), "softmax") for y in (["cat", "ant"] * 2 + ["dog"], [2, 0, 2, 0, 3])
    )
    assert by_name.points.equals(by_place.points)
    assert by_name.frame()["label"].tolist() == ["cat", "ant", "cat", "ant", "dog"]
    assert set(by_name.frame()["predicted"]) <= set(names)
    ambiguous = brittle.Classifier(small_network(), bounds=None, class_names=["ant", "ant", "cat", "dog"])
    refused("labels", "'ant'|ant", brittle.score, ambiguous, (x, ["ant"] * 5), "softmax")
    for bad_names in ("ant", [1, 2], []):
        with pytest.raises(ParameterError, match="class_names"):
            brittle.Classifier(small_network(), class_names=bad_names)  # pyright: ignore[reportArgumentType]


class LibraryError(Exception):
    """An error of a model's own library, of no usual kind."""


def test_an_error_of_any_kind_in_a_model_is_one_sentence() -> None:
    def fail(x: torch.Tensor) -> torch.Tensor:
        raise LibraryError("no such row")

    refused("model_failed", "LibraryError: no such row", brittle.Classifier(fail), inputs(3))
