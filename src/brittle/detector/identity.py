"""What numbers belong to: a model, by its weights and what is done to its inputs and outputs, and a source of data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from msgspec import Meta
from torch import nn

from brittle.errors import DataError, ModelError, ParameterError
from brittle.model.bounds import check_bounds
from brittle.model.classifier import Classifier
from brittle.model.loading.weights import state_digest
from brittle.model.outputs import OUTPUTS
from brittle.scores.one_pass import LARGEST
from brittle.store.record import RunRecord
from brittle.store.strict_json import STRICT, Digest

SMALLEST = 2.0**-149
"""The smallest positive number of single precision."""

Number = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[float, Meta(ge=SMALLEST, le=LARGEST)]

PER_FEATURE = (
    "detectors know one range for all features, or none, and these bounds are per feature; score the run with bounds "
    "that hold all features (--bounds LOW HIGH, bounds=(LOW, HIGH)) or with none (--bounds none, bounds='none')"
)
"""Why a model gets no detector."""


def _about(decision: str) -> str:
    return (
        f"a detector and a pseudo-margin know the predicted class alone (or one logit); found the decision {decision}; "
        f"for one label wrap the model in one that returns its logit, with --decision one-logit (decision='one-logit')"
    )


@dataclass(frozen=True)
class Identity:
    """A model as a detector knows it. Two models of one identity give the same logits for the same inputs.

    The digest is over names, types, shapes and bytes of all weights, not over the code of the network.

    Attributes:
        state_sha256: digest of all parameters and buffers, 64 hexadecimal digits.
        bounds: smallest and largest value of an input, or None for inputs without bounds.
        mean: subtracted from the input, one number or one per channel, or None.
        std: what the difference is divided by, likewise.
        outputs: what the network returns, one of `brittle.model.outputs.OUTPUTS`.
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
    def of_run(cls, record: RunRecord) -> Identity:
        """The model of the run that `record` is of."""
        model = record.model
        if model.decision is not None:
            raise DataError("other_model", _about(model.decision))
        if model.state_sha256 is None:
            raise DataError(
                "other_model",
                f"the run of {model.spec} holds no digest of the model's weights, to which a detector is tied; "
                f"score a torch.nn.Module",
            )
        if model.bounds_shape is not None:
            raise DataError("bounds", PER_FEATURE)
        return cls(model.state_sha256, model.bounds, model.mean, model.std, model.outputs)

    @classmethod
    def of_classifier(cls, classifier: Classifier) -> Identity:
        """The model of `classifier`."""
        if not isinstance(classifier, Classifier):
            raise ParameterError(
                f"expected a brittle.Classifier, found {type(classifier).__name__}; wrap the model with what was "
                f"declared for the run: brittle.Classifier(model, bounds, mean, std)",
            )
        if not classifier.decision.of_classes:
            raise ModelError("other_model", _about(classifier.decision.label))
        bounds, model = classifier.bounds, classifier.model
        if bounds.pair is None and not bounds.none:
            raise ParameterError(PER_FEATURE)
        if not isinstance(model, nn.Module):
            kind = type(model).__name__
            raise ModelError("other_model", f"a detector is tied to the weights of a torch.nn.Module; found a {kind}")
        return cls(state_digest(model), bounds.pair, classifier.mean, classifier.std, classifier.outputs)

    def check(self, found: Identity, *, force: bool) -> bool:
        """Whether `found` is another model, which only `force` allows."""
        differing = self.differences(found)
        if differing and not force:
            raise ModelError(
                "other_model",
                f"the detector was fitted for another model or preprocessing: {differing}; fit one for this model, or "
                f"use --force (force=True), which is written into every row",
            )
        return bool(differing)

    def differences(self, found: Identity) -> str:
        """What of `found` is another, with both values, such as `mean (0.4,) here (0.5,)`; empty for the same model."""
        ours, theirs = asdict(self), asdict(found)
        return "; ".join(
            f"{name} {ours[name]!s:.60} here {theirs[name]!s:.60}" for name in ours if ours[name] != theirs[name]
        )


@dataclass(frozen=True)
class Source:
    """Where points come from, so that an id, which may be no more than a row number, says which point it is.

    Attributes:
        sha256: digest of the data, or None where it is not known.
        split: part of the data, or None.
        path: file or folder, or None.
    """

    sha256: str | None
    split: str | None
    path: str | None

    @classmethod
    def of(cls, provenance: Mapping[str, Any]) -> Source:
        """The source that the provenance of points describes, but for texts that strict JSON cannot hold."""
        texts = (provenance.get(name) for name in ("sha256", "split", "path"))
        return cls(*(one if one and one.isprintable() and len(one) <= STRICT.characters else None for one in texts))

    @classmethod
    def of_run(cls, record: RunRecord) -> Source:
        """The source of the points of the run that `record` is of."""
        data = record.data
        return cls.of({"sha256": data.sha256, "split": data.split, "path": data.path})

    def same(self, other: Source) -> bool:
        """Whether an id in one is the same point in the other, by the digest."""
        return self.sha256 is not None and (self.sha256, self.split) == (other.sha256, other.split)

    def may_share(self, other: Source) -> bool:
        """Whether an id in one may be the same point in the other: the same digest, or the same place.

        The digest of a folder of images depends on how many of them were read.
        """
        return self.same(other) or (self.path is not None and (self.path, self.split) == (other.path, other.split))

    def __str__(self) -> str:
        named = [self.path or "data in memory", self.split, self.sha256 and f"sha256 {self.sha256}"]
        return ", ".join(part for part in named if part)


def check_same_run(margins: RunRecord, scores: RunRecord) -> None:
    """Raise unless two runs, of which the records are given, are of the same model and the same data."""
    differing = Identity.of_run(margins).differences(Identity.of_run(scores))
    if differing:
        raise ModelError(
            "other_model",
            f"the run of the scores is of another model or preprocessing than that of the margins: {differing}; score "
            f"the points by the same",
        )
    ours, theirs = (Source.of_run(run) for run in (margins, scores))
    if not ours.same(theirs):
        raise DataError(
            "runs_differ",
            f"the run of the scores is of other data ({theirs}) than that of the margins ({ours}), so that an id may "
            f"be another point; score the same data",
        )
