"""Does the model return class scores that look at the input?"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from brittle.doctor.subject import LOOKED_AT, Finding, Subject
from brittle.errors import ModelError


def check_forward(subject: Subject) -> Iterator[Finding | str]:
    """The model takes the inputs and returns class scores."""
    logits = subject.logits
    taken = subject.classifier.taken
    seen = f"{list(subject.inputs.shape)} gave {list(logits.shape)}, {_name(subject.classifier.output_dtype)}"
    yield seen if taken is None else f"{seen}, taken from {taken}"


def check_finite(subject: Subject) -> Iterator[Finding | str]:
    """The logits are finite in at least one row; rows where they are not get no number."""
    logits, finite = subject.logits, len(subject.finite)
    if finite == 0:
        seen = "NaN" if bool(logits.isnan().any()) else "infinite"
        raise ModelError(
            "nonfinite_logits",
            f"the model returned {seen} logits in all of the {len(logits)} rows looked at; check the weights and the "
            f"range of the inputs",
        )
    yield f"finite in {finite} of {len(logits)} rows"


def check_constant(subject: Subject) -> Iterator[Finding | str]:
    """The logits differ between inputs."""
    logits = subject.finite
    with torch.no_grad():
        probes = subject.classifier(subject.random_inputs())
    if bool((torch.cat((logits, probes)) == logits[0]).all()):
        shown = ", ".join(f"{value:.4g}" for value in logits[0, :5].tolist())
        raise ModelError(
            "constant_output",
            f"the model returned the same logits ({shown}…) for {len(logits)} rows and for {len(probes)} random "
            f"inputs; it does not look at its input",
        )
    yield f"they differ between {len(logits)} rows and {len(probes)} random inputs"


def check_kind(subject: Subject) -> Iterator[Finding | str]:
    """The outputs are logits, and not probabilities, sigmoids or the outputs of another task."""
    logits, declared = subject.finite, subject.classifier.outputs
    allowed = 8.0 * float(torch.finfo(subject.classifier.output_dtype).eps) * logits.shape[1]
    yield f"declared as {declared}, from {float(logits.min()):.4g} to {float(logits.max()):.4g}"
    if declared == "probs":
        _check_probabilities(logits.double().exp().sum(dim=1), allowed)
    if declared != "logits":
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


def check_duplicates(subject: Subject) -> Iterator[Finding | str]:
    """No two classes have the same logits."""
    logits = subject.finite
    _, owner, count = torch.unique(logits.T, dim=0, return_inverse=True, return_counts=True)
    repeated = [(owner == group).nonzero().flatten().tolist() for group in (count > 1).nonzero().flatten()]
    for classes in repeated[:3]:
        yield Finding(
            "duplicate_classes",
            f"classes {', '.join(map(str, classes[:5]))} have identical logits in all {len(logits)} rows looked at; "
            f"a tie between them decides nothing, remove the copy",
        )
    yield f"{logits.shape[1]} classes, all different"


def check_head(subject: Subject) -> Iterator[Finding | str]:
    """The logits are those of a linear layer, where a score reads its features."""
    if not any(need.uses_features for need in subject.needs):
        yield "no chosen score needs features"
        return
    with torch.no_grad():
        _, features = subject.classifier.observe(subject.inputs)
    yield f"{subject.classifier.head_name or 'the last linear layer'} sees {features.shape[1]} features"


def _check_probabilities(sums: Tensor, allowed: float) -> None:
    if bool(((sums - 1).abs() > allowed).any()):
        raise ModelError(
            "not_probabilities",
            f"the outputs were declared as probabilities, but rows sum to {float(sums.min()):.3g} to "
            f"{float(sums.max()):.3g}; leave out --outputs probs (outputs='probs') if they are class scores",
        )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
