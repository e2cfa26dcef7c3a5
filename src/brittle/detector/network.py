"""A network with the detector built in: logits, score and flag from one forward pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, fx, nn

from brittle.classifier import Classifier
from brittle.detector.formulas import Formula, Seen
from brittle.errors import ModelError
from brittle.head import Head, find_head


class DetectorNetwork(nn.Module):
    """From inputs `[B, *shape]`, in the declared units, to `(logits, score, brittle)`, `[B, C]`, `[B]` and `[B]`.

    `score` is in double precision, `brittle` holds booleans: True unless all logits are finite, one of them alone is
    the largest, and the score is a finite number that reaches the threshold. The network runs once; it shares its
    weights with the classifier's, and is put into evaluation mode, in which it stays. Without preprocessing it gets the
    caller's own inputs: a network that works in place on its input does so here too.

    It can be exported with a free batch dimension (`torch.export.export(wrapped, (x,), dynamic_shapes=...,
    strict=False)`), and the exported program flags the same points.

    Attributes:
        forced: whether the network is not the one that the detector was fitted for.
    """

    def __init__(
        self,
        classifier: Classifier,
        formula: Formula,
        norm: str,
        threshold: float,
        regressor: nn.Module | None,
        forced: bool,
    ) -> None:
        super().__init__()
        head = classifier.head if formula.uses_features else None
        exported = isinstance(classifier.model, fx.GraphModule)
        self.network = head.observe if head is not None and exported else classifier.model
        self.regressor = regressor
        self.forced = forced
        self._head = None if head is None else _path(self.network, head)
        self._weight = None if head is None or not exported else head.weight
        self._formula, self._norm, self._threshold = formula, norm, threshold
        self._dtype, self._outputs = classifier.dtype, classifier.outputs
        self._scaled = bool(classifier.mean or classifier.std)
        dtype = classifier.dtype or torch.float32
        for name, numbers, neutral in (("mean", classifier.mean, 0.0), ("std", classifier.std, 1.0)):
            values = torch.tensor(numbers or (neutral,), dtype=dtype, device=classifier.device)
            self.register_buffer(name, values, persistent=False)
        self.eval()

    mean: Tensor
    std: Tensor

    def train(self, mode: bool = True) -> DetectorNetwork:
        """Evaluation mode is the only one.

        Raises:
            ModelError: `mode` asks for training.
        """
        if mode:
            raise ModelError("train_mode", "a detector was fitted in evaluation mode, the only one that it has")
        self.training = False
        for part in self.children():
            _evaluate(part)
        return self

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See the class."""
        output, features, weight = self._observe(self._as_seen(inputs))
        logits = self._logits(output)
        exact = logits.double()
        seen = Seen(exact, self._norm, features, weight, self.regressor)
        score = self._formula.value(seen)
        top = seen.top
        total = exact.sum(dim=1) + score
        finite = (
            total - total == 0
        )  # one kernel after the sum; isfinite() of every logit is a cost small networks notice
        safe = finite & (top[:, 0] > top[:, 1]) & (score >= self._threshold)
        return logits, score, ~safe

    def _as_seen(self, inputs: Tensor) -> Tensor:
        """The inputs as the network sees them; without preprocessing the caller's own, as it gets them bare."""
        moved = inputs.to(self._dtype or inputs.dtype)
        if not self._scaled:
            return moved
        shape = (1, -1) + (1,) * (inputs.dim() - 2)
        return (moved - self.mean.to(moved.dtype).view(shape)) / self.std.to(moved.dtype).view(shape)

    def _observe(self, seen: Tensor) -> tuple[Any, Tensor | None, Tensor | None]:
        """What the network returns, and where they are needed the features and the weight of the last layer."""
        if self._head is None:
            return self.network(seen), None, None
        if self._weight is not None:
            output, features = self.network(seen)
            return output, features, self._weight.double()
        head = find_head(self.network, self._head)
        output, features = head.observe(seen)
        return output, features, head.weight.double()

    def _logits(self, output: Any) -> Tensor:
        """Logits `[B, C]`, in single precision or better, as `Classifier` makes them."""
        scores = output if isinstance(output, Tensor) else _named(output)
        if self._outputs == "binary-logit":
            scores = scores.reshape(scores.shape[0], 1)
            scores = torch.cat((torch.zeros_like(scores), scores), dim=1)
        if scores.dim() != 2 or scores.shape[1] < 2:
            raise ModelError(
                "output_shape", f"the network gave a result of shape {list(scores.shape)}; [B, C] is needed, C >= 2"
            )
        scores = scores if scores.dtype in (torch.float32, torch.float64) else scores.float()
        return _log_probabilities(scores) if self._outputs == "probs" else scores


def _path(network: Any, head: Head) -> str:
    """Where in `network` the layer of `head` is; empty where it is the network itself, or an exported program."""
    layers = (name for name, layer in network.named_modules() if getattr(layer, "weight", None) is head.weight)
    return next(layers, "")


def _evaluate(part: nn.Module) -> None:
    """Evaluation mode; an exported program refuses to change its own, which was fixed when it was exported."""
    if not isinstance(part, fx.GraphModule):
        part.eval()


def _named(output: Any) -> Tensor:
    return output["logits"] if isinstance(output, Mapping) else output.logits


def _log_probabilities(scores: Tensor) -> Tensor:
    """Logarithms of probabilities, NaN for what is none; one that underflowed counts as the smallest number."""
    logarithms = scores.clamp_min(torch.finfo(scores.dtype).tiny).log()
    return torch.where((scores >= 0) & (scores <= 1 + 1e-2), logarithms, torch.nan)
