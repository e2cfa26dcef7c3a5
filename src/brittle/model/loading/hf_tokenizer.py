"""The tokenizer in a folder of a Hugging Face classifier of texts, and how texts become inputs of that classifier."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from brittle.errors import ModelError
from brittle.model.loading.declared import digest_of
from brittle.model.texts import TextForm

TEXTS = "ForSequenceClassification"
"""How the names of classifiers of texts end."""

TOKENIZER = "tokenizer.json"

FILES = (TOKENIZER, "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
"""Files of a tokenizer; the first must be there, others are read where they are."""

UNLIMITED = 1 << 20
"""A tokenizer that declares more tokens than this declares no length."""


def is_text_classifier(config: Mapping[str, Any]) -> bool:
    """Whether the content of a `config.json` says that the folder holds a classifier of texts."""
    names = config.get("architectures")
    return isinstance(names, list) and any(isinstance(name, str) and TEXTS in name for name in names)


def text_form(folder: Path, module: nn.Module, config: Mapping[str, Any], transformers: Any) -> TextForm:
    """How texts become inputs of `module`, by the tokenizer in its folder.

    Raises:
        ModelError: there is no `tokenizer.json`, or transformers cannot read it.
    """
    if not (folder / TOKENIZER).is_file():
        raise ModelError(
            "model_file",
            f"{folder} holds a classifier of texts and no {TOKENIZER}; tokenizer.save_pretrained(folder) writes it",
        )
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            os.fspath(folder), local_files_only=True, trust_remote_code=False, use_fast=True
        )
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelError(
            "model_file", f"transformers {transformers.__version__} cannot load the tokenizer of {folder}: {reason}"
        ) from error
    if tokenizer.pad_token is None:
        raise ModelError(
            "model_file",
            f"the tokenizer of {folder} has no padding token, so texts cannot stand side by side; set "
            f"tokenizer.pad_token and save it again",
        )
    length = longest(module, config, getattr(tokenizer, "model_max_length", None))
    files = [path for name in FILES if (path := folder / name).is_file()]
    facts = {"tokenizer": type(tokenizer).__name__, "tokenizer_sha256": digest_of(files), "text_length": length}
    return TextForm(module, tokenizer, length, facts)


def longest(module: nn.Module, config: Mapping[str, Any], declared: Any) -> int | None:
    """Most tokens of a text: the smaller of what the tokenizer declares and what the network has positions for.

    Networks such as RoBERTa begin to count positions behind that of padding. None where neither says it.
    """
    found = [declared] if isinstance(declared, int) and 0 < declared <= UNLIMITED else []
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and positions > 0:
        layers = (one for name, one in module.named_modules() if name.endswith("position_embeddings"))
        padding = (one.padding_idx for one in layers if isinstance(one, nn.Embedding))
        found.append(positions - max((place + 1 for place in padding if place is not None), default=0))
    return min(found, default=None)
