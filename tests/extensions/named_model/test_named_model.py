"""`brittle.score` opens a model by its name as the command line does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.data_files import refused
from helpers.text_models import LABELS, TEXTS, Model, Tokenizer, pretend, text_folder

import brittle
from brittle.cli.commands import main

pytestmark = pytest.mark.filterwarnings("ignore::brittle.BrittleWarning")


def same(table: brittle.Table, other: brittle.Table) -> bool:
    return table.points.equals(other.points) and table.scores.equals(other.scores)


def test_a_model_by_its_name_is_the_one_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n\n\ndef make():\n    torch.manual_seed(0)\n    return torch.nn.Linear(3, 2)\n"
    )
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).random((8, 3), dtype=np.float32), y=np.arange(8) % 2)
    model, data, out = f"{tmp_path}/net.py:make", f"{tmp_path}/x.npz", f"{tmp_path}/run"
    assert main(["score", model, data, "--out", out, "--sigma", "0.2", "--quiet"]) == 0
    table, run = brittle.score(model, data, sigma=0.2), brittle.read_table(out)
    assert same(table, run)
    assert table.record.model == run.record.model


def test_a_folder_of_a_model_of_texts_reads_a_table_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on the command line, under noise of embeddings, tokens and characters; a size has to be given."""
    pretend(monkeypatch, Model(), Tokenizer())
    model, path = str(text_folder(tmp_path / "bert")), tmp_path / "reviews.csv"
    pd.DataFrame({"said": TEXTS, "by": ["ann"] * len(TEXTS), "kind": LABELS}).to_csv(path, index=False)
    for noise in ("relative:0.5", "token-dropout:0.3", "typos:0.2"):
        out = tmp_path / noise.partition(":")[0]
        command = ["score", model, str(path), "--text-column", "said", "--label-column", "kind", "--noise", noise]
        assert main([*command, "--out", str(out), "--quiet"]) == 0
        table = brittle.score(model, path, text_column="said", label_column="kind", noise=noise)
        assert same(table, brittle.read_table(out)), noise
        assert table.points["label"].to_pylist() == [1, 0, 1, 0]
    refused("parameter", "relative", brittle.score, model, path, text_column="said", label_column="kind")
    refused("parameter", "texts", brittle.score, model, list(TEXTS))
