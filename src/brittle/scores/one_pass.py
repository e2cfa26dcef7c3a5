"""Scores of one forward pass: one formula for the table, for a detector, and for a network that a detector is in.

Here are the confidences, such as margins between logits, the entropy and the softmax, and the margin among features.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from brittle.errors import ParameterError
from brittle.estimate import DISTANCES, DUAL_ORDER, FLIP_PROBABILITY, Estimate, Status, check_norm
from brittle.measure import Clean, Features, Forward, HeadInputs, Measurement
from brittle.scores.base import Score, clean_status, finish, mark
from brittle.scores.evidence import without_copies
from brittle.scores.options import option

LARGEST_FLOAT = float.fromhex("0x1.fffffep+127")  # the largest number of single precision, in which logits are
MOST_CLASSES = 2.0**63  # more classes than any network has
LARGEST_DISTANCE = 1e100  # above every distance between such logits, also divided by that between rows of weights


@dataclass(frozen=True)
class OnePass:
    """Results of a forward pass of `B` points."""

    logits: Tensor  # `[B, C]`, single precision or better; a formula makes double precision of what it reads
    features: Tensor | None = None  # what the last linear layer sees, `[B, d]`, where the formula reads it
    weight: Tensor | None = None  # of that layer, `[C, d]`, likewise
    log_probabilities: Tensor | None = None  # of an estimator, `[B, C]`, for a probability; None for the logits

    @cached_property
    def top(self) -> tuple[Tensor, Tensor]:
        """The largest and the second largest logit, `[B]` each, double precision."""
        largest, runner_up = self.logits.topk(2, dim=1).values.double().unbind(1)
        return largest, runner_up

    @property
    def logarithms(self) -> Tensor:
        """Logarithms of the probabilities but for a constant, `[B, C]`, double precision."""
        return (self.logits if self.log_probabilities is None else self.log_probabilities).double()

    @property
    def probabilities(self) -> Tensor:
        """Probabilities of an estimator, or the softmax of the logits, `[B, C]`, double precision."""
        return self.logarithms.softmax(dim=1)

    @property
    def features_and_weight(self) -> tuple[Tensor, Tensor]:
        assert self.features is not None
        assert self.weight is not None
        return self.features, self.weight


@dataclass(frozen=True)
class OnePassScore(Score):
    """A score whose value is a function of one forward pass."""

    cost = "1"
    safer = "higher"
    uses_features = False  # whether the formula reads the features
    minimum = 0.0  # no finite value is smaller
    maximum = LARGEST_DISTANCE  # no finite value is larger

    @abstractmethod
    def value(self, one_pass: OnePass) -> Tensor:
        """Return the score of each point, `[B]`, float64. Only operations of PyTorch that do not ask for a number,
        so that a network with the formula in it can be exported."""

    def checked_value(self, one_pass: OnePass) -> Tensor:
        """Return the same for a table, with the checks that a table needs, `[B]`."""
        return self.value(one_pass)

    @property
    def network(self) -> nn.Module | None:
        """Network that `value` runs on a pass, and that becomes a part of a network with the score built in."""
        return None

    def judge(self, status: Tensor, value: Tensor) -> Tensor:
        """Return the status of the points, `[B]`, from that of their clean pass and from their values."""
        return status

    @property
    def needs(self) -> tuple[Forward | Features]:
        return (Features() if self.uses_features else Forward(self.serves == "probability"),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """Return the value of the formula: as a flip probability without an interval, else with one of no width."""
        result: Clean | HeadInputs = measured[self.needs[0]]
        if isinstance(result, HeadInputs):
            clean, one_pass = result.clean, OnePass(result.clean.logits, result.features, result.weight)
        else:
            clean, one_pass = result, OnePass(result.logits, log_probabilities=result.log_probabilities)
        value = self.checked_value(one_pass).to(clean.logits.device)
        logs = one_pass.log_probabilities
        broken = torch.zeros_like(clean.tied) if logs is None else ~logs.isfinite().all(dim=1)
        status = self.judge(mark(clean_status(clean), broken, Status.NONFINITE_LOGITS), value)
        if self.quantity == FLIP_PROBABILITY:
            return without_copies(value, status, result.passes)
        return finish(value, value, value, status, result.passes)


@dataclass(frozen=True)
class LogitMargin(OnePassScore):
    """`z_t - max_{j != t} z_j`, in units of the logits; 0 at a tie.

    Validity: exact, with an interval of no width. Whether it says anything about distance depends on the model.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 2.1.
    """

    name: ClassVar[str] = "logit_margin"
    title = "Logit margin"
    quantity = "logit_margin"
    reference = "Ngnawé et al. (NeurIPS 2024), section 2.1"
    serves = "all"
    explanation = "The gap between the largest logit and the second."
    colour = 8
    maximum = 2.0 * LARGEST_FLOAT

    def value(self, one_pass: OnePass) -> Tensor:
        largest, runner_up = one_pass.top
        return largest - runner_up


@dataclass(frozen=True)
class FeatureMargin(OnePassScore):
    """`min_{j != t} (z_t - z_j) / ||w_t - w_j||_q`, `w` the rows of the last linear layer, `q` the dual of the norm.

    In units of the features; 0 at a tie.

    Validity: the exact distance, in the space of the features, to the nearest feature vector with another prediction;
    no such vector need belong to an input. The interval has no width. A class whose row equals that of the predicted
    one is no boundary, unless their logits are equal.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 2.1.

    Attributes:
        norm: of the distance between features, `l2`, `linf` or `l1`.
    """

    norm: str = field(default="l2", metadata=option(choices=DISTANCES))

    name: ClassVar[str] = "feature_margin"
    title = "Feature margin"
    quantity = "feature_distance"
    reference = "Ngnawé et al. (NeurIPS 2024), section 2.1"
    explanation = "The distance to the nearest decision boundary of the last layer, among its features."
    colour = 10
    uses_features = True

    def __post_init__(self) -> None:
        check_norm(self.norm)

    def value(self, one_pass: OnePass) -> Tensor:
        return feature_margin(one_pass.logits, one_pass.features_and_weight[1], self.norm)

    def judge(self, status: Tensor, value: Tensor) -> Tensor:
        return mark(status, value.isinf(), Status.ZERO_GRADIENT)


@dataclass(frozen=True)
class MaxProbability(OnePassScore):
    """`max_j p_j`, `p` the softmax of the logits, or `predict_proba` of an estimator over its sum.

    Validity: exact, with an interval of no width. It says how far the class stands out, not how far the boundary is.

    Source: Hendrycks, Gimpel, A baseline for detecting misclassified and out-of-distribution examples (ICLR 2017),
    section 2.
    """

    name: ClassVar[str] = "max_probability"
    title = "Maximum probability"
    quantity = "probability"
    reference = "Hendrycks, Gimpel (ICLR 2017)"
    serves = "probability"
    explanation = "The model's own confidence: the largest probability."
    colour = 12
    minimum = 1.0 / MOST_CLASSES
    maximum = 1.0

    def value(self, one_pass: OnePass) -> Tensor:
        return one_pass.probabilities.amax(dim=1)


@dataclass(frozen=True)
class ProbabilityMargin(OnePassScore):
    """`p_t - max_{j != t} p_j`, `p` the softmax of the logits, or `predict_proba` of an estimator over its sum.

    It is 0 at a tie, and negative where an estimator gives another class a larger probability than the predicted one.

    Validity: exact, with an interval of no width. It says how far the class stands out, not how far the boundary is.

    Source: Scheffer, Decomain, Wrobel, Active hidden Markov models for information extraction (IDA 2001), section 3.
    """

    name: ClassVar[str] = "probability_margin"
    title = "Probability margin"
    quantity = "probability"
    reference = "Scheffer et al. (IDA 2001)"
    serves = "probability"
    explanation = "The gap between the probability of the prediction and the largest other one."
    colour = 13
    minimum = -1.0
    maximum = 1.0

    def value(self, one_pass: OnePass) -> Tensor:
        shares, predicted = one_pass.probabilities, one_pass.logits.argmax(dim=1, keepdim=True)
        return shares.gather(1, predicted)[:, 0] - shares.scatter(1, predicted, 0.0).amax(dim=1)


@dataclass(frozen=True)
class Entropy(OnePassScore):
    """`-sum_j p_j log p_j` in nats, `p` the softmax of the logits, or `predict_proba` of an estimator over its sum.

    Validity: exact, with an interval of no width. It says how sure the model is, not how far the boundary is.

    Source: Shannon, A mathematical theory of communication (1948), section 6.
    """

    name: ClassVar[str] = "entropy"
    title = "Entropy"
    quantity = "entropy"
    reference = "Shannon (1948)"
    serves = "probability"
    explanation = "How widely the model spreads its probabilities; smaller is surer."
    safer = "lower"
    colour = 14
    maximum = math.log(MOST_CLASSES)

    def value(self, one_pass: OnePass) -> Tensor:
        shares = one_pass.probabilities
        return -(shares * shares.clamp_min(torch.finfo(shares.dtype).tiny).log()).sum(dim=1)  # ONNX has no `entr`


@dataclass(frozen=True)
class Softmax(OnePassScore):
    """One minus the softmax probability of the predicted class, `S / (1 + S)`, `S = sum_i exp(-g_i / T)`.

    Of an estimator `g_i` are log ratios of `predict_proba`: at `T = 1` it is one minus that of the predicted class.

    Validity: equals `TaylorMVS` where the gradients of all margins have one norm and `T = sigma ||grad g||`; in
    general a poor estimate of robustness, and the same at every sigma. It has no interval: nothing is sampled.

    Source: Han, Srinivas, Lakkaraju (UAI 2024), section 3.2.3; (ICML workshop 2023), lemma 3.2.

    Attributes:
        temperature: temperature `T` of the softmax, positive.
    """

    temperature: float = 1.0

    name: ClassVar[str] = "softmax"
    title = "Softmax"
    quantity = FLIP_PROBABILITY
    reference = "Han et al. (UAI 2024), section 3.2.3"
    serves = "probability"
    explanation = "The model's own confidence in its prediction. It knows nothing of the noise."
    safer = "lower"
    colour = 7
    preference = 8
    model = "the softmax"
    unsaid = ("temperature",)
    maximum = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise ParameterError(f"temperature must be positive and finite; found {self.temperature}")

    def value(self, one_pass: OnePass) -> Tensor:
        logits = one_pass.logarithms / self.temperature
        predicted = one_pass.logits.argmax(dim=1, keepdim=True)
        predicted_logit = logits.gather(1, predicted)
        other_logits = logits.scatter(1, predicted, -torch.inf)
        return torch.sigmoid(torch.logsumexp(other_logits - predicted_logit, dim=1))


def feature_margin(logits: Tensor, weight: Tensor, norm: str) -> Tensor:
    """Return the score of `FeatureMargin` for `logits` `[B, C]` and a head of `weight` `[C, d]`: `[B]`, float64.
    Infinite where no other class can be reached by changing the features."""
    exact, rows = logits.double(), weight.double()
    predicted = exact.argmax(dim=1)
    gaps = exact.gather(1, predicted[:, None]) - exact
    lengths = row_distances(rows, float(DUAL_ORDER[norm]))[predicted]
    unreachable = torch.where(gaps > 0, torch.inf, 0.0)
    distances = torch.where(lengths > 0, gaps / lengths, unreachable)
    return distances.scatter(1, predicted[:, None], torch.inf).amin(dim=1)


def row_distances(rows: Tensor, order: float) -> Tensor:
    """Distances `[C, C]` between `rows`, `[C, d]`, in the norm of this order. `cdist` takes a tenth of the time, but an
    export to ONNX has none that is right for each norm."""
    if torch.onnx.is_in_onnx_export():
        return torch.linalg.vector_norm(rows[:, None] - rows, ord=order, dim=2)
    return torch.cdist(rows, rows, p=order, compute_mode="donot_use_mm_for_euclid_dist")
