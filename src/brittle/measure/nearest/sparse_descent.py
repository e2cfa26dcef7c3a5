"""Sparse descent (L1): projected gradient descent whose steps move few coordinates, from several starts."""

import torch
from torch import Tensor

from brittle.measure.nearest.apgd import next_radius
from brittle.measure.nearest.effort import Effort
from brittle.measure.nearest.norms import TINY
from brittle.measure.nearest.search import Found, Response, Search

POWERS = (2.0, 6.0)  # first and last power of the gradient in a step: ever fewer coordinates move
# First and last step, in radii, and relative change of the radius: from a start, and from the nearest input found.
WIDE, FINE = ((20.0, 0.1), (0.4, 0.0005)), ((2.5, 0.025), (0.1, 0.0005))
Ends = tuple[float, float]
OUTSIDE = 4.0  # distance of a fixed start, in distances of the nearest input found
HALVINGS = 30  # tolerance of the level of a projection on a ball inside a box


def sparse_descent(search: Search, neighbours: Found, effort: Effort, rows: Tensor) -> None:
    """Targeted projected gradient descent on `z_t - z_j` in L1, with the radius searched for by each row on its way.

    `d <- P(d - s r u)`, `P` the projection on the ball of radius `r` inside the box and `u` of length one along
    `sign(g) |g|^p`, `g` the gradient without the coordinates that the box holds back. The steepest direction in L1 is
    one coordinate, that of FMN all of them; `p` rises from 2 to 6 between both. First from the point itself towards a
    few near competitors; then from the reflection of what was found and from fixed patterns of signs; then, with small
    steps, from the nearest input that any attack has found unless that is far. The radius is that of FMN.

    Sources: Pintor et al., Fast minimum-norm adversarial attacks through adaptive norm constraints (NeurIPS 2021),
    algorithm 1; Tramer and Boneh, Adversarial training and robustness for multiple perturbations (NeurIPS 2019),
    section 4 (sparse steps); Croce and Hein, Mind the box: l1-APGD for sparse adversarial attacks on image classifiers
    (ICML 2021), section 2 (projection on both).
    """
    for number in range(effort.sparse_starts):
        near = search.rivals(rows, effort.sparse_targets) if number else _by_slope(search, rows, effort.sparse_scouts)
        targeted, rivals, linear = near
        start = _start(search, targeted, number)
        _descend(search, WIDE, effort.sparse_steps, targeted, rivals, start, linear)
    search.bisect(neighbours, effort.halvings)
    beside = search.beside_best(rows, effort.sparse_targets)
    _descend(search, FINE, effort.sparse_fine_steps, *beside)
    search.bisect(neighbours, effort.halvings)


def _by_slope(search: Search, rows: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return rivals by the linearised distance alone."""
    classes, linear = (of_point[rows, :count] for of_point in search.competitors)
    useful = linear.isfinite()
    return rows[:, None].expand(useful.shape)[useful], classes[useful], linear[useful]


def _start(search: Search, rows: Tensor, number: int) -> Tensor:
    """Return the starts of a number's descents: the point, the nearest input reflected, fixed signs, `[R, n]`."""
    origin = search.origin[rows]
    if number == 0:
        return origin
    offset = search.best.points[rows] - origin
    if number == 1:
        return origin - offset
    size = origin.shape[1]
    signs = torch.randint(0, 2, (size,), generator=torch.Generator().manual_seed(number)).to(origin) * 2 - 1
    return origin + (OUTSIDE / size * search.norm.length(offset)).to(origin)[:, None] * signs


def _descend(
    search: Search, ends: tuple[Ends, Ends], steps: int, rows: Tensor, targets: Tensor, points: Tensor, radius: Tensor
) -> None:
    """Take `steps` steps of each row of `rows` from `points`, `[R, n]`, and `radius`, `[R]`; rows are independent."""
    origin = search.origin[rows]
    low, high = search.bounds.ends(origin)
    best = torch.full_like(radius, torch.inf)
    for number in range(steps):
        share = number / max(1, steps - 1)
        step, change = (start * (end / start) ** share for start, end in ends)
        response = search.differentiate(rows, points, targets)
        length = response.length
        best = torch.where(response.flipped, torch.minimum(best, length), best)
        boundary = length + response.margin / response.steepness.clamp_min(TINY)
        radius = next_radius(response.flipped, length, boundary, best, radius, change)
        direction = _direction(response, low, high, POWERS[0] + share * (POWERS[1] - POWERS[0]))
        moved = response.offset - (step * radius).to(points)[:, None] * direction
        points = origin + into_box_and_ball(moved, radius, low - origin, high - origin)
    search.look(rows, points)


def _direction(response: Response, low: float | Tensor, high: float | Tensor, power: float) -> Tensor:
    """`sign(g) |g|^power` of length one, `g` the gradient without what leads out of the box, `[R, n]`."""
    gradient, points = response.gradient, response.points
    stuck = ((gradient > 0) & (points <= low)) | ((gradient < 0) & (points >= high))
    free = torch.where(stuck, 0, gradient)
    shares = free.abs() / free.abs().amax(dim=1, keepdim=True).clamp_min(TINY)
    direction = free.sign() * shares**power
    return direction / direction.abs().sum(dim=1, keepdim=True).clamp_min(TINY)


def into_box_and_ball(vectors: Tensor, radius: Tensor, low: Tensor | float, high: Tensor | float) -> Tensor:
    """Return the vector of the box nearest to each row in L2 that has at most the L1 norm `radius`, `[R]`: `[R, n]`.

    `clip(sign(v) max(|v| - l, 0))` with the one `l` that gives the norm, by bisection to a part in `2^HALVINGS` of the
    largest coordinate; 0 where the clipped row has it already.

    Source: Croce and Hein, Mind the box: l1-APGD for sparse adversarial attacks on image classifiers (ICML 2021),
    proposition 2.2.
    """
    sizes = vectors.abs()
    room = torch.where(vectors > 0, high, -low).clamp_min(0)
    bound = radius.to(vectors)[:, None]
    lower = torch.zeros_like(bound)
    upper = sizes.amax(dim=1, keepdim=True)
    inside = torch.minimum(sizes, room).sum(dim=1, keepdim=True) <= bound
    for _ in range(HALVINGS):
        middle = (lower + upper) / 2
        outside = torch.minimum((sizes - middle).clamp_min(0), room).sum(dim=1, keepdim=True) > bound
        lower, upper = torch.where(outside, middle, lower), torch.where(outside, upper, middle)
    level = torch.where(inside, 0, upper)
    return vectors.sign() * torch.minimum((sizes - level).clamp_min(0), room)
