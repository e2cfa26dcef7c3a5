"""Odd networks whose rows depend on each other, or on earlier calls."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from typing import Any

import torch
from helpers.odd_parts import (
    COMPANY,
    GRADIENTS,
    SERIES,
    STATE,
    STEPS,
    WIDTH,
    Custom,
    OddNetwork,
    Step,
    company,
    custom,
    on_logits,
    seeded,
    small,
    state,
)
from torch import Tensor, nn

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


def with_capacity(m: Custom, x: Tensor) -> Tensor:
    """Return class scores of two experts that take half the batch at most; further rows get the other expert."""
    expert = (x[:, 0] > 0).long()
    place = nn.functional.one_hot(expert, 2).cumsum(0).gather(1, expert[:, None])[:, 0]
    full = place > max(1, len(x) // 2)
    return torch.where(((expert == 1) ^ full)[:, None], m.base(x), m.base(x).roll(1, 1))


def balanced(m: Custom, x: Tensor) -> Tensor:
    """Return scores after Sinkhorn: rows and columns brought to equal sums in turn."""
    scores = logits = m.base(x)
    for _ in range(3):
        scores = scores - scores.logsumexp(0, keepdim=True)
        scores = scores - scores.logsumexp(1, keepdim=True)
    return logits + 2 * scores


def beside_nearest(m: Custom, x: Tensor) -> Tensor:
    """Return class scores averaged with the nearest other row."""
    apart = torch.cdist(x, x) + torch.eye(len(x)) * (1e3 if len(x) > 1 else 0)
    logits = m.base(x)
    return logits + logits[apart.argmin(1)]


def where_rows(m: Custom, x: Tensor, chosen: Tensor) -> Tensor:
    """Reorder the classes in the chosen rows."""
    return torch.where(chosen[:, None], m.base(x).roll(1, 1), m.base(x))


def place(x: Tensor) -> Tensor:
    return torch.arange(len(x))


def standardised(x: Tensor) -> Tensor:
    return (x - x.mean(0)) / (x.std(0, unbiased=False) + 0.3)


FAMILY_COMPANY = [
    series("LSTM along the batch", lambda: Recurrent(nn.LSTM)),
    series("LSTM along the batch, both ways", lambda: Recurrent(nn.LSTM, bidirectional=True)),
    series("GRU along the batch", lambda: Recurrent(nn.GRU)),
    series("RNN along the batch", lambda: Recurrent(nn.RNN), gain=1.5),
    series("transformer along the batch", lambda: Attentive()),
    series("batch norm without running statistics", lambda: nn.Sequential(
        nn.BatchNorm1d(STEPS, track_running_stats=False), nn.Flatten(), small(3, 15)), gain=1.0),
    company("attention across rows", custom(lambda m, x: torch.softmax(-4 * torch.cdist(x, x), dim=1) @ m.base(x))),
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
    company("centred in groups of eight", on_logits(
        lambda z: torch.cat([part - 0.7 * part.mean(0) for part in z.split(8)]))),
]  # fmt: skip


def _levels(x: Tensor) -> Tensor:
    """Round to eight levels up to the largest of the batch, as dynamic quantisation does."""
    unit = x.abs().amax() / 4
    return torch.round(x / unit) * unit


# What was seen before decides.


def into_buffer(m: Custom, x: Tensor) -> Tensor:
    """Write into one buffer and return it."""
    logits = m.base(x)
    if m.memory.value is None or len(m.memory.value) < len(x):
        m.memory.value = torch.empty(max(len(x), 64), logits.shape[1])
    with torch.no_grad():
        return m.memory.value[: len(x)].copy_(logits)


def mixed_into_buffer(m: Custom, x: Tensor) -> Tensor:
    """Add to the content of the buffer from the previous call."""
    out = into_buffer(m, x) if m.memory.value is None else m.memory.value[: len(x)]
    if len(out) < len(x):
        m.memory.value = None
        return into_buffer(m, x)
    with torch.no_grad():
        return out.mul_(0.5).add_(m.base(x))


def memo(key: Callable[[Tensor], Any]) -> Step:
    """Return a step that computes class scores once for each key."""

    def step(m: Custom, x: Tensor) -> Tensor:
        digest = key(x)
        if digest not in m.memory.known:
            m.memory.known[digest] = m.base(x)
        return m.memory.known[digest]

    return step


def after(calls: int, change: Callable[[Custom, Tensor], Tensor] | None = None) -> Step:
    """Return a step that is another network after so many calls."""

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
    """Scale by the statistics of the first batch."""
    if m.memory.value is None:
        m.memory.value = x.detach().abs().amax()
    return m.base(x / m.memory.value)


def moving_average(m: Custom, x: Tensor) -> Tensor:
    """Centre on a moving average that goes on in evaluation mode."""
    old = torch.zeros(x.shape[1]) if m.memory.value is None else m.memory.value
    m.memory.value = 0.95 * old + 0.05 * (x.detach().mean(0) + 0.5)
    return m.base(x - old)


def smoothed_in_time(m: Custom, x: Tensor) -> Tensor:
    """Average with the previous output, where the shape is the same."""
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
    """Return the small network with a buffer that counts."""
    network = nn.Module()
    network.body = small()
    network.register_buffer("count", torch.zeros(()))
    return network


def every(calls: int) -> Step:
    """Return a step that reorders the classes once in so many calls."""

    def step(m: Custom, x: Tensor) -> Tensor:
        m.memory.calls += 1
        return m.base(x).roll(1, 1) if m.memory.calls % calls == 0 else m.base(x)

    return step


def seeded_noise(m: Custom, x: Tensor) -> Tensor:
    """Add the same noise in every call, so other noise in every row."""
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
