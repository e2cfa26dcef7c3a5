"""What is wrong with this model, these data, these settings, before anything is scored.

Each check looks at a few of the points and either raises, with what was seen and what to do, or notes a finding that
goes into the run record and onto the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from brittle.classifier import Classifier
from brittle.data.points import Batch
from brittle.errors import DataError, ModelError, ParameterError
from brittle.intervals import clopper_pearson
from brittle.models import check_weights
from brittle.noise import Noise, Stream
from brittle.scores import NoiseScore, Score

LOOKED_AT = 64
"""Points that the checks send through the network."""

REPEATS = 5
"""Forward passes of the same points that must agree."""

TOLERANCE = 1e-6
"""How far outside the bounds an input may lie, as a share of their distance."""

ABSORBED_SHARE = 0.01
"""Share of input numbers that noise may leave unchanged because of rounding."""

HUGE_SIGMA = 10.0
"""Noise above this many times the value range is noted."""

NARROW = 0.05
"""Share of the declared range below which the values are noted."""

GUARD_ROWS = 1000
"""Labelled points over which accuracy is judged."""


@dataclass(frozen=True)
class Finding:
    """Something a user should know that does not stop a run.

    Attributes:
        code: short name, stable.
        sentence: what was seen, and what to do.
    """

    code: str
    sentence: str


@dataclass(frozen=True)
class Diagnosis:
    """What looking at the first points showed.

    Attributes:
        classes: number of classes `C`.
        input_shape: shape of one input.
        findings: what a user should know.
    """

    classes: int
    input_shape: tuple[int, ...]
    findings: tuple[Finding, ...]


def examine(
    classifier: Classifier,
    batch: Batch,
    labels: Sequence[int] | None,
    scores: Sequence[Score],
    seed: int,
    rows: int,
) -> Diagnosis:
    """Look at the first points of a run and at its settings.

    Args:
        classifier: what will be scored, in evaluation mode.
        batch: the first points, at least one.
        labels: all labels of the data, or None.
        scores: what will be computed.
        seed: seed of the run.
        rows: most rows in one pass through the network.

    Returns:
        what was seen.

    Raises:
        DataError: the values or labels do not fit the declaration.
        ModelError: what the model returns cannot be scored.
        ParameterError: the noise is too small for the precision of the inputs.
    """
    if isinstance(classifier.model, nn.Module):
        check_weights(classifier.model, "the model")
    check_values(batch, classifier.bounds)
    inputs = usable(batch)[: min(rows, LOOKED_AT)]
    if len(inputs) == 0:
        raise DataError(
            "no_usable_points", f"none of the first {len(batch)} points can be read: {_first_detail(batch)}"
        )
    inputs = inputs.to(classifier.device)
    with torch.no_grad():
        logits = _repeatable_logits(classifier, inputs)
        _check_batch_of_one(classifier, inputs)
        finite = _check_finite(logits)
        _check_constant(classifier, inputs, finite)
        if any(need.uses_features for score in scores for need in score.needs):
            classifier.observe(inputs)  # raises where the logits are not those of a linear layer
    if labels is not None:
        check_labels(torch.as_tensor(labels), logits.shape[1])
    findings = (
        *_about_mode(classifier),
        *_about_range(inputs, classifier.bounds),
        *_about_outputs(classifier, finite),
        *_about_duplicates(finite),
        *_about_noise(classifier, inputs, scores, seed),
    )
    return Diagnosis(logits.shape[1], tuple(inputs.shape[1:]), findings)


def usable(batch: Batch) -> Tensor:
    """The inputs that were read and hold no NaN or infinite value, `[V, *shape]`."""
    return batch.inputs[_readable(batch)]


def _about_range(inputs: Tensor, bounds: tuple[float, float]) -> Iterator[Finding]:
    """A finding where the values use so little of the declared range that it is hardly theirs."""
    low, high = bounds
    smallest, largest = float(inputs.min()), float(inputs.max())
    if largest - smallest < NARROW * (high - low):
        yield Finding(
            "narrow_range",
            f"the first {len(inputs)} rows hold values from {smallest:.4g} to {largest:.4g}, the declared range is "
            f"[{low:g}, {high:g}]; sigma and the bounds are in the units of the data (--bounds, bounds=)",
        )


def _readable(batch: Batch) -> Tensor:
    read = torch.tensor([status.has_value for status in batch.status], dtype=torch.bool, device=batch.inputs.device)
    return read & batch.inputs.flatten(1).isfinite().all(dim=1)


def check_values(batch: Batch, bounds: tuple[float, float]) -> None:
    """Raise where an input lies outside the declared bounds.

    Raises:
        DataError: it does, by more than rounding.
    """
    inputs = usable(batch).flatten(1)
    if inputs.numel() == 0:
        return
    low, high = bounds
    slack = TOLERANCE * (high - low)
    smallest, largest = float(inputs.min()), float(inputs.max())
    if smallest >= low - slack and largest <= high + slack:
        return
    outside = ((inputs < low - slack) | (inputs > high + slack)).any(dim=1)
    first = torch.tensor(batch.rows)[_readable(batch).cpu()][outside.cpu()][0]
    rows = int(outside.sum())
    seen = f"values from {smallest:.4g} to {largest:.4g}, outside [{low:g}, {high:g}] in {rows} of {len(inputs)} rows"
    if smallest >= 0 and 16 < largest <= 255 and (low, high) == (0.0, 1.0):
        advice = "use --bounds 0 255 (bounds=(0, 255)) or divide by 255"
    elif smallest < low and (high - low) <= 2:
        advice = "the data look normalised; give pixels and declare --mean and --std (mean=, std=) instead"
    else:
        advice = "declare the range with --bounds LO HI (bounds=)"
    raise DataError("value_range", f"{seen}, the first of them row {int(first)}; {advice}")


def check_labels(labels: Tensor, classes: int) -> None:
    """Raise where the labels as a whole do not fit the model's classes.

    Raises:
        DataError: labels count from 1, or more than 1% (and more than one) lie outside `0 .. classes - 1`.
    """
    if len(labels) and int(labels.min()) >= 1 and int(labels.max()) == classes:
        raise DataError(
            "label_offset", f"labels {int(labels.min())}..{classes}, the model has 0..{classes - 1}; subtract 1"
        )
    wrong = (labels < 0) | (labels >= classes)
    count = int(wrong.sum())
    if count > 1 and count > 0.01 * len(labels):
        seen = sorted({int(label) for label in labels[wrong]})[:5]
        raise DataError(
            "label_range",
            f"{count} of {len(labels)} labels lie outside the model's classes 0..{classes - 1}, such as {seen}; "
            f"correct them, or leave the labels out",
        )


def check_accuracy(expected: float, classifier: Classifier, batch: Batch, rows: int) -> None:
    """Raise where the accuracy on labelled points is surely below what the user expects.

    Raises:
        ParameterError: the expectation is not between 0 and 1, or there are no labels to compare with.
        DataError: the upper end of the 99% interval of the accuracy lies below `expected`.
    """
    if not 0.0 < expected <= 1.0:
        raise ParameterError("expected_accuracy", f"the expected accuracy must lie in (0, 1]; found {expected}")
    if batch.labels is None:
        raise ParameterError("expected_accuracy", "an accuracy is expected, but the data carry no labels")
    read = _readable(batch)
    labels = torch.tensor(batch.labels)[read.cpu()]
    with torch.no_grad():
        predicted = torch.cat([classifier(part).argmax(dim=1).cpu() for part in batch.inputs[read].split(rows)])
    correct, labelled = int((predicted == labels).sum()), len(labels)
    high = float(clopper_pearson(correct, labelled, 0.99)[1])
    if high < expected:
        raise DataError(
            "accuracy_guard",
            f"accuracy {correct / labelled:.3f} on {labelled} labelled rows (at most {high:.3f} with 99% confidence), "
            f"expected {expected:g}; check bounds, mean and std, channel order and the order of the classes",
        )


def about_accuracy(correct: int, labelled: int, classes: int) -> Iterator[Finding]:
    """A finding where a model is hardly better than chance on many labelled points."""
    if labelled >= GUARD_ROWS and correct < (1.0 / classes + min(1.0 / classes, 0.1)) * labelled:
        yield Finding(
            "accuracy_suspicious",
            f"accuracy {correct / labelled:.3f} on {labelled} labelled rows, little better than chance; check bounds, "
            f"mean and std, channel order and the order of the classes",
        )


def _first_detail(batch: Batch) -> str:
    details = [detail for detail in batch.detail if detail]
    return details[0] if details else "NaN or infinite values"


def _about_mode(classifier: Classifier) -> Iterator[Finding]:
    if classifier.was_training:
        yield Finding("train_mode", "the model was in training mode; it was scored in evaluation mode and put back")


def _check_batch_of_one(classifier: Classifier, inputs: Tensor) -> None:
    alone = classifier(inputs[:1])
    company = torch.cat((inputs, _random_inputs(classifier, inputs)))
    together = classifier(company)[:1]
    difference = _largest_difference(alone, together)
    if difference > _noise_floor(classifier, together):
        raise ModelError(
            "batch_dependent",
            f"row 0 alone and in a batch of {len(company)} differ by {difference:.3g} in the logits; the model mixes "
            f"the rows of a batch (batch norm without running statistics, attention across rows)",
        )


def _repeatable_logits(classifier: Classifier, inputs: Tensor) -> Tensor:
    first = classifier(inputs)
    worst = max(_largest_difference(first, classifier(inputs)) for _ in range(REPEATS - 1))
    if worst > _noise_floor(classifier, first):
        raise ModelError(
            "nondeterministic_model",
            f"{REPEATS} passes of the same {len(inputs)} rows differ by up to {worst:.3g} in the logits; switch off "
            f"dropout and other randomness (before an export: model.eval())",
        )
    return first


def _noise_floor(classifier: Classifier, logits: Tensor) -> float:
    """Difference in the logits that rounding explains."""
    precision = torch.finfo(classifier.output_dtype).eps
    scale = 1.0 + float(logits.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max())
    return 1000.0 * precision * scale


def _largest_difference(one: Tensor, other: Tensor) -> float:
    different = torch.where(one.isfinite() & other.isfinite(), (one - other).abs(), torch.inf)
    same = (one == other) | (one.isnan() & other.isnan())
    return float(torch.where(same, 0.0, different).max())


def _check_finite(logits: Tensor) -> Tensor:
    """The rows with finite logits; raises when there are none."""
    finite = logits.isfinite().all(dim=1)
    if not bool(finite.any()):
        seen = "NaN" if bool(logits.isnan().any()) else "infinite"
        raise ModelError(
            "nonfinite_logits",
            f"the model returned {seen} logits in all of the {len(logits)} rows looked at; check the weights and the "
            f"range of the inputs",
        )
    return logits[finite]


def _check_constant(classifier: Classifier, inputs: Tensor, logits: Tensor) -> None:
    probes = classifier(_random_inputs(classifier, inputs))
    if bool((torch.cat((logits, probes)) == logits[0]).all()):
        shown = ", ".join(f"{value:.4g}" for value in logits[0, :5].tolist())
        raise ModelError(
            "constant_output",
            f"the model returned the same logits ({shown}…) for {len(logits)} rows and for 2 random inputs; it does "
            f"not look at its input",
        )


def _random_inputs(classifier: Classifier, like: Tensor) -> Tensor:
    """Two inputs of the same shape, uniform in the bounds."""
    low, high = classifier.bounds
    uniform = torch.rand(2, *like.shape[1:], generator=torch.Generator().manual_seed(0))
    return (uniform * (high - low) + low).to(like)


def _about_outputs(classifier: Classifier, logits: Tensor) -> Iterator[Finding]:
    precision = torch.finfo(classifier.output_dtype).eps
    allowed = 8.0 * precision * logits.shape[1]
    if classifier.outputs == "probs":
        _check_probabilities(logits.double().exp().sum(dim=1), allowed)
    if classifier.outputs != "logits":
        return
    inside = bool(((logits >= 0) & (logits <= 1)).all())
    sums = logits.double().sum(dim=1)
    if inside and bool(((sums - 1).abs() <= allowed).all()):
        raise ModelError(
            "probabilities",
            "every row of the output is between 0 and 1 and sums to 1: these are probabilities; use --outputs probs "
            "(outputs='probs'), which takes their logarithm",
        )
    if inside and logits.numel() >= LOOKED_AT:
        raise ModelError(
            "sigmoid_outputs",
            f"every output is between 0 and 1, but rows sum to {float(sums.min()):.3g} to {float(sums.max()):.3g}: "
            f"these look like sigmoids of a multi-label model, which is not supported; return the class scores",
        )
    if bool((torch.logsumexp(logits.double(), dim=1).abs() <= allowed).all()):
        yield Finding("log_softmax", "the outputs are log-probabilities (log-softmax); they serve as logits")


def _check_probabilities(sums: Tensor, allowed: float) -> None:
    if bool(((sums - 1).abs() > allowed).any()):
        raise ModelError(
            "not_probabilities",
            f"the outputs were declared as probabilities, but rows sum to {float(sums.min()):.3g} to "
            f"{float(sums.max()):.3g}; leave out --outputs probs (outputs='probs') if they are class scores",
        )


def _about_duplicates(logits: Tensor) -> Iterator[Finding]:
    columns = logits.T
    _, owner, count = torch.unique(columns, dim=0, return_inverse=True, return_counts=True)
    repeated = [(owner == group).nonzero().flatten().tolist() for group in (count > 1).nonzero().flatten()]
    for classes in repeated[:3]:
        yield Finding(
            "duplicate_classes",
            f"classes {', '.join(map(str, classes[:5]))} have identical logits in all {len(logits)} rows looked at",
        )


def _about_noise(classifier: Classifier, inputs: Tensor, scores: Sequence[Score], seed: int) -> Iterator[Finding]:
    low, high = classifier.bounds
    noises = {score.noise: None for score in scores if isinstance(score, NoiseScore)}
    for noise in noises:
        if noise.sigma > HUGE_SIGMA * (high - low):
            yield Finding(
                "huge_sigma",
                f"sigma {noise.sigma:g} is {noise.sigma / (high - low):.3g} times the value range {high - low:g}; "
                f"sigma is in pixel units",
            )
        _check_not_absorbed(classifier, inputs, noise, seed)


def _check_not_absorbed(classifier: Classifier, inputs: Tensor, noise: Noise, seed: int) -> None:
    """Raise where adding the noise leaves inputs as they are, because it is below their spacing."""
    if noise.name == "function_gaussian":
        return
    seen = inputs[:8].to(classifier.dtype or inputs.dtype)
    ids = [f"probe {number}" for number in range(len(seen))]
    draw = Stream(noise, seen, ids, seed, "doctor").draw(1)[:, 0]
    absorbed = float(((seen + draw == seen) & (draw != 0)).double().mean())
    if absorbed > ABSORBED_SHARE:
        raise ParameterError(
            "sigma_too_small",
            f"noise of sigma {noise.sigma:g} changes nothing in {absorbed:.0%} of the input numbers, because "
            f"{str(seen.dtype).removeprefix('torch.')} cannot tell them apart; use a larger sigma",
        )
