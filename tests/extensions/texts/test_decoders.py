"""Decoders, which decide at the last token of a text, and cannot find it among embeddings."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import torch
from helpers.text_models import LABELS, TEXTS, WIDTH, WORDS, Tokenizer, pretend, text_folder
from torch import Tensor, nn

import brittle
from brittle.cli.commands import main
from brittle.extensions.texts.forms import TextForm
from brittle.noise import Relative, TokenDropout
from brittle.scores import FirstOrderMargin, LogitMargin, MonteCarlo, Shrinkage, Taylor

DECODERS = ("GPT2", "Llama", "Qwen2", "Gemma", "Mistral")
"""Architectures of transformers that are compared where it is installed."""


class Decoder(nn.Module):
    """A running sum of words, with or without absolute positions; the last token decides."""

    def __init__(self, padding: int | None = 0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.places = nn.Embedding(len(WORDS), WIDTH), nn.Embedding(16, WIDTH)
        self.out = nn.Linear(WIDTH, 2)
        self.config = SimpleNamespace(return_dict=True, pad_token_id=padding, use_cache=True)
        self.eval()

    def get_input_embeddings(self) -> nn.Embedding:
        return self.words

    def forward(
        self,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> dict[str, Tensor]:
        embeddings = self.words(input_ids) if inputs_embeds is None else inputs_embeds
        assert embeddings is not None
        assert attention_mask is not None
        if len(embeddings) > 1 and self.config.pad_token_id is None:
            raise ValueError("several rows, and no padding")
        at = torch.arange(embeddings.shape[1])[None] if position_ids is None else position_ids
        hidden = (embeddings + self.places(at)).tanh()
        states = 2 * hidden + (hidden * attention_mask[:, :, None]).cumsum(dim=1)
        last = torch.full((len(embeddings),), embeddings.shape[1] - 1)
        if input_ids is not None and self.config.pad_token_id is not None:
            last = ((input_ids != self.config.pad_token_id) * torch.arange(input_ids.shape[1])).argmax(dim=1)
        return {"logits": self.out(states[torch.arange(len(embeddings)), last])}


class Unmarked(Tokenizer):
    """A tokenizer of words alone, so that a text may have no token."""

    def __call__(self, texts: list[str], **options: Any) -> dict[str, Any]:
        rows = [[WORDS.index(word) for word in text.split()] for text in texts]
        longest = max(map(len, rows))
        tokens = [row + [0] * (longest - len(row)) for row in rows]
        return {"input_ids": tokens, "attention_mask": [[int(token > 0) for token in row] for row in tokens]}


def alone(model: Any, texts: tuple[str, ...] = TEXTS) -> Tensor:
    """Return logits of the tokens of each text, computed one by one."""
    rows = [Tokenizer()([text], truncation=True) for text in texts]
    with torch.no_grad():
        return torch.cat([model(**{name: torch.tensor(row[name]) for name in ("input_ids", "attention_mask")})["logits"]
                          for row in rows])  # fmt: skip


def points(model: nn.Module, texts: tuple[str, ...] = TEXTS) -> Any:
    labels = [1, 0, 1, 0] * (len(texts) // 4 + 1)
    return brittle.data.text_points(texts, labels[: len(texts)], tokenizer=Tokenizer(), model=model)


def test_padding_stands_before_the_texts_of_a_decoder() -> None:
    model = Decoder()
    form, tokens = TextForm(model, Tokenizer()).fit(TEXTS)
    assert form.ends_last
    assert bool((tokens.extra_inputs["attention_mask"][:, -1] == 1).all())
    classifier = brittle.Classifier(model, bounds=form.bounds, perturb="inputs_embeds")
    batch = next(iter(points(model).batches(9)))
    logits = classifier.numbers(batch.inputs, batch.extra_inputs)
    torch.testing.assert_close(logits, alone(model), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_padding_is_placed_despite_small_logits_and_long_texts(scale: float) -> None:
    model, texts = Decoder(), ("fine " * 9, "bad " * 9, "film " * 9, "is " * 9, "", *TEXTS)
    model.out.weight.data *= scale
    form, tokens = TextForm(model, Unmarked()).fit(texts)
    assert form.ends_last
    assert bool(tokens.extra_inputs["attention_mask"].any(dim=1).all()), "a text without a token is one of padding"


def test_company_and_padding_change_no_score() -> None:
    """A text far longer than the others changes no score of theirs."""
    model, long = Decoder(), (*TEXTS, " ".join(["fine"] * 9))
    scores = [
        LogitMargin(),
        Taylor(0.3),
        FirstOrderMargin(),
        MonteCarlo(noise=TokenDropout(0.4), draws=60, limit=None),
        Shrinkage(noise=Relative(0.5), draws=60, limit=None),
    ]
    values = []
    for texts in (TEXTS, long):
        data = points(model, texts)
        classifier = brittle.Classifier(model, bounds=data.bounds, perturb="inputs_embeds")
        values.append(brittle.score(classifier, data, scores).scores.to_pandas().query("point in ['0', '1', '2', '3']"))
    assert values[0]["value"].to_numpy() == pytest.approx(values[1]["value"].to_numpy(), abs=1e-6)


@pytest.mark.every_other
@pytest.mark.usefixtures("nothing_drawn")
@pytest.mark.parametrize("padding", [0, None])
@pytest.mark.parametrize("noise", ["relative:0.3", "token-dropout:0.2", "typos:0.1", "homoglyphs:0.1"])
def test_a_folder_of_a_decoder(
    padding: int | None, noise: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Predictions are those of single texts: with a padding token and without, by embeddings and by characters."""
    monkeypatch.chdir(tmp_path)
    model = Decoder(padding)
    expected = alone(Decoder(padding)).argmax(dim=1).tolist()
    pretend(monkeypatch, model, Tokenizer())
    text_folder(tmp_path / "gpt")
    rows = [f"{text},{label}" for text, label in zip(TEXTS, LABELS, strict=True)]
    (tmp_path / "reviews.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    assert main(["score", "gpt", "reviews.csv", "--noise", noise, "--draws", "20", "--out", "run", "--quiet"]) == 0
    table = brittle.read_table("run")
    assert table.points["predicted"].to_pylist() == expected
    assert table.points["name"].to_pylist() == list(TEXTS)
    assert main(["score", "gpt", "reviews.csv", "--noise", noise, "--draws", "20", "--out", "run", "--resume"]) == 0
    assert main(["report", "run"]) == 0
    assert not model.config.use_cache


GUARD = """
import torch
from brittle.extensions.texts.forms import TextFunction

def judged(texts):
    bad = torch.tensor([float("bad" in text.split()) for text in texts])
    return torch.stack([0.5 - bad, bad - 0.5], 1)

guard = TextFunction(judged)

def make():
    return guard

def plain():
    return judged

class Judge:
    def judge(self, texts):
        return judged(texts)

method = Judge().judge
"""


@pytest.mark.parametrize("name", ["make", "guard", "judged", "plain", "method"])
def test_a_function_of_texts_on_the_command_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`bad` is mistyped with probability `1 - (1 - 3/4 s)^3` or so; one of two paraphrases keeps it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guard.py").write_text(GUARD)
    (tmp_path / "texts.csv").write_text("words,label\na bad film,1\na fine film,0\n")
    (tmp_path / "others.json").write_text(
        '{"a bad film": ["bad film", "poor film"], "a fine film": ["fine film", "good film"]}'
    )
    common = ["--text-column", "words", "--scores", "monte_carlo", "--draws", "400", "--quiet"]
    for noise in ("paraphrases:others.json", "typos:0.1"):
        out = noise.partition(":")[0]
        assert main(["score", f"guard.py:{name}", "texts.csv", "--noise", noise, "--out", out, *common]) == 0
    table = brittle.read_table("paraphrases")
    assert table.points["correct"].to_pylist() == [True, True]
    low, high = (table["monte_carlo"].rows[end].tolist() for end in ("low", "high"))
    assert low[0] <= 0.5 <= high[0]
    assert main(["show", "paraphrases"]) == 0
    assert main(["check", "paraphrases", "--holds", "0.0"]) in (0, 1, 8, 9)
    assert (low[1], brittle.read_table("typos")["monte_carlo"].value.iloc[1]) == (0.0, 0.0)
    assert 0.1 < brittle.read_table("typos")["monte_carlo"].value.iloc[0] < 0.4
    assert main(["score", f"guard.py:{name}", "texts.csv", "--noise", "relative:0.1", "--out", "no", *common]) != 0


def test_a_text_is_whole_in_a_frame_and_cut_where_it_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guard.py").write_text(GUARD)
    texts = ["a bad film\n\n" + "of many  words " * 200 + "at its end", "a fine film"]
    pd.DataFrame({"words": texts}).to_csv("texts.csv", index=False)
    given: dict[str, Any] = {"text_column": "words", "noise": "typos:0.1", "draws": 20, "limit": None}
    table = brittle.score("guard.py:judged", "texts.csv", "monte_carlo", out="run", **given)
    assert table.points["name"].to_pylist() == texts
    for words in (["--top", "2"], ["0"]):
        assert main(["show", "run", *words]) == 0
        shown = capsys.readouterr().out
        assert "at its end" in shown
        assert max(map(len, shown.splitlines())) < 300
    assert main(["report", "run"]) == 0
    assert "of many words " * 20 not in Path("run/report.html").read_text().replace("  ", " ")


def test_decoders_of_transformers(tmp_path: Path) -> None:
    """Logits of tokens alone equal those of embeddings beside longer texts, to 1e-5."""
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": len(WORDS), "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32, "pad_token_id": 0}
    for name in DECODERS:
        gpt2 = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 32, "vocab_size": len(WORDS), "pad_token_id": 0}
        more = {"head_dim": 4} if name in ("Gemma", "Mistral") else {}
        config = getattr(transformers, f"{name}Config")(**(gpt2 if name == "GPT2" else sizes | heads | more))
        torch.manual_seed(0)
        kind = getattr(transformers, f"{name}ForSequenceClassification")
        model = kind._from_config(config, attn_implementation="eager").eval()
        batch = next(iter(points(model).batches(9)))
        classifier = brittle.Classifier(model, bounds=points(model).bounds, perturb="inputs_embeds")
        logits = classifier.numbers(batch.inputs, batch.extra_inputs)
        torch.testing.assert_close(logits, alone(model), rtol=1e-5, atol=1e-5)
