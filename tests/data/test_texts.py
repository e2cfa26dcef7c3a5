"""Texts as points, with a tokenizer and a model as Hugging Face has them, made here."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import brittle
from brittle.errors import DataError, ParameterError
from brittle.noise import Relative, TokenDropout
from brittle.scores import InputMargin, MonteCarlo, Shrinkage, Taylor

TEXTS = ["a fine film", "bad", "fine fine fine bad", "a bad film that is not fine"]
WORDS = ["[pad]", "[start]", "[end]", *sorted({word for text in TEXTS for word in text.split()})]
WIDTH = 16


def tokenizer(texts: list[str], *, padding: bool, truncation: bool, return_special_tokens_mask: bool, **options: Any):
    """Words between a mark of the beginning and one of the end, all texts as long as the longest."""
    most = options.get("max_length", 99)
    rows = [[1, *[WORDS.index(word) for word in text.split()][: most - 2], 2] for text in texts]
    longest = max(map(len, rows))
    tokens = [row + [0] * (longest - len(row)) for row in rows]
    return {
        "input_ids": tokens,
        "attention_mask": [[int(token > 0) for token in row] for row in tokens],
        "special_tokens_mask": [[int(token < 3) for token in row] for row in tokens],
    }


class Model(nn.Module):
    """Adds up what its words say; nothing that the mask leaves out has a part."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.out = nn.Embedding(len(WORDS), WIDTH), nn.Linear(WIDTH, 2)
        self.eval()

    def get_input_embeddings(self) -> nn.Embedding:
        return self.words

    def forward(self, *, inputs_embeds: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        return {"logits": self.out((inputs_embeds * attention_mask[:, :, None]).sum(dim=1))}


def scored(score: Any, **options: Any) -> brittle.Table:
    model = Model()
    points = brittle.data.text_points(TEXTS, [1, 0, 1, 0], tokenizer=tokenizer, model=model, **options)
    classifier = brittle.Classifier(model, bounds=points.bounds, perturb="inputs_embeds")
    return brittle.score(classifier, points, [score])


def test_the_words_vary_and_their_marks_do_not() -> None:
    """Taylor is exact for this linear model: a normal sum over the words alone, by hand."""
    table, model = scored(Taylor(sigma=0.5)), Model()
    slope = (model.out.weight[0] - model.out.weight[1]).detach().double()
    for text, value in zip(TEXTS, table["taylor"].value, strict=True):
        with torch.no_grad():
            row = [1, *(WORDS.index(word) for word in text.split()), 2]
            own = model.out(model.words(torch.tensor(row)).sum(0))
        words = len(row) - 2
        margin = float((own[0] - own[1]).abs())
        exact = torch.special.ndtr(
            torch.tensor(-margin / (0.5 * words**0.5 * float(slope.norm())), dtype=torch.float64)
        )
        assert value == pytest.approx(float(exact), rel=1e-4)


@pytest.mark.parametrize("replacement", ["zeros", "mask", "any"])
def test_dropped_tokens_flip_as_often_as_all_ways_to_drop_them(replacement: str) -> None:
    """Every subset of the words with its probability, against the interval at 1 - 1e-6 (4 points: fails falsely 1 in
    250,000 times). Where any word may come, only that the interval holds what 4,000 drawings of plain PyTorch show."""
    model = Model()
    taken = {"zeros": None, "mask": model.words.weight[2], "any": model.words.weight}[replacement]
    noise = TokenDropout(0.3, taken)
    found = scored(MonteCarlo(noise=noise, draws=800), ids=list("abcd"))["monte_carlo"]
    strict = brittle.intervals.clopper_pearson
    generator = torch.Generator().manual_seed(3)
    for place, text in enumerate(TEXTS):
        row = torch.tensor([1, *(WORDS.index(word) for word in text.split()), 2])
        with torch.no_grad():
            clean = model.words(row)
            own = int(model.out(clean.sum(0)).argmax())
            flips, copies = 0.0, 4000
            drop = torch.rand(copies, len(row) - 2, generator=generator) < 0.3
            rows = torch.zeros(1, WIDTH) if taken is None else taken.view(-1, WIDTH)
            other = rows[torch.randint(len(rows), drop.shape, generator=generator)]
            moved = torch.where(drop[:, :, None], other, clean[None, 1:-1])
            total = moved.sum(1) + clean[0] + clean[-1]
            flips = int((model.out(total).argmax(1) != own).sum())
        low, high = strict(round(800 * float(found.value.iloc[place])), 800, 1 - 1e-6)
        truth_low, truth_high = strict(flips, copies, 1 - 1e-6)
        assert float(low) <= float(truth_high)
        assert float(truth_low) <= float(high)


def test_padding_changes_nothing() -> None:
    """Each text alone, without the padding that the longest asks for; `fast` searches end within 0.1%."""
    scores = [MonteCarlo(noise=TokenDropout(0.4), draws=40), Shrinkage(noise=Relative(0.5)), InputMargin(effort="fast")]
    for score in scores:
        whole = scored(score)[score].value.tolist()
        for row, text in enumerate(TEXTS):
            model = Model()
            alone = brittle.data.text_points([text], tokenizer=tokenizer, model=model, ids=[str(row)])
            bounds = brittle.data.text_points(TEXTS, tokenizer=tokenizer, model=model).bounds
            classifier = brittle.Classifier(model, bounds=bounds, perturb="inputs_embeds")
            (value,) = brittle.score(classifier, alone, [score], skip_doctor=True)[score].value
            rounding = 1e-3 if isinstance(score, InputMargin) else 1e-5
            assert value == pytest.approx(whole[row], rel=rounding, abs=1e-9)


@pytest.mark.parametrize(
    ("texts", "change", "error", "said"),
    [
        ("a text", {}, DataError, "expected a list of texts"),
        ([], {}, DataError, "expected a list of texts"),
        (["a", 3], {}, DataError, "3 in place 1"),
        (TEXTS, {"tokenizer": lambda texts, **_: {"input_ids": [[1]] * 4}}, DataError, "expected input_ids and"),
        (TEXTS, {"model": nn.Linear(2, 2)}, ParameterError, "no get_input_embeddings"),
    ],
)
def test_what_is_no_text_is_refused(texts: Any, change: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        brittle.data.text_points(texts, **{"tokenizer": tokenizer, "model": Model()} | change)
