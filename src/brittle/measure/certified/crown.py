"""Linear relaxation of a network, sent backwards through it (CROWN)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad
from torch.utils._pytree import tree_leaves, tree_map

from brittle.measure.certified.enclosure import Bounded, Enclosure
from brittle.measure.certified.graph import Layer, Network, run_layer
from brittle.measure.certified.intervals import propagate
from brittle.measure.certified.operators import ACTIVATIONS, BILINEAR, MAXIMA, MOVES
from brittle.measure.certified.relaxations import NARROW, Lines, relax, relaxed
from brittle.measure.certified.steps import largest, product, shares
from brittle.model.bounds import Bounds
from brittle.norms import DUAL_ORDER

NUMBERS = 2**18
"""Numbers in the widest layer, of all linear functions that are sent backwards together (2 MiB, which caches hold)."""

MOST_FUNCTIONS = 2**13
"""Neurons of one layer and one point that get bounds by linear relaxation; where more are unstable, intervals stay."""

PROBED = 32
"""Numbers of a value whose bounds show whether linear relaxation is worth its passes for all of them."""

GAIN = 0.25
"""Share of their intervals' width that it must take away."""


@dataclass(frozen=True)
class Region:
    """All inputs within a distance of each point, and in a box.

    Attributes:
        points: `[B, *shape]`, float64.
        radii: `[B]`, float64, in the classifier's units.
        box: the smallest box around these inputs, relative to the points, `[B, *shape]`.
        norm: `linf`, `l2` or `l1`.
    """

    points: Tensor
    radii: Tensor
    box: Enclosure
    norm: str

    @classmethod
    def around(cls, points: Tensor, radii: Tensor, norm: str, bounds: Bounds) -> Region:
        """The inputs within `radii` of `points`, and within `bounds`."""
        reach = radii.view(-1, *[1] * (points.dim() - 1)).expand_as(points)
        box = Enclosure(-reach, reach)
        if not bounds.none:
            # A point outside the bounds counts as inside, which only makes the box larger.
            low, high = bounds.ends(points)
            box = box & Enclosure((low - points).clamp(max=0), (high - points).clamp(min=0))
        return cls(points, radii, box, norm)

    def rows(self) -> Iterator[Region]:
        """The inputs around each point."""
        for row in range(len(self.points)):
            own = slice(row, row + 1)
            yield Region(self.points[own], self.radii[own], self.box.map(lambda end, own=own: end[own]), self.norm)

    def least(self, gradients: Tensor) -> Tensor:
        """A lower bound of `min_d a . d` over the displacements `d`, `[S, B]`, for `gradients` `a`, `[S, B, *shape]`.

        Exact for `linf`, and without bounds for the others: `-r ||a||_q` with the dual norm. With bounds the larger of
        the minima over the whole ball and over its clipped box.
        """
        flat, centre, radius = gradients.flatten(2), self.box.centre.flatten(1), self.box.radius.flatten(1)
        in_box = torch.einsum("sbn,bn->sb", flat, centre) - torch.einsum("sbn,bn->sb", flat.abs(), radius)
        if self.norm == "linf":
            return in_box
        return in_box.maximum(-self.radii * torch.linalg.vector_norm(flat, DUAL_ORDER[self.norm], dim=2))


@dataclass(frozen=True)
class MarginBounds:
    """Lower bounds over a region.

    Attributes:
        lower: of `z_t - z_j` for each class `j`, `[B, C]`, float64, infinite for `j = t`; or of each margin, `[B, K]`.
        functions: linear functions that were sent backwards through the network, `[B]`, int64.
    """

    lower: Tensor
    functions: Tensor

    @classmethod
    def beside(cls, parts: Sequence[MarginBounds]) -> MarginBounds:
        """Those of all rows of `parts`."""
        return cls(torch.cat([part.lower for part in parts]), torch.cat([part.functions for part in parts]))


