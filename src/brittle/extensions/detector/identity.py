"""The identity of a model (its weights and the treatment of its inputs and outputs), and of a source of data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from msgspec import Meta

from brittle.errors import DataError, ModelError, ParameterError
from brittle.model.bounds import check_bounds
from brittle.model.classifier import Classifier
from brittle.model.digest import digest_of
from brittle.model.outputs import OUTPUTS
from brittle.scores.one_pass import LARGEST_FLOAT
from brittle.store.record import ModelRecord
from brittle.store.strict_json import Digest

Number = Annotated[float, Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]  # a number of single precision
Positive = Annotated[float, Meta(ge=2.0**-149, le=LARGEST_FLOAT)]  # a positive number of single precision

PER_FEATURE = (
    "detectors allow one range for all features, or none, and these bounds are per feature; score the run with bounds "
    "that hold all features (--bounds LOW HIGH, bounds=(LOW, HIGH)) or with none (--bounds none, bounds='none')"
)
"""The error text for a model with bounds per feature."""


@dataclass(frozen=True)
class Identity:
    """The identity of a model: two models with the same identity give the same logits for the same inputs.

    The digest covers names, types, shapes and bytes of all weights, or the fitted state of an estimator, but no code.

    Attributes:
        state_sha256: digest of all parameters and buffers, or of the estimator, 64 hexadecimal digits.
        bounds: smallest and largest value of an input, or None for inputs without bounds.
        mean: subtracted from the input, one number or one per channel, or None.
        std: divisor of the difference, likewise.
        outputs: form of the output of the network, one of `brittle.model.outputs.OUTPUTS`.
    """

    state_sha256: Digest
    bounds: tuple[Number, Number] | None
    mean: Annotated[tuple[Number, ...], Meta(min_length=1)] | None
    std: Annotated[tuple[Positive, ...], Meta(min_length=1)] | None
    outputs: str

    def __post_init__(self) -> None:
        if self.bounds is not None:
            check_bounds(self.bounds)
        if self.outputs not in OUTPUTS:
            raise ParameterError(f"outputs must be one of {', '.join(OUTPUTS)}; found {self.outputs!r:.80}")

    @classmethod
    def of_run(cls, model: ModelRecord) -> Identity:
        """Return the identity of the model that the record of a run describes."""
        _check_decision("of a random model" if model.random else model.decision)
        if model.state_sha256 is None:
            raise _without_weights(model.spec)
        if model.bounds_shape is not None:
            raise DataError("bounds", PER_FEATURE)
        return cls(model.state_sha256, model.bounds, model.mean, model.std, model.outputs)

    @classmethod
    def of_classifier(cls, classifier: Classifier) -> Identity:
        """Return the identity of the model of `classifier`."""
        if not isinstance(classifier, Classifier):
            raise ParameterError(
                f"expected a brittle.Classifier, found {type(classifier).__name__}; wrap the model with the bounds and "
                f"the preprocessing of the run: brittle.Classifier(model, bounds, mean, std)"
            )
        decision = None if classifier.decision.of_classes else classifier.decision.label
        _check_decision("of a random model" if classifier.random else decision)
        bounds, model = classifier.bounds, classifier.model
        if bounds.pair is None and not bounds.none:
            raise ParameterError(PER_FEATURE)
        digest = digest_of(model)
        if digest is None:
            raise _without_weights(type(model).__name__)
        return cls(digest, bounds.pair, classifier.mean, classifier.std, classifier.outputs)

    def declare(self, network: Any) -> Classifier:
        """Return a network as a classifier with this preprocessing; a classifier as it is."""
        if isinstance(network, Classifier):
            return network
        return Classifier(network, self.bounds, self.mean, self.std, outputs=self.outputs)

    def check(self, classifier: Classifier, owner: str) -> None:
        """Raise unless the model of `classifier` has this identity, which `owner` names, as `the run is`."""
        if differing := self.differences(Identity.of_classifier(classifier)):
            raise ModelError(
                "other_model",
                f"{owner} of another model or preprocessing: {differing}; use those that belong together, or fit again",
            )

    def differences(self, actual: Identity) -> str:
        """List the fields that differ with both values, such as `mean (0.4,) here (0.5,)`; empty for the same model."""
        pairs = {name: (value, getattr(actual, name)) for name, value in asdict(self).items()}
        return "; ".join(f"{name} {old!s:.60} here {new!s:.60}" for name, (old, new) in pairs.items() if old != new)


def _check_decision(decision: str | None) -> None:
    if decision is not None:
        raise ModelError(
            "other_model",
            f"a detector and a pseudo-margin support the predicted class alone; found the decision {decision}; for one "
            f"label wrap the model so that it returns its logit, with --outputs binary-logit (outputs='binary-logit')",
        )


def _without_weights(model: str) -> ModelError:
    return ModelError(
        "other_model",
        f"a detector belongs to the digest of a model's weights; {model} has no digest: score a torch.nn.Module, or a "
        f"fitted scikit-learn classifier that pickle takes, without lambdas, functions in functions, locks or files",
    )


@dataclass(frozen=True)
class Source:
    """The source of points, so that an id, which may be a mere row number, identifies a point.

    Attributes:
        sha256: digest of the data, or None if unknown.
        split: part of the data, or None.
        path: file or folder, or None.
    """

    sha256: str | None
    split: str | None
    path: str | None

    @classmethod
    def of(cls, provenance: Mapping[str, Any]) -> Source:
        """Return the source that the provenance of points describes."""
        return cls(*(provenance.get(name) or None for name in ("sha256", "split", "path")))

    def is_same(self, source: Source) -> bool:
        """Return whether an id stands for the same point in both sources, by the digest."""
        return self.sha256 is not None and (self.sha256, self.split) == (source.sha256, source.split)

    def may_share(self, source: Source) -> bool:
        """Return whether an id may stand for the same point in both sources: the same digest, or the same place.

        The digest of a folder of images depends on the number of images read.
        """
        return self.is_same(source) or (self.path == source.path is not None and self.split == source.split)

    def __str__(self) -> str:
        parts = [self.path or "data in memory", self.split, self.sha256 and f"sha256 {self.sha256}"]
        return ", ".join(part for part in parts if part)
