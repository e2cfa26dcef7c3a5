"""Texts in tables: which column holds them, what is refused, and the points that they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from helpers.artefacts import refused
from helpers.text_models import LABELS, TEXTS, Model, Tokenizer

import brittle
from brittle.data import open_points
from brittle.model.texts import TextForm

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


@pytest.fixture
def every_form(tmp_path: Path) -> list[tuple[Path, dict[str, Any]]]:
    """The same texts and labels in each form of a table, with what has to be said of it."""
    tabs = ROWS.replace(",", "\t")
    half = range(len(TEXTS))
    numbered = [f"{label}\t{row}\t{text}" for row, text, label in zip(half, TEXTS, LABELS, strict=True)]
    return [
        (written(tmp_path / "a.csv", f"text,label\n{ROWS}"), {}),
        (written(tmp_path / "b.tsv", "label\tn\treview\n" + "\n".join(numbered)), {}),
        (written(tmp_path / "d.tsv", f"words\tkind\n{tabs}"), {"text_column": "words", "label_column": "kind"}),
        (parquet(tmp_path / "e.parquet", text=TEXTS, label=LABELS, n=half), {}),
        (parquet(tmp_path / "f.parquet", text=TEXTS, other=TEXTS, label=LABELS), {"text_column": "0"}),
    ]


def test_every_form_gives_the_points_that_python_makes(every_form: list[tuple[Path, dict[str, Any]]]) -> None:
    """As `text_points` embeds them at once; in batches of any size."""
    labels = [LABELS.index(label) ^ 1 for label in LABELS]
    expected = brittle.data.text_points(TEXTS, labels, tokenizer=Tokenizer(), model=Model())
    (whole,) = expected.batches(9)
    for path, options in every_form:
        points = opened(path, **options)
        assert (points.labels, points.class_names) == ((1, 0, 1, 0), ("bad", "good"))
        for size in (1, 3):
            found = list(points.batches(size))
            assert [name for batch in found for name in batch.names or ()] == list(TEXTS)
            torch.testing.assert_close(torch.cat([batch.inputs for batch in found]), whole.inputs, rtol=0, atol=0)
            for batch in found:
                rows = torch.tensor(batch.rows)
                assert batch.extra_inputs is not None
                assert whole.extra_inputs is not None
                assert set(batch.extra_inputs.tensors) == {"attention_mask"}
                assert batch.extra_inputs.varies is not None
                assert whole.extra_inputs.only(rows).varies is not None
                assert batch.extra_inputs.varies.equal(whole.extra_inputs.only(rows).varies)
                assert torch.equal(
                    batch.extra_inputs.kept(batch.inputs * 2), whole.extra_inputs.only(rows).kept(batch.inputs * 2)
                )


def test_what_was_read_is_in_the_provenance(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", f"text,label,id\n{TEXTS[0]},good,x\n{' '.join(['bad'] * 20)},bad,y")
    known = opened(path).provenance
    assert known["format"] == "texts"
    assert (known["text_column"], known["label_column"], known["columns"]) == ("text", "label", ["text", "label", "id"])
    assert (known["cut_texts"], known["tokenizer"], known["points"]) == (1, "Tokenizer", 2)
    before = known["sha256"]
    written(path, f"text,label,id\n{TEXTS[1]},good,x")
    assert opened(path).provenance["sha256"] != before


def test_several_labels_may_hold(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "text,rude,long\na fine film,0,1\nbad,1,0")
    points = opened(path, label_column="rude,long", targets=True)
    (batch,) = points.batches(2)
    assert batch.targets is not None
    assert batch.targets.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert points.class_names == ("rude", "long")


@pytest.mark.parametrize(
    ("content", "options", "code", "match"),
    [
        ("text,about,label\na,b,c", {}, "parameter", r"several columns of text \('text', 'about'\).*--text-column"),
        ("text,kind\na,b", {}, "parameter", "the one with the labels"),
        ("n,label\n1,bad", {}, "parameter", r"no column of text beside labels and ids \('n'\)"),
        ("text,label\na,b", {"text_column": "review"}, "parameter", "no column 'review'"),
        ("text,label\na,b", {"text_column": "label"}, "parameter", "the column 'label'"),
        ("text,label\n,bad\nfine,good", {}, "columns", "row 0, column 'text'"),
        ("text,label\nfine,good\n  ,bad", {}, "columns", "row 1, column"),
        ("text,label\nfine,", {}, "labels", "row 0"),
        ("text,label\nfine,good,more", {}, "columns", "3 cells at or before line 2"),
        ("text,label", {}, "empty_dataset", "no rows"),
        ("text,label\na,b", {"split": "test"}, "split", "has no splits"),
    ],
)
def test_what_is_refused(content: str, options: dict[str, Any], code: str, match: str, tmp_path: Path) -> None:
    refused(code, match, opened, written(tmp_path / "a.csv", content), **options)


def test_what_is_refused_of_parquet(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", text=["a", None], n=[1, 2])
    refused("columns", "row 1, column 'text'", opened, path)
    refused("parameter", "the column 'n'", opened, path, text_column="n")


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
