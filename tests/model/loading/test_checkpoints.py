"""Weights from the checkpoints of training scripts: located, loaded unchanged, and no code of a file runs."""

from __future__ import annotations

import argparse
import struct
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.artefacts import Canary, Small, edited, pickled, refused
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from brittle.model.loading.load import LoadedModel, load_model

State = Mapping[str, Tensor]


def state(scale: float = 2.0) -> dict[str, Tensor]:
    """Weights of the network in `helpers.artefacts.FACTORY`."""
    numbers = scale * torch.arange(12.0)
    return {"linear.weight": numbers.reshape(3, 4), "linear.bias": numbers[:3].clone(), "offset": numbers[3:6].clone()}


def below(prefix: str, weights: State) -> dict[str, Tensor]:
    return {prefix + name: tensor for name, tensor in weights.items()}


def load(code: Path, content: Any, **options: Any) -> LoadedModel:
    torch.save(content, code.with_name("w.pt"), **options)
    return load_model(f"{code}:make", weights=code.with_name("w.pt"))


def average() -> dict[str, Tensor]:
    """Return the state that `AveragedModel` saves: the count of its average, and the weights."""
    network = nn.Linear(1, 1)
    network.linear, network.offset = nn.Linear(4, 3), nn.Parameter(torch.zeros(3))
    del network.weight, network.bias
    network.load_state_dict(state())
    return AveragedModel(network).state_dict()


FORMS: dict[str, Callable[[], Any]] = {
    "plain": state,
    "of DataParallel": lambda: below("module.", state()),
    "of a compiled DataParallel": lambda: below("_orig_mod.module.", state()),
    "nested": lambda: {
        "epoch": 3,
        "best": 0.5,
        "state_dict": below("module.model.", state()),
        "optimizer": {"state": {}},
    },
    "deeper": lambda: {"run": {"net": {"weights": state()}}},
    "second of a sequence": lambda: below("1.", state()),
    "an average": average,
    "twice the same": lambda: {"model": state(), "best": below("module.", state())},
    "also in the attacker": lambda: {
        "model": below("module.model.", state()) | below("module.attacker.model.", state())
    },
    "of a student": lambda: {"student": state(), "teacher": state() | {"linear.weight": torch.zeros(3, 5)}},
    "in half precision": lambda: {name: tensor.half() for name, tensor in state().items()},
    "with the options": lambda: {"args": argparse.Namespace(lr=0.1), "acc": np.float64(0.5), "net": state()},
    "with the network": lambda: {"network": Small(), "model": state()},
}
"""Checkpoints that hold the weights of `state` once."""


@pytest.mark.parametrize("form", FORMS)
def test_weights_are_found(form: str, code: Path) -> None:
    model = load(code, FORMS[form]())
    assert all(torch.equal(model.module.state_dict()[name], tensor) for name, tensor in state().items())
    assert (model.weights == "") == (form in ("plain", "in half precision"))
    assert model.declared is None
    assert len(model.provenance["weights_sha256"]) == 64


@pytest.mark.parametrize("prefix", ["", "module."])
def test_the_format_before_pytorch_1_6_is_read(prefix: str, code: Path) -> None:
    model = load(code, {"net": below(prefix, state())}, _use_new_zipfile_serialization=False)
    assert torch.equal(model.module.linear.weight, state()["linear.weight"])


def test_prefixes_of_safetensors_are_removed(code: Path) -> None:
    save_file(below("_orig_mod.module.", state()), code.with_name("w.safetensors"))
    model = load_model(f"{code}:make", weights=code.with_name("w.safetensors"))
    assert torch.equal(model.module.linear.bias, state()["linear.bias"])
    assert "_orig_mod.module." in model.weights


def test_the_note_names_place_and_prefix(code: Path) -> None:
    note = load(code, {"ema": below("module.", state()), "args": argparse.Namespace()}).weights
    assert all(word in note for word in ("w.pt", "ema", "'module.'", "argparse.Namespace"))


MEAN, STD = (0.25, 0.5, 0.75), (0.125, 0.25, 0.5)
NORMALISED = {
    "buffers of the network": ("mu", "sigma", ""),
    "a layer before it": ("normalize.mean", "normalize.std", "model."),
    "first of a sequence": ("0.mean", "0.std", "1."),
    "of the robustness library": ("module.normalizer.new_mean", "module.normalizer.new_std", "module.model."),
}


@pytest.mark.parametrize("form", NORMALISED)
def test_normalising_buffers_are_declared(form: str, code: Path) -> None:
    mean, std, prefix = NORMALISED[form]
    numbers = {mean: torch.tensor(MEAN).view(1, 3, 1, 1), std: torch.tensor(STD).view(1, 3, 1, 1)}
    model = load(code, {"model": below(prefix, state()) | numbers})
    assert torch.equal(model.module.offset, state()["offset"])
    assert model.declared is not None
    assert (model.declared.mean, model.declared.std) == (MEAN, STD)


