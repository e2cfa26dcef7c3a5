"""Texts as points, with a small tokenizer and a small model in the style of Hugging Face."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from helpers.data_files import only, refused
from helpers.text_models import LABELS, TEXTS, WIDTH, WORDS, Model, Tokenizer
from torch import nn

import brittle
from brittle.data import open_points
from brittle.errors import DataError, ParameterError
from brittle.extensions.texts.forms import TextForm
from brittle.noise import Relative, TokenDropout
from brittle.scores import InputMargin, MonteCarlo, Shrinkage, Taylor


def scored(score: Any, **options: Any) -> brittle.Table:
    model = Model()
    points = brittle.data.text_points(TEXTS, [1, 0, 1, 0], tokenizer=Tokenizer(), model=model, **options)
    classifier = brittle.Classifier(model, bounds=points.bounds, perturb="inputs_embeds")
    return brittle.score(classifier, points, [score])


def test_the_words_vary_and_their_marks_do_not() -> None:
    """Taylor is exact for this linear model: a normal sum over the words alone, by hand."""
    table, model = scored(Taylor(sigma=0.5)), Model()
    slope = (model.out.weight[0] - model.out.weight[1]).detach().double()
    for text, value in zip(TEXTS, table["taylor"].value, strict=True):
        with torch.no_grad():
            row = [1, *(WORDS.index(word) for word in text.split()), 2]
            logits = model.out(model.words(torch.tensor(row)).sum(0))
        words = len(row) - 2
        margin = float((logits[0] - logits[1]).abs())
        exact = torch.special.ndtr(
            torch.tensor(-margin / (0.5 * words**0.5 * float(slope.norm())), dtype=torch.float64)
        )
        assert value == pytest.approx(float(exact), rel=1e-4)


@pytest.mark.parametrize("replacement", ["zeros", "any"])
def test_dropped_tokens_flip_as_often_as_all_ways_to_drop_them(replacement: str) -> None:
    """Intervals of the score and of 4,000 drawings in plain PyTorch overlap, both at 1 - 1e-6 (4 points: fails falsely
    once in 100,000 times)."""
    model = Model()
    replacements = {"zeros": None, "any": model.words.weight}[replacement]
    noise = TokenDropout(0.3, replacements)
    column = scored(MonteCarlo(noise=noise, draws=800, limit=None), ids=list("abcd"))["monte_carlo"]
    strict = brittle.intervals.clopper_pearson
    generator = torch.Generator().manual_seed(3)
    for place, text in enumerate(TEXTS):
        row = torch.tensor([1, *(WORDS.index(word) for word in text.split()), 2])
        with torch.no_grad():
            clean = model.words(row)
            label = int(model.out(clean.sum(0)).argmax())
            flips, copies = 0.0, 4000
            drop = torch.rand(copies, len(row) - 2, generator=generator) < 0.3
            rows = torch.zeros(1, WIDTH) if replacements is None else replacements.view(-1, WIDTH)
            drawn = rows[torch.randint(len(rows), drop.shape, generator=generator)]
            moved = torch.where(drop[:, :, None], drawn, clean[None, 1:-1])
            total = moved.sum(1) + clean[0] + clean[-1]
            flips = int((model.out(total).argmax(1) != label).sum())
        low, high = strict(round(800 * float(column.value.iloc[place])), 800, 1 - 1e-6)
        truth_low, truth_high = strict(flips, copies, 1 - 1e-6)
        assert float(low) <= float(truth_high)
        assert float(truth_low) <= float(high)


def test_padding_changes_nothing() -> None:
    """A text alone, without padding, has the same value; `fast` searches end within 0.1%."""
    scores = [
        MonteCarlo(noise=TokenDropout(0.4), draws=40, limit=None),
        Shrinkage(noise=Relative(0.5), limit=None),
        InputMargin(effort="fast"),
    ]
    for score in scores:
        together = scored(score)[score].value.tolist()
        for row, text in enumerate(TEXTS[:2]):
            model = Model()
            alone = brittle.data.text_points([text], tokenizer=Tokenizer(), model=model, ids=[str(row)])
            bounds = brittle.data.text_points(TEXTS, tokenizer=Tokenizer(), model=model).bounds
            classifier = brittle.Classifier(model, bounds=bounds, perturb="inputs_embeds")
            (value,) = brittle.score(classifier, alone, [score], skip_doctor=True)[score].value
            rounding = 1e-3 if isinstance(score, InputMargin) else 1e-5
            assert value == pytest.approx(together[row], rel=rounding, abs=1e-9)


@pytest.mark.parametrize(
    ("texts", "change", "error", "message"),
    [
        ("a text", {}, DataError, "expected a list of texts"),
        ([], {}, DataError, "expected a list of texts"),
        (["a", 3], {}, DataError, "3 in place 1"),
        (TEXTS, {"tokenizer": lambda texts, **_: {"input_ids": [[1]] * 4}}, DataError, "expected input_ids and"),
        (TEXTS, {"model": nn.Linear(2, 2)}, ParameterError, "no get_input_embeddings"),
    ],
)
def test_malformed_texts_are_refused(texts: Any, change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        brittle.data.text_points(texts, **{"tokenizer": Tokenizer(), "model": Model()} | change)


FORM = TextForm(Model(), Tokenizer(), facts={"tokenizer": "Tokenizer"})
ROWS = "\n".join(f"{text},{label}" for text, label in zip(TEXTS, LABELS, strict=True))


def written(path: Path, content: str) -> Path:
    path.write_text(content + "\n", encoding="utf-8")
    return path


def opened(path: Path, **options: Any) -> Any:
    return open_points(path, texts=FORM, **options)


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_every_form_gives_the_points_that_python_makes(tmp_path: Path) -> None:
    """Files embed texts as `text_points` does, in batches of any size."""
    half = range(len(TEXTS))
    numbered = [f"{label}\t{row}\t{text}" for row, text, label in zip(half, TEXTS, LABELS, strict=True)]
    tabs, kinds = ROWS.replace(",", "\t"), {"text_column": "words", "label_column": "kind"}
    every_form: list[tuple[Path, dict[str, Any]]] = [
        (written(tmp_path / "a.csv", f"text,label\n{ROWS}"), {}),
        (written(tmp_path / "b.tsv", "label\tn\treview\n" + "\n".join(numbered)), {}),
        (written(tmp_path / "d.tsv", f"words\tkind\n{tabs}"), kinds),
        (parquet(tmp_path / "f.parquet", text=TEXTS, other=TEXTS, label=LABELS), {"text_column": "text"}),
    ]
    labels = [LABELS.index(label) ^ 1 for label in LABELS]
    reference = only(brittle.data.text_points(TEXTS, labels, tokenizer=Tokenizer(), model=Model()))
    assert reference.extra_inputs is not None
    for path, options in every_form:
        points = opened(path, **options)
        assert (points.labels, points.class_names) == ((1, 0, 1, 0), ("bad", "good"))
        for size in (1, 3):
            batches = list(points.batches(size))
            assert [name for batch in batches for name in batch.names or ()] == list(TEXTS)
            assert torch.equal(torch.cat([batch.inputs for batch in batches]), reference.inputs)
            for batch in batches:
                extra_inputs, expected = batch.extra_inputs, reference.extra_inputs.only(torch.tensor(batch.rows))
                assert extra_inputs is not None
                assert set(extra_inputs.tensors) == {"attention_mask"}
                assert torch.equal(extra_inputs.kept(batch.inputs * 2), expected.kept(batch.inputs * 2))


def test_the_provenance_names_columns_and_tokenizer(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", f"text,label,id\n{TEXTS[0]},good,x\n{' '.join(['bad'] * 20)},bad,y")
    facts = opened(path).provenance
    assert facts["format"] == "texts"
    assert (facts["text_column"], facts["label_column"], facts["columns"]) == ("text", "label", ["text", "label", "id"])
    assert (facts["cut_texts"], facts["tokenizer"], facts["points"]) == (1, "Tokenizer", 2)
    before = facts["sha256"]
    written(path, f"text,label,id\n{TEXTS[1]},good,x")
    assert opened(path).provenance["sha256"] != before


@pytest.mark.parametrize(
    ("content", "options", "code", "match"),
    [
        ("text,about,label\na,b,c", {}, "parameter", r"2 columns of text \('text', 'about'\).*--text-column"),
        ("text,kind\na,b", {}, "parameter", "the one with the labels"),
        ("n,label\n1,bad", {}, "parameter", r"0 columns of text \('n'\)"),
        ("text,label\na,b", {"text_column": "review"}, "parameter", "no column 'review'"),
        ("text,label\na,b", {"text_column": "label"}, "parameter", "no text in 'label'"),
        ("text,label\n,bad\nfine,good", {}, "columns", "row 0, column 'text'"),
        ("text,label\nfine,", {}, "labels", "row 0"),
    ],
)
def test_what_is_refused(content: str, options: dict[str, Any], code: str, match: str, tmp_path: Path) -> None:
    refused(code, match, opened, written(tmp_path / "a.csv", content), **options)


def test_texts_and_other_data_are_not_mistaken_for_each_other(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", f"text,label\n{ROWS}")
    refused("parameter", "become points by a tokenizer; name a folder", open_points, path, format="texts")
    refused("parameter", "--text-column .* a model that reads texts", open_points, path, text_column="text")
    refused(
        "texts",
        "the model reads texts; expected a table .*is a table of features|found",
        opened,
        path,
        format="table",
    )
    (tmp_path / "x.npz").write_bytes(b"")
    refused("texts", r"expected a table with a column of texts.*x\.npz", opened, tmp_path / "x.npz")


def test_embeddings_are_the_noise_s_own() -> None:
    """The caller may overwrite the replacements afterwards."""
    embeddings = torch.arange(12.0).reshape(4, 3)
    copies = []
    for zero in (False, True):
        vectors = embeddings.clone()
        noise = TokenDropout(1.0, vectors)
        vectors.mul_(not zero)
        copies.append(noise.apply(torch.zeros(5, 3), torch.Generator().manual_seed(0)))
    assert torch.equal(*copies)
    assert bool((copies[0] != 0).any())
