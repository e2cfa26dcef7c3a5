"""The nearest input with another prediction: the input margin from above."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from brittle.data.points import Points
from brittle.errors import DataError, ParameterError
from brittle.estimate import COUNT
from brittle.measure.base import Measurement, NetworkTraits, Passes
from brittle.measure.forward import Clean, as_points, batches_of, look
from brittle.measure.nearest.apgd import apgd
from brittle.measure.nearest.effort import EFFORTS, Effort, stages
from brittle.measure.nearest.fall import UNEXPLAINED, unexplained
from brittle.measure.nearest.norms import DISTANCES, NORMS, Norm
from brittle.measure.nearest.rays import DIRECTIONS, rays, segments
from brittle.measure.nearest.search import Found, Search
from brittle.measure.nearest.sparse_descent import sparse_descent
from brittle.measure.rows import join
from brittle.model.arrays import Fitted
from brittle.model.classifier import Classifier
from brittle.model.inputs import ExtraInputs
from brittle.registry import Registry, missing_extensions


@dataclass(frozen=True)
class Attack:
    """A way to propose inputs."""

    propose: Callable[[Search, Found, Effort, Tensor], None]  # shows inputs around some points to the search
    norms: Sequence[str]
    place: int  # in the order in which `best` runs them
    guided: bool = True  # by gradients: runs where there are some, the others where these vanish


ATTACKS: Mapping[str, Attack] = Registry(
    "attack",
    {
        "segments": Attack(segments, tuple(DISTANCES), 0, guided=False),
        "apgd": Attack(apgd, ("linf", "l2"), 1),
        "sparse_descent": Attack(sparse_descent, ("l1",), 2),
        "rays": Attack(rays, tuple(NORMS), 4, guided=False),
    },
    Attack,
)
"""Every attack by name."""

ExactSearch = Callable[[str, bool, str, Classifier, Clean], dict[str, Tensor] | None]
"""The nearest inputs by norm, whether bounds hold, and effort, as in `NearestPoint`; None for other models."""

EXACT_SEARCHES: Mapping[str, ExactSearch] = Registry("exact_search", {})
"""Searches that prove what they find, for models of one kind each, which go before attacks."""

MISLED = 1.5  # attacks with gradients are misled where all of them end this many times farther away than those without


@dataclass(frozen=True)
class NearestPoint:
    """The nearest input found with another prediction, for each point.

    Gradients are `masked`, `[B]`, where no competitor's margin has one; where they leave more than a tenth of the fall
    of the margin on the way to the input found unexplained; or where all attacks with gradients end more than `MISLED`
    times farther away than those without. No other prediction is nearer than `proved`, of an ensemble of trees.

    Attributes:
        distance: in the declared units, `[B]`, float64; an upper bound, infinite if none was found, 0 at a tie.
        points: that input, `[B, *shape]`; the point itself where none was found.
        predicted: the class there, `[B]`; -1 where none was found.
        passes: spent on the point, forward and backward, with the clean one, `[B]`.
        by_attack: distance that each reached, `[B]`; later ones may start from earlier finds.
        feature_distance: between the features there and at the point, `[B]`, or NaN, if asked for.
        proved: `[B]`, float64; `distance` itself where that is exact.
    """

    distance: Tensor
    points: Tensor
    predicted: Tensor
    passes: Tensor
    by_attack: dict[str, Tensor]
    masked: Tensor
    feature_distance: Tensor | None = None
    proved: Tensor | None = None


@dataclass(frozen=True)
class Nearest(Measurement):
    """The nearest input with another predicted class, by attacks that need no radius.

    `min ||d||` subject to `argmax z(x + d) != argmax z(x)` and, with `bounded`, `x + d` inside the bounds: an upper
    bound on the input margin, exact for linear models, which holds when it is classified alone. `attack` is `best` for
    the nearest over all that suit the norm; `observe` looks at the features of what was found, by another pass.
    """

    norm: str = "linf"
    attack: str = "best"
    effort: str = "standard"
    bounded: bool = True
    observe: bool = False

    needs_gradients = False

    def __post_init__(self) -> None:
        check_search(self.norm, self.attack, self.effort, self.bounded)

    @property
    def stream(self) -> Hashable:
        """Key of the search: its result does not depend on what is looked at."""
        return replace(self, observe=False)

    @property
    def uses_features(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The clean pass keeps those of the point."""
        return self.observe

    @property
    def attacks(self) -> list[str]:
        """The attacks that run, in their order."""
        suited = sorted((attack.place, name) for name, attack in ATTACKS.items() if self.norm in attack.norms)
        return [name for _, name in suited] if self.attack == "best" else [self.attack]

    @property
    def code(self) -> tuple[Any, ...]:
        return (*(ATTACKS[name].propose for name in self.attacks), *EXACT_SEARCHES.values())

    @property
    def missing(self) -> Sequence[str]:
        return missing_extensions("attack", "exact_search")

    def cost(self, network: NetworkTraits) -> Passes:
        """Return the passes of its effort on average, as measured; without gradients the most of the search over signs.
        The features of the result are a pass more."""
        if network.forward_only is not None:
            return Passes(sum(DIRECTIONS * stage.queries for stage in stages(self.effort)) + self.observe, 0)
        passes = EFFORTS[self.effort].passes[self.norm] / 2
        return Passes(passes + self.observe, passes)

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[NearestPoint]:
        """Make one search for all of `needs`."""
        neighbours = _measure(needs[0], classifier, clean)
        if not any(need.observe for need in needs):
            return [neighbours for _ in needs]
        observed = _observe(neighbours, DISTANCES[needs[0].norm], classifier, clean)
        return [observed if need.observe else neighbours for need in needs]