def margin_bounds(network: Network, region: Region, predicted: Tensor) -> MarginBounds:
    """Lower bounds of the margins `z_t - z_j`, `t` the predicted class, for all inputs of a region.

    Every nonlinear layer is replaced by two linear functions, one below and one above it within the bounds of what
    enters it; these bounds come from the same procedure, cut with intervals. Then a linear function `c . h` of any
    layer's value `h` has a linear lower bound in the input, `c . h(x) + a . (x' - x) + e`: walking backwards through
    the network, the sign of each coefficient chooses between the two functions. `a` is the gradient of that walk and
    `e` the sum of what the chosen functions lie beside the network at `x`. Affine layers are their own, and their
    adjoints are vector-Jacobian products.

    Source: Zhang, Weng, Chen, Hsieh, Daniel, Efficient neural network robustness certification with general
    activation functions (NeurIPS 2018), section 3.

    Args:
        network: the layers.
        region: the inputs.
        predicted: `t`, `[B]`.
    """
    if network.alone and len(predicted) > 1:
        return MarginBounds.beside(
            [margin_bounds(network, one, own) for one, own in zip(region.rows(), predicted.split(1), strict=True)]
        )
    walk = Walk(region)
    logits = walk.logits(network)
    classes = logits.value.shape[1]
    own = one_hot(predicted, classes).double()
    functions = own - torch.eye(classes, dtype=torch.float64, device=own.device)[:, None]
    lower = walk.lower(logits.value, functions).T
    return MarginBounds(lower.masked_fill(own.bool(), torch.inf), walk.functions + classes - 1)


