"""Tokenizers in folders, and the longest text they allow."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.artefacts import refused
from helpers.text_models import Model, Tokenizer, pretend, text_folder
from torch import nn

from brittle.extensions.hugging_face.hugging_face import max_length
from brittle.model.loading.load import load_model, reads_texts


class Roberta(Model):
    """A model whose positions begin behind that of padding."""

    def __init__(self) -> None:
        super().__init__()
        self.position_embeddings = nn.Embedding(16, 4, padding_idx=1)


@pytest.mark.parametrize(
    ("model", "config", "declared", "length"),
    [
        (Model, {"max_position_embeddings": 32}, 48, 32),
        (Model, {}, 48, 48),
        (Model, {}, int(1e30), None),
        (Model, {"max_position_embeddings": "many"}, None, None),
        (Roberta, {"max_position_embeddings": 16}, int(1e30), 14),
    ],
)
def test_texts_are_as_long_as_tokenizer_and_network_allow(
    model: type[Model], config: dict[str, Any], declared: Any, length: int | None
) -> None:
    assert max_length(model(), config, declared) == length


def test_the_description_alone_tells_a_folder_that_reads_texts(tmp_path: Path) -> None:
    assert reads_texts(str(text_folder(tmp_path / "a")))
    assert not reads_texts(str(text_folder(tmp_path / "b", architectures=["ViTForImageClassification"])))
    assert not reads_texts(str(tmp_path))
    assert not reads_texts("network.pt2")


def test_defects_of_a_tokenizer_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, tokenizer = text_folder(tmp_path / "bert"), Tokenizer()
    pretend(monkeypatch, Model(), tokenizer)
    tokenizer.pad_token = None  # type: ignore[assignment]
    refused("model_file", "has no padding token", load_model, folder)

    def broken(folder: str, **options: Any) -> None:
        assert options["trust_remote_code"] is False
        assert options["local_files_only"] is True
        raise ValueError("torn")

    sys.modules["transformers"].__dict__["AutoTokenizer"] = SimpleNamespace(from_pretrained=broken)
    refused("model_file", "cannot load .*: torn", load_model, folder)
    (folder / "tokenizer.json").unlink()
    refused("model_file", "tokenizer.json", load_model, folder)