def nearest(
    classifier: Classifier | nn.Module,
    inputs: Tensor | Points,
    *,
    norm: str = "l2",
    attack: str = "best",
    effort: str = "standard",
    bounded: bool = True,
    extra_inputs: Mapping[str, Tensor | np.ndarray] | None = None,
    mask: str | Tensor | np.ndarray | None = None,
) -> NearestPoint:
    """Return the nearest input with another predicted class that is found around each of `inputs`.

    `min ||d||` subject to `argmax z(x + d) != argmax z(x)`: what `brittle.scores.InputMargin` measures, with the inputs
    themselves.

    Validity: an upper bound on the input margin, exact for linear models, up to a part in a thousand at `fast`; how
    near it comes is measured in `docs/explanation/attacks.md`.

    Args:
        classifier: what to search; a network as it is takes inputs in [0, 1].
        inputs: `[B, *shape]`, in the declared units; `B` at least 1. Or points, such as `brittle.data.array_points`
            gives, all of which can be read.
        norm: `l2`, `linf`, `l1` or `l0`, the number of values that change; this needs finite bounds.
        attack: `best` for the nearest of all attacks, or one of `ATTACKS` by name.
        effort: `fast`, `standard` or `thorough`, a budget of passes per point.
        bounded: stay inside the classifier's bounds.
        extra_inputs: other tensors of the points, `[B, ...]` each, by the names of the model's arguments for them.
        mask: which coordinates of the inputs vary, or the name of one of these, as `brittle.data.array_points` takes
            it; distances count these alone.

    Returns:
        the `NearestPoint`: `points` `[B, *shape]`, `distance`, `predicted` (-1 where nothing was found) and `passes`,
        on the classifier's device.

    Raises:
        ParameterError: an unknown norm, attack or effort, or an attack that does not know the norm.
        DataError: inputs outside the classifier's bounds, or none; or inputs that cannot be read, or tensors that are
            not one for each; or an estimator was fitted on other columns.
        ModelError: the model fails or cannot be differentiated.

    Example:
        >>> import torch, brittle
        >>> network = torch.nn.Linear(4, 3)
        >>> classifier = brittle.Classifier(network)
        >>> found = brittle.nearest(classifier, torch.rand(2, 4), norm="l2", effort="fast", bounded=False)
        >>> [int(network(point[None]).argmax()) for point in found.points] == found.predicted.tolist()
        True
    """
    need = Nearest(norm, attack, effort, bounded)
    if not isinstance(classifier, Classifier):
        classifier = Classifier(classifier)
    classifier.check_margins("nearest")
    points = as_points(inputs, classifier.bounds, extra_inputs=extra_inputs, mask=mask)
    classifier = classifier.reading(points.provenance)
    parts = []
    for batch, rows in batches_of(classifier, points):
        unread = next(filter(None, batch.detail), None)
        if unread is not None:
            raise DataError("no_usable_points", f"{unread}; leave such points out (brittle.data.choose_points)")
        beside = batch.extra_inputs
        neighbours = need(classifier, look(classifier, batch.inputs, batch.ids, 0, rows=rows, extra_inputs=beside))
        parts.append(neighbours if beside is None else replace(neighbours, points=beside.kept(neighbours.points)))
    return join(parts)


