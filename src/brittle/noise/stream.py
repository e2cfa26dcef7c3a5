"""The noise of points: draws of a family from one generator per point, and checks of a family's promises.

The draws of a point come from a generator keyed by (seed, purpose, point id), one draw after another, so they do not
depend on the batch, the order or the number of later draws.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.noise.base import Noise, at_one, is_builtin, no_mirror
from brittle.noise.families import Gaussian
from brittle.noise.transform import Transforming, check_keyed, transform_copies

FEWEST_DRAWS, CHECKED_DRAWS = 512, 1024  # draws of a custom family that are checked, fewer for large inputs
CHECKED_NUMBERS = 2**24  # numbers of these draws, about
DIRECTIONS, PLACES = 4, 384  # directions of random signs, and coordinates checked alone, in pairs and in threes
STANDARD_ERRORS, RELATIVE_ERROR = 10.0, 1e-3  # allowed error of an average over the draws, and of a variance of one
EVENTS = 1 / 5  # smallest share of the draws that must contribute to an average, lest a few large draws decide
BLOCK = 16  # normal numbers that PyTorch makes at once on a CPU: a call fills whole blocks, however many draws it makes
LARGE = 2**14  # size above which a draw that does not fill whole blocks is made alone, for its memory
FALSE_FAIL = 1e-6  # largest probability of refusing a symmetric family


class Stream:
    """The noise of a batch of points, one draw after another, with one generator per point."""

    def __init__(
        self, noise: Noise, like: Tensor, ids: Sequence[str], seed: int, purpose: str, varies: Tensor | None = None
    ) -> None:
        """Start the streams of the points `like`, `[B, *shape]`.

        `varies`, `[B, *shape]` or with axes of size 1 at the end, is the mask of the coordinates with noise; None is
        all. A family with exchangeable coordinates draws for these alone, as if there were no others.
        """
        self._noise, self._like, self._varies = noise, like, varies
        self._keys = [(seed, purpose, point) for point in ids]
        self._drawn = 0
        self._generators: list[torch.Generator] = []
        self._remainders: list[Tensor] = []
        if isinstance(noise, Transforming):
            if len(like):
                check_keyed(noise, like[0], lambda: self._copy_generator(0, 0))
            return
        if not is_builtin(type(noise)):
            check_promise(at_one(noise), like[0].numel(), like.device)
        self._generators = [_generator(*key, like.device) for key in self._keys]
        self._remainders = [like.new_zeros(0, 0, dtype=torch.float32)] * len(like)

    def copies(self, count: int, signs: tuple[int, ...] = (1,)) -> Tensor:
        """Return the next `count` noisy copies of each point for each of `signs`, `[B, count, len(signs), *shape]`.

        A copy is `x + e`, and `x - e` for the sign -1, with `e` the next draw; other noise transforms the point.
        """
        if -1 in signs and not self._noise.is_symmetric:
            raise no_mirror(self._noise, "a measurement")
        like = self._like[:, None, None]
        if not isinstance(self._noise, Transforming):
            noise = self.draw(count)[:, :, None]
            if len(signs) == 1:  # in the memory of the noise, as fresh memory costs as much as the sum
                return torch.add(like, noise, alpha=signs[0], out=noise)
            copies = noise.new_empty(len(noise), count, len(signs), *noise.shape[3:])
            for member, sign in enumerate(signs):
                torch.add(like[:, :, 0], noise[:, :, 0], alpha=sign, out=copies[:, :, member])
            return copies
        copies = like.new_empty(len(like), count, 1, *like.shape[3:])
        for row, point in enumerate(self._like):
            generators = [self._copy_generator(row, number) for number in range(self._drawn, self._drawn + count)]
            if self._varies is None or not self._noise.of_rows:
                copies[row, :, 0] = transform_copies(self._noise, point, generators)
            else:  # padding, wherever it stands, changes no draw
                varying = self._varies[row].expand_as(point).flatten(1).any(dim=1)
                copies[row] = point
                copies[row, :, 0, varying] = transform_copies(self._noise, point[varying], generators)
        self._drawn += count
        return copies if self._varies is None else torch.where(self._varies[:, None, None], copies, like)

    def _copy_generator(self, row: int, number: int) -> torch.Generator:
        seed, purpose, point = self._keys[row]
        return _generator(seed, purpose, f"{point}\n{number}", torch.device("cpu"))

    def draw(self, count: int) -> Tensor:
        """Return the next `count` draws of each point, `[B, count, *shape]`, in the dtype of the inputs."""
        noise, shape = self._noise, self._like.shape[1:]
        if not noise.added:
            noise.draw(torch.Generator(), shape.numel())  # raises: there is no draw
        places = self._varying_places()
        if places is None:
            draws = self._next(range(len(self._like)), shape.numel(), count).to(self._like)
        else:
            draws = self._like.new_zeros(len(self._like), count, shape.numel())
            for point, coordinates in enumerate(places):
                draws[point][:, coordinates] = self._next([point], len(coordinates), count)[0].to(draws)
        if type(noise) is not Gaussian:
            check_finite(noise, draws)
        scales = noise.scales(self._like, self._varies)
        if scales is not None:
            draws.mul_(scales.to(draws)[:, None, None])
        draws = draws.mul_(noise.sigma).view(len(draws), count, *shape)
        return draws if self._varies is None else draws * self._varies[:, None]

    def _next(self, points: Sequence[int], size: int, count: int) -> Tensor:
        """Return the next `count` draws for some points, `[P, count, size]`, each with `size` coordinates."""
        noise, like = self._noise, self._like
        if type(noise) is not Gaussian or like.device.type != "cpu" or (size % BLOCK and size > LARGE):
            draws = like.new_empty(len(points), count, size)
            for point, point_draws in zip(points, draws.unbind(), strict=True):
                for draw in point_draws.unbind() if count else ():
                    draw.copy_(check_draw(noise, noise.draw(self._generators[point], size), size))
            return draws
        available = len(self._remainders[points[0]]) if points else 0
        missing = max(0, _fill_blocks(count - available, size))
        draws = like.new_empty(len(points), available + missing, size, dtype=torch.float32)
        if available:
            draws[:, :available] = torch.stack([self._remainders[point] for point in points])
        for point, point_draws in zip(points, draws[:, available:].unbind() if missing else (), strict=False):
            point_draws.normal_(generator=self._generators[point])
        if size % BLOCK:
            for point, remainder in zip(points, draws[:, count:].clone().unbind(), strict=True):
                self._remainders[point] = remainder
        return draws[:, :count]

    def _varying_places(self) -> list[Tensor] | None:
        """Return each point's varying coordinates, so that padding changes no draw; None if it draws for all."""
        if self._varies is None or not self._noise.is_exchangeable:
            return None
        return [mask.nonzero().flatten() for mask in self._varies.expand_as(self._like).flatten(1)]

    def keep(self, rows: Sequence[int]) -> None:
        """Keep the points at the positions `rows` alone; their next draws stay the same."""
        places = torch.tensor(rows, dtype=torch.int64)
        self._like = self._like[places]
        self._varies = None if self._varies is None else self._varies[places]
        self._keys = [self._keys[row] for row in rows]
        if self._generators:
            self._generators = [self._generators[row] for row in rows]
            self._remainders = [self._remainders[row] for row in rows]


