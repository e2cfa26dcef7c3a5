"""A pseudo margin as a file: it comes back whole, and nothing else is taken for one."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor

import brittle
from brittle.detector.pseudo_margin import PseudoMargin
from brittle.errors import ArtefactError, ModelError, ParameterError


def test_round_trip(tmp_path: Path, learned: PseudoMargin) -> None:
    read = PseudoMargin.load(learned.save(tmp_path / "a.safetensors"))
    assert (read.recipe, read.points, read.digest) == (learned.recipe, learned.points, learned.digest)
    features = torch.randn(40, 3)
    assert torch.equal(read.predict(features), learned.predict(features))
    assert read.save(tmp_path / "b.safetensors").read_bytes() == (tmp_path / "a.safetensors").read_bytes()
    odd = replace(learned, points=("a\nb", "", "ü\ud800", *learned.points[3:]))
    assert PseudoMargin.load(odd.save(tmp_path / "odd.safetensors")).points == odd.points
    assert PseudoMargin.load(replace(learned, points=()).save(tmp_path / "odd.safetensors")).points == ()


def test_strictness(tmp_path: Path, learned: PseudoMargin) -> None:
    good = safetensors.torch.load(learned.save(tmp_path / "good.safetensors").read_bytes())
    recipe = brittle.store.strict_json.dump(learned.recipe)

    def refused(weights: dict[str, Tensor], metadata: dict[str, str] | None) -> str:
        path = tmp_path / "bad.safetensors"
        path.write_bytes(safetensors.torch.save(weights, metadata))
        with pytest.raises(ArtefactError, match="not a pseudo-margin") as caught:
            PseudoMargin.load(path)
        return str(caught.value)

    assert "JSON" in refused(good, None)
    assert "JSON" in refused(good, {"recipe": "x"})
    assert "unknown key" in refused(good, {"recipe": recipe.replace("{", '{"more": 1,', 1)})
    wide = recipe.replace('"width": 32', '"width": 1000000000')
    assert "width" in refused(good, {"recipe": wide})
    assert "layers" in refused(good, {"recipe": recipe.replace('"layers": 2', '"layers": 1000000000')})
    assert "mean" in refused({name: t for name, t in good.items() if name != "mean"}, {"recipe": recipe})
    assert "more" in refused(good | {"more": torch.zeros(1)}, {"recipe": recipe})
    assert "mean" in refused(good | {"mean": torch.zeros(3, dtype=torch.float64)}, {"recipe": recipe})
    assert "mean holds numbers" in refused(good | {"mean": torch.full_like(good["mean"], math.nan)}, {"recipe": recipe})
    assert "std holds numbers" in refused(good | {"std": torch.zeros_like(good["std"])}, {"recipe": recipe})
    for ids, why in (
        (b"\xff\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'["0", 1]', "not JSON"),
        (b"{}", "not JSON"),
    ):
        content = torch.from_numpy(np.frombuffer(ids, np.uint8).copy())
        assert why in refused(good | {"points": content}, {"recipe": recipe})
    nameless = brittle.store.strict_json.dump(replace(learned.recipe, data=None))
    assert "of the data None" in refused(good, {"recipe": nameless})
    assert "scale" in refused(good | {"scale": good["scale"] * 2}, {"recipe": recipe})
    assert "scale" in refused(good | {"scale": good["scale"].float()}, {"recipe": recipe})
    assert "points" in refused(good | {"points": torch.zeros(3)}, {"recipe": recipe})
    with pytest.raises(ModelError, match="cannot be read"):
        PseudoMargin.load(tmp_path / "absent.safetensors")
    with pytest.raises(ParameterError, match=r"must end in \.safetensors; found 'a\.pt'"):
        learned.save(tmp_path / "a.pt")


HUGE, TINY, MINUS_ZERO, WHOLE = 1e308, 1e-320, -0.0, 2**62
ABSURD = (-1, MINUS_ZERO, 0, 1, WHOLE, HUGE, -HUGE, TINY, 0.5, True, "1", None, [], {})
"""Values for a number; those that a field of the recipe may have are told by `ALLOWED`."""

ALLOWED: dict[str, tuple[object, ...]] = {
    "seed": (1, WHOLE),
    "batch": (1,),  # points in a step
    "rate": (1, 0.5),
    "best_epoch": (1,),
    "validation_loss": (MINUS_ZERO, 0, 1, TINY, 0.5),  # a mean of squares of shares
    "dropped": (0, 1),  # any number of points had no margin
    "clipped": (0, 1),
}

PARTNER = {"epochs": "best_epoch", "points": "clipped"}
"""Numbers that are at most another one, which may be named instead."""


def test_every_number_is_one_that_it_can_be(tmp_path: Path, learned: PseudoMargin) -> None:
    """Each is set to each of the absurd ones: refused with its name, or among the few that it may have."""
    good = safetensors.torch.load(learned.save(tmp_path / "good.safetensors").read_bytes())
    recipe = json.loads(brittle.store.strict_json.dump(learned.recipe))
    places = [name for name, value in recipe.items() if isinstance(value, int | float)]
    assert len(places) == 14
    wrong = []
    for name, other in itertools.product(places, ABSURD):
        changed = json.dumps(recipe | {name: other})
        (tmp_path / "f.safetensors").write_bytes(safetensors.torch.save(good, {"recipe": changed}))
        allowed = changed == json.dumps(recipe) or any(other is one for one in ALLOWED.get(name, ()))
        try:
            PseudoMargin.load(tmp_path / "f.safetensors")
            said = None
        except ArtefactError as error:
            said = str(error)
        names = (name, PARTNER.get(name, name), "its recipe")
        if (said is None) != allowed or (said is not None and not any(one in said for one in names)):  # pyright: ignore[reportOperatorIssue] right when it runs
            wrong.append((name, other, said))
    assert wrong == [], "\n".join(map(str, wrong))


@pytest.mark.parametrize("change", [lambda own: -own, lambda own: own + torch.eye(2), lambda own: own.tril() + 0.5])
def test_lengths_are_distances(change: Callable[[Tensor], Tensor], tmp_path: Path, learned: PseudoMargin) -> None:
    """A negative one would make every margin huge, and so safe."""
    good = safetensors.torch.load(learned.save(tmp_path / "good.safetensors").read_bytes())
    content = good | {"lengths": change(good["lengths"])}
    recipe = {"recipe": brittle.store.strict_json.dump(learned.recipe)}
    (tmp_path / "f.safetensors").write_bytes(safetensors.torch.save(content, recipe))
    with pytest.raises(ArtefactError, match="lengths holds numbers"):
        PseudoMargin.load(tmp_path / "f.safetensors")


def test_mutated_files_give_the_named_error(tmp_path: Path, learned: PseudoMargin) -> None:
    content = learned.save(tmp_path / "good.safetensors").read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    rng, refused = random.Random(0), 0
    for number in range(300):
        start = rng.randrange(header)
        noise = rng.choice([bytes([rng.randrange(256)]), b"", b"9" * 30, b'"', b"F8_E5M2"])
        mutant = (
            content[: rng.randrange(len(content))]
            if number % 5 == 0
            else content[:start] + noise + content[start + 1 :]
        )
        (tmp_path / "mutant").write_bytes(mutant)
        try:
            PseudoMargin.load(tmp_path / "mutant")
        except ArtefactError:
            refused += 1
    assert refused > 200