def check_search(norm: str, attack: str, effort: str, bounded: bool) -> None:
    choices = {"norm": (norm, DISTANCES), "attack": (attack, ("best", *ATTACKS)), "effort": (effort, EFFORTS)}
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise ParameterError(f"{name} must be one of {', '.join(allowed)}; found {value!r}")
    if attack != "best" and norm not in ATTACKS[attack].norms:
        raise ParameterError(f"{attack} knows the norms {', '.join(ATTACKS[attack].norms)} only; found norm={norm!r}")
    if norm == COUNT and not bounded:
        raise ParameterError(f"distances in {COUNT} need bounds, as one feature may change without end else")


def _measure(need: Nearest, classifier: Classifier, clean: Clean) -> NearestPoint:
    """Every effort begins with all that the smaller ones do, so it never ends farther away."""
    for search_exactly in EXACT_SEARCHES.values() if need.attack == "best" and not need.observe else ():
        exact = search_exactly(need.norm, need.bounded, need.effort, classifier, clean)
        if exact is not None:
            neighbours = NearestPoint(**exact, by_attack={}, masked=torch.zeros_like(clean.tied))
            rows = clean.incomplete.nonzero()[:, 0]
            if not len(rows):
                return neighbours
            attacked = _attack(need, classifier, clean.only(rows))  # which proves nothing
            names = ("distance", "points", "predicted", "passes", "masked")
            values = {name: getattr(neighbours, name).index_copy(0, rows, getattr(attacked, name)) for name in names}
            return replace(neighbours, **values)
    return _attack(need, classifier, clean)


def _attack(need: Nearest, classifier: Classifier, clean: Clean) -> NearestPoint:
    if need.norm == COUNT and not classifier.bounds.finite:
        advice = f"declare those of the inputs, which are {classifier.bounds}"
        raise ParameterError(f"distances in {COUNT} need finite bounds; {advice}")
    search = Search(classifier, clean, DISTANCES[need.norm], need.bounded)
    vanishing = search.vanishing
    settled = [_spend(search, need, vanishing, effort) for effort in stages(need.effort)][-1]
    distance, points = settled.distance, settled.points.view_as(clean.inputs)
    if isinstance(classifier.model, Fitted) and (rule_points := classifier.model.kept(points)) is not None:
        points, is_found = rule_points, distance.isfinite()  # what the model read there
        distance = torch.where(is_found, DISTANCES[need.norm].length((points - clean.inputs).flatten(1)), distance)
    distance = torch.where(clean.finite & clean.tied, 0.0, distance)
    by_attack = {name: neighbours.distance for name, neighbours in search.by_attack.items()}
    masked = vanishing | _misled(search, need.attacks, vanishing)
    return NearestPoint(distance, points, settled.predicted, search.passes, by_attack, masked)


def _spend(search: Search, need: Nearest, vanishing: Tensor, effort: Effort) -> Found:
    """Run the attacks at an effort; return the nearest inputs known after it, each of which holds alone."""
    with search.effort():
        for name in need.attacks:
            rows = search.open
            if need.attack == "best" and name != "segments":
                rows = rows[vanishing[rows] != ATTACKS[name].guided]
            with search.attack(name) as neighbours:
                ATTACKS[name].propose(search, neighbours, effort, rows)
    return search.settle()


def _observe(neighbours: NearestPoint, norm: Norm, classifier: Classifier, clean: Clean) -> NearestPoint:
    features_there = _features(classifier, neighbours.points, clean.rows, clean.extra_inputs)
    here = clean.features
    if here is None:
        here = _features(classifier, clean.inputs, clean.rows, clean.extra_inputs)
    distance = norm.length((features_there - here).flatten(1))
    missing = neighbours.predicted < 0
    passes = neighbours.passes + (1 if clean.features is not None else 2)
    return replace(neighbours, feature_distance=distance.masked_fill(missing, torch.nan), passes=passes)


def _features(classifier: Classifier, inputs: Tensor, rows: int, extra: ExtraInputs | None) -> Tensor:
    with torch.no_grad():
        places = torch.arange(len(inputs), device=inputs.device).split(rows)
        return torch.cat([classifier.observe(inputs[part], extra and extra.only(part))[1] for part in places])


def _misled(search: Search, attacks: Sequence[str], vanishing: Tensor) -> Tensor:
    """Return whether gradients do not explain the result, or attacks that follow them end much farther away, `[B]`."""
    misled = torch.zeros_like(vanishing)
    guided = [search.by_attack[name].distance for name in attacks if ATTACKS[name].guided]
    if not guided:
        return misled
    farther = torch.stack(guided).amin(dim=0) > MISLED * search.best.distance
    rows = search.open[~vanishing[search.open]]
    misled[rows] = unexplained(search, rows) > UNEXPLAINED
    return misled | farther
