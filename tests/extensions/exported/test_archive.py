"""Exported archives: they give the network, and none of their code runs."""

from __future__ import annotations

import io
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.artefacts import Canary, Records, Small, edited, export, pickled, refused

from brittle.errors import ArtefactError, ModelError
from brittle.extensions.exported.archive import load_archive
from brittle.model.loading.load import load_model


@pytest.fixture(scope="session")
def archive() -> bytes:
    return export(dynamic=True)


def test_an_archive_gives_the_network(archive: bytes, tmp_path: Path) -> None:
    (tmp_path / "net.pt2").write_bytes(archive)
    loaded = load_model(tmp_path / "net.pt2")
    x = torch.rand(5, 1, 2, 2)
    assert torch.equal(loaded.module(x), Small().eval()(x))
    assert loaded.provenance["runs_code"] is False
    assert loaded.provenance["fixed_batch"] is None
    assert json.loads(json.dumps(loaded.provenance)) == loaded.provenance
    assert loaded.provenance["format"] == "torch.export"
    assert len(loaded.provenance["sha256"]) == len(loaded.provenance["state_sha256"]) == 64


def test_a_fixed_batch_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "net.pt2").write_bytes(export(dynamic=False))
    loaded = load_model(tmp_path / "net.pt2")
    assert loaded.provenance["fixed_batch"] == 3
    with pytest.raises(RuntimeError, match="to be equal to 3, but got 5"):
        loaded.module(torch.rand(5, 1, 2, 2))


@pytest.mark.parametrize("kind", range(4))
def test_files_that_are_no_archive_are_refused(archive: bytes, kind: int, tmp_path: Path) -> None:
    checkpoint = io.BytesIO()
    torch.save({"weight": torch.zeros(3)}, checkpoint)
    middle = len(archive) // 3
    contents = [b"", archive[:middle], archive[:middle] + bytes(99) + archive[middle + 99 :], checkpoint.getvalue()]
    (tmp_path / "net.pt2").write_bytes(contents[kind])
    refused("model_file", r"net\.pt2", load_model, tmp_path / "net.pt2")


def hostile_legacy_weights(records: Records, canary: Path) -> None:
    records["data/weights/model.pt"] = pickled({"linear.weight": Canary(canary)})


def hostile_object(records: Records, canary: Path) -> None:
    records["data/constants/opaque_obj_0"] = pickle.dumps(Canary(canary))


def hostile_weight(records: Records, canary: Path) -> None:
    name = "data/weights/model_weights_config.json"
    config = json.loads(records[name])
    entry = next(iter(config["config"].values()))
    entry["use_pickle"] = True
    records[f"data/weights/{entry['path_name']}"] = pickled(Canary(canary))
    records[name] = json.dumps(config).encode()


def hostile_library(records: Records, canary: Path) -> None:
    records["data/aotinductor/model/model.so"] = b"\x7fELF"


def hostile_operator(records: Records, canary: Path) -> None:
    edit_program(records, lambda program: program["graph_module"]["graph"]["nodes"][0].update(target="torch.os.system"))


def hostile_library_operator(records: Records, canary: Path) -> None:
    target = "torch.ops.load_library"
    edit_program(records, lambda program: program["graph_module"]["graph"]["nodes"][0].update(target=target))


def hostile_size(records: Records, canary: Path) -> None:
    text = records["models/model.json"].decode()
    attack = f"__import__('os').system('touch {canary}')"
    program = json.loads(text)
    sizes = program["graph_module"]["graph"]["tensor_values"]["x"]["sizes"]
    records["models/model.json"] = text.replace(sizes[0]["as_expr"]["expr_str"], attack).encode()


def hostile_name(records: Records, canary: Path) -> None:
    program = json.loads(records["models/model.json"])
    name = program["graph_module"]["graph"]["nodes"][-1]["outputs"][0]["as_tensor"]["name"]
    attack = f"y = 1; __import__('os').system('touch {canary}'); z"
    text = json.dumps(program).replace(f'"{name}"', f'"{attack}"')
    records["models/model.json"] = text.encode()


def hostile_structure(records: Records, canary: Path) -> None:
    context = json.dumps([{"__enum__": True, "fqn": "antigravity:X", "name": "a"}])
    spec = json.dumps([1, {"type": "builtins.dict", "context": context, "children_spec": []}])
    edit_program(
        records, lambda program: program["graph_module"]["module_call_graph"][0]["signature"].update(in_spec=spec)
    )


