"""Linear relaxation of a network, sent backwards through it (CROWN)."""

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
from brittle.extensions.certificates.operators import ACTIVATIONS, BILINEAR, ELEMENTWISE, FUNCTIONS, MAXIMA, MOVES
from brittle.extensions.certificates.region import Bounded, Enclosure, Region
from brittle.extensions.certificates.relaxations import Line, Lines, lines_differ, relax
from brittle.extensions.certificates.softmax import planes, visible_places
from brittle.extensions.certificates.steps import BetweenPlanes, candidates
from brittle.measure.rows import join

NUMBERS = 2**18  # numbers in the widest layer, over all functions sent backwards together (2 MiB fit into caches)

MAX_FUNCTIONS = 2**13
"""Most neurons of one layer and point that get bounds by linear relaxation; with more unstable ones, intervals stay."""

PROBED = 32  # numbers of a value whose bounds show whether linear relaxation is worth its passes for all of them
GAIN = 0.25  # least share of their intervals' width that it must take away


@dataclass(frozen=True)
class MarginBounds:
    """Proved lower bounds of margins over a region.

    `lower` bounds each margin, `[B, K]`, float64; within `reach` the linear function behind it is positive, which lies
    below the margin only inside the region. Both are infinite for margins outside the mask. `intervals` bounds the
    input of each nonlinear step, in the order of the walk; `functions`, `[B]`, counts the linear ones sent backwards.
    """

    lower: Tensor
    reach: Tensor
    intervals: tuple[Enclosure, ...]
    functions: Tensor


