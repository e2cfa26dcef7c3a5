"""More effort never ends farther away; the best of all attacks is no worse than any of them."""

from __future__ import annotations

import pytest
from helpers import problems
from helpers.attacked import run

from brittle.measure.nearest import EFFORTS
from brittle.measure.nearest.norms import NORMS

pytestmark = pytest.mark.usefixtures("few_queries")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_more_effort_never_ends_farther_away(first: int, norm: str) -> None:
    efforts = list(EFFORTS)[first : first + 2]
    cheap, dear = (run(problems.small_classifier(), problems.inputs(3), norm=norm, effort=one) for one in efforts)
    assert (dear.distance <= cheap.distance).all()
    assert (dear.passes > cheap.passes).all()
    assert all((dear.by_attack[attack] <= cheap.by_attack[attack]).all() for attack in cheap.by_attack)
