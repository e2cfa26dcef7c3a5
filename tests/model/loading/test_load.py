"""Models and weights that the command line accepts, and refusals of others."""

from __future__ import annotations

import json
import os
import struct
import sys
from pathlib import Path

import pytest
import torch
from helpers.artefacts import FACTORY, refused
from helpers.extending import INSTALLED
from helpers.forks import forked
from safetensors.torch import save_file
from torch import nn

from brittle import registry
from brittle.model.digest import state_digest
from brittle.model.loading.load import SOURCES, check_named, form_of, load_model

PICKLE = b"cos\nsystem\n(S'touch opened'\ntR."

OTHERS = {
    "resnet50": "usage",
    "absent.skops": "unreadable",
    "absent.py:make": "unreadable",
    "no_such_module:make": "user_code",
    "os.no_such_part:make": "user_code",
    "model.pkl": "model_file",
    "model.joblib": "model_file",
    "model.h5": "usage",
    "model.tflite": "usage",
    "model.safetensors": "usage",
    "net.py": "usage",
    "data.npz": "usage",
    "model.xyz": "usage",
}
"""Names that can be no model; the refusal names the file and never opens it."""


@pytest.mark.parametrize("spec", OTHERS)
def test_names_that_can_be_no_model_are_refused(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "absent" not in spec and ":" not in spec and "." in spec:
        Path(spec).write_bytes(PICKLE)
    before = sorted(tmp_path.iterdir())
    refused(OTHERS[spec], spec.partition(":")[0], load_model, spec)
    assert sorted(tmp_path.iterdir()) == before


def test_files_with_weights_accept_no_others(tmp_path: Path) -> None:
    (tmp_path / "model.skops").write_bytes(b"")
    refused("usage", "leave out --weights", load_model, tmp_path / "model.skops", weights="w.safetensors")


def test_each_source_form_names_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a source in the table is itself of its form, so that a message may list it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FOLDER").mkdir()
    assert {form: form_of(form) for form in SOURCES} == {form: form for form in SOURCES}
    error = refused("usage", "and is no file", load_model, "resnet50")
    assert all(form in str(error) for form in SOURCES)


@pytest.mark.parametrize("name", ["model.gone", "gone:model"])
def test_a_form_of_a_missing_extension_names_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for form in ("FILE.gone", "gone:NAME"):
        monkeypatch.setitem(registry.PARTS, f"source.{form}", "vanished.reader:GONE")
    for call in (load_model, lambda spec: check_named(spec, None)):
        error = refused("not_installed", "of the extension vanished", call, name)
        assert name in str(error)


PACKAGE = """
import torch
from brittle.model.loading.load import LoadedModel, Source

def load(name, weights):
    return LoadedModel(torch.nn.Linear(4, int(name.partition(":")[2])), {"format": "lines"})

LINES = Source(load, check=lambda name: None, takes_weights=True)
"""

LOAD = """
from pathlib import Path
from brittle.model.loading.load import check_named, load_model
check_named("lines:7", None)
loaded = load_model("lines:7")
print(len(loaded.module.bias), loaded.provenance["spec"], loaded.provenance["format"], loaded.provenance["runs_code"])
"""


def test_another_package_adds_a_source(tmp_path: Path) -> None:
    (tmp_path / "lines_package.py").write_text(PACKAGE)
    facts = tmp_path / "lines_package-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: lines-package\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[brittle.extensions]\nsource.lines:NAME = lines_package:LINES\n")
    done = forked(INSTALLED + LOAD, str(tmp_path))
    assert done.stdout.split() == ["7", "lines:7", "lines", "False"], done.stderr


def test_a_factory_in_a_file_is_loaded(code: Path) -> None:
    model = load_model(f"{code}:make")
    assert model.module(torch.rand(2, 4)).shape == (2, 3)
    assert model.provenance["runs_code"] is True
    assert model.provenance["file"] == str(code)
    assert len(model.provenance["sha256"]) == 64
    assert json.loads(json.dumps(model.provenance)) == model.provenance


def test_the_digest_is_that_of_the_executed_code(code: Path) -> None:
    before = load_model(f"{code}:make").provenance
    stamp = code.stat()
    code.write_text(FACTORY.replace("manual_seed(0)", "manual_seed(1)"), encoding="utf-8")
    os.utime(code, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    after = load_model(f"{code}:make").provenance
    assert before["sha256"] != after["sha256"]
    assert before["state_sha256"] != after["state_sha256"]


def test_a_factory_in_an_installed_module_is_loaded(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code.rename(code.with_name("installed_net.py"))
    monkeypatch.syspath_prepend(code.parent)
    model = load_model("installed_net:make")
    assert model.provenance["file"] == str(code.with_name("installed_net.py"))


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("number", r"net\.py:number gives an object of type builtins\.int"),
        ("fails", r"net\.py:fails failed at line \d+: RuntimeError: no weights here"),
        ("absent", "absent does not exist; the file has .*make"),
    ],
)
def test_factories_of_other_objects_are_refused(code: Path, name: str, match: str) -> None:
    refused("user_code", match, load_model, f"{code}:{name}")