def margin_bounds(
    network: Network,
    region: Region,
    weights: Tensor,
    constants: Tensor,
    margin_mask: Tensor | None = None,
    tighten: bool = True,
) -> MarginBounds:
    """Return lower bounds of margins `W z + b` of the network's output, for all inputs of a region.

    Two linear functions replace every nonlinear layer, one below and one above it within the bounds of its input; these
    bounds come from the same procedure, cut with intervals. Then a linear function `c . h` of any layer's value `h` has
    a linear lower bound in the input, `c . h(x) + a . (x' - x) + e`: on the walk backwards through the network the sign
    of each coefficient chooses between the two functions. `a` is the gradient of that walk and `e` the sum of the
    offsets of the chosen functions from the network at `x`. Affine layers are exact, by vector-Jacobian products.

    Source: Zhang, Weng, Chen, Hsieh, Daniel, Efficient neural network robustness certification with general
    activation functions (NeurIPS 2018), section 3. Without `tighten`: Zhang et al., Towards stable and efficient
    training of verifiably robust neural networks (ICLR 2020), section 3.2 (CROWN-IBP).

    `W` is `[B, K, L]`, `b` and the `margin_mask` of the margins to bound `[B, K]`; `tighten` bounds the input of a
    nonlinear layer by linear relaxation, too, and not by intervals alone.
    """
    margin_mask = torch.ones_like(constants, dtype=torch.bool) if margin_mask is None else margin_mask
    if network.row_by_row and len(weights) > 1:
        parts = zip(region.rows(), weights.split(1), constants.split(1), margin_mask.split(1), strict=True)
        return join([margin_bounds(network, *part, tighten) for part in parts])
    walk = Walk(region, tighten)
    outputs = walk.logits(network).value
    lower, reach = torch.full_like(constants, torch.inf), torch.full_like(constants, torch.inf)
    places, counts = _places(margin_mask)
    for block in places.split(max(1, NUMBERS // (len(constants) * walk.widest)), dim=1) if places.numel() else ():
        margin_numbers = block.clamp(max=margin_mask.shape[1] - 1)
        functions = weights.gather(1, margin_numbers[..., None].expand(-1, -1, weights.shape[2])).transpose(0, 1)
        levels, gradients = walk.planes(outputs, functions)
        levels = levels + constants.gather(1, margin_numbers).T
        rows, columns = (block < margin_mask.shape[1]).nonzero(as_tuple=True)
        kinds = margin_numbers[rows, columns]
        lower[rows, kinds] = (levels + region.lower_bound(gradients)).T[rows, columns]
        reach[rows, kinds] = region.reach(levels, gradients).T[rows, columns]
    return MarginBounds(lower, reach, tuple(walk.intervals), walk.functions + counts)


class Walk:
    """One forward walk through the network that bounds and relaxes each nonlinear layer as it comes to it. `intervals`
    bounds the inputs of the nonlinear steps so far; `functions`, `[B]`, counts the linear ones sent backwards."""

    def __init__(self, region: Region, tighten: bool = True) -> None:
        self.region, self.tighten = region, tighten
        self.intervals: list[Enclosure] = []
        self.inputs = region.points.clone().requires_grad_(True)
        # Its gradient collects the offsets of the relaxations from the network, `e`.
        self.offsets = region.points.new_zeros(len(region.points), dtype=torch.float64, requires_grad=True)
        self.functions = torch.zeros(len(region.points), dtype=torch.int64, device=region.points.device)
        self.widest = region.points[0].numel()
        # Values that several layers see, with the numbers that need no more passes and their bounds.
        self._cuts: dict[int, tuple[Bounded, Tensor, Enclosure]] = {}

    def logits(self, network: Network) -> Bounded:
        """Return the class scores of the relaxed network."""
        box = Enclosure(self.region.points + self.region.box.lower, self.region.points + self.region.box.upper)
        # In the maximum norm the ball is a box, and intervals are exact for one affine layer.
        is_box = self.region.norm == "linf"
        return network.interpret(Bounded(self.inputs, box, is_tight=is_box, is_box=is_box), self._bound_layer)

    def lower(self, value: Tensor, functions: Tensor) -> Tensor:
        """Return lower bounds of `c . h`, `[S, B]`, for linear functions `c`, `[S, B, n]`, of a value `h`, `[B, n]`."""
        if not value.requires_grad:
            return torch.einsum("sbn,bn->sb", functions, value)
        levels, gradients = self.planes(value, functions)
        return levels + self.region.lower_bound(gradients)

    def planes(self, value: Tensor, functions: Tensor) -> tuple[Tensor, Tensor]:
        """Return linear functions of the displacement below `c . h`: values at the points, `[S, B]`, and gradients."""

        def pull_back(function: Tensor) -> tuple[Tensor, ...]:
            return torch.autograd.grad(
                value, (self.inputs, self.offsets), function, retain_graph=True, materialize_grads=True
            )

        gradients, offsets = torch.func.vmap(pull_back)(functions)
        return torch.einsum("sbn,bn->sb", functions, value.detach()) + offsets, gradients

    def _bound_layer(self, layer: Layer, args: tuple[Any, ...]) -> Bounded:
        if layer.operator in MAXIMA:
            return self._maximum(layer, args)
        if layer.operator in ACTIVATIONS:
            return self.activation(layer, args[0], args[1:])
        if layer.operator == "softmax":
            return self._softmax(layer, *args)
        if layer.operator in BILINEAR and all(isinstance(arg, Bounded) for arg in args[:2]):
            return self._product(layer, *args)
        value = run_layer(layer, tree_map(lambda arg: arg.value if isinstance(arg, Bounded) else arg, args))
        box = propagate(layer, tree_map(lambda arg: arg.interval if isinstance(arg, Bounded) else arg, args))
        self.widest = max(self.widest, value.numel() // len(self.inputs))
        entering = [arg for arg in tree_leaves(args) if isinstance(arg, Bounded)]
        is_elementwise = layer.operator in MOVES or (layer.operator in ELEMENTWISE and len(entering) == 1)
        keeps_bounds = is_elementwise and all(value.is_tight for value in entering)
        keeps_box = len(entering) == 1 and entering[0].is_box
        is_box = keeps_box and layer.operator in ELEMENTWISE and value.numel() <= entering[0].value.numel()
        return Bounded(value, box, keeps_bounds or keeps_box, is_box)

    def _product(self, layer: Layer, x: Bounded, y: Bounded, *constants: Any) -> Bounded:
        """Bound `x y = c y + x d - c d + (x - c) (y - d)`, with the centres `c`, `d` of the intervals, summed or not.

        The last term is at most the product of the radii `r` and `s`. The planes `c y + x d - c d -+ r s` are the means
        of McCormick's two lower and two upper planes (1976), and leave as much volume as each of them.
        """
        if x is y and layer.operator == "mul":
            return self.activation(Layer(layer.name, "pow", FUNCTIONS["pow"], layer.args), x, (2,))
        x_interval, y_interval = self.narrow(x), self.narrow(y)

        def multiply(a: Tensor, b: Tensor) -> Tensor:
            return run_layer(layer, (a, b, *constants))

        centres = x_interval.centre, y_interval.centre
        plane = multiply(centres[0], y.value) + multiply(x.value, centres[1]) - multiply(*centres)
        radius, ones = multiply(x_interval.radius, y_interval.radius), torch.ones_like(plane)
        values = multiply(x.value.detach(), y.value.detach())
        lines = Lines(Line(ones, -radius), Line(ones, radius))
        product = _Between.apply(plane, self.offsets, values, lines)
        self.widest = max(self.widest, values.numel() // len(self.inputs))
        return Bounded(product, propagate(layer, (x_interval, y_interval, *constants)))

    def _softmax(self, layer: Layer, entering: Bounded, axis: int, mask: Any = None) -> Bounded:
        interval = self.narrow(entering)
        visible = visible_places(mask, entering.value)
        bounding_planes = planes(interval.map(lambda end: end.movedim(axis, -1)), visible)
        values = run_layer(layer, (entering.value.detach(), axis, mask)).movedim(axis, -1)
        between = BetweenPlanes.apply(entering.value.movedim(axis, -1), self.offsets, values, bounding_planes)
        self.widest = max(self.widest, values.numel() // len(self.inputs))
        return Bounded(between.movedim(-1, axis), propagate(layer, (interval, axis, mask)), is_tight=True)

    def _maximum(self, layer: Layer, args: tuple[Any, ...]) -> Bounded:
        """Bound a maximum in rounds, half of the numbers against the other half: `max(a, b) = a + relu(b - a)`."""
        if layer.operator == "maximum":
            operands = (arg if isinstance(arg, Bounded) else Bounded(arg, Enclosure(arg, arg)) for arg in args)
            return self._pair_maximum(layer, *operands)
        entering, rows = args[0], len(self.inputs)
        shape = run_layer(layer, (entering.value.detach(), *args[1:])).shape
        fill = Enclosure(*[entering.interval.lower.reshape(rows, -1).min(dim=1).values] * 2)
        fill_values = self.record_interval(fill, lambda: fill).lower
        parts = entering.value, entering.interval.lower, entering.interval.upper
        value, lower, upper = (candidates(layer, part, args[1:], shape, fill_values) for part in parts)
        best = Bounded(value, Enclosure(lower, upper))
        while (count := best.value.shape[1]) > 1:
            half = count // 2
            ends = (0, half), (half, 2 * half), (2 * half, count)
            first_half, second_half, remainder = (_part(best, *pair) for pair in ends)
            best = _concatenate(self._pair_maximum(layer, first_half, second_half), remainder)
        return Bounded(best.value.reshape(shape), best.interval.map(lambda end: end.reshape(shape)))

    def _pair_maximum(self, layer: Layer, x: Bounded, y: Bounded) -> Bounded:
        difference = Enclosure(y.interval.lower - x.interval.upper, y.interval.upper - x.interval.lower)
        relu = Layer(layer.name, "relu", torch.relu, ())
        excess = self.activation(relu, Bounded(y.value - x.value, difference))
        best = Enclosure(x.interval.lower.maximum(y.interval.lower), x.interval.upper.maximum(y.interval.upper))
        return Bounded(x.value + excess.value, best)

    def activation(self, layer: Layer, entering: Bounded, constants: tuple[Any, ...] = ()) -> Bounded:
        """Bound an elementwise function by its two lines."""
        interval = self.record_interval(
            entering.interval,
            lambda: self._tighten(entering, lines_differ(layer.operator, entering.interval, constants)),
        )
        lines = relax(layer.operator, interval, constants).where_finite(interval)
        values = run_layer(layer, (entering.value.detach(), *constants))
        between = self.relax((layer.operator, *constants), entering.value, values, interval, lines)
        return Bounded(between, propagate(layer, (interval, *constants)), is_tight=True)

    def narrow(self, entering: Bounded) -> Enclosure:
        """Cut the interval with bounds by linear relaxation, of a sample of its numbers, and if that helps of all."""
        return self.record_interval(entering.interval, lambda: self._probe(entering))

    def record_interval(self, interval: Enclosure, cut: Callable[[], Enclosure]) -> Enclosure:
        """Record and return the bounds of a nonlinear step's input: its interval, cut where the walk tightens."""
        step_interval = cut() if self.tighten else interval
        self.intervals.append(step_interval)
        return step_interval

    def _probe(self, entering: Bounded) -> Enclosure:
        if entering.is_tight:
            return entering.interval
        rows = len(self.inputs)
        widths = (entering.interval.upper - entering.interval.lower).reshape(rows, -1)
        is_wide = widths > NARROW
        stride = (is_wide.sum(dim=1, keepdim=True) / PROBED).ceil().clamp(min=1)
        sample = is_wide & ((is_wide.cumsum(dim=1) - 1) % stride == 0)
        interval = self._tighten(entering, sample.view_as(entering.value))
        cut = (interval.upper - interval.lower).reshape(rows, -1)
        gain = 1 - (cut * sample).sum(dim=1) / (widths * sample).sum(dim=1)
        is_remaining = is_wide & ~sample & (gain > GAIN)[:, None]
        interval = self._tighten(entering, is_remaining.view_as(entering.value))
        _, is_done, _ = self._cuts[id(entering)]
        self._cuts[id(entering)] = entering, is_done | is_wide.view_as(entering.value), interval
        return interval

    def relax(self, function: tuple, entering: Tensor, values: Tensor, interval: Enclosure, lines: Lines) -> Tensor:
        """Return `values` of a function, an operator with its constants, that goes backwards through two lines."""
        return _Between.apply(entering, self.offsets, values, lines)

    def _tighten(self, entering: Bounded, number_mask: Tensor) -> Enclosure:
        """Cut the interval with bounds by linear relaxation of the numbers in `number_mask`, each of them once."""
        if entering.is_tight:
            return entering.interval
        default = entering, torch.zeros_like(number_mask), entering.interval
        _, is_done, interval = self._cuts.get(id(entering), default)
        cut_interval = self._cut_by_relaxation(Bounded(entering.value, interval), number_mask & ~is_done)
        self._cuts[id(entering)] = entering, is_done | number_mask, cut_interval
        return cut_interval

    def _cut_by_relaxation(self, entry: Bounded, number_mask: Tensor) -> Enclosure:
        rows = len(self.inputs)
        number_mask = number_mask.reshape(rows, -1)
        numbers = number_mask.shape[1]
        places, counts = _places(number_mask & (number_mask.sum(dim=1, keepdim=True) <= MAX_FUNCTIONS))
        self.functions += 2 * counts
        value = entry.value.reshape(rows, -1)
        # One more place, for rows with fewer chosen numbers than others.
        lower, upper = (pad(end.reshape(rows, -1), (0, 1)) for end in (entry.interval.lower, entry.interval.upper))
        for block in places.split(max(1, NUMBERS // (len(value) * self.widest)), dim=1):
            if not block.numel():
                break
            functions = value.new_zeros(block.shape[1], len(value), numbers + 1)
            functions = functions.scatter_(2, block.T[..., None], 1.0)[..., :-1]
            lower.scatter_(1, block, self.lower(value, functions).T)
            upper.scatter_(1, block, -self.lower(value, -functions).T)
        relaxation_interval = Enclosure(lower[:, :-1].view_as(entry.value), upper[:, :-1].view_as(entry.value))
        return entry.interval & relaxation_interval


def _part(value: Bounded, begin: int, end: int) -> Bounded:
    return Bounded(value.value[:, begin:end], value.interval.map(lambda end_values: end_values[:, begin:end]))


def _concatenate(x: Bounded, y: Bounded) -> Bounded:
    lower, upper = (
        torch.cat(ends, dim=1) for ends in ((x.interval.lower, y.interval.lower), (x.interval.upper, y.interval.upper))
    )
    return Bounded(torch.cat((x.value, y.value), dim=1), Enclosure(lower, upper))


def _places(number_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the true places of `number_mask`, `[B, n]`: `[B, S]`, with `n` behind a row's last; and their counts."""
    counts, numbers = number_mask.sum(dim=1), number_mask.shape[1]
    places = torch.arange(numbers, device=number_mask.device).where(number_mask, numbers)
    return places.sort(dim=1).values[:, : int(counts.max())], counts


class _Between(torch.autograd.Function):
    """A function between two lines: its value forwards, backwards the line that the sign of a coefficient selects."""

    @staticmethod
    def forward(ctx: Any, entering: Tensor, offsets: Tensor, values: Tensor, lines: Lines) -> Tensor:
        """Return `values`, the function of `entering`, and save the offset of each line from it."""
        entering = entering.detach()
        below, above = (line.at(entering) - values for line in (lines.lower, lines.upper))
        ctx.rows = len(offsets)
        ctx.save_for_backward(lines.upper.slope, lines.lower.slope - lines.upper.slope, above, below - above)
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """Negative coefficients take the upper line, positive ones the lower."""
        slope, slope_change, above, change = ctx.saved_tensors
        coefficients, positive = gradients[0], gradients[0].clamp(min=0)
        offsets = (coefficients * above + positive * change).reshape(ctx.rows, -1).sum(dim=1)
        return torch.addcmul(coefficients * slope, positive, slope_change), offsets, None, None