def _fill_blocks(count: int, size: int) -> int:
    """Return the smallest number of draws of `size` that fills whole blocks, at least `count`."""
    together = BLOCK // math.gcd(BLOCK, size)
    return -(-count // together) * together


def _generator(seed: int, purpose: str, point: str, device: torch.device) -> torch.Generator:
    key = hashlib.blake2b(f"{seed}\n{purpose}\n{point}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(key, "big") >> 1)


def check_draw(noise: Noise, draw: Tensor, size: int) -> Tensor:
    if isinstance(draw, Tensor) and draw.shape == (size,) and not draw.is_complex():
        return draw
    description = f"a tensor of shape {list(draw.shape)}" if isinstance(draw, Tensor) else f"{type(draw).__name__}"
    raise ParameterError(f"expected a draw [{size}] of the noise family {noise.name}; found {description}")


def check_finite(noise: Noise, draws: Tensor) -> None:
    if not bool(draws.isfinite().all()):
        broken = f"{int((~draws.isfinite()).sum())} of {draws.numel()} numbers"
        raise ParameterError(f"{broken} that the noise family {noise.name} drew are NaN or infinite")


@lru_cache(maxsize=64)
def check_promise(noise: Noise, size: int, device: torch.device) -> None:
    """Raise where `[size]` draws of a custom family, at sigma 1, break its promises.

    The same generator must give the same draws, and not one draw for ever. Draws of a symmetric family must be
    distributed like their mirror images, those of another family with a covariance must have mean 0; and the covariance
    must be right along a few directions and over all coordinates. A family that keeps its promise is refused less than
    once in a million if its fourth moments are finite; small faults pass.
    """
    chance = torch.Generator(device).manual_seed(1)
    along = torch.randint(0, 2, (DIRECTIONS, size), generator=chance, device=device).double() * 2 - 1
    along = torch.cat((torch.ones_like(along[:1]), along)) / size**0.5
    places = torch.randperm(max(size, PLACES), generator=chance, device=device)[:PLACES] % size
    signs = torch.randint(0, 2, (PLACES,), generator=chance, device=device).double() * 2 - 1
    shares, squares, odd = [], [], []
    for draw in _repeated_draws(noise, size, device):
        shares.append(along @ draw)
        squares.append(draw.square().mean(dim=0, keepdim=True))
        parts = (draw[places] * signs).view(3, -1)
        pooled = torch.stack([values.sum() for values in (draw.sign(), draw.pow(3), draw * draw.abs())])
        odd.append(torch.cat((shares[-1], pooled, parts.flatten(), parts[:2].sum(dim=0), parts.sum(dim=0))))
    projections = torch.stack(shares)
    if noise.is_symmetric:
        _check_symmetric(noise, torch.stack(odd))
    elif noise.has_covariance:
        _check_average(noise, "the mean", projections, torch.zeros_like(projections[0]))
    if noise.has_covariance:
        _check_average(noise, "the variance", projections.square(), (noise.covariance(along) * along).sum(dim=1))
        if noise.shape is None:
            square = torch.stack(squares)
            _check_average(noise, "the mean square of a coordinate", square, torch.ones_like(square[0]))


def _repeated_draws(noise: Noise, size: int, device: torch.device) -> Iterator[Tensor]:
    """Yield draws of a family, `[size]` each, float64, that can be repeated."""
    generators = [torch.Generator(device).manual_seed(2) for _ in range(2)]
    first_draw, is_constant = None, True
    for number in range(draws := max(FEWEST_DRAWS, min(CHECKED_DRAWS, CHECKED_NUMBERS // size))):
        draw, again = (check_draw(noise, noise.draw(source, size), size).double().clone() for source in generators)
        check_finite(noise, draw)
        if not torch.equal(draw, again):
            share = f"{int((draw != again).sum())} of {size} numbers"
            advice = "take all randomness from generator=generator, and keep nothing"
            raise _broken_promise(noise, f"draw {number} differs in {share} between generators of one seed; {advice}")
        first_draw = draw if first_draw is None else first_draw
        is_constant = is_constant and torch.equal(draw, first_draw)
        yield draw
    if is_constant and first_draw is not None and bool(first_draw.any()):
        raise _broken_promise(noise, f"{draws} draws from one generator are all the same; each must take new numbers")


def _check_symmetric(noise: Noise, odd: Tensor) -> None:
    """Raise where numbers `[n, P]`, odd functions of `n` draws, are not distributed like their negatives.

    If they are, then given their sizes the signs are those of fair coins. In each column the distribution functions of
    the numbers and of their negatives differ by `max_k |S_k| / n` (the two-sample statistic of Kolmogorov and Smirnov),
    with `S_k` the sum of the signs of the `k` smallest in size, and `P(max_k |S_k| >= a sqrt(n)) <= 4 exp(-a^2 / 2)`
    (Levy, Hoeffding). All columns together are refused with probability `FALSE_FAIL` at most.
    """
    draws, columns = odd.shape
    order = odd.abs().argsort(dim=0, stable=True)
    gaps = odd.sign().gather(0, order).cumsum(dim=0).abs().amax(dim=0) / draws
    limit = math.sqrt(2 * math.log(4 * columns / FALSE_FAIL) / draws)
    if bool((gaps > limit).any()):
        raise _broken_promise(
            noise,
            f"-e is declared as likely as e, but odd functions of {draws} draws and of their mirror images are "
            f"{float(gaps.max()):.3f} apart, where chance explains {limit:.3f}; leave symmetric (or normal) out",
        )


def _check_average(noise: Noise, statistic: str, values: Tensor, expected: Tensor) -> None:
    mean, error = values.mean(dim=0), values.std(dim=0) / len(values) ** 0.5
    events = values.abs().sum(dim=0).square() / values.square().sum(dim=0)
    off = (mean - expected).abs() > STANDARD_ERRORS * error + RELATIVE_ERROR * expected.abs().clamp_min(1.0)
    off &= events >= EVENTS * len(values)
    if bool(off.any()):
        worst = int(off.nonzero()[0])
        raise _broken_promise(
            noise,
            f"{statistic} of {len(values)} draws at sigma 1 is {float(mean[worst]):.3g} +- {float(error[worst]):.2g}; "
            f"declared is {float(expected[worst]):.3g}: a family with a covariance has mean 0 and that covariance",
        )


def _broken_promise(noise: Noise, how: str) -> ParameterError:
    return ParameterError(f"the draws of the noise family {noise.name} are not what a family promises: {how}")