def linear_bounds(network: Network, region: Region, weights: Tensor, constants: Tensor) -> MarginBounds:
    """Lower bounds of margins `W z + b` of what the network returns, for all inputs of a region; see `margin_bounds`.

    Args:
        network: the layers.
        region: the inputs.
        weights: `W`, `[B, K, L]`, float64.
        constants: `b`, `[B, K]`, float64.
    """
    if network.alone and len(weights) > 1:
        parts = zip(region.rows(), weights.split(1), constants.split(1), strict=True)
        return MarginBounds.beside([linear_bounds(network, *part) for part in parts])
    walk = Walk(region)
    outputs = walk.logits(network)
    functions = weights.transpose(0, 1)
    together = max(1, NUMBERS // (len(constants) * walk.widest))
    lower = torch.cat([walk.lower(outputs.value, some) for some in functions.split(together)])
    return MarginBounds(lower.T + constants, walk.functions + len(functions))


def logit_bounds(network: Network, region: Region) -> Enclosure:
    """Bounds on the class scores over a region, `[B, C]`; see `margin_bounds`."""
    if network.alone and len(region.points) > 1:
        parts = [logit_bounds(network, one) for one in region.rows()]
        return Enclosure(torch.cat([part.lower for part in parts]), torch.cat([part.upper for part in parts]))
    walk = Walk(region)
    logits = walk.logits(network)
    identity = torch.eye(logits.value.shape[1], dtype=torch.float64, device=logits.value.device)[:, None]
    functions = identity.expand(-1, len(logits.value), -1)
    crown = Enclosure(walk.lower(logits.value, functions).T, -walk.lower(logits.value, -functions).T)
    return crown & logits.interval


class Walk:
    """One forward walk through the network that bounds and relaxes each nonlinear layer as it comes to it.

    Attributes:
        functions: linear functions that were sent backwards so far, `[B]`.
    """

    def __init__(self, region: Region) -> None:
        self.region = region
        self.inputs = region.points.clone().requires_grad_(True)
        # Its gradient collects what the relaxations lie beside the network, `e`.
        self.beside = torch.zeros(
            len(region.points), dtype=torch.float64, device=region.points.device, requires_grad=True
        )
        self.functions = torch.zeros(len(region.points), dtype=torch.int64, device=region.points.device)
        self.widest = region.points[0].numel()
        # Values that several layers see, with what was chosen of them and found.
        self._cut: dict[int, tuple[Bounded, Tensor, Enclosure]] = {}

    def logits(self, network: Network) -> Bounded:
        """The class scores of the relaxed network."""
        box = Enclosure(self.region.points + self.region.box.lower, self.region.points + self.region.box.upper)
        return network.interpret(Bounded(self.inputs, box), self._layer)

    def lower(self, value: Tensor, functions: Tensor) -> Tensor:
        """Lower bounds of `c . h`, `[S, B]`, for the linear functions `c`, `[S, B, n]`, of a value `h`, `[B, n]`."""
        if not value.requires_grad:
            return torch.einsum("sbn,bn->sb", functions, value)

        def back(function: Tensor) -> tuple[Tensor, ...]:
            return torch.autograd.grad(
                value, (self.inputs, self.beside), function, retain_graph=True, materialize_grads=True
            )

        gradients, beside = torch.func.vmap(back)(functions)
        return torch.einsum("sbn,bn->sb", functions, value.detach()) + self.region.least(gradients) + beside

    def _layer(self, layer: Layer, args: tuple[Any, ...]) -> Bounded:
        if layer.operator in MAXIMA:
            return largest(self, layer, args)
        if layer.operator in ACTIVATIONS:
            return self.activation(layer, args[0], args[1:])
        if layer.operator == "softmax":
            return shares(self, layer, *args)
        if layer.operator in BILINEAR and all(isinstance(one, Bounded) for one in args[:2]):
            return product(self, layer, *args)
        value = run_layer(layer, tree_map(lambda one: one.value if isinstance(one, Bounded) else one, args))
        box = propagate(layer, tree_map(lambda one: one.interval if isinstance(one, Bounded) else one, args))
        self.widest = max(self.widest, value.numel() // len(self.inputs))
        entering = [one for one in tree_leaves(args) if isinstance(one, Bounded)]
        return Bounded(value, box, layer.operator in MOVES and all(one.settled for one in entering))

    def activation(self, layer: Layer, entering: Bounded, constants: tuple[Any, ...] = ()) -> Bounded:
        """An elementwise function between its two lines."""
        interval = self._tightened(entering, relaxed(layer.operator, entering.interval, constants))
        lines = relax(layer.operator, interval, constants)
        values = run_layer(layer, (entering.value.detach(), *constants))
        between = self.between(entering.value, values, lines.where_finite(interval))
        return Bounded(between, propagate(layer, (interval, *constants)), settled=True)

    def narrowed(self, entering: Bounded) -> Enclosure:
        """The interval, cut with bounds by linear relaxation: of some numbers, and if that helps of all."""
        if entering.settled:
            return entering.interval
        rows = len(self.inputs)
        widths = (entering.interval.upper - entering.interval.lower).reshape(rows, -1)
        chosen = widths > NARROW
        known = self._cut.get(id(entering))
        if known is not None and not (chosen & ~known[1].reshape(rows, -1)).any():
            return known[2]
        every = (chosen.sum(dim=1, keepdim=True) / PROBED).ceil().clamp(min=1)
        probed = chosen & ((chosen.cumsum(dim=1) - 1) % every == 0)
        found = self._tightened(entering, probed.view_as(entering.value))
        cut = (found.upper - found.lower).reshape(rows, -1)
        gain = 1 - (cut * probed).sum(dim=1) / (widths * probed).sum(dim=1)
        rest = chosen & ~probed & (gain > GAIN)[:, None]
        found = self._tightened(Bounded(entering.value, found), rest.view_as(entering.value))
        self._cut[id(entering)] = entering, chosen.view_as(entering.value), found
        return found

    def between(self, entering: Tensor, values: Tensor, lines: Lines) -> Tensor:
        """`values` of a function of what enters, with two lines around it as the way back."""
        return _Between.apply(entering, self.beside, values, lines)

    def _tightened(self, entering: Bounded, chosen: Tensor) -> Enclosure:
        """The interval, cut with bounds by linear relaxation of the numbers that are `chosen`."""
        if entering.settled:
            return entering.interval
        known = self._cut.get(id(entering))
        if known is not None and not (chosen & ~known[1]).any():
            return known[2]
        found = self._cut_at(entering, chosen)
        self._cut[id(entering)] = entering, chosen, found
        return found

    def _cut_at(self, entering: Bounded, chosen: Tensor) -> Enclosure:
        rows = len(self.inputs)
        chosen = chosen.reshape(rows, -1)
        counts = chosen.sum(dim=1)
        chosen, counts = chosen & (counts <= MOST_FUNCTIONS)[:, None], counts.where(counts <= MOST_FUNCTIONS, 0)
        numbers = chosen.shape[1]
        places = torch.arange(numbers, device=chosen.device).where(chosen, numbers)
        places = places.sort(dim=1).values[:, : int(counts.max())]
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
