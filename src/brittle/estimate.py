"""Estimates of a batch of points, the norms of distances, and the status of each point."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal, Self

from brittle.errors import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from torch import Tensor

CONFIDENCE = 0.99  # confidence of all intervals unless told
LIMIT = 0.9  # a prediction holds where it is kept with this probability or more, unless told
FLIP_PROBABILITY = "flip_probability"  # the quantity of a score whose value is `1 - p_robust`
LARGEST_DRAWS = 10_000_000  # more noisy copies of one point than anybody waits for; a larger number is a mistake
INPUT_MARGIN = "input_margin"  # the score that holds the distance to the nearest input found with another prediction
DUAL_ORDER = {"linf": 1.0, "l2": 2.0, "l1": math.inf}  # norms, and their dual orders, `1/p + 1/q = 1`
ORDER = {"linf": math.inf, "l2": 2.0, "l1": 1.0}  # the order of each norm itself
COUNT = "l0"  # the number of features that change: a distance that no norm gives, without a dual
DISTANCES = (*DUAL_ORDER, COUNT)  # norms of the distance between two inputs
Scalar = str | int | float | bool | None  # value of a parameter
Parameter = Scalar | tuple[Scalar, ...]  # types of the parameters of a score
Parameters = dict[str, Parameter]  # parameters by their names, as the table writes them
Direction = Literal["higher", "lower"] | None  # safer values; None without a ranking


class Status(IntEnum):
    """Outcome of the evaluation of a point, with a sentence for each.

    Members below `NONFINITE_INPUT` come with a number, the others never do (`has_value`).
    In tables a status is its lower-case name; `sentence` says it in words.
    """

    sentence: str

    def __new__(cls, code: int, sentence: str) -> Self:
        member = int.__new__(cls, code)
        member._value_, member.sentence = code, sentence
        return member

    # fmt: off
    OK = 0, "Evaluated as described."
    TIE = 1, "Two classes share the largest logit, so nothing decides the prediction."
    CLASSES_KEPT = 2, "Only competing classes that can win were looked at; what the others may add is bounded."
    ILL_CONDITIONED = 3, "The margins are almost linearly dependent, so the number has fewer exact digits."
    NOT_FOUND = 4, "No input with another prediction was found; the distance is infinite, which proves nothing."
    MASKED = 5, "Gradients vanish or mislead, so the nearest other decision may be much nearer."
    KINK = 6, "The network is not differentiable at this point, so its second derivatives there are one-sided."
    CONTRADICTED = 7, "The votes of the same copies exclude the estimate; the interval reaches out to what was counted."
    VACUOUS = 8, "The interval is so wide that it says next to nothing; take more draws."
    NOISY_TIES = 9, "Some noisy copies tie with another class: flips for the value; the interval holds either way."
    DISAGREE = 11, "The ways to sample the rare flips disagree: the interval says only what they are at most."
    NO_FLIP = 12, "No noise that flips the prediction was found; the interval says what its probability is at most."
    UNFORESEEN = 13, "Stretched or shrunk noise flips more often than foreseen: the interval is only an upper bound."
    COARSE = 14, "The ways to sample the rare flips agree, each with a large error, so the interval is wide."
    NO_CERTIFICATE = 15, "No certificate could be computed: the low end of 0 proves nothing; the value is the attack's."
    REFUTED = 16, "Another prediction was found within the certified radius: nothing is certified, the low end is 0."
    NONFINITE_INPUT = 100, "The input holds NaN or infinite values."
    DECODE_ERROR = 101, "The image could not be decoded, or its format is none of those that are read."
    IMAGE_MODE = 102, "The image's colour mode cannot be converted to that of the data set."
    IMAGE_TOO_LARGE = 103, "The image has more pixels than the limit and was not decoded."
    MULTI_FRAME = 104, "The image holds more than one frame."
    LABEL_RANGE = 106, "The label is not one of the model's classes."
    WORKER_DIED = 107, "The process that computed this point died of it."
    NONFINITE_LOGITS = 110, "The model returned NaN or infinite logits."
    NONFINITE_GRADIENT = 111, "The gradient of the logits holds NaN or infinite values."
    ZERO_GRADIENT = 112, "The gradient of every margin is zero, so a linear estimate says nothing."
    NO_VARIATION = 113, "The noise changed no margin, so a normal model of the margins says nothing."
    INDEFINITE = 114, "The covariance of the margins is not positive semidefinite, beyond what rounding explains."
    # fmt: on

    @property
    def slug(self) -> str:
        """The name used in tables, such as `nonfinite_input`."""
        return self.name.lower()

    @property
    def has_value(self) -> bool:
        """True where a number comes with this status."""
        return self < Status.NONFINITE_INPUT


class Evidence(IntEnum):
    """Evidence of a flip probability; tables have its lower-case name.

    `COUNTED`: noisy copies were counted; the interval holds for every model. `MODELLED`: a model was fitted to noisy
    copies that reach as far as the number does; the interval counts them. `EXTRAPOLATED`: a model says it, of noise
    that no noisy copy drew: below one flip in the number of draws, whose interval counts them, or without any draws
    and without an interval. `SAMPLED`: rare flips were found, and their probability was sampled in several ways; flips
    to which no margin leads and that few rays from the point meet are not in it.
    """

    COUNTED = 0
    MODELLED = 1
    EXTRAPOLATED = 2
    SAMPLED = 3

    @property
    def slug(self) -> str:
        """The name used in tables, such as `modelled`."""
        return self.name.lower()


@dataclass(frozen=True)
class Estimate:
    """A score for a batch of `B` points.

    Attributes:
        value: the score, `[B]`, float64; NaN exactly where `status` carries no number.
        low: lower end of the interval, `[B]`, in the unit of `value`; NaN where nothing is known of the error of the
            number, as of a model that looks at no noisy copy.
        high: upper end, likewise.
        status: members of `Status` as integers, `[B]`, int64.
        passes: passes through the network for the point, `[B]`, int64; forward and backward passes count one each.
        detail: for each point, what was found there, or None.
        evidence: members of `Evidence` as integers, `[B]`, int64; None for scores that are no flip probability.
        counted: interval of the flip probability by the votes of the noisy copies that the score looked at, whatever
            the model: lower and upper ends, `[B]` each; None where it looked at none.
        votes: the classes that these copies voted for, as cells of the table (`brittle.store.schemas`); None likewise.
    """

    value: Tensor
    low: Tensor
    high: Tensor
    status: Tensor
    passes: Tensor
    detail: tuple[str | None, ...] | None = None
    evidence: Tensor | None = None
    counted: tuple[Tensor, Tensor] | None = None
    votes: tuple[bytes, ...] | None = None


def check_norm(norm: str, allowed: Collection[str] = tuple(DUAL_ORDER)) -> str:
    """`norm` itself, if it is one of `allowed`."""
    if norm == COUNT and COUNT not in allowed:
        raise UnknownNameError(
            f"{COUNT} is a distance for input_margin alone; here the norm is one of {', '.join(allowed)}"
        )
    if not isinstance(norm, str) or norm not in allowed:
        near = get_close_matches(str(norm), allowed, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UnknownNameError(f"no norm is called {norm!r:.60}; {hint}there are {', '.join(allowed)}")
    return norm


def parameters_json(parameters: Mapping[str, Any]) -> str:
    """Return the parameters of a score as the table writes them: JSON with sorted keys and no blanks, 1.0 as 1."""
    for key, value in parameters.items():
        for number in value if isinstance(value, tuple | list) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                raise ParameterError(f"a parameter of a score is a finite number; the record holds {key}={number}")
    written = {key: _written(value) for key, value in parameters.items()}
    return json.dumps(written, sort_keys=True, separators=(",", ":"), allow_nan=False)


def score_label(score: str, parameters: Mapping[str, Parameter]) -> str:
    """Return a score with its parameters as one writes it, such as `moments(draws=20, sigma=0.1)`."""
    inside = ", ".join(f"{key}={_written(value)}" for key, value in sorted(parameters.items()))
    return f"{score}({inside})" if inside else score


def short_labels(labels: Iterable[str]) -> dict[str, str]:
    """Return labels as people read them: without digests and units, unless two were then alike."""
    short = {label: _BULKY.sub("", label).replace("(, ", "(").replace("()", "") for label in labels}
    times = Counter(short.values())
    return {label: text if times[text] == 1 else label for label, text in short.items()}


_BULKY = re.compile(r"(, |(?<=\())(unit=[^,()=]+|\w+=[0-9a-f]{16,64})(?=[,)])")  # tells people nothing


def _written(value: Any) -> Any:
    """Return a number as it is written: equal numbers alike, since scores that have them are equal."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
