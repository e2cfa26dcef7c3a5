"""Odd networks: what people build by mistake, and what is sound and hard. One line each, with a name and a builder.

Five families. `company`: rows lean on the other rows of their batch. `state`: what was seen before decides. `outputs`:
what is returned are no plain class scores. `gradients`: the gradient is not that of the function. `geometry`: sound
networks whose margins under noise are not normal, or that only look like members of the other families.

`brittle` may refuse a network by a name that is on its list; else every number that it stands behind must hold the
truth of `tests/helpers/truth.py`. A network with an empty list must be scored.
"""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from helpers import truth
from helpers.truth import Network
from torch import Tensor, nn

WIDTH, STEPS = 16, 5

SHAPE, SERIES = (4,), (STEPS, 3)
"""Shapes of an input: plain numbers, and a short series."""

BOUNDS = (-1.0, 1.0)
"""Of all inputs."""

COMPANY = ("batch_dependent",)
"""What networks may be called whose rows lean on each other."""

STATE = ("nondeterministic_model", "mutates_state", "cached_output", "model_changed", "batch_dependent")
"""What networks may be called that remember."""

GRADIENTS = ("masked_gradient", "zero_gradient", "not_differentiable")
"""What networks may be called whose gradients are of no use, where scores with gradients are asked for."""

Step = Callable[[Any, Tensor], Tensor]
"""From a `Custom` network and its input to class scores."""


@dataclass(frozen=True)
class OddNetwork:
    """One network with its declaration.

    Attributes:
        name: what is odd.
        family: one of the five.
        build: makes the network, as if nothing had been run before.
        shape: of one input.
        sigma: the larger of the two standard deviations at which it is scored.
        refused: codes by which it may be refused.
        without_gradients: codes by which it may be refused where scores with gradients are asked for.
        outputs: what it is declared to return.
        meaning: turns what it returns into class scores, whatever was declared.
        points: inputs in a run.
        rows: most rows in a batch; None leaves it to `brittle`.
        fresh: the truth needs a new network for every copy.
        place: moves the inputs, uniform in the bounds, to where the network is odd.
    """

    name: str
    family: str
    build: Callable[[], Network]
    shape: tuple[int, ...] = SHAPE
    sigma: float = 0.3
    refused: tuple[str, ...] = ()
    without_gradients: tuple[str, ...] = ()
    outputs: str = "logits"
    meaning: Callable[[Tensor], Tensor] = truth.logits_of
    points: int = 24
    rows: int | None = None
    fresh: bool = False
    place: Callable[[Tensor], Tensor] | None = None

    def inputs(self) -> Tensor:
        """The inputs of a run, `[points, *shape]`, the same ones every time."""
        x = torch.rand(self.points, *self.shape, generator=torch.Generator().manual_seed(1)) * 2 - 1
        return x if self.place is None else self.place(x)


# Parts.


