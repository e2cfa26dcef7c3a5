"""The search for the nearest input with another prediction: what attacks share, and what decides the result.

Attacks propose inputs; `Search` is the only one that shows them to the classifier, counts what that costs, and keeps
the nearest that were really classified otherwise. An attack cannot report a success of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from brittle.errors import ModelError
from brittle.measure.forward import Clean
from brittle.measure.nearest.norms import Norm
from brittle.measure.rows import join
from brittle.model.bounds import NONE
from brittle.model.classifier import Classifier

CANDIDATES = 20  # number of competitors, by logit, that are ranked by their linearised distance

DOUBLINGS = 10  # of the distance of a far input, without bounds, to get another prediction
FAR = 4.0  # factor beyond the distance by a linear model at which an input is no guide to the nearest one
ANY = -1  # whichever competitor has the greatest logit at a candidate

ROUGH = 1e-4  # share by which a perturbation may be longer than it seems in the precision of the network
OUTWARD = (0.0, 1e-6, 1e-5, 1e-4, 1e-3)  # shares by which one is stretched, in turn, until it holds in a batch of one


@dataclass
class Found:
    """The nearest inputs with another prediction so far."""

    distance: Tensor  # `[B]`, float64; infinite where there is none
    points: Tensor  # `[B, n]`; the input itself
    predicted: Tensor  # `[B]`; -1

    @classmethod
    def none(cls, origin: Tensor) -> Found:
        distance = torch.full((len(origin),), torch.inf, dtype=torch.float64, device=origin.device)
        return cls(distance, origin.clone(), torch.full_like(distance, -1, dtype=torch.int64))

    def keep(self, rows: Tensor, distance: Tensor, points: Tensor, predicted: Tensor) -> None:
        """Take over the nearest of the candidates `points`, `[R, n]`, of the points `rows`, `[R]`."""
        if not bool((distance < self.distance[rows]).any()):
            return
        nearest = torch.full_like(self.distance, torch.inf).scatter_reduce(0, rows, distance, "amin")
        winning = torch.where(distance == nearest[rows], torch.arange(len(rows), device=rows.device), len(rows))
        first_winner = rows.new_full((len(self.distance),), len(rows))
        first_winner = first_winner.scatter_reduce(0, rows, winning, "amin")
        better = (nearest < self.distance).nonzero()[:, 0]
        chosen = first_winner[better]
        self.distance[better] = distance[chosen]
        self.points[better] = points[chosen]
        self.predicted[better] = predicted[chosen]

    def merge(self, more: Found) -> None:
        self.keep(torch.arange(len(self.distance), device=self.distance.device), *vars(more).values())


@dataclass(frozen=True)
class Response:
    """Response of the classifier to candidates."""

    points: Tensor  # as the network got them, inside the box, `[R, n]`
    offset: Tensor  # from the point to each
    length: Tensor  # its norm, `[R]`, float64
    flipped: Tensor
    margin: Tensor  # `z_t - z_j`, `j` the target, `[R]`, float64; NaN where logits are not finite
    gradient: Tensor  # of that, `[R, n]`; zero where it is not finite
    steepness: Tensor  # its dual norm


class Search:
    """Points, the classifier, and the nearest inputs found so far with another prediction.

    Points are flat, `[B, n]`: `origin`, in the box of `declared` bounds; `bounded` says whether every value has both.
    `open` are those that can be searched, logits finite and not tied, and `own` their predicted class `t`. `best` is
    the nearest that any attack has found, `by_attack` of each alone, `by_class`, `[B, C]`, float64, the nearest
    distance at which each class won, infinite where it never did.
    """

    def __init__(self, classifier: Classifier, clean: Clean, norm: Norm, bounded: bool) -> None:
        self.norm, self.shape, self.rows = norm, clean.inputs.shape[1:], clean.rows
        self.declared = classifier.bounds.flat(self.shape)
        self.bounds = self.declared if bounded else NONE
        self.bounded = self.bounds.finite
        self.origin = clean.inputs.flatten(1)
        self.own = clean.predicted
        self.open = (clean.finite & ~clean.tied).nonzero()[:, 0]
        self.best = Found.none(self.origin)
        self.by_attack: dict[str, Found] = {}
        self.by_class = torch.full(clean.logits.shape, torch.inf, dtype=torch.float64, device=clean.logits.device)
        self.passes = torch.full_like(self.own, clean.passes)
        self._classifier, self._clean = classifier, clean
        self._settled = Found.none(self.origin)
        self._watching: list[Found] = [self.best]
        self._mode: Callable[[], AbstractContextManager[Any]] = nullcontext

    def differentiated(self, mode: Callable[[], AbstractContextManager[Any]]) -> Search:
        """Return the same search, credited with what it finds and spends, with the gradients of `mode()`."""
        search = copy(self)
        search._mode = mode
        return search

    @contextmanager
    def effort(self) -> Iterator[None]:
        """Inside the block attacks begin anew: what was found before it neither guides nor limits them."""
        before = self.best, self.by_class, self.by_attack
        self.best, self.by_attack = Found.none(self.origin), {}
        self.by_class = torch.full_like(self.by_class, torch.inf)
        try:
            yield
        finally:
            best, self.by_class, by_attack = before
            self._watching = [self.best]
            self.best.merge(best)
            for name, neighbours in by_attack.items():
                self.by_attack.setdefault(name, Found.none(self.origin)).merge(neighbours)

    @contextmanager
    def attack(self, name: str) -> Iterator[Found]:
        """Inside the block, what is found is credited to the attack `name` too."""
        neighbours = self.by_attack.setdefault(name, Found.none(self.origin))
        self._watching = [self.best, neighbours]
        try:
            yield neighbours
        finally:
            self._watching = [self.best]

    def look(self, rows: Tensor, points: Tensor) -> Tensor:
        """`z_t - max_{j != t} z_j` at `points`, `[R, n]`, candidates of the points `rows`, `[R]`. Negative exactly
        where another class wins; not a number where the logits are not finite. `[R]`, float64."""
        if len(rows) <= self.rows:
            return self._look(rows, points) if len(rows) else rows.double()
        chunks = zip(rows.split(self.rows), points.split(self.rows), strict=True)
        return torch.cat([self._look(*chunk) for chunk in chunks])

    def differentiate(self, rows: Tensor, points: Tensor, targets: Tensor) -> Response:
        """Look at `points` and differentiate the margin over `targets`, `[R]`, a class for each or `ANY`."""
        size = self.rows
        if not len(rows):
            return Response(points, points, rows.double(), rows > 0, rows.double(), points, rows.double())
        if len(rows) <= size:
            return self._differentiate(rows, points, targets)
        chunks = zip(rows.split(size), points.split(size), targets.split(size), strict=True)
        return join([self._differentiate(*chunk) for chunk in chunks])

    @cached_property
    def competitors(self) -> tuple[Tensor, Tensor]:
        """Competitors in the order of their linearised distance, and that distance (`Norm.to_plane`): `[B, M]`. The
        distance is infinite where the gradient vanishes or is not finite; such competitors come last, by logit."""
        classes = self._clean.competitors(min(CANDIDATES, self._clean.logits.shape[1] - 1))
        classes = classes.gather(1, self._clean.logits.gather(1, classes).argsort(dim=1, descending=True, stable=True))
        distance = torch.full(classes.shape, torch.inf, dtype=torch.float64, device=classes.device)
        for rows in self.open.split(self.rows) if len(self.open) else ():
            distance[rows] = self._linearised_distances(rows, classes[rows])
        order = distance.argsort(dim=1, stable=True)
        return classes.gather(1, order), distance.gather(1, order)

    @property
    def rounding(self) -> Tensor:
        """Unit in the last place of the largest class score of each point, in the precision of the network, `[B]`."""
        kinds = {self._classifier.dtype or torch.float32, self._classifier.output_dtype}
        unit = max(torch.finfo(kind).eps for kind in kinds)
        return self._clean.logits.abs().amax(dim=1).double() * unit

    @property
    def vanishing(self) -> Tensor:
        """Return whether no competitor's margin has a gradient at the point, `[B]`."""
        vanishing = torch.zeros_like(self.own, dtype=torch.bool)
        vanishing[self.open] = self.competitors[1][self.open].isinf().all(dim=1)
        return vanishing

    def rivals(self, rows: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the `count` nearest competitors of each of `rows`: places in `rows`, classes and linearised distances,
        `[K]` each, without those whose gradient vanishes. Those that were reached near their linearised distance come
        first, by the distance at which they were, then the others by the linearised one."""
        classes, linear = (of_point[rows] for of_point in self.competitors)
        reached = self.by_class[rows].gather(1, classes)
        near = torch.where(reached <= FAR * linear, reached, torch.inf)
        order = near.argsort(dim=1, stable=True)[:, :count]
        classes, linear = (of_row.gather(1, order) for of_row in (classes, linear))
        useful = linear.isfinite()
        return useful.nonzero()[:, 0], classes[useful], linear[useful]

    def beside_best(self, rows: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return points and classes of `rivals`, with the nearest inputs found, `[K, n]`, and their distances, `[K]`;
        where these are far, the point itself and the linearised distance."""
        places, rivals, linear = self.rivals(rows, count)
        rows = rows[places]
        distances = self.best.distance[rows]
        near = distances <= FAR * linear
        start = torch.where(near[:, None], self.best.points[rows], self.origin[rows])
        return rows, rivals, start, torch.where(near, distances, linear)

    def bisect(self, neighbours: Found, halvings: int) -> None:
        """Move what was `neighbours` towards its point, on their segment, to where the prediction changes."""
        rows = neighbours.distance.isfinite().nonzero()[:, 0]
        self.bisect_segments(rows, neighbours.points[rows].clone(), halvings, start=1 / 16)

    def bisect_segments(self, rows: Tensor, ends: Tensor, halvings: int, start: float = 0.5) -> None:
        """Halve the segments from the points `rows` to inputs with another prediction, `ends`, `[R, n]`, while their
        nearer end may be nearer than what was found elsewhere. The first cut is at the share `1 - start`, and cuts come
        nearer to the point as long as all have another prediction."""
        origin = self.origin[rows]
        offset, length = ends - origin, self.norm.length(ends - origin)
        lower, upper = torch.zeros_like(length), torch.ones_like(length)
        bracketed = torch.zeros_like(rows, dtype=torch.bool)
        gap = start
        for _ in range(halvings):
            cut = torch.where(bracketed, (lower + upper) / 2, (1 - gap) * upper)
            gap = min(2 * gap, 0.5)
            live = (lower * length < self.best.distance[rows]) & (upper - lower > 2e-7)
            index = live.nonzero()[:, 0]
            points = origin[index] + cut[index, None].to(origin.dtype) * offset[index]
            flipped = torch.zeros_like(bracketed)
            flipped[index] = self.look(rows[index], points) < 0
            upper = torch.where(live & flipped, cut, upper)
            lower = torch.where(live & ~flipped, cut, lower)
            bracketed |= live & ~flipped

    def settle(self) -> Found:
        """Return the nearest inputs that hold in a batch of one, of this and all earlier calls."""
        rows = (self.best.distance < self._settled.distance).nonzero()[:, 0]
        self._watching = [self._settled]
        if len(rows):
            points = self._admitted(rows, self.best.points[rows], self.origin[rows])
            with torch.no_grad():
                alone = [self._forward(*part) for part in zip(rows.split(1), points.split(1), strict=True)]
            margin, predicted = self._judge(rows, torch.cat(alone))
            holds = margin < 0
            self._keep(rows, points, holds, predicted, self.norm.length(points - self.origin[rows]))
            for row in rows[~holds].split(1) if not bool(holds.all()) else ():
                self._settle_one(row)
        self._watching = [self.best]
        return self._settled

    def _settle_one(self, row: Tensor) -> None:
        candidates = sorted((self.best, *self.by_attack.values()), key=lambda near: float(near.distance[row]))
        origin = self.origin[row]
        for neighbours in candidates:
            if not bool(neighbours.distance[row] < self._settled.distance[row]):
                return
            for share in OUTWARD[neighbours is self.best :]:
                points = origin + (1 + share) * (neighbours.points[row] - origin) if share else neighbours.points[row]
                if bool(self._look(row, points) < 0):
                    return

    def _admitted(self, rows: Tensor, points: Tensor, origin: Tensor) -> Tensor:
        """Return candidates inside the bounds, `[R, n]`. Coordinates that do not vary are those of `origin`, and so are
        values that are equal there, which may lie outside the bounds by rounding."""
        clipped = self.bounds.clip(points)
        return self._varying(rows, clipped if self._inside else torch.where(points == origin, points, clipped), origin)

    @cached_property
    def _inside(self) -> bool:
        return torch.equal(self.bounds.clip(self.origin), self.origin)

    def _look(self, rows: Tensor, points: Tensor) -> Tensor:
        origin = self.origin.index_select(0, rows)
        points = self._admitted(rows, points, origin)
        with torch.no_grad():
            logits = self._forward(rows, points)
        margin, predicted = self._judge(rows, logits)
        self._keep(rows, points, margin < 0, predicted, self.norm.length(points - origin))
        return margin

    def _differentiate(self, rows: Tensor, points: Tensor, targets: Tensor) -> Response:
        origin = self.origin.index_select(0, rows)
        points = self._admitted(rows, points.detach(), origin).requires_grad_(True)
        with torch.enable_grad(), self._mode():
            logits = self._forward(rows, points)
            margin, predicted = self._judge(rows, logits.detach())
            pair = torch.stack([self.own.index_select(0, rows), torch.where(targets == ANY, predicted, targets)], dim=1)
            clean_logit, target_logit = logits.gather(1, pair).unbind(dim=1)
            towards = clean_logit - target_logit
            gradient, steepness = self._gradient(rows, towards, points, keep=False)
        points, flipped = points.detach(), margin < 0
        offset = points - origin
        length = self.norm.length(offset)
        self._keep(rows, points, flipped, predicted, length)
        return Response(points, offset, length, flipped, towards.detach().double(), gradient, steepness)

    def _linearised_distances(self, rows: Tensor, classes: Tensor) -> Tensor:
        """Return the linearised distance of the boundary to each of the classes `j`, `[R, M]`, by one forward pass."""
        points = self.origin[rows].detach().requires_grad_(True)
        with torch.enable_grad():
            logits = self._forward(rows, points)
            margins = logits.gather(1, self.own[rows, None]) - logits.gather(1, classes)
            columns = [margins[:, number] for number in range(classes.shape[1])]
            last = len(columns) - 1
            gradients = [self._gradient(rows, column, points, keep=at < last)[0] for at, column in enumerate(columns)]
        detached, ends = points.detach(), self.bounds.ends(self.origin[rows])
        pairs = zip(margins.detach().double().unbind(1), gradients, strict=True)
        return torch.stack([self.norm.to_plane(detached, gradient, margin, *ends) for margin, gradient in pairs], dim=1)

    def _varying(self, rows: Tensor, values: Tensor, otherwise: Tensor | float) -> Tensor:
        """`values`, `[R, n]`, at the coordinates that vary, `otherwise` at the others."""
        if self._clean.varies is None:
            return values
        varies = self._clean.varies[rows].expand(len(rows), *self.shape).flatten(1)
        return torch.where(varies, values, otherwise)

    def _forward(self, rows: Tensor, points: Tensor) -> Tensor:
        self.passes.index_add_(0, rows, torch.ones_like(rows))
        return self._clean.logits_of(self._classifier, points.view(len(points), *self.shape), rows)

    def _gradient(self, rows: Tensor, values: Tensor, points: Tensor, *, keep: bool) -> tuple[Tensor, Tensor]:
        """Gradient of each row's value, zero where it is not finite or where the model has none, and its dual norm."""
        self.passes.index_add_(0, rows, torch.ones_like(rows))
        try:
            gradient = self._varying(rows, self._classifier.gradient(values, points, keep=keep), 0)
        except ModelError as error:
            if error.code != "not_differentiable":
                raise
            gradient = torch.zeros_like(points)
        steepness = self.norm.dual(gradient)
        if not math.isfinite(float(steepness.sum())):
            gradient = torch.where(gradient.abs().amax(dim=1, keepdim=True).isfinite(), gradient, 0)
            steepness = self.norm.dual(gradient)
        return gradient, steepness

    def _judge(self, rows: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return the margin over the nearest competitor, NaN where logits are not finite, and that class, `[R]`."""
        clean_classes = self.own.index_select(0, rows)[:, None]
        top, predicted = logits.scatter(1, clean_classes, -torch.inf).max(dim=1)
        margin = logits.gather(1, clean_classes)[:, 0].double() - top
        if not math.isfinite(float(logits.sum())):
            margin = torch.where(logits.abs().amax(dim=1).isfinite(), margin, torch.nan)
        return margin, predicted

    def _keep(self, rows: Tensor, points: Tensor, flipped: Tensor, predicted: Tensor, length: Tensor) -> None:
        """Keep what is `flipped` and nearer than what was found; `length` may be off by rounding."""
        length = torch.where(flipped, length, torch.inf)
        slots = torch.add(predicted, rows, alpha=self.by_class.shape[1])
        self.by_class.view(-1).scatter_reduce_(0, slots, length, "amin")
        farthest = self._watching[0].distance
        for neighbours in self._watching[1:]:
            farthest = torch.maximum(farthest, neighbours.distance)
        near = (length * (1 - ROUGH) < farthest.index_select(0, rows)).nonzero()[:, 0]
        if len(near):
            rows, points, predicted = (tensor.index_select(0, near) for tensor in (rows, points, predicted))
            distance = self.norm.length(points.double() - self.origin.index_select(0, rows).double())
            for neighbours in self._watching:
                neighbours.keep(rows, distance, points, predicted)
