"""Numbers, names and terms as the report prints them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

MISSING = "–"
"""What stands where there is nothing to say."""

NEAR_ONE = 5e-4
"""A flip probability below this would round `p_robust` to 1; it is then written as its complement."""

EXPLANATIONS = {
    "monte_carlo": "The share of noisy copies that keep the prediction. Unbiased, and its interval is exact; it needs "
    "many passes and cannot tell points apart that no draw flips.",
    "moments": "Fits a normal distribution to the decision margins of a few noisy copies and integrates it. No "
    "gradients; resolves probabilities very near 1.",
    "taylor": "Replaces the model by its tangent at the point, for which the probability is known. Cheap; only as good "
    "as the tangent.",
    "taylor_mvs": "As taylor, with a logistic formula in place of the normal integral.",
    "mmse": "Averages the tangents at noisy copies of the point (SmoothGrad), then integrates as taylor does.",
    "mmse_mvs": "As mmse, with a logistic formula in place of the normal integral.",
    "mmse_margin": "Averages only the nearest margin (to one other class) and its gradient; one backward pass a draw.",
    "softmax": "The model's own confidence in its prediction. It knows nothing of the noise.",
    "logit_margin": "The gap between the largest logit and the second.",
    "first_order_margin": "The distance to the nearest decision boundary if the model were its tangent.",
    "feature_margin": "The distance to the nearest decision boundary of the last layer, among its features.",
    "feature_distance": "How far the features move on the way to the nearest input found with another prediction; a "
    "fixed multiple of the input margin where features keep distances.",
    "input_margin": "The distance to the nearest input found with another prediction: an upper bound, as attacks may "
    "miss a nearer one. Many passes.",
    "pseudo_margin": "A stand-in for the input margin, learned from the features of other points.",
    "max_probability": "The model's own confidence: the largest probability.",
    "probability_margin": "The gap between the largest probability and the second.",
    "entropy": "How widely the model spreads its probabilities; smaller is surer.",
    "laplacian": "The trace of the second derivatives of the predicted probability: which way small noise moves it on "
    "average. Blind to kinks around the point.",
    "smoothed_laplacian": "The Laplacian of the probability averaged over noise: the sampled change, in the "
    "Laplacian's unit.",
    "probability_change": "How noise changes the predicted probability, sampled: its mean, variance and mean size.",
    "first_order_change": "Variance and mean size of that change if the probability were its tangent.",
    "change_bound": "An upper bound on the mean size of that change, for the second-order model of the probability.",
}
"""One plain sentence or two for each score."""


def shown(value: Any, limit: int | None = None) -> str:
    """`value` as text that can be read: control, bidirectional and invalid characters as escapes, long text cut."""
    if value is None or value != value:
        return MISSING
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def short(number: float, digits: int = 2) -> str:
    """`number` to a few significant digits, such as `0.034` or `3.2e-7`."""
    if not math.isfinite(number):
        return MISSING
    if number == 0.0:
        return "0"
    if 1e-3 <= abs(number) < 10.0**digits:
        return f"{number:#.{digits}g}".rstrip(".")
    mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def signed(number: float, digits: int = 2) -> str:
    """`number` as `short` writes it, with a true minus; an infinite one as such."""
    text = "∞" if math.isinf(number) else short(abs(number), digits)
    return f"−{text}" if number < 0.0 else text


def reach(low: float, high: float, digits: int = 2) -> str:
    """An interval of numbers of any sign and size."""
    return f"{signed(low, digits)} to {signed(high, digits)}"


def small_percent(share: float) -> str:
    """`share` in per cent, with as many digits as tell it from none and from all."""
    if 0.995 <= share < 1.0:
        return f"{min(100.0 * share, 99.9):.1f}%"
    return f"{short(100.0 * share)}%" if 0.0 < share < 5e-4 else percent(share)


def p_value(value: float) -> str:
    """A p-value."""
    return "below 1e-16" if value < 1e-16 else short(value)


def at_most(number: float) -> str:
    """A positive upper bound, rounded up to three decimals, or to one digit if it is smaller."""
    if number > 1e-3:
        return f"{min(math.ceil(1000.0 * number) / 1000.0, 1.0):.3g}"
    exponent = math.floor(math.log10(number))
    return short(math.ceil(number / 10.0**exponent) * 10.0**exponent, 1)


def fixed(number: float, digits: int = 3) -> str:
    """`number` with `digits` decimals."""
    return f"{number:,.{digits}f}" if math.isfinite(number) else MISSING


def percent(share: float) -> str:
    """`share` in per cent, with one decimal below 10%."""
    return f"{100.0 * share:.{0 if share >= 0.0995 else 1}f}%" if math.isfinite(share) else MISSING


def interval(low: float, high: float, digits: int = 3) -> str:
    """An interval with `digits` decimals."""
    return f"{fixed(low, digits)} to {fixed(high, digits)}"


def percent_interval(low: float, high: float) -> str:
    """An interval of shares in per cent."""
    return f"{percent(low)} to {percent(high)}"


def p_robust(flip: float, bound: float | None = None) -> str:
    """`1 - flip`; as a difference where rounding would hide the flip probability.

    Where a model alone says that it is small, `bound` is the largest flip probability that it allows, and is shown.
    """
    if bound is not None and flip < NEAR_ONE:
        high = at_most(max(bound, SMALLEST))
        return f"above 1 − {high}" if bound < NEAR_ONE else f"above {fixed(1.0 - float(high))}"
    return f"1 − {short(flip)}" if 0.0 < flip < NEAR_ONE else fixed(1.0 - flip)


MODELS = {
    "moments": "the normal model",
    "taylor": "the linear model",
    "taylor_mvs": "the linear model",
    "mmse": "the linear model",
    "mmse_mvs": "the linear model",
    "mmse_margin": "the linear model",
    "softmax": "the softmax",
}
"""What an estimator says a flip probability by that no noisy copy showed."""

SMALLEST = 1e-12
"""The smallest bound that is written: below it a number says more of a model's tail than of a network."""


def extrapolated(flip: float, high: float, score: str) -> str:
    """A flip probability that was not seen: the bound that the model gives, where it is small, and which model."""
    model = MODELS.get(score, "its model")
    if flip < NEAR_ONE:
        return f"below {at_most(max(high, SMALLEST))}, by {model}"
    return f"{short(flip, 3)}, by {model}"


def flip_interval(low: float, high: float) -> str:
    """The interval of a flip probability."""
    return MISSING if math.isnan(low) or math.isnan(high) else f"{short(low)} to {short(high)}"


def plural(count: int, noun: str) -> str:
    """`count` of `noun`, such as `1 point` or `1,024 points`."""
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{ending}"


def range_text(texts: Sequence[str]) -> str:
    """The first and the last of `texts`, or the one if they are alike."""
    if not texts:
        return MISSING
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"


def duration(seconds: Any) -> str:
    """A time in the unit that suits it."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return shown(seconds)
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
