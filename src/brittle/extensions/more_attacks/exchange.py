"""Search over sets of changed features (L0): grown until another class wins, swapped at smaller counts, put back."""

import torch
from torch import Tensor

from brittle.estimate import COUNT
from brittle.measure.nearest.effort import Effort
from brittle.measure.nearest.nearest import Attack
from brittle.measure.nearest.norms import ends_downhill, fewest
from brittle.measure.nearest.rays import segments
from brittle.measure.nearest.search import Found, Response, Search


def blocks(search: Search, nearest: Found, effort: Effort, rows: Tensor) -> None:
    """Put back features of the nearest input so far, in blocks: without gradients, for networks that have none.

    The features are in the order of their change (see `put_back`). A row without one first tries fixed far ones.
    """
    segments(search, nearest, effort, rows[search.best.distance[rows].isinf()])
    solved_rows = rows[search.best.distance[rows].isfinite()]
    points = search.best.points[solved_rows]
    _put_back(search, solved_rows, points, (points - search.origin[solved_rows]).abs(), effort.queries)


def put_back(search: Search, nearest: Found, rows: Tensor, passes: int) -> None:
    """Put features of the `nearest` inputs back to the point's values, as long as another class wins.

    The features are in the order of the first-order effect of their change, `|g_i d_i|`, the smallest first. A block
    of them is put back at once; the next block has twice the size after a success, half after a failure; a feature
    that fails by itself stays changed. Each point may spend so many forward `passes`.
    """
    solved_rows = rows[nearest.distance[rows].isfinite()]
    points, targets = nearest.points[solved_rows], nearest.predicted[solved_rows]
    slope = search.differentiate(solved_rows, points, targets).gradient
    _put_back(search, solved_rows, points, (slope * (points - search.origin[solved_rows])).abs(), passes)


def _put_back(search: Search, rows: Tensor, points: Tensor, weight: Tensor, passes: int) -> None:
    origin = search.origin[rows]
    changed = points != origin
    places = ranks(torch.where(changed, weight, torch.inf))
    count = changed.sum(dim=1)
    start, size = torch.zeros_like(count), (count // 2).clamp_min(1)
    for _ in range(passes):
        open_rows = (start < count).nonzero()[:, 0]
        if not len(open_rows):
            break
        begin, end = start[open_rows, None], (start + size)[open_rows, None]
        block = (places[open_rows] >= begin) & (places[open_rows] < end) & changed[open_rows]
        candidate = torch.where(block, origin[open_rows], points[open_rows])
        wins = search.look(rows[open_rows], candidate) < 0
        points[open_rows[wins]] = candidate[wins]
        is_single = size[open_rows] == 1
        start[open_rows] += torch.where(wins, size[open_rows], torch.where(is_single, 1, 0))
        size[open_rows] = torch.where(wins, 2 * size[open_rows], (size[open_rows] // 2).clamp_min(1))


def ranks(values: Tensor) -> Tensor:
    """Return the place of each value in the ascending order of its row, equal ones in their own order, `[R, n]`."""
    order = values.argsort(dim=1, stable=True)
    places = torch.arange(order.shape[1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places)


GROWTH = 0.25  # share of the features that the linear model of the margin still needs which a step adds, rounded up
SWAP_SHARE = 0.1  # share of the changed features that a step swaps for others, rounded up
TABU_STEPS = 20  # steps for which a feature stays as it is after it was changed or put back


def exchange(search: Search, nearest: Found, effort: Effort, rows: Tensor) -> None:
    """Targeted search on `z_t - z_j` over sets of changed features, each at the end of its bounds where that falls.

    The worth of a feature is the first-order effect of its change, `g_i (x_i - e_i)` with `e_i` that end. From the
    point itself the search changes features of the greatest worth, a share of those still needed in a step, up to one
    fewer than in the nearest input so far. From then on their number stays there, and each step puts those of the
    smallest worth back and changes others instead. Moved features rest for some steps, so that the search leaves a set
    that no single swap improves. It runs towards a few competitors from the point, then towards the nearest ones from
    the nearest input of any attack; at the end features are put back while another class wins (`put_back`).

    Sources: Papernot et al., The limitations of deep learning in adversarial settings (EuroS&P 2016), algorithm 1
    (features changed to their ends in the order of their slopes); Glover, Tabu search, part I (ORSA Journal on
    Computing 1989), section 2 (swaps with rest).
    """
    rows_of, targets, _ = search.rivals(rows, effort.grow_targets)
    _descend(search, effort.grow_steps, rows_of, targets, search.origin[rows_of])
    best = search.best.distance[rows]
    rows_of, targets, _ = search.rivals(rows[best.isfinite() & (best > 1)], effort.swap_targets)
    _descend(search, effort.swap_steps, rows_of, targets, search.best.points[rows_of])
    put_back(search, nearest, rows, effort.back_passes)


def _descend(search: Search, steps: int, rows: Tensor, targets: Tensor, points: Tensor) -> None:
    origin = search.origin[rows]
    low, high = (torch.as_tensor(end).to(origin).expand_as(origin) for end in search.bounds.ends(origin))
    steps_at_rest = torch.full_like(origin, TABU_STEPS, dtype=torch.int64)
    for _ in range(steps):
        response = search.differentiate(rows, points, targets)
        allowed = (search.best.distance[rows] - 1).clamp(1, origin.shape[1]).long()
        ends = ends_downhill(response.points, response.gradient, low, high)
        chosen = chosen_features(response, origin, ends, allowed, steps_at_rest >= TABU_STEPS)
        changed = response.points != origin
        steps_at_rest = torch.where(chosen == changed, steps_at_rest + 1, 0)
        points = torch.where(chosen, torch.where(changed & (ends == response.points), response.points, ends), origin)
    search.look(rows, points)


def chosen_features(response: Response, origin: Tensor, ends: Tensor, allowed: Tensor, is_free: Tensor) -> Tensor:
    """Return the features to change next, `[R, n]`: at most `allowed`, `[R]`; only those that `is_free` move."""
    is_changed = response.points != origin
    count = is_changed.sum(dim=1)
    gain = response.gradient * (response.points - ends)
    new_gain = torch.where(is_changed | ~is_free, 0, gain)
    remaining = response.margin - torch.where(is_changed, gain, 0).sum(dim=1, dtype=torch.float64)
    is_growing = ~response.flipped & (count < allowed)
    larger_count = count + (GROWTH * fewest(new_gain, remaining)).ceil().long()
    target_count = torch.where(is_growing, torch.minimum(larger_count, allowed), allowed)
    swap_count = torch.minimum((SWAP_SHARE * target_count).ceil().long(), target_count)
    removals = torch.where(is_growing, 0, (count - target_count + swap_count).clamp_min(0))
    worth = response.gradient * (origin - response.points)
    worth = worth + torch.where(is_free, 0, 2 * worth.abs().amax(dim=1, keepdim=True))
    is_put_back = is_changed & (ranks(torch.where(is_changed, worth, torch.inf)) < removals[:, None])
    additions = target_count - count + is_put_back.sum(dim=1)
    return (is_changed & ~is_put_back) | ((ranks(-new_gain) < additions[:, None]) & (new_gain > 0))


EXCHANGE, BLOCKS = Attack(exchange, (COUNT,), 5), Attack(blocks, (COUNT,), 6, guided=False)  # the attacks of this file
