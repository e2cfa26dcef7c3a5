"""A tokenizer and a model of texts in the form of Hugging Face, and a stand-in for transformers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

TEXTS = ("a fine film", "bad", "fine fine fine bad", "a bad film that is not fine")
LABELS = ("good", "bad", "good", "bad")
NAMES = {"0": "bad", "1": "good"}
WORDS = ["[pad]", "[start]", "[end]", "[mask]", *sorted({word for text in TEXTS for word in text.split()})]
WIDTH, LONGEST = 16, 12


class Tokenizer:
    """A tokenizer by words between marks of the beginning and the end; all texts are as long as the longest."""

    pad_token, mask_token_id, model_max_length = "[pad]", 3, LONGEST

    def __call__(self, texts: list[str], *, padding: bool = False, truncation: bool, **options: Any) -> dict[str, Any]:
        longest_allowed = options.get("max_length", LONGEST) if truncation else sys.maxsize
        rows = [
            [1, *[WORDS.index(word) if word in WORDS else 3 for word in text.split()][: longest_allowed - 2], 2]
            for text in texts
        ]
        longest = max(map(len, rows)) if padding else 0
        tokens = [row + [0] * (longest - len(row)) for row in rows]
        return {
            "input_ids": tokens,
            "attention_mask": [[int(token > 0) for token in row] for row in tokens],
            "special_tokens_mask": [[int(token < 3) for token in row] for row in tokens],
            "unknown_to_the_model": [[0] * len(row) for row in tokens],
        }


class Model(nn.Module):
    """A classifier that adds up the vectors of the words in the mask."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.out = nn.Embedding(len(WORDS), WIDTH), nn.Linear(WIDTH, 2)
        self.config = SimpleNamespace(return_dict=True)
        self.eval()

    def get_input_embeddings(self) -> nn.Embedding:
        return self.words

    def forward(
        self, input_ids: Tensor | None = None, inputs_embeds: Tensor | None = None, attention_mask: Tensor | None = None
    ) -> dict[str, Tensor]:
        vectors = self.words(input_ids) if inputs_embeds is None else inputs_embeds
        assert attention_mask is not None
        return {"logits": self.out((vectors * attention_mask[:, :, None]).sum(dim=1))}


def pretend(monkeypatch: pytest.MonkeyPatch, model: nn.Module, tokenizer: object) -> None:
    """Let `transformers` load this model and tokenizer, whatever the folder holds."""
    stand_in = ModuleType("transformers")
    logging = ModuleType("transformers.utils.logging")
    logging.__dict__.update(dict.fromkeys(("disable_progress_bar", "set_verbosity_error"), lambda: None))
    models = SimpleNamespace(from_pretrained=lambda folder, **options: (model, {}))
    tokenizers = SimpleNamespace(from_pretrained=lambda folder, **options: tokenizer)
    contents = {"AutoModelForSequenceClassification": models, "AutoTokenizer": tokenizers, "__version__": "of our own"}
    stand_in.__dict__.update(contents)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name, module in (
        ("transformers", stand_in),
        ("transformers.utils", ModuleType("u")),
        (logging.__name__, logging),
    ):
        monkeypatch.setitem(sys.modules, name, module)


def text_folder(folder: Path, **config: Any) -> Path:
    """Write a folder that declares a classifier of texts."""
    folder.mkdir(parents=True, exist_ok=True)
    described = {"architectures": ["OwnForSequenceClassification"], "id2label": NAMES} | config
    (folder / "config.json").write_text(json.dumps(described))
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).write_bytes(b"{}")
    return folder


def bert_folder(folder: Path) -> tuple[Any, Any]:
    """Save a small BERT with random weights and its tokenizer as transformers does, and return both."""
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer as Plain  # type: ignore[import-not-found]
    from tokenizers import models, pre_tokenizers, processors  # type: ignore[import-not-found]

    plain = Plain(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[mask]"))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    plain.post_processor = processors.TemplateProcessing(
        single="[start] $A [end]", special_tokens=[("[start]", 1), ("[end]", 2)]
    )
    marks = dict(zip(("pad_token", "cls_token", "sep_token", "mask_token"), WORDS, strict=False))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, model_max_length=8, **marks)
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=16, initializer_range=0.4, id2label={0: "bad", 1: "good"},
        label2id={"bad": 0, "good": 1},
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def write_reviews() -> None:
    """Write `TEXTS` with their labels to `reviews.csv`."""
    rows = "".join(f"{text},{label}\n" for text, label in zip(TEXTS, LABELS, strict=True))
    Path("reviews.csv").write_text(f"text,label\n{rows}", encoding="utf-8")
