"""Linear relaxation of a network, sent backwards through it (CROWN)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.utils._pytree import tree_leaves, tree_map

from brittle.extensions.certificates.curves import NARROW
from brittle.extensions.certificates.graph import Layer, Network, run_layer
from brittle.extensions.certificates.intervals import propagate
from brittle.extensions.certificates.operators import ACTIVATIONS, BILINEAR, EACH, FUNCTIONS, MAXIMA, MOVES
from brittle.extensions.certificates.region import Bounded, Enclosure, Region
from brittle.extensions.certificates.relaxations import Line, Lines, relax, relaxed
from brittle.extensions.certificates.softmax import planes, seen_places
from brittle.extensions.certificates.steps import BetweenPlanes, candidates
from brittle.measure.rows import join

NUMBERS = 2**18
"""Numbers in the widest layer, of all linear functions that are sent backwards together (2 MiB, which caches hold)."""

MOST_FUNCTIONS = 2**13
"""Neurons of one layer and one point that get bounds by linear relaxation; where more are unstable, intervals stay."""

PROBED = 32
"""Numbers of a value whose bounds show whether linear relaxation is worth its passes for all of them."""

GAIN = 0.25
"""Share of their intervals' width that it must take away."""


@dataclass(frozen=True)
class MarginBounds:
    """What is proved of some margins over a region.

    `lower` bounds each margin, `[B, K]`, float64; within `reach` the linear function behind it is positive, which lies
    below the margin inside the region alone. Both are infinite where none was asked for. `kept` has the bounds of what
    enters each nonlinear step, in the order of the walk; `functions`, `[B]`, counts the linear ones sent backwards.
    """

    lower: Tensor
    reach: Tensor
    kept: tuple[Enclosure, ...]
    functions: Tensor


