"""Declared preparation of images, against the image processors of transformers and against Pillow."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.data_files import inputs
from PIL import Image
from safetensors.torch import save_model
from torch import nn

from brittle.cli.commands import main
from brittle.data import open_points
from brittle.extensions.hugging_face.sources import ImageSteps, declared_steps, timm_steps
from brittle.store.reading import read_table

RNG = np.random.default_rng(0)
SIZES = [(40, 61), (61, 40), (33, 33), (90, 35), (43, 47)]
"""Widths and heights."""

PLAIN = {
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": False,
    "rescale_offset": False,
    "include_top": False,
}

SQUARE, SHORT = {"size": {"height": 26, "width": 17}}, {"size": {"shortest_edge": 28}}
CUT = {"crop_size": {"height": 25, "width": 23}}

DESCRIPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("ViT", SQUARE),
    ("ViT", {"size": 24, "resample": 3}),
    ("DeiT", {"size": {"height": 30, "width": 30}} | CUT),
    ("CLIP", SHORT | CUT | {"resample": 1}),
    ("Bit", SHORT | CUT | {"resample": 0}),
    ("MobileNetV2", SHORT | CUT),
    ("Siglip", SQUARE | {"resample": 5}),
    ("CLIP", {"do_resize": False, "crop_size": {"height": 30, "width": 28}}),
    ("EfficientNet", {}),
    ("Flava", {"size": {"height": 21, "width": 21}, "crop_size": {"height": 18, "width": 18}}),
]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Colour images of several sizes, as PNG files."""
    folder = tmp_path_factory.mktemp("photos")
    for row, (width, height) in enumerate(SIZES):
        Image.fromarray(RNG.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(folder / f"{row}.png")
    return folder


def _read(photos: Path, steps: Any) -> np.ndarray:
    assert isinstance(steps, ImageSteps)
    read = open_points(
        photos,
        resize=steps.resize,
        center_crop=steps.center_crop,
        interpolation=steps.interpolation,
        crop_rounding=steps.crop_rounding,
    )
    return np.rint(255 * inputs(read).numpy())


def _describe(folder: Path, name: str, description: dict[str, Any]) -> str:
    content = {"image_processor_type": f"{name}ImageProcessor"} | PLAIN | description
    (folder / "preprocessor_config.json").write_text(json.dumps(content))
    return str(folder)


@pytest.mark.parametrize(("name", "description"), DESCRIPTIONS, ids=lambda value: str(value)[:60])
def test_pixels_are_those_of_transformers(name: str, description: dict[str, Any], photos: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    kind = getattr(transformers, f"{name}ImageProcessorPil", None) or getattr(transformers, f"{name}ImageProcessor")
    pixels = _read(photos, declared_steps(_describe(tmp_path, name, description)))
    processor = kind.from_pretrained(tmp_path)
    for row in range(len(SIZES)):
        expected = processor(Image.open(photos / f"{row}.png"), return_tensors="np")["pixel_values"][0]
        assert np.array_equal(pixels[row], np.rint(255 * expected))


def _prepared(image: Image.Image, size: int, crop_pct: float, interpolation: str) -> np.ndarray:
    """Return levels by `floor(size / crop_pct)` for the shorter side, then torchvision's `round((side - size) / 2)`."""
    (width, height), side = image.size, int(size / crop_pct)
    sides = (side, int(side * height / width)) if width <= height else (int(side * width / height), side)
    image = image.resize(sides, getattr(Image.Resampling, interpolation.upper()))
    left_edge, top_edge = round((sides[0] - size) / 2.0), round((sides[1] - size) / 2.0)
    return np.asarray(image.crop((left_edge, top_edge, left_edge + size, top_edge + size))).transpose(2, 0, 1)


@pytest.mark.parametrize("method", ["bilinear", "bicubic", "nearest"])
def test_pixels_are_those_of_pillow(method: str, photos: Path) -> None:
    steps = timm_steps({"input_size": [3, 21, 21], "crop_pct": 0.9, "interpolation": method, "crop_mode": "center"})
    pixels = _read(photos, steps)
    for row in range(len(SIZES)):
        assert np.array_equal(pixels[row], _prepared(Image.open(photos / f"{row}.png"), 21, 0.9, method))


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("Perceiver", {}),
        ("ViT", {"size": {"height": "x", "width": -3}}),
        ("CLIP", {"size": {"shortest_edge": 8}, "crop_size": {"height": 9, "width": 9}}),
        ("ConvNext", {"size": {"shortest_edge": 21}, "crop_pct": 0.8}),
        ("Levit", {}),
        ("PoolFormer", {}),
    ],
)
def test_unsupported_transformers_steps_are_not_copied(name: str, description: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    assert isinstance(declared_steps(_describe(tmp_path, name, description)), str)


def test_a_file_that_names_no_processor_is_that_of_the_model(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"size": 8, "crop_size": 8}))
    for model, expected in (("vit", (8, 8)), ("dinov2", (8,))):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model}))
        steps = declared_steps(str(tmp_path))
        assert isinstance(steps, ImageSteps)
        assert steps.resize == expected
    assert declared_steps("./net.py:make") is None


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3 * 8 * 8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x.flatten(1))


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a folder as timm does, and put a stand-in for timm."""
    timm = ModuleType("timm")
    data = SimpleNamespace(
        resolve_data_config=lambda pretrained_cfg: pretrained_cfg,
        create_transform=lambda input_size, crop_pct, interpolation, **_: (
            lambda image: torch.from_numpy(_prepared(image, input_size[1], crop_pct, interpolation) / 255)
        ),
    )
    vars(timm).update(create_model=lambda name, **options: Network(), data=data, __version__="0")
    monkeypatch.setitem(sys.modules, "timm", timm)
    (tmp_path / "model").mkdir()
    save_model(Network(), str(tmp_path / "model" / "model.safetensors"))
    description = {"input_size": [3, 8, 8], "crop_pct": 0.8, "interpolation": "bicubic"}
    config = {"architecture": "tiny", "num_classes": 2, "pretrained_cfg": description}
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    return str(tmp_path / "model")


def _score(model: str, data: Path, out: Path, *options: str) -> int:
    return main(["score", model, str(data), "--out", str(out), "--scores", "logit_margin", "--skip-doctor", *options])


def test_images_are_read_as_the_model_declares(
    model: str, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _score(model, photos, tmp_path / "declared", "--quiet") == 0
    line = "declares images resized to 10 (the shorter side), bicubic, the middle 8 x 8 kept; so they are read"
    assert line in capsys.readouterr().err
    options = ("--resize", "10", "--center-crop", "8", "8")
    assert _score(model, photos, tmp_path / "given", *options) == 0
    assert "--resize and --center-crop stand instead" in capsys.readouterr().err
    declared, overridden = read_table(tmp_path / "declared"), read_table(tmp_path / "given")
    reading = declared.record.data.reading
    assert [reading[name] for name in ("resize", "center_crop", "interpolation")] == [[10], [8, 8], "bicubic"]
    assert reading["crop_rounding"] == "even"
    assert overridden.record.data.reading["interpolation"] == "bicubic", "as the folder declares"


def test_steps_that_timm_does_not_confirm_are_not_used(
    model: str, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["timm"].data, "create_transform", lambda **_: lambda image: torch.zeros(3, 8, 8))
    assert isinstance(declared_steps(model), str)
