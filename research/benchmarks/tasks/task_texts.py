"""A small network for texts, trained from a seed and saved as a folder of Hugging Face; needs transformers."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

LENGTH = 48
"""Largest number of tokens of a text, with the marks of its beginning and its end."""

MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = 8000


@dataclass(frozen=True)
class Reviews:
    """Sentences with their classes, 0 negative and 1 positive, and the file of the test sentences."""

    texts: list[str]
    labels: Tensor
    test_texts: list[str]
    test_labels: Tensor
    file: Path


def reviews(folder: Path) -> Reviews:
    """Read sentences from film reviews (Pang and Lee, ACL 2005), in lower case with spaces between their words."""
    from pyarrow import parquet

    parts = [
        parquet.read_table(folder / "movie_reviews" / f"{split}.parquet").to_pydict() for split in ("train", "test")
    ]
    train, test = parts
    labels = [torch.tensor(part["label"]) for part in parts]
    return Reviews(train["text"], labels[0], test["text"], labels[1], folder / "movie_reviews" / "test.parquet")


def tokenizer_of(texts: list[str]) -> Any:
    """Return a tokenizer with one token for each of the most frequent words."""
    tokenizers, transformers = map(import_module, ("tokenizers", "transformers"))

    count = Counter(word for text in texts for word in text.split())
    words = [word for word, times in count.most_common(WORDS) if times > 1]
    vocabulary = {word: place for place, word in enumerate((*MARKS, *words))}
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    plain.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), MARKS, strict=True))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=plain, model_max_length=LENGTH, **names)


def bert(words: int) -> Any:
    """Return a network with two layers of width 64."""
    transformers = import_module("transformers")
    config = transformers.BertConfig(
        vocab_size=words, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=64, hidden_dropout_prob=0.2, attn_implementation="eager",
        id2label={0: "negative", 1: "positive"}, label2id={"negative": 0, "positive": 1},
    )  # fmt: skip
    return transformers.BertForSequenceClassification(config)


def for_texts(data: Reviews, rounds: int, seed: int = 0) -> tuple[Any, Any]:
    """Train the network, and return it in evaluation mode with its tokenizer."""
    torch.manual_seed(seed)
    tokenizer = tokenizer_of(data.texts)
    network: Any = bert(len(tokenizer))
    optimiser = torch.optim.AdamW(network.parameters(), 1e-3, weight_decay=0.05)
    rows = tokenizer(data.texts, padding=True, truncation=True, return_tensors="pt")
    network.train()
    for _ in range(rounds):
        for part in torch.randperm(len(data.labels)).split(64):
            optimiser.zero_grad()
            batch = {name: rows[name][part] for name in ("input_ids", "attention_mask")}
            network(**batch, labels=data.labels[part]).loss.backward()
            optimiser.step()
    return network.eval(), tokenizer


@torch.no_grad()
def share_right(network: Any, tokenizer: Any, data: Reviews) -> float:
    """Return the share of test texts with a correct prediction."""
    rows = tokenizer(data.test_texts, padding=True, truncation=True, return_tensors="pt")
    logits = network(input_ids=rows["input_ids"], attention_mask=rows["attention_mask"]).logits
    return float((logits.argmax(1) == data.test_labels).double().mean())


def save_texts(network: Any, tokenizer: Any, data: Reviews, folder: Path) -> Path:
    """Write a folder of Hugging Face and the file of test texts next to it, and return the file's path."""
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    path = folder.with_name("reviews.parquet")
    shutil.copyfile(data.file, path)
    return path


@torch.no_grad()
def alone(network: Any, tokenizer: Any, text: str) -> Tensor:
    """Return the embeddings of one text, `[T, E]`, without padding; the first and the last are its marks."""
    ids = torch.tensor(tokenizer(text, truncation=True)["input_ids"])
    return network.get_input_embeddings().weight[ids].detach()
