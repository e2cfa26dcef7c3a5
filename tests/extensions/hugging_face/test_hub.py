"""Models of the Hugging Face Hub: requests to it, and the commit in the record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from helpers.artefacts import refused
from helpers.processes import LIMIT
from helpers.text_models import LABELS, TEXTS, Model, Tokenizer, pretend, text_folder

import brittle
from brittle.cli.commands import main
from brittle.model.loading.load import load_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def snapshot_of(cache: Path, name: str) -> Path:
    """Make the folder of `COMMIT`, the branch `main`, in a cache of the Hub."""
    repository = cache / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    folder = repository / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Record the calls of a stand-in for `huggingface_hub` that serves a cache, as the real one does without a network.
    A process asks it once for each model, so each test uses another model.
    """
    calls: list[dict[str, Any]] = []

    def download(name: str, **options: Any) -> str:
        calls.append({"name": name} | options)
        folder = tmp_path / f"models--{name.replace('/', '--')}" / "snapshots" / COMMIT
        if not folder.is_dir():
            raise FileNotFoundError("no such snapshot\nand more")
        return str(folder)

    hub = ModuleType("huggingface_hub")
    hub.__dict__["snapshot_download"] = download
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    pretend(monkeypatch, Model(), Tokenizer())
    monkeypatch.chdir(tmp_path)
    return calls


@pytest.mark.usefixtures("nothing_drawn")
@pytest.mark.parametrize("revision", ["", "@main", f"@{COMMIT}", "@pr/1"])
def test_the_commit_is_recorded(revision: str, downloads: list[dict[str, Any]], tmp_path: Path) -> None:
    name = f"own/scored-{len(revision)}"
    folder = text_folder(snapshot_of(tmp_path, name))
    rows = "".join(f"{text},{label}\n" for text, label in zip(TEXTS, LABELS, strict=True))
    Path("reviews.csv").write_text(f"text,label\n{rows}", encoding="utf-8")
    command = ["score", f"hf:{name}{revision}", "reviews.csv", "--noise", "token-mask:0.2", "--draws", "8", "--quiet"]
    assert main([*command, "--out", "run"]) == 0
    assert main([*command, "--out", "run", "--resume"]) == 0
    model = brittle.read_table("run").record.model
    assert (model.spec, model.file, model.format) == (f"hf:{name}@{COMMIT}", str(folder), "transformers")
    assert model.runs_code is False
    (only,) = downloads
    assert (only["name"], only["revision"]) == (name, revision[1:] or None)


def test_neither_code_nor_pickles_are_fetched(downloads: list[dict[str, Any]], tmp_path: Path) -> None:
    text_folder(snapshot_of(tmp_path, "own/patterns"))
    load_model("hf:own/patterns")
    (only,) = downloads
    files = ["config.json", "model.safetensors", "model-00001-of-00002.safetensors", "vocab.txt", "spiece.model"]
    unsafe = ["model.py", "pytorch_model.bin", "model.pt", "adapter_model.safetensors", "tf_model.h5", "vocab.pkl"]
    assert [name for name in files + unsafe if any(Path(name).match(form) for form in only["allow_patterns"])] == files


@pytest.mark.parametrize("name", ["", "bert", "own/bert/more", "own/bert@", "own/../bert", "own/bert@../../x", "a b/c"])
def test_a_malformed_name_is_refused(name: str, downloads: list[dict[str, Any]]) -> None:
    refused("usage", "OWNER/NAME", load_model, f"hf:{name}")
    assert not downloads


@pytest.mark.usefixtures("downloads")
def test_missing_models_and_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused("unreadable", "hf:own/absent", load_model, "hf:own/absent")
    assert main(["score", "hf:own/absent", "x.npz", "--out", "run"]) == 3
    snapshot_of(tmp_path, "own/empty")
    refused("model_file", "config.json", load_model, "hf:own/empty")
    text_folder(snapshot_of(tmp_path, "own/whole"))
    refused("usage", "--weights", load_model, "hf:own/whole", weights="w.safetensors")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    refused("not_installed", "huggingface_hub", load_model, "hf:own/other")


SCORE_WITH_AND_WITHOUT_CACHE = """
import shutil, sys
from brittle.cli.commands import main
from brittle.extensions.hugging_face.hugging_face import _snapshot

command = ["score", "hf:own/vit", "x.npz", "--draws", "8", "--out"]
assert main([*command, "run"]) == 0
shutil.rmtree(sys.argv[1])
_snapshot.cache_clear()  # as in another process
assert main([*command, "again"]) == 3
"""


@pytest.mark.slow
def test_the_real_packages_score_from_a_cache_without_network(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.ViTConfig(**sizes, image_size=8, patch_size=4, id2label={0: "ant", 1: "bee"})
    folder = snapshot_of(tmp_path / "hub", "own/vit")
    transformers.ViTForImageClassification(config).save_pretrained(folder)
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).random((4, 3, 8, 8), dtype=np.float32))
    environment = os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", SCORE_WITH_AND_WITHOUT_CACHE, str(tmp_path / "hub")]
    assert subprocess.run(command, cwd=tmp_path, env=environment, timeout=LIMIT).returncode == 0
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["model"]["spec"] == f"hf:own/vit@{COMMIT}"
