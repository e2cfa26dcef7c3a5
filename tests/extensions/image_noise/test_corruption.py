"""Corruptions with a random strength: as strong as declared, inside the bounds, right where the truth is known."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
import torch
from scipy import stats

import brittle
from brittle.errors import ParameterError, UsageError
from brittle.extensions.image_noise import KINDS
from brittle.noise import Corruption, Stream
from brittle.noise.named import NoiseData, noises
from brittle.scores import MonteCarlo, Shrinkage, Taylor

DRAWS = 2000
SURE = 1 - 1e-6
STRENGTHS = dict.fromkeys(KINDS, 0.4) | {"rotation": 30.0, "shift": 3.0, "jpeg_compression": 60.0, "shot_noise": 0.05}


def copies(noise: Corruption, image: torch.Tensor, count: int) -> torch.Tensor:
    return Stream(noise, image[None], ["a"], 0, "test").copies(count)[0, :, 0]


def picture(channels: int = 3, side: int = 12) -> torch.Tensor:
    return torch.rand(channels, side, side, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0)], ids=str)
def test_copies_are_images_inside_the_bounds_that_differ(kind: str, bounds: tuple[float, float]) -> None:
    low, high = bounds
    image = picture() * (high - low) + low
    noisy = copies(Corruption(kind, STRENGTHS[kind], bounds), image, 6)
    assert noisy.shape == (6, 3, 12, 12)
    assert float(noisy.min()) >= low - 1e-6
    assert float(noisy.max()) <= high + 1e-6
    assert len(noisy.flatten(1).unique(dim=0)) > 1
    scaled = copies(Corruption(kind, STRENGTHS[kind]), picture(), 6) * (high - low) + low
    assert torch.allclose(noisy, scaled, atol=2e-2 if kind in ("jpeg_compression", "pixelate") else 1e-5)


def _slope(images: torch.Tensor) -> np.ndarray:
    """Return the angle in degrees of the gradient in the middle of each image, `[N]`."""
    middle = images.shape[-1] // 2
    across = images[:, 0, middle, middle + 1] - images[:, 0, middle, middle - 1]
    down = images[:, 0, middle + 1, middle] - images[:, 0, middle - 1, middle]
    return np.degrees(np.arctan2(down.numpy(), across.numpy()))


def _ramp(side: int = 11) -> torch.Tensor:
    return torch.linspace(0.1, 0.9, side).expand(1, side, side).clone()


def _measure_strength(kind: str, strength: float) -> np.ndarray:
    """Measure the strength of 2,000 copies of an image that shows it."""
    if kind == "rotation":
        return _slope(copies(Corruption(kind, strength), _ramp(), DRAWS))
    if kind == "shift":
        noisy = copies(Corruption(kind, strength), _ramp(), DRAWS)
        return (0.5 - noisy[:, 0, 5, 5].double().numpy()) / 0.08
    if kind == "brightness":
        return copies(Corruption(kind, strength), torch.full((1, 3, 3), 0.5), DRAWS)[:, 0, 0, 0].numpy() - 0.5
    noisy = copies(Corruption(kind, strength), _ramp(), DRAWS)
    return (noisy[:, 0, 0, 6] - noisy[:, 0, 0, 4]).double().numpy() / 0.16 - 1.0


@pytest.mark.parametrize(
    ("kind", "strength"), [("rotation", 15.0), ("shift", 2.0), ("brightness", 0.3), ("contrast", 0.2)]
)
def test_the_strength_is_uniform_up_to_its_limit(kind: str, strength: float) -> None:
    """A test of Kolmogorov and Smirnov on 2,000 copies: fails falsely once in a million; mean and variance likewise."""
    strengths = _measure_strength(kind, strength)
    assert stats.kstest(strengths, stats.uniform(-strength, 2 * strength).cdf).pvalue > 1e-6
    assert abs(strengths.mean()) <= 6 * strength / np.sqrt(3 * DRAWS)
    assert strengths.var() == pytest.approx(strength**2 / 3, rel=6 * np.sqrt(0.8 / DRAWS))


def apply_effect(kind: str, image: np.ndarray, strength: float) -> np.ndarray:
    """Return levels `[H, W, C]` at one strength."""
    return KINDS[kind].apply(image.astype(np.float64), strength, np.random.default_rng(0))


def test_strength_of_the_noises() -> None:
    """Half a million numbers: standard errors are about 0.1 % of the deviations, and 1.5 % is allowed."""
    flat = np.full((400, 400, 3), 128.0)
    for strength in (0.04, 0.1):
        assert apply_effect("gaussian_noise", flat, strength).std() == pytest.approx(255 * strength, rel=0.015)
        shot = apply_effect("shot_noise", flat, 10 / strength)
        assert shot.std() == pytest.approx(255 * (128 / 255 * strength / 10) ** 0.5, rel=0.015)
        assert shot.mean() == pytest.approx(128, rel=0.01)
        impulse = apply_effect("impulse_noise", flat, strength)
        assert set(np.unique(impulse)) == {0, 128, 255}
        for level in (0, 255):  # 9,600 hits or more, standard error at most 1 %: ten of them
            assert (impulse == level).mean() == pytest.approx(strength / 2, rel=0.1)


def test_saturation_against_pillow() -> None:
    """Hue, saturation and value by Pillow, which rounds each to a level; without grey pixels, which have no hue."""
    image = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    hue, saturation, value = PIL.Image.fromarray(image).convert("HSV").split()
    for factor in (0.1, 0.6, 1.5):
        levels = np.rint((np.asarray(saturation) * factor).clip(0, 255)).astype(np.uint8)
        expected = np.asarray(PIL.Image.merge("HSV", (hue, PIL.Image.fromarray(levels), value)).convert("RGB"))
        coloured = np.asarray(saturation) > 40
        assert coloured.mean() > 0.5
        assert np.abs(apply_effect("saturate", image, factor) - expected)[coloured].mean() < 3
    grey = np.full((2, 2, 3), 80)
    assert (apply_effect("saturate", grey, 2.0) == grey).all()


def test_blur_is_as_long_as_the_image_is_large() -> None:
    """A white line through the middle: its profile has the standard deviation of the blur."""
    for side, pixels in ((16, 1.0), (32, 1.0), (96, 3.0)):
        line = np.zeros((side, side, 1))
        line[:, side // 2] = 255
        profile = apply_effect("gaussian_blur", line, 1.0)[0, :, 0]
        spread = ((np.arange(side) - side // 2) ** 2 * profile).sum() / profile.sum()
        assert spread**0.5 == pytest.approx(pixels, rel=0.03)


def mean_at_most(threshold: float) -> brittle.Classifier:
    """Class 0 while the mean of the image is below the threshold."""
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(9, 2))
    with torch.no_grad():
        network[1].weight.copy_(torch.stack((torch.full((9,), -1 / 9), torch.full((9,), 1 / 9))))  # type: ignore[operator]
        network[1].bias.copy_(torch.tensor([threshold, -threshold]))  # type: ignore[operator]
    return brittle.Classifier(network, bounds=(0, 1))


def test_random_light_has_the_right_flip_probability() -> None:
    """A grey image of 0.5 flips where the light adds more than 0.2 of at most 0.3: one time in six."""
    x, noise = torch.full((2, 1, 3, 3), 0.5), Corruption("brightness", 0.3)
    for score in (MonteCarlo(noise=noise, draws=1000, limit=None), Shrinkage(noise=noise, draws=400, limit=None)):
        estimate = score(mean_at_most(0.7), x, confidence=SURE)
        assert ((estimate.low <= 1 / 6) & (estimate.high >= 1 / 6)).all()
        assert torch.allclose(estimate.value, torch.full((2,), 1 / 6, dtype=torch.float64), atol=0.06)
    with pytest.raises(ParameterError, match="taylor needs noise that is added"):
        Taylor(noise=noise)


def test_inputs_and_strengths_out_of_range_are_refused() -> None:
    with pytest.raises(UsageError, match="did you mean rotation"):
        Corruption("rotaton", 15)
    for strength in (0, -1, 181, float("nan"), "15", True):
        with pytest.raises(ParameterError, match="in degrees, above 0 and at most 180"):
            Corruption("rotation", strength)  # type: ignore[arg-type]
    for image, message in (
        (torch.zeros(5), r"images \[C, H, W\]"),
        (torch.zeros(4, 5, 5), "1 or 3 channels"),
        (torch.full((1, 5, 5), 7.0), "goes from 7 to 7"),
    ):
        with pytest.raises(ParameterError, match=message):
            copies(Corruption("rotation", 15), image, 1)
    with pytest.raises(ParameterError, match="changes colours only"):
        copies(Corruption("saturate", 0.5), torch.zeros(1, 5, 5), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_of_the_table_is_noise_of_its_kind(kind: str) -> None:
    (noise,) = noises(f"{kind}:0.25", [], NoiseData((0, 1)))
    assert noise.kind == kind  # type: ignore[union-attr]
