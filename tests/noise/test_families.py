"""Noise families: draws have the covariance that is said, and depend on the point alone."""

from __future__ import annotations

import pytest
import torch
from helpers.noises import DRAWS, SIGMA, SIZE, draws, each

from brittle.errors import ParameterError
from brittle.noise import FAMILIES, DiagonalGaussian, FunctionGaussian, Noise, Sphere, Stream


@each
def test_sampler_has_the_covariance_of_the_action(noise: Noise) -> None:
    """With 20,000 draws an entry is off by more than 6 standard errors once in 1e7 runs; the seed is fixed."""
    found = draws(noise, DRAWS)[0].double()
    expected = noise.sigma**2 * noise.covariance(torch.eye(SIZE, dtype=torch.float64))
    largest = float(expected.diagonal().max())
    assert torch.allclose(found.mean(0), torch.zeros(SIZE, dtype=torch.float64), atol=6 * (largest / DRAWS) ** 0.5)
    assert torch.allclose(found.T @ found / DRAWS, expected, atol=6 * largest * (6.0 / DRAWS) ** 0.5)


@each
def test_draws_depend_on_the_point_alone(noise: Noise) -> None:
    together = draws(noise, 5, ("a", "b", "c"))
    assert torch.equal(draws(noise, 5, ("b",))[0], together[1])
    assert not torch.equal(together[0], together[1])
    assert not torch.equal(draws(noise, 5, ("a",), seed=1)[0], together[0])


@each
def test_more_draws_begin_with_the_fewer(noise: Noise) -> None:
    stream = Stream(noise, torch.zeros(1, SIZE), ("a",), 0, "test")
    pieces = torch.cat([stream.draw(count) for count in (1, 3, 2)], dim=1)
    assert torch.equal(pieces, draws(noise, 6))


def test_sphere_has_its_radius() -> None:
    assert torch.allclose(draws(Sphere(SIGMA), 9).norm(dim=-1), torch.tensor(SIGMA * SIZE**0.5))


def test_ball_is_uniform_in_radius() -> None:
    """The share inside half the radius is 2^-n; with 20,000 draws 6 standard errors are 0.0053."""
    radius = draws(FAMILIES["ball"](SIGMA), DRAWS)[0].norm(dim=-1) / (SIGMA * (SIZE + 2) ** 0.5)
    assert float(radius.max()) <= 1.0 + 1e-6
    assert float((radius < 0.5).double().mean()) == pytest.approx(2.0**-SIZE, abs=0.0053)


@each
def test_a_stream_goes_on_behind_draws_that_were_passed_over(noise: Noise) -> None:
    like = torch.zeros(2, 40 if noise.name in FAMILIES else SIZE)
    whole, later = (Stream(noise, like, ("a", "b"), 0, "test") for _ in range(2))
    later.skip(3)
    assert torch.equal(later.draw(2), whole.draw(5)[:, 3:])


@each
def test_the_default_dtype_changes_no_draw(noise: Noise) -> None:
    # Fewer than 16 numbers at a time are drawn alike in both.
    like = torch.zeros(1, 40 if noise.name in FAMILIES else SIZE, dtype=torch.float32)
    expected = Stream(noise, like, ("a",), 0, "test").draw(3)
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(Stream(noise, like, ("a",), 0, "test").draw(3), expected)
    finally:
        torch.set_default_dtype(torch.float32)


def test_wrong_sizes_are_said() -> None:
    with pytest.raises(ParameterError, match="the scale has 3 coordinates, the input 6"):
        draws(DiagonalGaussian(SIGMA, torch.ones(3)), 1)
    with pytest.raises(ParameterError, match="sampled scores need `root`"):
        draws(FunctionGaussian(SIGMA, lambda v: v), 1)


def test_a_function_may_write_each_draw_over_the_one_before() -> None:
    place = torch.empty(SIZE)
    over = FunctionGaussian(SIGMA, lambda v: v, lambda normal: place.copy_(normal))
    anew = FunctionGaussian(SIGMA, lambda v: v, lambda normal: normal.clone())
    like = torch.zeros(2, SIZE)
    one, other = (Stream(noise, like, ("a", "b"), 0, "test").draw(4) for noise in (over, anew))
    assert torch.equal(one, other)
    assert len(one.flatten(0, 1).unique(dim=0)) == 8
