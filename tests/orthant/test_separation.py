"""Singular covariances and certain coordinates: their parts are separated before any integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from helpers.normals import equicorrelated, relative, single
from scipy import special

from brittle.orthant import orthant_probability


class TestSingularCovariances:
    def test_exact_duplicates(self):
        result = single([1.0, 1.2, 1.1], torch.ones(3, 3).double())
        assert relative(result.complement, special.ndtr(-1.0)) <= 1e-14
        assert float(result.condition) == pytest.approx(1.0)

    @pytest.mark.parametrize("levels", [(0.7, 0.2), (6.5, 6.0), (0.1, -0.05), (-3.0, 3.5)])
    def test_antipodal_pair(self, levels):
        """`-u_1 < Z < u_2`."""
        result = single(list(levels), torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).double())
        complement = special.ndtr(-levels[0]) + special.ndtr(-levels[1])
        assert abs(float(result.value) - (1 - complement)) <= 1e-14
        assert relative(result.complement, complement) <= 1e-14

    def test_impossible_antipodal_pair(self):
        assert float(single([1.0, -1.5], torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).double()).value) == 0.0

    def test_repeated_and_opposite_coordinates_of_unlike_scale(self):
        """Nine coordinates of rank one, `a_i Z + m_i > 0`: an interval of `Z` for any scales."""
        scale = torch.tensor([1.0, -3.0, 1e-6, 2.0, -1e8, 0.5, 7.0, -0.1, 4.0]).double()
        bound = torch.tensor([0.4, 0.9, 0.5, 0.6, 0.8, 2.0, 3.0, 1.0, 0.7]).double()
        result = single(bound * scale.abs(), torch.outer(scale, scale))
        assert abs(float(result.value) - (special.ndtr(0.8) - special.ndtr(-0.4))) <= 1e-6

    def test_coordinates_that_sum_to_zero(self):
        """Three normals whose sum is zero: all above `-u` is a triangle; at `u = 0` the probability vanishes."""
        covariance = torch.eye(3).double() - 1 / 3
        generator = np.random.default_rng(0)
        draws = generator.standard_normal((400_000, 3))
        draws -= draws.mean(1, keepdims=True)
        for bound in (0.5, 1.5):
            expected = (draws > -bound).all(1).mean()
            assert abs(float(single([bound] * 3, covariance).value) - expected) <= 5e-3
        assert float(single([0.0] * 3, covariance).value) <= 1e-12

    def test_nearly_singular_is_continuous_with_singular(self):
        for gap in (1e-6, 1e-10, 1e-13, 1e-15):
            covariance = torch.tensor([[1.0, 1 - gap], [1 - gap, 1.0]]).double()
            assert abs(float(single([0.5, 0.5], covariance).value) - special.ndtr(0.5)) <= math.sqrt(gap) + 1e-9

    def test_condition_number(self):
        conditions = [1e3, 1e9, 1e13]
        covariance = torch.stack([equicorrelated(2, (c - 1) / (c + 1)) for c in conditions])
        result = orthant_probability(torch.ones(3, 2), covariance)
        assert result.condition.tolist() == pytest.approx(conditions, rel=0.05)
        assert (result.condition > 1e12).tolist() == [False, False, True]

    def test_indefinite_matrix_gives_no_number(self):
        result = single([1.0] * 3, equicorrelated(3, -0.9))
        assert math.isnan(float(result.value))
        assert float(result.condition) == math.inf


class TestCertainCoordinates:
    def test_positive_mean_changes_nothing(self):
        covariance = torch.zeros(4, 4).double()
        covariance[:3, :3] = equicorrelated(3, 0.5)
        extended, alone = single([1.0, 2.0, 0.5, 1e-9], covariance), single([1.0, 2.0, 0.5], covariance[:3, :3])
        assert float(extended.complement) == pytest.approx(float(alone.complement), rel=1e-12)

    @pytest.mark.parametrize("mean", [0.0, -1.0])
    def test_mean_that_is_not_positive_makes_it_impossible(self, mean):
        covariance = torch.diag(torch.tensor([1.0, 0.0, 2.0])).double()
        result = single([1.0, mean, 3.0], covariance)
        assert (float(result.value), float(result.complement), float(result.error)) == (0.0, 1.0, 0.0)

    def test_no_variance_at_all(self):
        result = orthant_probability(torch.tensor([[1.0, 2.0], [1.0, -2.0]]), torch.zeros(2, 2, 2))
        assert result.value.tolist() == [1.0, 0.0]
        assert result.complement.tolist() == [0.0, 1.0]