def seeded(make: Callable[[], nn.Module], seed: int = 0, gain: float = 1.0) -> nn.Module:
    """What `make` makes with the random weights of a seed, times `gain`, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = make().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(gain)
    return made


@cache
def small(classes: int = 3, size: int = 4, seed: int = 0) -> nn.Module:
    """A sound network with one hidden layer, lively enough that noise of 0.3 flips some predictions."""
    return seeded(lambda: nn.Sequential(nn.Linear(size, WIDTH), nn.Tanh(), nn.Linear(WIDTH, classes)), seed, 3.0)


class Custom(nn.Module):
    """A network with something done on the way, and a memory.

    Attributes:
        base: a sound network.
        step: from this network and its input to class scores.
        memory: what it remembers, no parameter and no buffer.
    """

    def __init__(self, step: Step, base: nn.Module | None = None) -> None:
        super().__init__()
        self.base = small() if base is None else base
        self.step = step
        self.memory = SimpleNamespace(calls=0, rows=0, known={}, value=None)

    def forward(self, x: Tensor) -> Tensor:
        return self.step(self, x)


def custom(step: Step, base: Callable[[], nn.Module] = small) -> Callable[[], nn.Module]:
    return lambda: Custom(step, base())


def on_logits(change: Callable[[Tensor], Tensor], classes: int = 3) -> Callable[[], nn.Module]:
    """The small network with its class scores changed."""
    return custom(lambda m, x: change(m.base(x)), lambda: small(classes))


def company(name: str, build: Callable[[], nn.Module], **more: Any) -> OddNetwork:
    return OddNetwork(name, "company", build, **({"refused": COMPANY, "points": 40} | more))


def state(name: str, step: Step, **more: Any) -> OddNetwork:
    base = more.pop("base", small)
    return OddNetwork(name, "state", custom(step, base), **({"refused": STATE, "fresh": True, "points": 40} | more))


def outputs(name: str, build: Callable[[], nn.Module], *refused: str, **more: Any) -> OddNetwork:
    return OddNetwork(name, "outputs", build, refused=refused, **more)


def gradients(name: str, step: Step, base: Callable[[], nn.Module] = small, **more: Any) -> OddNetwork:
    options: dict[str, Any] = {"without_gradients": GRADIENTS} | more
    return OddNetwork(name, "gradients", custom(step, base), **options)


def sound(name: str, build: Callable[[], Network], shape: tuple[int, ...] = SHAPE, **more: Any) -> OddNetwork:
    return OddNetwork(name, "geometry", build, shape, **more)


def margin(name: str, of: Callable[[Tensor], Tensor], size: int = 2, **more: Any) -> OddNetwork:
    """Two classes apart by a margin that is given as a function of the input, `[B, size]` to `[B]`."""
    return sound(name, two_classes(of), (size,), **more)


def two_classes(of: Callable[[Tensor], Tensor]) -> Callable[[], Network]:
    def network(x: Tensor) -> Tensor:
        half = of(x) / 2
        return torch.stack((half, -half), dim=1)

    return lambda: network


# Rows that lean on each other.


class Recurrent(nn.Module):
    """A recurrent layer over a series and a head on its last step; without `batch_first` it runs along the batch."""

    def __init__(self, kind: type[nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.layer = kind(SERIES[1], WIDTH, **options)  # pyright: ignore[reportArgumentType] right when it runs
        self.head = nn.Linear(WIDTH * (2 if options.get("bidirectional") else 1), 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x)[0][:, -1])


class Attentive(nn.Module):
    """Self-attention over the steps of a series; without `batch_first` it runs along the batch."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.embed = nn.Linear(SERIES[1], WIDTH)
        self.block = nn.TransformerEncoderLayer(WIDTH, 2, WIDTH, dropout=0.1, **options)
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.block(self.embed(x)).mean(dim=1))


def series(name: str, make: Callable[[], nn.Module], gain: float = 2.5, **more: Any) -> OddNetwork:
    return company(name, lambda: seeded(make, gain=gain), shape=SERIES, **more)


def with_attention(m: Custom, x: Tensor) -> Tensor:
    """Attention of every row to all rows, by their distance."""
    return torch.softmax(-4 * torch.cdist(x, x), dim=1) @ m.base(x)