@pytest.mark.parametrize(
    ("source", "match"),
    [
        ("1 / 0", "running .*bad.py failed at line 1: ZeroDivisionError"),
        ("def make(:", "failed: SyntaxError"),
        ("import sys; sys.exit(0)", "failed at line 1: SystemExit"),
        ("import layers", "no module named 'layers'|No module named 'layers'.*PYTHONPATH="),
        ("import parts.first", "PYTHONPATH="),
        ("def make():\n    import layers", "at line 2: .*PYTHONPATH="),
        ("import pickle\ndef make():\n    return pickle.loads(b'clayers\\nSize\\n.')", "at line 3: .*PYTHONPATH="),
    ],
)
def test_files_that_cannot_run_are_refused(source: str, match: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(source, encoding="utf-8")
    (tmp_path / "layers.py").write_text("", encoding="utf-8")
    (tmp_path / "parts").mkdir()
    refused("user_code", match, load_model, f"{tmp_path / 'bad.py'}:make")


def test_the_current_folder_is_not_searched(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an installed command, no entry of `sys.path` is the current folder, and loading a file there adds none."""
    monkeypatch.chdir(code.parent)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", ".")])
    for _ in range(2):
        refused("user_code", "./net.py:make", load_model, "net:make")
        load_model("./net.py:make")


def weights_of(code: Path, **changes: torch.Tensor | None) -> Path:
    """Write a `.safetensors` file for the network in `code`, with some tensors changed or left out."""
    state = load_model(f"{code}:make").module.state_dict() | {
        name.replace("__", "."): tensor for name, tensor in changes.items()
    }
    path = code.with_name("w.safetensors")
    save_file({name: tensor.contiguous() for name, tensor in state.items() if tensor is not None}, path)
    return path


def test_weights_are_loaded(code: Path) -> None:
    path = weights_of(code, linear__bias=torch.tensor([1.0, 2.0, 3.0]))
    model = load_model(f"{code}:make", weights=path)
    assert model.module.get_parameter("linear.bias").tolist() == [1.0, 2.0, 3.0]
    assert model.provenance["weights"] == str(path)
    assert len(model.provenance["weights_sha256"]) == 64
    assert model.provenance["state_sha256"] != load_model(f"{code}:make").provenance["state_sha256"]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"linear__bias": None}, r"1 missing: linear\.bias"),
        ({f"extra{number}": torch.zeros(1) for number in range(7)}, "7 unexpected: extra0, .*, extra4"),
        ({"linear__bias": torch.zeros(4)}, r"size mismatch for linear\.bias.*\[4\]"),
    ],
)
def test_weights_must_fit(code: Path, changes: dict[str, torch.Tensor | None], match: str) -> None:
    refused("weights", match, load_model, f"{code}:make", weights=weights_of(code, **changes))


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_weights_and_buffers_must_be_finite_except_masks(code: Path, value: float) -> None:
    path = weights_of(code, linear__bias=torch.tensor([0.0, value, value]))
    refused("weights", r"linear\.bias of .* 2 NaN or infinite values among 3", load_model, f"{code}:make", weights=path)
    path = weights_of(code, offset=torch.full((3,), value))
    if value == -torch.inf:
        assert load_model(f"{code}:make", weights=path)
    else:
        refused("weights", "offset of", load_model, f"{code}:make", weights=path)


def test_weights_without_a_shape_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "lazy.py"
    path.write_text("import torch\nmake = lambda: torch.nn.LazyLinear(3)\n", encoding="utf-8")
    refused("weights", "weight, bias", load_model, f"{path}:make")


@pytest.mark.parametrize("content", [struct.pack("<Q", 2**63) + b"{}", b"", b"text"])
def test_unsound_safetensors_are_refused(code: Path, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(content)
    error = refused("file_refused", "no sound", load_model, f"{code}:make", weights=tmp_path / "w.safetensors")
    assert error.exit_code == 6


def test_the_state_digest_covers_names_types_and_values() -> None:
    plain, nested, half = nn.Linear(3, 2), nn.Sequential(nn.Linear(3, 2)), nn.Linear(3, 2).bfloat16()
    nested[0].load_state_dict(plain.state_dict())
    half.load_state_dict(plain.state_dict())
    assert len({state_digest(module) for module in (plain, nested, half, nn.Linear(3, 2))}) == 4
    assert state_digest(plain) == state_digest(plain)
