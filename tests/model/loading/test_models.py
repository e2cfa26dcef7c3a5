"""Models: what loads, what runs code and says so, and what is refused."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from brittle.errors import ArtefactError, BrittleError, ModelError, UsageError
from brittle.model.loading.load import LoadedModel, load_model
from brittle.model.loading.weights import state_digest

FACTORY = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 3)
        self.register_buffer("offset", torch.zeros(3))

    def forward(self, x):
        return self.linear(x.flatten(1)) + self.offset

def make():
    return Net()

network = Net()
number = 3

def wrong():
    return {"a": 1}

def needs(width):
    return Net()

def fails():
    raise RuntimeError("no weights here")
"""


class Small(nn.Module):
    """Enough kinds of tensors and operators to write a realistic archive."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.norm = nn.BatchNorm2d(1)
        self.linear = nn.Linear(4, 3)
        self.constant = torch.full((1, 1, 1), 2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear((self.norm(x) * self.constant).flatten(1))


def export(dynamic: bool) -> bytes:
    shapes = ({0: torch.export.Dim("batch", min=1, max=64)},) if dynamic else None
    program = torch.export.export(Small().eval(), (torch.rand(3, 1, 2, 2),), dynamic_shapes=shapes)
    file = io.BytesIO()
    torch.export.save(program, file)
    return file.getvalue()


@pytest.fixture(scope="module")
def archive() -> bytes:
    return export(dynamic=True)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(FACTORY, encoding="utf-8")
    return tmp_path / "net.py"


def refused(code: str, match: str, function: Callable[..., Any], *args: Any, **options: Any) -> BrittleError:
    """`function` raises the error `code` with a sentence that holds `match`."""
    with pytest.raises(BrittleError, match=match) as caught:
        function(*args, **options)
    assert caught.value.code == code
    return caught.value


# Archives.


def test_an_archive_gives_the_network(archive: bytes, tmp_path: Path) -> None:
    (tmp_path / "net.pt2").write_bytes(archive)
    loaded = load_model(tmp_path / "net.pt2")
    x = torch.rand(5, 1, 2, 2)
    assert isinstance(loaded, LoadedModel)
    assert torch.equal(loaded.module(x), Small().eval()(x))
    assert not loaded.runs_code
    assert loaded.fixed_batch is None
    assert json.loads(json.dumps(loaded.provenance)) == loaded.provenance
    assert loaded.provenance["format"] == "torch.export"
    assert loaded.provenance["spec"] == str(tmp_path / "net.pt2")
    assert len(loaded.provenance["sha256"]) == len(loaded.provenance["state_sha256"]) == 64


def test_a_fixed_batch_is_known(tmp_path: Path) -> None:
    (tmp_path / "net.pt2").write_bytes(export(dynamic=False))
    loaded = load_model(tmp_path / "net.pt2")
    assert loaded.fixed_batch == loaded.provenance["fixed_batch"] == 3
    with pytest.raises(AssertionError, match="size"):
        loaded.module(torch.rand(5, 1, 2, 2))


def test_weights_for_an_archive(archive: bytes, tmp_path: Path) -> None:
    (tmp_path / "net.pt2").write_bytes(archive)
    error = refused("weights", "holds its own weights", load_model, tmp_path / "net.pt2", weights="w.safetensors")
    assert isinstance(error, UsageError)


@pytest.mark.parametrize("kind", range(5))
def test_files_that_are_no_archive(archive: bytes, kind: int, tmp_path: Path) -> None:
    checkpoint = io.BytesIO()
    torch.save({"weight": torch.zeros(3)}, checkpoint)
    middle = len(archive) // 3
    contents = [b"", b"text", archive[:middle], archive[:middle] + bytes(99) + archive[middle + 99 :]]
    (tmp_path / "net.pt2").write_bytes([*contents, checkpoint.getvalue()][kind])
    refused("archive_refused" if kind == 4 else "archive_format", r"net\.pt2", load_model, tmp_path / "net.pt2")


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


Records = dict[str, bytes]


def edited(archive: bytes, edit: Callable[[Records], None], kind: int = zipfile.ZIP_STORED) -> bytes:
    """The archive after `edit` of its records, whose names are given without the first folder."""
    with zipfile.ZipFile(io.BytesIO(archive)) as read:
        root = read.namelist()[0].partition("/")[0]
        records = {name.removeprefix(f"{root}/"): read.read(name) for name in read.namelist()}
    edit(records)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as written:
        for name, content in records.items():
            written.writestr(f"{root}/{name}", content)
    return file.getvalue()


def pickled(value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def hostile_sample(records: Records, canary: Path) -> None:
    records["data/sample_inputs/model.pt"] = pickled(Canary(canary))


def hostile_legacy_weights(records: Records, canary: Path) -> None:
    records["data/weights/model.pt"] = pickled({"linear.weight": Canary(canary)})


def hostile_object(records: Records, canary: Path) -> None:
    records["data/constants/opaque_obj_0"] = pickle.dumps(Canary(canary))


def hostile_weight(records: Records, canary: Path) -> None:
    name = "data/weights/model_weights_config.json"
    config = json.loads(records[name])
    first = next(iter(config["config"].values()))
    first["use_pickle"] = True
    records[f"data/weights/{first['path_name']}"] = pickled(Canary(canary))
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
    hostile_sample,
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
    error = refused("archive_refused", r"net\.pt2", load_model, tmp_path / "net.pt2")
    assert isinstance(error, ArtefactError)
    assert error.exit_code == 6
    assert not canary.exists()
    assert "antigravity" not in sys.modules


def test_guards_in_an_archive_are_not_compiled(archive: bytes, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    guards = [f"__import__('os').system('touch {canary}') == 0"]

    def attack(records: Records) -> None:
        edit_program(records, lambda program: program.update(guards_code=guards))

    (tmp_path / "net.pt2").write_bytes(edited(archive, attack))
    load_model(tmp_path / "net.pt2").module(torch.rand(2, 1, 2, 2))
    assert not canary.exists()


def test_compressed_and_doubled_records_are_refused(archive: bytes, tmp_path: Path) -> None:
    (tmp_path / "net.pt2").write_bytes(edited(archive, lambda records: None, zipfile.ZIP_DEFLATED))
    refused("archive_refused", "is compressed", load_model, tmp_path / "net.pt2")
    file = io.BytesIO(archive)
    with zipfile.ZipFile(file, "a") as twice, pytest.warns(UserWarning, match="Duplicate"):
        twice.writestr(twice.namelist()[0], b"other")
    (tmp_path / "net.pt2").write_bytes(file.getvalue())
    refused("archive_refused", "two records of one name", load_model, tmp_path / "net.pt2")


@pytest.mark.parametrize("content", [b"[1]", b"{}", b'{"config": []}', b'{"config": {"a": 1}}', b"[" * 50_000])
def test_malformed_lists_of_weights(archive: bytes, content: bytes, tmp_path: Path) -> None:
    def edit(records: Records) -> None:
        records["data/weights/model_weights_config.json"] = content

    (tmp_path / "net.pt2").write_bytes(edited(archive, edit))
    with pytest.raises(ModelError, match=r"net\.pt2"):
        load_model(tmp_path / "net.pt2")


# Bytes that nobody claims.


WEIGHT, CONFIG, SAMPLE = (
    "data/weights/weight_0",
    "data/weights/model_weights_config.json",
    "data/sample_inputs/model.pt",
)


def one_more_weight(records: Records) -> None:
    """A tensor that the list of weights names and the graph does not read."""
    config = json.loads(records[CONFIG])
    config["config"]["more"] = config["config"]["linear.bias"] | {"path_name": "weight_77"}
    records |= {CONFIG: json.dumps(config).encode(), "data/weights/weight_77": bytes(12)}


def with_record(content: bytes, name: str) -> bytes:
    """A zip archive with one more record beside its first one."""
    file = io.BytesIO(content)
    with zipfile.ZipFile(file, "a") as one:
        one.writestr(name.replace("ROOT", one.namelist()[0].partition("/")[0]), bytes(40))
    return file.getvalue()


def gap(content: bytes) -> bytes:
    """Forty bytes between the records of a zip archive and its directory, with the offsets set right."""
    end = content.rindex(b"PK\5\6")
    (start,) = struct.unpack_from("<I", content, end + 16)
    moved = content[:start] + bytes(40) + content[start:]
    return moved[: end + 56] + struct.pack("<I", start + 40) + moved[end + 60 :]


SURPLUS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "before": (lambda own: bytes(40) + own, "40 bytes at 0"),
    "behind": (lambda own: own + bytes(40), " 40 bytes behind the directory"),
    "a comment": (lambda own: own[:-2] + b"\3\0abc", " 3 bytes behind the directory"),
    "between": (lambda own: gap(edited(own, lambda records: None)), "40 bytes at"),
    "another program": (lambda own: with_record(own, "other/data/weights/weight_0"), "records of 2 programs"),
    "a longer record": (
        lambda own: edited(own, lambda records: records.update({WEIGHT: records[WEIGHT] + bytes(40)})),
        "40 bytes beside 'norm.weight'",
    ),
    "an empty record": (
        lambda own: edited(own, lambda records: records.update({WEIGHT: b""})),
        "84 bytes of tensors where its graph reads 88",
    ),
    "a record that nobody reads": (
        lambda own: with_record(own, "ROOT/data/weights/weight_77"),
        "128 bytes of tensors where its graph reads 88",
    ),
    "a tensor that nobody reads": (lambda own: edited(own, one_more_weight), "1 tensors that its graph does not read"),
    "behind a checkpoint": (
        lambda own: edited(own, lambda records: records.update({SAMPLE: records[SAMPLE] + bytes(40)})),
        "model.pt' in .* 40 bytes behind the directory",
    ),
    "a storage that nobody reads": (
        lambda own: edited(own, lambda records: records.update({SAMPLE: with_record(records[SAMPLE], "ROOT/data/9")})),
        "model.pt' in .* holds 88 bytes of tensors and reads 48",
    ),
    "another record of a checkpoint": (
        lambda own: edited(own, lambda records: records.update({SAMPLE: with_record(records[SAMPLE], "ROOT/x")})),
        "holds 'archive/x', which it does not read",
    ),
}


@pytest.mark.parametrize("kind", SURPLUS)
def test_surplus_bytes_in_an_archive_are_refused(kind: str, archive: bytes, tmp_path: Path) -> None:
    change, match = SURPLUS[kind]
    (tmp_path / "net.pt2").write_bytes(change(archive))
    error = refused("archive_surplus", match, load_model, tmp_path / "net.pt2")
    assert error.exit_code == ArtefactError.exit_code


class Views(nn.Module):
    """Tied weights, strided and empty tensors, half precision, weights that nothing reads: all of their own."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(3, 4).half())
        self.transposed = nn.Parameter(torch.randn(4, 3).T)
        self.tied, self.unread = self.weight, nn.Parameter(torch.randn(5))
        halves = torch.randn(6)
        self.first, self.second = nn.Parameter(halves[:3]), nn.Parameter(halves[3:])
        self.register_buffer("empty", torch.zeros(0))
        self.register_buffer("spread", torch.randn(3).expand(2, 3))
        self.register_buffer("passing", torch.zeros(3), persistent=False)
        self.scalar = torch.tensor(2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.weight.float() + self.tied.float() + self.transposed
        bias = self.first + self.second + self.spread[0] + self.passing + self.empty.sum()
        return x.flatten(1) @ weight.T * self.scalar + bias


def test_tensors_of_their_own_are_no_surplus(tmp_path: Path) -> None:
    """However they lie; the inputs for the export may be part of something larger."""
    sample = torch.rand(50, 1, 2, 2)[:3]
    program = torch.export.export(Views().eval(), (sample,))
    with pytest.warns(UserWarning, match="No complete tensor"):  # the two halves are complete together
        torch.export.save(program, tmp_path / "net.pt2")
    loaded = load_model(tmp_path / "net.pt2")
    assert torch.equal(loaded.module(sample), Views().eval()(sample))


def test_a_part_of_a_larger_tensor_is_named(tmp_path: Path) -> None:
    """PyTorch would export all of it."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    network[1].weight = nn.Parameter(torch.randn(10, 4)[:3])
    program = torch.export.export(network.eval(), (torch.rand(3, 1, 2, 2),))
    with pytest.warns(UserWarning, match="No complete tensor"):
        torch.export.save(program, tmp_path / "net.pt2")
    refused("archive_surplus", r"112 bytes beside '1.weight', .*\(tensor\.clone\(\)", load_model, tmp_path / "net.pt2")


# Specs.


@pytest.mark.parametrize(
    ("spec", "code", "match"),
    [
        ("net.pth", "model_spec", r"\.pth file, which holds a pickle .* torch\.export\.save"),
        ("net.safetensors", "model_spec", "weights without a network; give it with --weights"),
        ("net.py", "model_spec", "names no function"),
        ("resnet50", "model_spec", "neither FILE.pt2"),
        ("absent.pt2", "model_missing", "absent.pt2 cannot be read: No such file"),
        ("absent.py:make", "model_missing", "absent.py cannot be read"),
        ("no_such_module:make", "model_missing", "no module no_such_module.* is it installed"),
        ("os.no_such_part:make", "model_missing", "no module os.no_such_part"),
    ],
)
def test_specs_of_another_form(spec: str, code: str, match: str) -> None:
    refused(code, match, load_model, spec)


# Factories.


def test_a_factory_in_a_file(code: Path) -> None:
    loaded = load_model(f"{code}:make")
    assert loaded.runs_code
    assert loaded.fixed_batch is None
    assert loaded.module(torch.rand(2, 4)).shape == (2, 3)
    assert loaded.provenance["runs_code"] is True
    assert loaded.provenance["file"] == str(code)
    assert len(loaded.provenance["sha256"]) == 64
    assert json.loads(json.dumps(loaded.provenance)) == loaded.provenance


def test_a_network_in_a_file(code: Path) -> None:
    assert load_model(f"{code}:network").module(torch.rand(2, 4)).shape == (2, 3)
    assert load_model(f"{code}:Net").module(torch.rand(2, 4)).shape == (2, 3)


def test_what_is_run_is_what_is_digested(code: Path) -> None:
    before = load_model(f"{code}:make").provenance
    stamp = code.stat()
    code.write_text(FACTORY.replace("manual_seed(0)", "manual_seed(1)"), encoding="utf-8")
    os.utime(code, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    after = load_model(f"{code}:make").provenance
    assert before["sha256"] != after["sha256"]
    assert before["state_sha256"] != after["state_sha256"]


def test_a_factory_in_an_installed_module(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code.rename(code.with_name("installed_net.py"))
    monkeypatch.syspath_prepend(code.parent)
    loaded = load_model("installed_net:make")
    assert loaded.provenance["file"] == str(code.with_name("installed_net.py"))
    assert loaded.runs_code


@pytest.mark.parametrize(
    ("name", "code_", "match"),
    [
        ("wrong", "factory_type", r"net\.py, sha256 [0-9a-f]{64}\) returned an object of type builtins\.dict"),
        ("number", "factory_type", r"is an object of type builtins\.int; a function"),
        ("needs", "factory_type", "cannot be called without arguments .*'width'"),
        ("fails", "factory_failed", "RuntimeError: no weights here"),
        ("absent", "factory_missing", "absent .* does not exist; the file has .*make"),
    ],
)
def test_factories_that_make_no_network(code: Path, name: str, code_: str, match: str) -> None:
    refused(code_, match, load_model, f"{code}:{name}")


def test_a_function_of_python_is_no_factory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is executed: `os.system` cannot be called without a command."""
    monkeypatch.chdir(tmp_path)
    refused("factory_type", r"os:system \(file .*os\.py, sha256 [0-9a-f]{64}\)", load_model, "os:system")
    refused("factory_type", r"os:getcwd .* returned an object of type builtins\.str", load_model, "os:getcwd")


@pytest.mark.parametrize(
    ("source", "match"),
    [
        ("1 / 0", "running .*bad.py failed at line 1: ZeroDivisionError"),
        ("def make(:", "failed: SyntaxError"),
        ("import sys; sys.exit(0)", "failed at line 1: SystemExit"),
        ("import layers", "no module named 'layers'|No module named 'layers'.*PYTHONPATH="),
    ],
)
def test_files_that_cannot_be_run(source: str, match: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(source, encoding="utf-8")
    (tmp_path / "layers.py").write_text("", encoding="utf-8")
    refused("factory_failed", match, load_model, f"{tmp_path / 'bad.py'}:make")


def test_an_installed_module_that_cannot_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needs_more.py").write_text("import no_such_dependency", encoding="utf-8")
    (tmp_path / "stops.py").write_text("raise SystemExit", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    refused("factory_failed", "no module no_such_dependency", load_model, "needs_more:make")
    refused("factory_failed", "importing stops failed: SystemExit", load_model, "stops:make")


def test_the_current_folder_is_not_searched(code: Path) -> None:
    """As for an installed command: the first entry of `sys.path` is not the current folder."""
    for name in ("torch.py", "sitecustomize.py", "safetensors.py"):
        code.with_name(name).write_text("raise SystemExit('imported from the current folder')", encoding="utf-8")
    script = (
        "from brittle.errors import ArtefactError, ModelError\n"
        "from brittle.model.loading.load import load_model\n"
        "try: load_model('net:make')\n"
        "except ModelError as error: print(error)\n"
        "load_model('./net.py:make')\n"
        "try: load_model('net:make')\n"
        "except ModelError as error: print('still')\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], cwd=code.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert "the current folder is not searched" in first
    assert "write ./net.py:make" in first
    assert second == "still"


# Weights.


def weights_of(code: Path, **changes: torch.Tensor | None) -> Path:
    """A `.safetensors` file for the network in `code`, with some tensors changed or left out."""
    state = load_model(f"{code}:make").module.state_dict() | {
        name.replace("__", "."): tensor for name, tensor in changes.items()
    }
    path = code.with_name("w.safetensors")
    save_file({name: tensor.contiguous() for name, tensor in state.items() if tensor is not None}, path)
    return path


def test_weights_are_loaded(code: Path) -> None:
    path = weights_of(code, linear__bias=torch.tensor([1.0, 2.0, 3.0]))
    loaded = load_model(f"{code}:make", weights=path)
    assert loaded.module.get_parameter("linear.bias").tolist() == [1.0, 2.0, 3.0]
    assert loaded.provenance["weights"] == str(path)
    assert len(loaded.provenance["weights_sha256"]) == 64
    assert loaded.provenance["state_sha256"] != load_model(f"{code}:make").provenance["state_sha256"]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"linear__bias": None}, r"1 missing: linear\.bias"),
        ({"extra": torch.zeros(1)}, "1 unexpected: extra"),
        ({f"extra{number}": torch.zeros(1) for number in range(7)}, "7 unexpected: extra0, .*, extra4\\)"),
        ({"linear__bias": None, "extra": torch.zeros(1)}, r"1 missing: linear\.bias; 1 unexpected: extra"),
        ({"linear__bias": torch.zeros(4)}, r"size mismatch for linear\.bias.*\[4\]"),
    ],
)
def test_weights_must_fit(code: Path, changes: dict[str, torch.Tensor | None], match: str) -> None:
    refused("state_dict", match, load_model, f"{code}:make", weights=weights_of(code, **changes))


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_weights_must_be_finite(code: Path, value: float) -> None:
    path = weights_of(code, linear__bias=torch.tensor([0.0, value, value]))
    refused("weights_nonfinite", r"linear\.bias of .* holds 2 NaN or infinite values among 3", load_model,
            f"{code}:make", weights=path)  # fmt: skip


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_buffers_must_be_finite_but_may_mask(code: Path, value: float) -> None:
    path = weights_of(code, offset=torch.full((3,), value))
    refused("weights_nonfinite", "offset of", load_model, f"{code}:make", weights=path)
    assert load_model(f"{code}:make", weights=weights_of(code, offset=torch.full((3,), -torch.inf)))


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".bin", ".ckpt", ".npz"])
def test_other_weights_are_refused(code: Path, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"w{suffix}"
    path.write_bytes(pickled(Canary(tmp_path / "canary")))
    refused("weights_format", "convert once with: python -c", load_model, f"{code}:make", weights=path)
    assert not (tmp_path / "canary").exists()


def test_the_conversion_that_the_message_gives_works(code: Path, tmp_path: Path) -> None:
    torch.save(load_model(f"{code}:make").module.state_dict(), tmp_path / "w.pt")
    error = refused("weights_format", "convert", load_model, f"{code}:make", weights=tmp_path / "w.pt")
    command = str(error).partition('python -c "')[2].rpartition('"')[0]
    exec(command, {})
    assert load_model(f"{code}:make", weights=tmp_path / "w.safetensors")


def entry(start: int, end: int) -> dict[str, Any]:
    return {"dtype": "F32", "shape": [(end - start) // 4], "data_offsets": [start, end]}


def safetensors_bytes(header: dict[str, Any], size: int) -> bytes:
    return with_header(json.dumps(header).encode(), size)


def with_header(header: bytes, size: int) -> bytes:
    return struct.pack("<Q", len(header)) + header + bytes(size)


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("<Q", 2**63) + b"{}",
        safetensors_bytes({"a": entry(0, 8), "b": entry(4, 12)}, 12),
        safetensors_bytes({"a": entry(0, 4), "b": entry(8, 12)}, 12),
        safetensors_bytes({"a": entry(0, 400)}, 4),
        safetensors_bytes({"a": entry(0, 4)}, 8),
        safetensors_bytes({"a": entry(4, 8)}, 8),
        with_header(
            b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, '
            b'"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}',
            8,
        ),
        b"",
        b"text",
    ],
    ids=["length", "overlap", "hole", "short", "behind", "before", "twice", "empty", "text"],
)
def test_unsound_safetensors_are_refused(code: Path, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(content)
    error = refused("weights_refused", "not a sound", load_model, f"{code}:make", weights=tmp_path / "w.safetensors")
    assert error.exit_code == 6


def test_absent_weights(code: Path) -> None:
    refused("weights_missing", "cannot be read: No such file", load_model, f"{code}:make", weights="w.safetensors")


def test_tied_weights_load(tmp_path: Path) -> None:
    tied = FACTORY.replace(
        "def make():\n    return Net()", "def make():\n    net = Net(); net.twin = net.linear; return net"
    )
    (tmp_path / "net.py").write_text(tied, encoding="utf-8")
    module = load_model(f"{tmp_path / 'net.py'}:make").module
    save_file({"linear.weight": torch.ones(3, 4), "linear.bias": torch.ones(3), "offset": torch.zeros(3)},
              tmp_path / "w.safetensors")  # fmt: skip
    loaded = load_model(f"{tmp_path / 'net.py'}:make", weights=tmp_path / "w.safetensors")
    assert not torch.equal(loaded.module.get_parameter("twin.weight"), module.get_parameter("twin.weight"))
    assert loaded.module.get_parameter("twin.weight").eq(1).all()


def test_the_state_digest_knows_names_types_and_values() -> None:
    plain, named, half = nn.Linear(3, 2), nn.Sequential(nn.Linear(3, 2)), nn.Linear(3, 2).bfloat16()
    named[0].load_state_dict(plain.state_dict())
    half.load_state_dict(plain.state_dict())
    assert len({state_digest(module) for module in (plain, named, half, nn.Linear(3, 2))}) == 4
    assert state_digest(plain) == state_digest(plain)
