"""The figure on the card of a point: its flip probability over levels of noise, in the unit of that noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from helpers.browser import opened
from helpers.gestures import ALONE
from helpers.pages import text_of
from playwright.sync_api import Browser
from torch import nn

import brittle
from brittle.noise import Decibels, Noise, PerFeature
from brittle.scores import MonteCarlo

pytestmark = pytest.mark.xdist_group("browser")

SHAPE = (1, 8, 8)


def levels_of(noises: Sequence[Noise]) -> brittle.Table:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    classifier = brittle.Classifier(network.eval())
    scores = [MonteCarlo(noise=noise, draws=20) for noise in noises]
    return brittle.score(classifier, torch.rand(4, *SHAPE), scores, skip_doctor=True)


def features(sigma: float) -> PerFeature:
    return PerFeature(sigma, torch.rand(64, generator=torch.Generator().manual_seed(0)))


@pytest.mark.parametrize(
    ("noises", "by", "spoken"),
    [
        ([Decibels(20.0), Decibels(10.0)], "decibels (dB)", ["at 20 dB", "at 10 dB"]),
        ([features(0.1), features(0.5)], "per_feature (deviations per feature", ["0.1 deviations per feature"]),
    ],
)  # fmt: skip
def test_levels_are_in_the_unit_of_their_noise(
    noises: Sequence[Noise], by: str, spoken: Sequence[str], browser: Browser, written: Callable[[str], Path]
) -> None:
    with opened(browser, written(text_of(levels_of(noises), chapters=ALONE))) as page:
        page.page.locator("#rows .row").first.click()
        page.page.locator("#card canvas.levels").wait_for()
        said = page.page.locator("#card canvas.levels").get_attribute("aria-label") or ""
        assert f"Flip probability by level of the noise {by}" in said
        assert all(one in said for one in spoken)
        assert said.index(spoken[0]) <= said.index(spoken[-1])
        assert "sigma" not in said
        assert (
            f"Flip probability by level of the noise {by}"
            in page.page.locator("#card figcaption", has_text="Flip").inner_text()
        )
        assert page.said == []