def margin_bounds(
    network: Network,
    region: Region,
    weights: Tensor,
    constants: Tensor,
    wanted: Tensor | None = None,
    tighten: bool = True,
) -> MarginBounds:
    """Lower bounds of margins `W z + b` of what the network returns, for all inputs of a region.

    Every nonlinear layer is replaced by two linear functions, one below and one above it within the bounds of what
    enters it; these bounds come from the same procedure, cut with intervals. Then a linear function `c . h` of any
    layer's value `h` has a linear lower bound in the input, `c . h(x) + a . (x' - x) + e`: walking backwards through
    the network, the sign of each coefficient chooses between the two functions. `a` is the gradient of that walk and
    `e` the sum of what the chosen functions lie beside the network at `x`. Affine layers are their own, and their
    adjoints are vector-Jacobian products.

    Source: Zhang, Weng, Chen, Hsieh, Daniel, Efficient neural network robustness certification with general
    activation functions (NeurIPS 2018), section 3. Without `tighten`: Zhang et al., Towards stable and efficient
    training of verifiably robust neural networks (ICLR 2020), section 3.2 (CROWN-IBP).

    `W` is `[B, K, L]`, `b` and the margins that are `wanted` `[B, K]`; `tighten` bounds what enters a nonlinear layer
    by linear relaxation, too, and not by intervals alone.
    """
    wanted = torch.ones_like(constants, dtype=torch.bool) if wanted is None else wanted
    if network.alone and len(weights) > 1:
        parts = zip(region.rows(), weights.split(1), constants.split(1), wanted.split(1), strict=True)
        return join([margin_bounds(network, *part, tighten) for part in parts])
    walk = Walk(region, tighten)
    outputs = walk.logits(network).value
    lower, reach = torch.full_like(constants, torch.inf), torch.full_like(constants, torch.inf)
    places, counts = _places(wanted)
    for some in places.split(max(1, NUMBERS // (len(constants) * walk.widest)), dim=1) if places.numel() else ():
        chosen = some.clamp(max=wanted.shape[1] - 1)
        functions = weights.gather(1, chosen[..., None].expand(-1, -1, weights.shape[2])).transpose(0, 1)
        levels, gradients = walk.planes(outputs, functions)
        levels = levels + constants.gather(1, chosen).T
        rows, columns = (some < wanted.shape[1]).nonzero(as_tuple=True)
        kinds = chosen[rows, columns]
        lower[rows, kinds] = (levels + region.least(gradients)).T[rows, columns]
        reach[rows, kinds] = region.reach(levels, gradients).T[rows, columns]
    return MarginBounds(lower, reach, tuple(walk.kept), walk.functions + counts)


class Walk:
    """One forward walk through the network that bounds and relaxes each nonlinear layer as it comes to it. `kept`
    bounds what entered each nonlinear step so far; `functions`, `[B]`, counts the linear ones sent backwards."""

    def __init__(self, region: Region, tighten: bool = True) -> None:
        self.region, self.tighten = region, tighten
        self.kept: list[Enclosure] = []
        self.inputs = region.points.clone().requires_grad_(True)
        # Its gradient collects what the relaxations lie beside the network, `e`.
        self.beside = torch.zeros(
            len(region.points), dtype=torch.float64, device=region.points.device, requires_grad=True
        )
        self.functions = torch.zeros(len(region.points), dtype=torch.int64, device=region.points.device)
        self.widest = region.points[0].numel()
        # Values that several layers see, with the numbers that need no more passes and what was found.
        self._cut: dict[int, tuple[Bounded, Tensor, Enclosure]] = {}

    def logits(self, network: Network) -> Bounded:
        """The class scores of the relaxed network."""
        box = Enclosure(self.region.points + self.region.box.lower, self.region.points + self.region.box.upper)
        # In the maximum norm the ball is a box, of which one affine layer makes an interval that is exact.
        whole = self.region.norm == "linf"
        return network.interpret(Bounded(self.inputs, box, settled=whole, free=whole), self._layer)

    def lower(self, value: Tensor, functions: Tensor) -> Tensor:
        """Lower bounds of `c . h`, `[S, B]`, for the linear functions `c`, `[S, B, n]`, of a value `h`, `[B, n]`."""
        if not value.requires_grad:
            return torch.einsum("sbn,bn->sb", functions, value)
        levels, gradients = self.planes(value, functions)
        return levels + self.region.least(gradients)

    def planes(self, value: Tensor, functions: Tensor) -> tuple[Tensor, Tensor]:
        """Linear functions of the displacement below `c . h`: their values at the points, `[S, B]`, and gradients."""

        def back(function: Tensor) -> tuple[Tensor, ...]:
            return torch.autograd.grad(
                value, (self.inputs, self.beside), function, retain_graph=True, materialize_grads=True
            )

        gradients, beside = torch.func.vmap(back)(functions)
        return torch.einsum("sbn,bn->sb", functions, value.detach()) + beside, gradients

    def _layer(self, layer: Layer, args: tuple[Any, ...]) -> Bounded:
        if layer.operator in MAXIMA:
            return self._largest(layer, args)
        if layer.operator in ACTIVATIONS:
            return self.activation(layer, args[0], args[1:])
        if layer.operator == "softmax":
            return self._shares(layer, *args)
        if layer.operator in BILINEAR and all(isinstance(one, Bounded) for one in args[:2]):
            return self._product(layer, *args)
        value = run_layer(layer, tree_map(lambda one: one.value if isinstance(one, Bounded) else one, args))
        box = propagate(layer, tree_map(lambda one: one.interval if isinstance(one, Bounded) else one, args))
        self.widest = max(self.widest, value.numel() // len(self.inputs))
        entering = [one for one in tree_leaves(args) if isinstance(one, Bounded)]
        kept = layer.operator in MOVES or (layer.operator in EACH and len(entering) == 1)
        moved = kept and all(one.settled for one in entering)
        one_free = len(entering) == 1 and entering[0].free
        free = one_free and layer.operator in EACH and value.numel() <= entering[0].value.numel()
        return Bounded(value, box, moved or one_free, free)

    def _product(self, layer: Layer, one: Bounded, other: Bounded, *rest: Any) -> Bounded:
        """`x y = c y + x d - c d + (x - c) (y - d)` with the centres `c`, `d` of the intervals, summed or not.

        The last term is at most the product of the radii, `r` and `s`. The planes `c y + x d - c d -+ r s` are the
        means of the two below and of the two above of McCormick (1976), and leave as much volume as each of them.
        """
        if one is other and layer.operator == "mul":
            return self.activation(Layer(layer.name, "pow", FUNCTIONS["pow"], layer.args), one, (2,))
        first, second = self.narrowed(one), self.narrowed(other)

        def of(left: Tensor, right: Tensor) -> Tensor:
            return run_layer(layer, (left, right, *rest))

        centres = first.centre, second.centre
        plane = of(centres[0], other.value) + of(one.value, centres[1]) - of(*centres)
        radius, straight = of(first.radius, second.radius), torch.ones_like(plane)
        values = of(one.value.detach(), other.value.detach())
        lines = Lines(Line(straight, -radius), Line(straight, radius))
        found = _Between.apply(plane, self.beside, values, lines)
        self.widest = max(self.widest, values.numel() // len(self.inputs))
        return Bounded(found, propagate(layer, (first, second, *rest)))

    def _shares(self, layer: Layer, entering: Bounded, axis: int, mask: Any = None) -> Bounded:
        """Each share between two planes in all numbers of its axis."""
        interval = self.narrowed(entering)
        seen = seen_places(mask, entering.value)
        found = planes(interval.map(lambda end: end.movedim(axis, -1)), seen)
        values = run_layer(layer, (entering.value.detach(), axis, mask)).movedim(axis, -1)
        between = BetweenPlanes.apply(entering.value.movedim(axis, -1), self.beside, values, found)
        self.widest = max(self.widest, values.numel() // len(self.inputs))
        return Bounded(between.movedim(-1, axis), propagate(layer, (interval, axis, mask)), settled=True)

    def _largest(self, layer: Layer, args: tuple[Any, ...]) -> Bounded:
        """The largest of some numbers, half of them against the other half: `max(a, b) = a + relu(b - a)`."""
        if layer.operator == "maximum":
            both = (one if isinstance(one, Bounded) else Bounded(one, Enclosure(one, one)) for one in args)
            return self._larger(layer, *both)
        entering, rows = args[0], len(self.inputs)
        shape = run_layer(layer, (entering.value.detach(), *args[1:])).shape
        fill = Enclosure(*[entering.interval.lower.reshape(rows, -1).min(dim=1).values] * 2)
        least = self.keep(fill, lambda: fill).lower
        parts = entering.value, entering.interval.lower, entering.interval.upper
        value, lower, upper = (candidates(layer, part, args[1:], shape, least) for part in parts)
        best = Bounded(value, Enclosure(lower, upper))
        while (count := best.value.shape[1]) > 1:
            half = count // 2
            ends = (0, half), (half, 2 * half), (2 * half, count)
            first, second, left = (_part(best, *pair) for pair in ends)
            best = _beside(self._larger(layer, first, second), left)
        return Bounded(best.value.reshape(shape), best.interval.map(lambda end: end.reshape(shape)))

    def _larger(self, layer: Layer, one: Bounded, other: Bounded) -> Bounded:
        apart = Enclosure(other.interval.lower - one.interval.upper, other.interval.upper - one.interval.lower)
        relu = Layer(layer.name, "relu", torch.relu, ())
        more = self.activation(relu, Bounded(other.value - one.value, apart))
        best = Enclosure(
            one.interval.lower.maximum(other.interval.lower), one.interval.upper.maximum(other.interval.upper)
        )
        return Bounded(one.value + more.value, best)

    def activation(self, layer: Layer, entering: Bounded, constants: tuple[Any, ...] = ()) -> Bounded:
        """An elementwise function between its two lines."""
        interval = self.keep(
            entering.interval, lambda: self._tightened(entering, relaxed(layer.operator, entering.interval, constants))
        )
        lines = relax(layer.operator, interval, constants).where_finite(interval)
        values = run_layer(layer, (entering.value.detach(), *constants))
        between = self.around((layer.operator, *constants), entering.value, values, interval, lines)
        return Bounded(between, propagate(layer, (interval, *constants)), settled=True)

    def narrowed(self, entering: Bounded) -> Enclosure:
        """The interval, cut with bounds by linear relaxation: of some numbers, and if that helps of all."""
        return self.keep(entering.interval, lambda: self._probed(entering))

    def keep(self, interval: Enclosure, cut: Callable[[], Enclosure]) -> Enclosure:
        """The bounds of what enters a nonlinear step: its interval, or one that is cut."""
        found = cut() if self.tighten else interval
        self.kept.append(found)
        return found

    def _probed(self, entering: Bounded) -> Enclosure:
        if entering.settled:
            return entering.interval
        rows = len(self.inputs)
        widths = (entering.interval.upper - entering.interval.lower).reshape(rows, -1)
        chosen = widths > NARROW
        every = (chosen.sum(dim=1, keepdim=True) / PROBED).ceil().clamp(min=1)
        probed = chosen & ((chosen.cumsum(dim=1) - 1) % every == 0)
        found = self._tightened(entering, probed.view_as(entering.value))
        cut = (found.upper - found.lower).reshape(rows, -1)
        gain = 1 - (cut * probed).sum(dim=1) / (widths * probed).sum(dim=1)
        rest = chosen & ~probed & (gain > GAIN)[:, None]
        found = self._tightened(entering, rest.view_as(entering.value))
        _, known, _ = self._cut[id(entering)]
        self._cut[id(entering)] = entering, known | chosen.view_as(entering.value), found
        return found

    def around(
        self, function: tuple[Any, ...], entering: Tensor, values: Tensor, interval: Enclosure, lines: Lines
    ) -> Tensor:
        """`values` of a function, an operator with its constants, of what enters in `interval`, between two lines."""
        return _Between.apply(entering, self.beside, values, lines)

    def _tightened(self, entering: Bounded, chosen: Tensor) -> Enclosure:
        """The interval, cut with bounds by linear relaxation of the numbers that are `chosen`, each of them once."""
        if entering.settled:
            return entering.interval
        unknown = entering, torch.zeros_like(chosen), entering.interval
        _, known, interval = self._cut.get(id(entering), unknown)
        found = self._cut_at(Bounded(entering.value, interval), chosen & ~known)
        self._cut[id(entering)] = entering, known | chosen, found
        return found

    def _cut_at(self, entering: Bounded, chosen: Tensor) -> Enclosure:
        rows = len(self.inputs)
        chosen = chosen.reshape(rows, -1)
        numbers = chosen.shape[1]
        places, counts = _places(chosen & (chosen.sum(dim=1, keepdim=True) <= MOST_FUNCTIONS))
        self.functions += 2 * counts
        value = entering.value.reshape(rows, -1)
        # One more place, for rows with fewer chosen numbers than others.
        lower, upper = (
            pad(end.reshape(rows, -1), (0, 1)) for end in (entering.interval.lower, entering.interval.upper)
        )
        for some in places.split(max(1, NUMBERS // (len(value) * self.widest)), dim=1):
            if not some.numel():
                break
            functions = value.new_zeros(some.shape[1], len(value), numbers + 1)
            functions = functions.scatter_(2, some.T[..., None], 1.0)[..., :-1]
            lower.scatter_(1, some, self.lower(value, functions).T)
            upper.scatter_(1, some, -self.lower(value, -functions).T)
        found = Enclosure(lower[:, :-1].view_as(entering.value), upper[:, :-1].view_as(entering.value))
        return entering.interval & found


def _part(value: Bounded, begin: int, end: int) -> Bounded:
    return Bounded(value.value[:, begin:end], value.interval.map(lambda one: one[:, begin:end]))


def _beside(one: Bounded, other: Bounded) -> Bounded:
    lower, upper = (
        torch.cat(ends, dim=1)
        for ends in ((one.interval.lower, other.interval.lower), (one.interval.upper, other.interval.upper))
    )
    return Bounded(torch.cat((one.value, other.value), dim=1), Enclosure(lower, upper))


def _places(chosen: Tensor) -> tuple[Tensor, Tensor]:
    """The places that are `chosen`, `[B, n]`, in each row: `[B, S]`, with `n` behind the last; and their counts."""
    counts, numbers = chosen.sum(dim=1), chosen.shape[1]
    places = torch.arange(numbers, device=chosen.device).where(chosen, numbers)
    return places.sort(dim=1).values[:, : int(counts.max())], counts


class _Between(torch.autograd.Function):
    """A function between two lines: its own value forwards, the line that the sign of a coefficient asks for back."""

    @staticmethod
    def forward(ctx: Any, entering: Tensor, beside: Tensor, values: Tensor, lines: Lines) -> Tensor:
        """`values`, the function of `entering`; how far each line lies beside it is kept."""
        entering = entering.detach()
        below, above = (line.at(entering) - values for line in (lines.lower, lines.upper))
        ctx.rows = len(beside)
        ctx.save_for_backward(lines.upper.slope, lines.lower.slope - lines.upper.slope, above, below - above)
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """Negative coefficients take the upper line, positive ones the lower."""
        slope, slope_change, above, change = ctx.saved_tensors
        coefficients, positive = gradients[0], gradients[0].clamp(min=0)
        beside = (coefficients * above + positive * change).reshape(ctx.rows, -1).sum(dim=1)
        return torch.addcmul(coefficients * slope, positive, slope_change), beside, None, None