def with_capacity(m: Custom, x: Tensor) -> Tensor:
    """Two experts that take half the batch at most; rows beyond get the other one."""
    expert = (x[:, 0] > 0).long()
    place = nn.functional.one_hot(expert, 2).cumsum(0).gather(1, expert[:, None])[:, 0]
    full = place > max(1, len(x) // 2)
    return torch.where(((expert == 1) ^ full)[:, None], m.base(x), m.base(x).roll(1, 1))


def balanced(m: Custom, x: Tensor) -> Tensor:
    """Sinkhorn: rows and columns of the scores brought to equal sums in turn."""
    scores = logits = m.base(x)
    for _ in range(3):
        scores = scores - scores.logsumexp(0, keepdim=True)
        scores = scores - scores.logsumexp(1, keepdim=True)
    return logits + 2 * scores


def in_ghosts(m: Custom, x: Tensor) -> Tensor:
    """Centred in groups of eight rows."""
    return torch.cat([part - 0.7 * part.mean(0) for part in m.base(x).split(8)])


def beside_nearest(m: Custom, x: Tensor) -> Tensor:
    """Averaged with the nearest other row."""
    apart = torch.cdist(x, x) + torch.eye(len(x)) * (1e3 if len(x) > 1 else 0)
    logits = m.base(x)
    return logits + logits[apart.argmin(1)]


def where_rows(m: Custom, x: Tensor, chosen: Tensor) -> Tensor:
    """The classes in another order in the chosen rows."""
    return torch.where(chosen[:, None], m.base(x).roll(1, 1), m.base(x))


def place(x: Tensor) -> Tensor:
    return torch.arange(len(x))


def standardised(x: Tensor) -> Tensor:
    return (x - x.mean(0)) / (x.std(0, unbiased=False) + 0.3)


def normed() -> nn.Module:
    """Batch norm without running statistics, over a series, so that one row alone has statistics of its own."""
    return nn.Sequential(nn.BatchNorm1d(STEPS, track_running_stats=False), nn.Flatten(), small(3, 15))


FAMILY_COMPANY = [
    series("LSTM along the batch", lambda: Recurrent(nn.LSTM)),
    series("LSTM along the batch, both ways", lambda: Recurrent(nn.LSTM, bidirectional=True)),
    series("GRU along the batch", lambda: Recurrent(nn.GRU)),
    series("RNN along the batch", lambda: Recurrent(nn.RNN), gain=1.5),
    series("transformer along the batch", lambda: Attentive()),
    series("batch norm without running statistics", normed, gain=1.0),
    company("attention across rows", custom(with_attention)),
    company("experts with a capacity", custom(with_capacity)),
    company("relative to the previous row", on_logits(lambda z: z - 0.7 * z.roll(1, 0))),
    company("relative to the next row", on_logits(lambda z: z - 0.7 * z.roll(-1, 0))),
    company("relative to the first row", on_logits(lambda z: z - 0.7 * z[:1])),
    company("relative to the last row", on_logits(lambda z: z - 0.7 * z[-1:])),
    company("relative to the mean row", on_logits(lambda z: z - 0.7 * z.mean(0))),
    company("relative to the median row", on_logits(lambda z: z - 0.7 * z.median(0).values)),
    company("relative to the largest of the batch", on_logits(lambda z: z * torch.sign(z - z.amax(0) + 1.5))),
    company("softmax over the batch", on_logits(lambda z: z + 3 * z.softmax(0) * len(z))),
    company("a branch on the batch's mean", custom(lambda m, x: m.base(x) if x.mean() > 0 else m.base(x).roll(1, 1))),
    company("a branch on the batch's maximum", custom(lambda m, x: m.base(x if x.amax() < 1.2 else -x))),
    company("inputs standardised over the batch", custom(lambda m, x: m.base(standardised(x)))),
    company("inputs scaled by the batch's largest", custom(lambda m, x: m.base(x / x.abs().amax()))),
    company("rounded to levels of the batch's range", custom(lambda m, x: m.base(_levels(x))), refused=(
        *COMPANY, *GRADIENTS)),
    company("hidden layer standardised over the batch", custom(
        lambda m, x: m.base[2](standardised(m.base[1](m.base[0](x))) + m.base[1](m.base[0](x))))),
    company("rows sorted by their first number", custom(lambda m, x: m.base(x)[x[:, 0].argsort()])),
    company("rank within the batch", custom(lambda m, x: m.base(x) + 0.2 * x.argsort(0).argsort(0)[:, :3])),
    company("only the top half of the batch", custom(
        lambda m, x: where_rows(m, x, m.base(x).amax(1) < m.base(x).amax(1).median()))),
    company("a prize for the surest row", custom(
        lambda m, x: where_rows(m, x, (place(x) == m.base(x).amax(1).argmax()) & (len(x) > 1)))),
    company("only in batches above 64", custom(lambda m, x: where_rows(m, x, (place(x) >= 0) & (len(x) > 64))),
            points=70, rows=128),
    company("only in batches of 17 rows or more", custom(lambda m, x: where_rows(m, x, place(x) + len(x) * 2 > 32))),
    company("only in batches of odd size", custom(
        lambda m, x: where_rows(m, x, (place(x) >= 0) & (len(x) % 2 == 1) & (len(x) > 1))), points=69),
    company("only at rows from 64 on", custom(lambda m, x: where_rows(m, x, place(x) >= 64)), points=100, rows=128),
    company("only in the second half of the batch", custom(
        lambda m, x: where_rows(m, x, (2 * place(x) >= len(x)) & (len(x) > 1)))),
    company("a code for the place in the batch", custom(
        lambda m, x: m.base(x) + torch.sin(place(x)[:, None] * torch.arange(1, 4)))),
    company("running mean over rows", on_logits(lambda z: z.cumsum(0) / torch.arange(1, len(z) + 1)[:, None])),
    company("running maximum over rows", on_logits(lambda z: z + 0.5 * z.cummax(0).values)),
    company("Sinkhorn", custom(balanced)),
    company("distances to the batch", custom(lambda m, x: m.base(x) + 3 * torch.cdist(x, x).mean(1, keepdim=True)
                                             * torch.tensor([1.0, 0.0, -1.0]))),
    company("averaged with the nearest row", custom(beside_nearest)),
    company("centred in groups of eight", custom(in_ghosts)),
]  # fmt: skip


def _levels(x: Tensor) -> Tensor:
    """Eight levels up to the largest of the batch, as dynamic quantisation has them."""
    unit = x.abs().amax() / 4
    return torch.round(x / unit) * unit


# What was seen before decides.


def into_buffer(m: Custom, x: Tensor) -> Tensor:
    """Writes into one buffer and returns it."""
    logits = m.base(x)
    if m.memory.value is None or len(m.memory.value) < len(x):
        m.memory.value = torch.empty(max(len(x), 64), logits.shape[1])
    with torch.no_grad():
        return m.memory.value[: len(x)].copy_(logits)


def mixed_into_buffer(m: Custom, x: Tensor) -> Tensor:
    """Adds to what its buffer holds from the call before."""
    out = into_buffer(m, x) if m.memory.value is None else m.memory.value[: len(x)]
    if len(out) < len(x):
        m.memory.value = None
        return into_buffer(m, x)
    with torch.no_grad():
        return out.mul_(0.5).add_(m.base(x))


def memo(key: Callable[[Tensor], Any]) -> Step:
    """Class scores computed once for each key."""

    def step(m: Custom, x: Tensor) -> Tensor:
        known = key(x)
        if known not in m.memory.known:
            m.memory.known[known] = m.base(x)
        return m.memory.known[known]

    return step


def after(calls: int, change: Callable[[Custom, Tensor], Tensor] | None = None) -> Step:
    """Another network once it was called so often."""

    def step(m: Custom, x: Tensor) -> Tensor:
        m.memory.calls += 1
        if m.memory.calls <= calls:
            return m.base(x)
        return m.base(-x) if change is None else change(m, x)

    return step


def after_rows(m: Custom, x: Tensor) -> Tensor:
    m.memory.rows += len(x)
    return m.base(x) if m.memory.rows <= 700 else m.base(x).roll(1, 1)


def first_statistics(m: Custom, x: Tensor) -> Tensor:
    """Scaled by what the first batch was like."""
    if m.memory.value is None:
        m.memory.value = x.detach().abs().amax()
    return m.base(x / m.memory.value)


def moving_average(m: Custom, x: Tensor) -> Tensor:
    """Centred on a moving average that goes on in evaluation mode."""
    old = torch.zeros(x.shape[1]) if m.memory.value is None else m.memory.value
    m.memory.value = 0.95 * old + 0.05 * (x.detach().mean(0) + 0.5)
    return m.base(x - old)


def smoothed_in_time(m: Custom, x: Tensor) -> Tensor:
    """Half of what it said last, where the shape is the same."""
    logits, last = m.base(x), m.memory.value
    m.memory.value = logits.detach()
    return logits + last if last is not None and last.shape == logits.shape else logits


def decaying(m: Custom, x: Tensor) -> Tensor:
    with torch.no_grad():
        m.base[0].weight.mul_(0.99)  # pyright: ignore[reportIndexIssue] a layer of a known kind
    return m.base(x)


def counting_buffer(m: Custom, x: Tensor) -> Tensor:
    m.base.count += 1  # pyright: ignore[reportOperatorIssue] a layer of a known kind
    return m.base.body(x) * torch.cos(m.base.count / 20)  # pyright: ignore[reportCallIssue] a layer of a known kind


def counted() -> nn.Module:
    """The small network with a buffer that counts."""
    made = nn.Module()
    made.body = small()
    made.register_buffer("count", torch.zeros(()))
    return made


def every(calls: int) -> Step:
    """The classes in another order once in so many calls."""

    def step(m: Custom, x: Tensor) -> Tensor:
        m.memory.calls += 1
        return m.base(x).roll(1, 1) if m.memory.calls % calls == 0 else m.base(x)

    return step


def seeded_noise(m: Custom, x: Tensor) -> Tensor:
    """The same noise in every call, so other noise in every row."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return m.base(x + 0.5 * torch.randn_like(x))


def dropped(m: Custom, x: Tensor) -> Tensor:
    return m.base(nn.functional.dropout(x, 0.3, training=True))


FAMILY_STATE = [
    state("an output buffer used again", into_buffer, without_gradients=GRADIENTS),
    state("an output buffer with a rest of the last call", mixed_into_buffer, without_gradients=GRADIENTS),
    state("a memo by shape", memo(lambda x: tuple(x.shape)), refused=(*STATE, "model_failed", *GRADIENTS)),
    state("a memo by the first number", memo(lambda x: (len(x), round(float(x.detach().flatten()[0]), 1))), refused=(
        *STATE, "model_failed", *GRADIENTS)),
    state("a memo by the tensor's id", memo(lambda x: (len(x), id(x))), refused=(
        *STATE, "model_failed", *GRADIENTS)),
    state("a memo by the tensor's address", memo(lambda x: (len(x), x.data_ptr())), refused=(
        *STATE, "model_failed", *GRADIENTS)),
    state("changes after 30 calls", after(30)),
    state("changes after 200 calls", after(200)),
    state("changes after 700 rows", after_rows),
    state("dropout comes back after 40 calls", after(40, dropped)),
    state("warms up for 3 calls", lambda m, x: after(3)(m, -x)),
    state("a scale set by the first batch", first_statistics),
    state("a moving average", moving_average),
    state("smoothed in time", smoothed_in_time),
    state("weights that decay", decaying, base=lambda: copy.deepcopy(small())),
    state("a buffer that counts", counting_buffer, base=counted),
    state("other outputs every second call", every(2)),
    state("other outputs every tenth call", every(10)),
    state("dropout left on", dropped),
    state("noise of its own", lambda m, x: m.base(x + 0.3 * torch.randn_like(x))),
    state("noise of its own, seeded in every call", seeded_noise),
    state("looks at the clock", lambda m, x: m.base(x) + 2 * math.sin(time.perf_counter() * 50) * torch.arange(3)),
]  # fmt: skip


# What is returned are no plain class scores.


def masked(value: float) -> Callable[[Tensor], Tensor]:
    """One class more, that can never win."""
    return lambda z: torch.cat((z, z.new_full((len(z), 1), value)), dim=1)


def half_detached(x: Tensor) -> Tensor:
    return small()(x) + 2 * small(3, 4, 7)(x).detach()


def _masked_networks(value: float) -> list[OddNetwork]:
    """A class masked with a value, in a sound network and beside three defects."""
    mask, name = masked(value), f"a class masked with {value:g}"
    return [
        outputs(name, on_logits(mask)),
        outputs(f"{name}, dropout left on", custom(lambda m, x: mask(dropped(m, x))), *STATE, fresh=True),
        outputs(f"{name}, centred over the batch", on_logits(lambda z: mask(z - 0.7 * z.mean(0))), *COMPANY),
        outputs(f"{name}, a detached branch", custom(lambda m, x: mask(half_detached(x))), without_gradients=GRADIENTS),
    ]


def where_first(value: float) -> Callable[[], nn.Module]:
    """A value in place of the first class's score where the first number is large."""

    def step(m: Custom, x: Tensor) -> Tensor:
        logits = m.base(x)
        return torch.where((x[:, :1] > 0.8) & (torch.arange(3) == 0), value, logits)

    return custom(step)


NOT_SCORES = ("sigmoid_outputs", "probabilities", "not_logits")
"""What outputs between 0 and 1 may be called."""

FAMILY_OUTPUTS = [
    outputs("one logit", on_logits(lambda z: z[:, :1]), outputs="binary-logit", meaning=truth.one_logit),
    outputs("a sigmoid declared as one logit", on_logits(lambda z: z[:, :1].sigmoid()), *NOT_SCORES,
            outputs="binary-logit", meaning=truth.one_probability),
    outputs("a sigmoid of a shifted logit declared as one logit", on_logits(lambda z: (z[:, :1] - 2).sigmoid()),
            *NOT_SCORES, outputs="binary-logit", meaning=truth.one_probability),
    outputs("probabilities declared as logits", on_logits(lambda z: z.softmax(1)), *NOT_SCORES),
    outputs("probabilities declared as such", on_logits(lambda z: z.softmax(1)), outputs="probs"),
    outputs("log-probabilities declared as logits", on_logits(lambda z: z.log_softmax(1))),
    outputs("log-probabilities declared as probabilities", on_logits(lambda z: z.log_softmax(1)), "not_probabilities",
            outputs="probs"),
    outputs("logits declared as probabilities", on_logits(lambda z: z), "not_probabilities", outputs="probs"),
    outputs("sigmoids of many labels", on_logits(lambda z: z.sigmoid()), *NOT_SCORES),
    outputs("a softmax so sharp that it saturates", on_logits(lambda z: (200 * z).softmax(1)), *GRADIENTS,
            outputs="probs"),
    outputs("the winner as a one-hot row", on_logits(lambda z: nn.functional.one_hot(z.argmax(1), 3).float()),
            *NOT_SCORES, *GRADIENTS),
    outputs("ranks", on_logits(lambda z: z.argsort(1).argsort(1).float()), *NOT_SCORES, without_gradients=GRADIENTS),
    *itertools.chain.from_iterable(_masked_networks(value) for value in (-1e2, -1e4, -1e9, -3e38)),
    outputs("a class masked with -inf", on_logits(masked(-math.inf)), "nonfinite_logits", "too_many_failures"),
    outputs("rounded to halves", on_logits(lambda z: torch.round(2 * z) / 2), without_gradients=GRADIENTS),
    outputs("rounded to whole numbers", on_logits(torch.round), without_gradients=GRADIENTS),
    outputs("clamped, so that large ones tie", on_logits(lambda z: z.clamp(-1, 1)), *GRADIENTS),
    outputs("rectified, so that small ones tie", on_logits(lambda z: torch.relu(z - 0.5)), *GRADIENTS),
    outputs("one class constant", on_logits(lambda z: torch.cat((z, torch.ones(len(z), 1)), 1))),
    outputs("two classes alike", on_logits(lambda z: torch.cat((z, z[:, :1]), 1)), "duplicate_classes"),
    outputs("all outputs the same", on_logits(lambda z: 0 * z + torch.arange(3)), "constant_output"),
    outputs("half precision", on_logits(lambda z: z.half())),
    outputs("brain floating point", on_logits(lambda z: z.bfloat16()), without_gradients=GRADIENTS),
    outputs("whole numbers", on_logits(lambda z: (10 * z).round().long()), without_gradients=GRADIENTS),
    outputs("scores of 1e30", on_logits(lambda z: z * 1e30), without_gradients=(*GRADIENTS, "nonfinite_gradient")),
    outputs("scores of 1e-30", on_logits(lambda z: z * 1e-30), "constant_output", *GRADIENTS),
    outputs("1e7 added to all", on_logits(lambda z: z + 1e7)),
    outputs("NaN where the first number is large", where_first(math.nan), "too_many_failures", "nonfinite_logits"),
    outputs("infinite where the first number is large", where_first(math.inf), "too_many_failures",
            "nonfinite_logits"),
    outputs("minus infinite where the first number is large", where_first(-math.inf), "too_many_failures",
            "nonfinite_logits"),
    outputs("double precision", on_logits(lambda z: z.double())),
]  # fmt: skip


# Gradients that are not those of the function.


def hidden(change: Callable[[Tensor], Tensor]) -> Step:
    """The small network with its hidden layer changed."""
    return lambda m, x: m.base[2](change(m.base[1](m.base[0](x))))


def scaled_gradient(factor: float) -> Callable[[Tensor], Tensor]:
    """The identity with a gradient that is so many times too large."""
    return lambda z: factor * z - ((factor - 1) * z).detach()


def without_grad(m: Custom, x: Tensor) -> Tensor:
    with torch.no_grad():
        return m.base(x)


FAMILY_GRADIENTS = [
    gradients("detached features", hidden(lambda h: h.detach())),
    gradients("no_grad", without_grad),
    gradients("rounded inputs", lambda m, x: m.base(torch.round(4 * x) / 4)),
    gradients("rounded features", hidden(lambda h: torch.round(4 * h) / 4)),
    gradients("signs for features", hidden(torch.sign)),
    gradients("straight-through rounding", hidden(lambda h: h + (torch.round(2 * h) / 2 - h).detach())),
    gradients("straight-through signs", hidden(lambda h: h + (torch.sign(h) - h).detach())),
    gradients("a detached branch", lambda m, x: half_detached(x)),
    gradients("a gradient twice as large", lambda m, x: scaled_gradient(2.0)(m.base(x))),
    gradients("a gradient half as large", lambda m, x: scaled_gradient(0.5)(m.base(x))),
    gradients("a gradient of the other sign", lambda m, x: scaled_gradient(-1.0)(m.base(x))),
    gradients("half of the inputs detached", lambda m, x: m.base(torch.cat((x[:, :2].detach(), x[:, 2:]), 1))),
    gradients("through numpy", lambda m, x: m.base(torch.from_numpy(x.detach().numpy().copy()))),
    gradients("saturated", lambda m, x: torch.tanh(60 * m.base(x)) * torch.tensor([1.0, 1.1, 1.2])),
    gradients("a gradient that is clipped", lambda m, x: m.base(
        scaled_gradient(0.01)(x.clamp(-0.5, 0.5)) + x - x.clamp(-0.5, 0.5))),
    gradients("hard choice of a branch", lambda m, x: torch.where(x[:, :1] > 0, m.base(x), m.base(-x)),
              without_gradients=()),
]  # fmt: skip


# Sound networks.


def trained(problem: str, classes: int = 2, activation: type[nn.Module] = nn.ReLU) -> Callable[[], nn.Module]:
    return lambda: _trained(problem, classes, activation)


@cache
def _trained(problem: str, classes: int, activation: type[nn.Module]) -> nn.Module:
    """A perceptron trained on points in the plane, in a fraction of a second."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(300, 2, generator=generator) * 2 - 1
    labels = {
        "rings": lambda: (x.norm(dim=1) * 2.2).long() % 2,
        "moons": lambda: (x[:, 1] > 0.5 * torch.sin(4 * x[:, 0])).long(),
        "blobs": lambda: torch.cdist(x, torch.rand(classes, 2, generator=generator) * 1.6 - 0.8).argmin(1),
    }[problem]()
    network = seeded(lambda: nn.Sequential(nn.Linear(2, 24), activation(), nn.Linear(24, 24), activation(),
                                           nn.Linear(24, classes)))  # fmt: skip
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(150):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(x), labels).backward()
        optimiser.step()
    return network.eval()


def deep(depth: int, activation: type[nn.Module], size: int = 10) -> Callable[[], nn.Module]:
    """A deep network with random weights."""

    def make() -> nn.Module:
        layers = [nn.Sequential(nn.Linear(size if not each else 32, 32), activation()) for each in range(depth)]
        return nn.Sequential(*layers, nn.Linear(32, 4))

    return lambda: seeded(make, gain=2.2)


def convolutional(*middle: Callable[[], nn.Module], activation: type[nn.Module] = nn.ReLU) -> Callable[[], nn.Module]:
    """For inputs of one channel, six by six."""
    return lambda: seeded(
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3), *(each() for each in middle), activation(), nn.Flatten(),
                              nn.Linear(64, 3)), gain=3.0)  # fmt: skip


def linear(classes: int, size: int = 20) -> Callable[[], nn.Module]:
    return lambda: seeded(lambda: nn.Linear(size, classes), gain=3.0)


def prototypes(power: float) -> Callable[[], Network]:
    """The class of the nearest of six prototypes."""
    centres = torch.rand(6, 3, generator=torch.Generator().manual_seed(4)) * 2 - 1
    return lambda: lambda x: -torch.cdist(x, centres).pow(power) * 4


def bumps(x: Tensor) -> Tensor:
    """Two mixtures of bumps."""
    centres = torch.tensor([[0.5, 0.5], [-0.5, -0.5], [0.5, -0.5], [-0.5, 0.5], [0.0, 0.0]])
    signs = torch.tensor([1.0, 1.0, -1.0, -1.0, 1.0])
    return (torch.exp(-8 * torch.cdist(x, centres).square()) * signs).sum(1)


def rare(share: float) -> Callable[[Tensor], Tensor]:
    """Another class in a share of the space, in slits so narrow that noise falls into them with this probability."""
    return lambda x: torch.where(torch.remainder(23 * x[:, 0], 1.0) < share, -3.0, 3.0) + 0.3 * torch.tanh(x[:, 1])


def cliff(distance: float) -> Callable[[Tensor], Tensor]:
    """A gentle slope, and far out on one side a cliff behind which the other class wins."""
    return lambda x: torch.where(x[:, 0] > distance, -5.0, 4.0) + 0.2 * x[:, 1]


def shell(radius: float) -> Callable[[Tensor], Tensor]:
    return lambda x: radius - x.norm(dim=1)


def to_length(length: float) -> Callable[[Tensor], Tensor]:
    return lambda x: nn.functional.normalize(x, dim=1) * length * torch.linspace(0.2, 1.4, len(x))[:, None]


def signs(x: Tensor) -> Tensor:
    return torch.where(x > 0, 1.0, -1.0)


FAMILY_GEOMETRY = [
    *(margin(f"shell, {size} dimensions", shell(0.7), size, sigma=0.4 / math.sqrt(size), place=to_length(0.7))
      for size in (2, 10, 50)),
    margin("shell, from its centre", shell(0.7), 10, sigma=0.3, place=lambda x: 0.05 * x),
    margin("a ball that cannot be left", shell(3.0), 2),
    margin("exclusive-or", lambda x: 10 * x[:, 0] * x[:, 1]),
    margin("exclusive-or of three", lambda x: 10 * x[:, 0] * x[:, 1] * x[:, 2], 3),
    margin("product of five", lambda x: 100 * x.prod(1), 5),
    margin("checkerboard", lambda x: 3 * torch.sin(5 * x[:, 0]) * torch.sin(5 * x[:, 1])),
    margin("checkerboard of flat squares", lambda x: signs(torch.sin(5 * x)).prod(1) * (1 + x[:, 0].square() / 9),
           without_gradients=GRADIENTS),
    margin("parity of five signs", lambda x: signs(x).prod(1) * (1 + x.square().sum(1) / 9), 5,
           without_gradients=GRADIENTS),
    margin("|x|", lambda x: 4 * (x[:, 0].abs() - 0.5)),
    margin("|x| from its kink", lambda x: 4 * (0.4 - x[:, 0].abs()), place=lambda x: 0.01 * x),
    margin("even about the points", lambda x: 0.1 - x[:, 0].square(), place=lambda x: 0.0 * x + 0.01 * x),
    margin("cosine about the points", lambda x: torch.cos(6 * x[:, 0]) + 0.2, place=lambda x: 0.02 * x),
    margin("x to the third", lambda x: 20 * x[:, 0] ** 3 + 1),
    margin("x to the ninth", lambda x: 20 * x[:, 0] ** 9 + 1),
    margin("exponential", lambda x: torch.exp(6 * x[:, 0]) - 3),
    margin("exponential downwards", lambda x: 3 - torch.exp(6 * x[:, 0])),
    margin("tangent", lambda x: torch.tan(1.5 * x[:, 0].clamp(-1.04, 1.04)) + 0.5),
    margin("one over x", lambda x: 1 / (x[:, 0] + 1e-6)),
    margin("x over y", lambda x: x[:, 0] / (x[:, 1] + 1e-6)),
    margin("logarithm", lambda x: torch.log(x[:, 0].abs() + 1e-3) + 1),
    *(margin(f"spikes of {share:.0%}", rare(share), sigma=0.2, without_gradients=GRADIENTS)
      for share in (0.01, 0.05, 0.2)),
    *(margin(f"a cliff at {distance}", cliff(distance), place=lambda x: 0.1 * x, without_gradients=GRADIENTS)
      for distance in (0.3, 0.6, 0.9)),
    margin("steps", lambda x: torch.floor(4 * x[:, 0]) + 0.5 + 0.1 * x[:, 1], without_gradients=GRADIENTS),
    margin("plateaus", lambda x: torch.tanh(20 * x[:, 0]) + 0.1 * x[:, 1]),
    margin("discontinuous", lambda x: signs(x[:, 0]) * (1 + x[:, 1].abs())),
    margin("sin(20x)", lambda x: torch.sin(20 * x[:, 0]) + 0.3 * x[:, 1]),
    margin("sin(20x), mostly one class", lambda x: torch.sin(20 * x[:, 0]) + 0.8),
    margin("largest of many", lambda x: x.amax(1) - 0.9, 20),
    margin("smallest of many", lambda x: x.amin(1) + 1.1, 20),
    margin("mixture of bumps", bumps),
    margin("far from everything", lambda x: 30 + x[:, 0]),
    margin("a margin of thin tails", lambda x: torch.sigmoid(20 * x[:, 0]) - 0.05, without_gradients=GRADIENTS),
    sound("nearest prototype", prototypes(1.0), (3,)),
    sound("nearest prototype, squared", prototypes(2.0), (3,)),
    sound("perceptron trained on rings", trained("rings"), (2,)),
    sound("perceptron trained on moons", trained("moons"), (2,)),
    sound("perceptron trained on blobs", trained("blobs", 5), (2,)),
    sound("smooth perceptron trained on rings", trained("rings", 2, nn.GELU), (2,)),
    sound("smooth perceptron trained on moons", trained("moons", 2, nn.Tanh), (2,)),
    sound("deep rectified network", deep(6, nn.ReLU), (10,)),
    sound("deep smooth network", deep(4, nn.GELU), (10,)),
    sound("deep saturating network", deep(4, nn.Tanh), (10,)),
    sound("convolutional", convolutional(), (1, 6, 6)),
    sound("convolutional, smooth", convolutional(activation=nn.GELU), (1, 6, 6)),
    sound("convolutional, group norm", convolutional(lambda: nn.GroupNorm(2, 4)), (1, 6, 6)),
    sound("convolutional, batch norm with running statistics", convolutional(lambda: nn.BatchNorm2d(4)), (1, 6, 6)),
    sound("convolutional, dropout off", convolutional(lambda: nn.Dropout(0.5)), (1, 6, 6)),
    sound("LSTM with batch_first", lambda: seeded(lambda: Recurrent(nn.LSTM, batch_first=True), gain=2.5), SERIES),
    sound("GRU with batch_first", lambda: seeded(lambda: Recurrent(nn.GRU, batch_first=True), gain=2.5), SERIES),
    sound("transformer with batch_first", lambda: seeded(lambda: Attentive(batch_first=True), gain=2.0), SERIES),
    sound("transformer, normed first", lambda: seeded(
        lambda: Attentive(batch_first=True, norm_first=True), 3, 2.0), SERIES),
    *(sound(f"linear, {classes} classes", linear(classes), (20,)) for classes in (2, 5, 10)),
    sound("linear, 100 classes", linear(100), (20,), points=6),
    sound("small perceptron", small, SHAPE),
]  # fmt: skip

ZOO: dict[str, OddNetwork] = {
    each.name: each for each in (*FAMILY_COMPANY, *FAMILY_STATE, *FAMILY_OUTPUTS, *FAMILY_GRADIENTS, *FAMILY_GEOMETRY)
}
"""All of them, by name."""