MISFITS: dict[str, Callable[[], Any]] = {
    "no weights": lambda: {"epoch": 3},
    "a tensor": lambda: torch.zeros(3),
    "a list": lambda: [state()],
    "the network itself": lambda: Small(),
    "others": lambda: {"model": Small().state_dict()},
    "one is missing": lambda: {"model": {name: tensor for name, tensor in state().items() if name != "offset"}},
    "one of another shape": lambda: state() | {"linear.bias": torch.zeros(4)},
    "one more": lambda: below("module.", state()) | {"module.head.weight": torch.zeros(3)},
    "one more before them": lambda: below("model.", state()) | {"head.weight": torch.zeros(3)},
    "an average and the last": lambda: {"model": state(), "model_ema": state(3.0)},
    "two networks": lambda: below("student.", state()) | below("teacher.", state(3.0)),
    "means of bytes": lambda: state() | {"mean": torch.tensor([125.0] * 3), "std": torch.tensor([63.0] * 3)},
    "two normalisations": lambda: (
        state()
        | {f"{at}.{name}": torch.full((3,), size) for at, size in (("a", 0.5), ("b", 0.25)) for name in ("mean", "std")}
    ),
    "a mean alone": lambda: state() | {"mean": torch.tensor(MEAN)},
    "no numbers": lambda: {name: tensor.to("meta") for name, tensor in state().items()},
}
"""Checkpoints that hold no weights of the network, or two versions."""


@pytest.mark.parametrize("form", MISFITS)
def test_checkpoints_that_do_not_fit_are_refused(form: str, code: Path) -> None:
    assert refused("weights", "w.pt", load, code, MISFITS[form]()).exit_code == 3


def test_the_nearest_states_are_named(code: Path) -> None:
    content = {"best": below("module.", {"linear.bias": state()["linear.bias"]}), "head": {"offset": torch.zeros(3)}}
    refused("weights", r"best.* 1 of 3 .*head.* 1 of 3", load, code, content)
    refused("weights", "model and ema", load, code, {"model": state(), "ema": state(3.0)})


def test_tied_weights_may_stand_there_once(code: Path) -> None:
    code.write_text(
        "from torch import nn\n"
        "def make():\n    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))\n"
        "    net[1].weight = net[0].weight\n    return net\n"
    )
    weights = {"0.weight": torch.ones(3, 3), "0.bias": torch.zeros(3), "1.bias": torch.ones(3)}
    model = load(code, {"net": weights}).module
    assert torch.equal(model[1].weight, torch.ones(3, 3))
    assert torch.equal(model[1].bias, torch.ones(3))


def test_batch_norm_of_old_checkpoints_counts_no_batches(code: Path) -> None:
    code.write_text("from torch import nn\nmake = lambda: nn.Sequential(nn.BatchNorm1d(3))\n")
    old = {name: torch.full((3,), 2.0) for name in ("weight", "bias", "running_mean", "running_var")}
    assert load(code, below("module.0.", old)).module[0].running_var.tolist() == [2.0] * 3


HOSTILE: dict[str, Callable[[Path], bytes]] = {
    "code": lambda canary: pickled({"model": state(), "more": Canary(canary)}),
    "no checkpoint": lambda canary: b"text",
    "cut": lambda canary: pickled(state())[:-200],
    "another archive": lambda canary: edited(pickled(state()), lambda records: records.update({"data.pkl": b""})),
    "compressed": lambda canary: edited(pickled(state()), lambda records: None, kind=8),
    "claims more than there is": lambda canary: edited(
        pickled({"linear.weight": torch.zeros(3, 4000)}), lambda records: records.update({"data/0": b"\0" * 4})
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("name", ["w.pt", "w.pth.tar", "w.safetensors"])
def test_hostile_files_are_refused_and_nothing_is_run(kind: str, name: str, code: Path, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(HOSTILE[kind](tmp_path / "canary"))
    error = refused("file_refused", name, load_model, f"{code}:make", weights=tmp_path / name)
    assert error.exit_code == 6
    assert not (tmp_path / "canary").exists()


def test_code_in_the_old_format_is_refused(code: Path, tmp_path: Path) -> None:
    torch.save({"more": Canary(tmp_path / "canary")}, tmp_path / "w.pt", _use_new_zipfile_serialization=False)
    refused("file_refused", "system", load_model, f"{code}:make", weights=tmp_path / "w.pt")
    assert not (tmp_path / "canary").exists()
    (tmp_path / "w.pt").write_bytes(struct.pack("<Q", 1 << 40))
    refused("file_refused", "w.pt", load_model, f"{code}:make", weights=tmp_path / "w.pt")


class Hook:
    """An object that starts a program, which leaves a file, when Python rebuilds it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return subprocess.call, (["touch", str(self.path)],)


def test_no_object_of_a_checkpoint_is_rebuilt(code: Path, tmp_path: Path) -> None:
    """Neither an unknown callable of a checkpoint nor its arguments are called."""
    model = load(code, {"model": state(), "hook": Hook(tmp_path / "made")})
    assert torch.equal(model.module.linear.weight, state()["linear.weight"])
    assert not (tmp_path / "made").exists()
