"""A pseudo-margin as a file: a round trip restores it, and any other file is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor

from brittle.errors import ArtefactError, ParameterError, StorageError
from brittle.extensions.detector.surrogate import Surrogate
from brittle.store.strict_json import plain


def test_round_trip(tmp_path: Path, learned: Surrogate) -> None:
    read = Surrogate.load(learned.save(tmp_path / "a.safetensors"))
    assert (read.recipe, read.points, read.digest) == (learned.recipe, learned.points, learned.digest)
    pass_ = torch.randn(40, 3), torch.randn(40, 2)
    assert torch.equal(read.predict(*pass_), learned.predict(*pass_))
    assert read.save(tmp_path / "b.safetensors").read_bytes() == (tmp_path / "a.safetensors").read_bytes()
    odd = replace(learned, points=("a\nb", "", "ü\ud800", *learned.points[3:]))
    assert Surrogate.load(odd.save(tmp_path / "odd.safetensors")).points == odd.points


RECIPES: list[tuple[str, object, str]] = [
    ("more", 1, "unknown key"),
    ("features", 4, "weights are not those of its recipe"),
    ("features", 0, "features"),
    ("classes", 1, "classes"),
    ("classes", 3, "reciprocals"),
    ("form", "paper", "form paper"),
    ("width", 10**9, "width"),
    ("width", 33, "hidden_weight"),
    ("seed", -1, "seed"),
    ("validation_loss", 2.0, "validation_loss"),
    ("validation_loss", math.nan, "NaN"),
    ("points", 3, "points"),
    ("points", True, "points"),
    ("norm", "l7", "l7"),
    ("data", None, "of the data None"),
]

WEIGHTS: list[tuple[str, Any, str]] = [
    ("output_bias", None, "output_bias"),
    ("more", torch.zeros(1), "more"),
    ("output_bias", torch.zeros(2, dtype=torch.float64), "output_bias"),
    ("output_bias", torch.full((2,), math.nan), "output_bias holds numbers"),
    ("reciprocals", torch.zeros(2, 2), "reciprocals holds numbers"),
    ("scale", torch.tensor(-1.0, dtype=torch.float64), "scale holds numbers"),
    ("scale", torch.tensor(1.0), "scale"),
    ("hidden_bias", torch.full((2, 128), math.inf), "hidden_bias holds numbers"),
]


def test_any_other_file_is_refused_by_name(tmp_path: Path, learned: Surrogate) -> None:
    good = safetensors.torch.load(learned.save(tmp_path / "good.safetensors").read_bytes())
    recipe, points = plain(learned.recipe), list(learned.points)

    def metadata_with(changes: Any = (), points: object = points) -> dict[str, str]:
        described = {"recipe": recipe | dict(changes), "points": points, "tail": None, "worth": []}
        return {"learned": json.dumps(described)}

    def refused(weights: dict[str, Tensor], metadata: dict[str, str] | None) -> str:
        path = tmp_path / "bad.safetensors"
        path.write_bytes(safetensors.torch.save(weights, metadata))
        with pytest.raises(ArtefactError, match="not a surrogate") as caught:
            Surrogate.load(path)
        return str(caught.value)

    for name, value, message in RECIPES:
        assert message in refused(good, metadata_with({name: value})), (name, value)
    for name, tensor, message in WEIGHTS:
        changed = {key: tensor for key, tensor in (good | {name: tensor}).items() if tensor is not None}
        assert message in refused(changed, metadata_with()), (name, message)
    for wrong in ("", ["0", 1], {}, []):
        refused(good, metadata_with(points=wrong))
    for metadata in (None, {}, {"learned": "x"}, {"learned": "[" * 100_000}):
        assert "JSON" in refused(good, metadata)
    with pytest.raises(StorageError, match="cannot be read"):
        Surrogate.load(tmp_path / "absent.safetensors")
    with pytest.raises(ParameterError, match=r"must end in \.safetensors; found 'a\.pt'"):
        learned.save(tmp_path / "a.pt")