def edit_program(records: Records, edit: Callable[[Any], None]) -> None:
    program = json.loads(records["models/model.json"])
    edit(program)
    records["models/model.json"] = json.dumps(program).encode()


HOSTILE = (
    hostile_legacy_weights,
    hostile_object,
    hostile_weight,
    hostile_library,
    hostile_operator,
    hostile_library_operator,
    hostile_size,
    hostile_name,
    hostile_structure,
)


@pytest.mark.parametrize("attack", HOSTILE, ids=lambda attack: attack.__name__)
def test_archives_that_could_run_code_are_refused(
    archive: bytes, attack: Callable[[Records, Path], None], tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    (tmp_path / "net.pt2").write_bytes(edited(archive, lambda records: attack(records, canary)))
    error = refused("file_refused", r"net\.pt2", load_model, tmp_path / "net.pt2")
    assert isinstance(error, ArtefactError)
    assert error.exit_code == 6
    assert not canary.exists()
    assert "antigravity" not in sys.modules


def test_guards_and_sample_inputs_are_not_read(archive: bytes, tmp_path: Path) -> None:
    canary = tmp_path / "canary"

    def attack(records: Records) -> None:
        guards = [f"__import__('os').system('touch {canary}') == 0"]
        edit_program(records, lambda program: program.update(guards_code=guards))
        records["data/sample_inputs/model.pt"] = pickled(Canary(canary))

    (tmp_path / "net.pt2").write_bytes(edited(archive, attack))
    load_model(tmp_path / "net.pt2").module(torch.rand(2, 1, 2, 2))
    assert not canary.exists()


@pytest.mark.parametrize("content", [b"{}", b'{"config": {"a": 1}}', b"[" * 50_000])
def test_malformed_lists_of_weights_are_refused(archive: bytes, content: bytes, tmp_path: Path) -> None:
    def edit(records: Records) -> None:
        records["data/weights/model_weights_config.json"] = content

    (tmp_path / "net.pt2").write_bytes(edited(archive, edit))
    with pytest.raises(ModelError, match=r"net\.pt2"):
        load_model(tmp_path / "net.pt2")


@pytest.mark.parametrize("record", ["weights/weight_0", "constants/tensor_0"])
def test_tensors_without_bytes_are_no_zeros(archive: bytes, record: str, tmp_path: Path) -> None:
    """PyTorch turns an empty record into zeros, and would score a network with other weights."""
    empty = edited(archive, lambda records: records.update({f"data/{record}": b""}))
    (tmp_path / "net.pt2").write_bytes(empty)
    refused("file_refused", r"net\.pt2", load_model, tmp_path / "net.pt2")


def test_malformed_archives_raise_model_errors(archive: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    """Names that are not UTF-8, a directory before the file, an unreadable version, a program that is no object."""
    directory = archive.index(b"PK\x01\x02")
    flagged = bytearray(archive)
    flagged[directory + 9] |= 8  # this name is UTF-8
    flagged[directory + 46 : directory + 48] = b"\x98\x98"
    refused("model_file", "x.pt2", load_archive, bytes(flagged), "x.pt2")
    before = bytearray(archive)
    before[directory + 42 : directory + 46] = (0xFFFFFFF0).to_bytes(4, "little")
    refused("model_file", "x.pt2", load_archive, bytes(before), "x.pt2")

    def version(records: Records) -> None:
        records[".data/version"] = b"-Infinity"

    def listed(records: Records) -> None:
        records["models/model.json"] = json.dumps([1, {"graph_module": {}}]).encode()

    for change in (version, listed):
        with torch.random.fork_rng(devices=[]), pytest.raises(ModelError):
            load_archive(edited(archive, change), "x.pt2")
    output = capfd.readouterr()
    assert "Traceback" not in output.out + output.err


@pytest.mark.parametrize("tower", ["9**9**9", "Pow(9, 9**9)", "9**(s0**9)", "1 << 9**9", "+".join("9" * 2000)])
def test_sizes_without_a_finite_computation_are_refused(archive: bytes, tower: str) -> None:
    def towering(records: Records) -> None:
        text = records["models/model.json"].decode()
        size = json.loads(text)["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][0]["as_expr"]["expr_str"]
        records["models/model.json"] = text.replace(f'"{size}"', f'"{tower}"').encode()

    refused("file_refused", "x.pt2", load_archive, edited(archive, towering), "x.pt2")
