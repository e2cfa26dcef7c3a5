"""Which draws a score reads."""

from __future__ import annotations

from brittle.noise import Uniform
from brittle.run.sources import draws_of
from brittle.scores import MMSE, Moments, MonteCarlo, Softmax, Taylor

SIGMA = 0.2


def test_clipping_and_the_number_of_draws_do_not_change_the_draws_and_the_noise_does() -> None:
    one = draws_of(MonteCarlo(SIGMA, draws=40))
    assert list(one.values()) == [40]
    assert draws_of(Moments(SIGMA, draws=8, clip=True)).keys() == one.keys()
    assert not draws_of(MonteCarlo(2 * SIGMA)).keys() & one.keys()
    assert not draws_of(MonteCarlo(noise=Uniform(SIGMA))).keys() & one.keys()
    assert not draws_of(MMSE(SIGMA)).keys() & one.keys()
    assert draws_of(Taylor(SIGMA)) == draws_of(Softmax()) == {}
