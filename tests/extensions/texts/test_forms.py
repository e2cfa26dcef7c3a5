"""Inputs of models from texts: outputs from embeddings and from tokens, vocabulary, lengths."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.artefacts import refused
from helpers.text_models import LONGEST, TEXTS, WORDS, Model, Tokenizer
from torch import Tensor

from brittle.extensions.texts.forms import TextForm


class LooksAtPadding(Model):
    """A model that averages over padding, too."""

    def forward(self, input_ids: Any = None, inputs_embeds: Any = None, attention_mask: Any = None) -> Any:
        embeddings = self.words(input_ids) if inputs_embeds is None else inputs_embeds
        return {"logits": self.out(embeddings.mean(dim=1))}


class EmbedsItself(Model):
    """A model that scales embeddings of tokens alone."""

    def forward(self, input_ids: Any = None, inputs_embeds: Any = None, attention_mask: Any = None) -> Any:
        embeddings = 2 * self.words(input_ids) if inputs_embeds is None else inputs_embeds
        return super().forward(None, embeddings, attention_mask)


class GivesNothing(Model):
    """A model that returns NaN for embeddings."""

    def forward(self, input_ids: Any = None, inputs_embeds: Any = None, attention_mask: Any = None) -> Any:
        logits: Tensor = super().forward(input_ids, inputs_embeds, attention_mask)["logits"]
        return {"logits": logits if inputs_embeds is None else logits * torch.nan}


def test_a_model_that_reads_embeddings_as_tokens_is_taken() -> None:
    form, tokens = TextForm(Model(), Tokenizer()).fit(TEXTS)
    assert not form.ends_last
    assert torch.equal(tokens.ids, form.tokens(TEXTS).ids)


@pytest.mark.parametrize("kind", [LooksAtPadding, EmbedsItself, GivesNothing])
def test_a_model_that_does_not_is_refused(kind: type[Model]) -> None:
    form = TextForm(kind(), Tokenizer())
    refused("texts", kind.__name__, form.fit, TEXTS)


def test_the_vocabulary_and_its_bounds_are_those_of_the_layer() -> None:
    model = Model()
    form, weight = TextForm(model, Tokenizer()), model.words.weight.detach()
    assert torch.equal(form.vocabulary, weight)
    assert form.bounds == (-float(weight.abs().max()), float(weight.abs().max()))
    assert torch.equal(form.mask_vector, weight[WORDS.index("[mask]")])


def test_lengths_are_those_of_texts_that_are_not_cut() -> None:
    form = TextForm(Model(), Tokenizer())
    long = " ".join(["bad"] * 30)
    assert form.lengths(["bad", long]) == [3, 32]
    assert form.tokens(["bad", long]).ids.shape == (2, LONGEST)
