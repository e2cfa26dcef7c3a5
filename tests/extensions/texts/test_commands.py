"""Classifiers of texts on the command line: a small model behind a stand-in for transformers, and a real BERT."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.text_models import TEXTS, Model, Tokenizer, bert_folder, pretend, text_folder, write_reviews

import brittle
from brittle.cli.commands import main
from brittle.intervals import clopper_pearson

pytestmark = pytest.mark.usefixtures("nothing_drawn")  # the tests read words

SURE = "0.999999"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with the model `bert` and the texts in `reviews.csv`."""
    monkeypatch.chdir(tmp_path)
    pretend(monkeypatch, Model(), Tokenizer())
    text_folder(tmp_path / "bert")
    write_reviews()
    return tmp_path


def score(*options: str, out: str = "run") -> int:
    return main(["score", "bert", "reviews.csv", "--out", out, *options])


def test_all_commands_know_such_a_run(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--noise", "token-dropout:0.3", "--scores", "monte_carlo", "--draws", "40", "--quiet"]
    assert score(*options, "--points", "3") == 0
    assert score(*options, "--points", "3", "--resume") == 0
    (place / "ids.txt").write_text("1\n3\n")
    assert score(*options, "--ids", "ids.txt", out="some") == 0
    assert brittle.read_table("some").points["name"].to_pylist() == [TEXTS[1], TEXTS[3]]
    for command in (["show", "run"], ["verify", "run"], ["report", "run"]):
        assert main(command) == 0
    capsys.readouterr()
    assert main(["show", "run", "2"]) == 0
    assert TEXTS[2] in capsys.readouterr().out
    assert TEXTS[2] in (place / "run" / "report.html").read_text(encoding="utf-8")
    assert main(["doctor", "bert", "reviews.csv", "--noise", "relative:0.5"]) == 0
    assert "\n0 failed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "the model reads texts, .* --noise relative:0.5"),
        (["--noise", "swap:0.1"], "the model reads texts, .* on their embeddings or tokens"),
        (["--noise", "relative:0.5", "--sigma", "0.1"], "says how strong it is by itself; leave out --sigma"),
        (["--noise", "token-dropout"], "needs a level behind a colon, .* --noise token-dropout:0.2"),
        (["--noise", "relative:0.5", "--bounds", "0", "2"], "; leave out --bounds$"),
        (["--noise", "relative:0.5", "--text-column", "words"], "no column 'words'"),
        (["--noise", "relative:0.5", "--weights", "w.safetensors"], "holds its own weights; leave out --weights"),
    ],
)
def test_what_is_refused(options: list[str], message: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(*options) != 0
    error_text = capsys.readouterr().err
    assert "Traceback" not in error_text
    assert re.search(message, error_text), error_text


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a small BERT and its tokenizer, in `bert`, and texts in `reviews.csv`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    write_reviews()
    return bert_folder(Path("bert"))


def test_a_real_one_is_scored_as_plain_copies_are(real: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Noisy copies of each text alone, without padding, through transformers; two intervals at 1 - 1e-6 overlap
    (fails falsely 8 times in a million)."""
    model, tokenizer = real
    options = [
        "--noise",
        "relative:0.6",
        "--scores",
        "monte_carlo",
        "logit_margin",
        "--draws",
        "400",
        "--limit",
        "none",
    ]
    assert score(*options, "--confidence", SURE) == 0
    assert "texts of at most 8 tokens" in capsys.readouterr().err
    table, generator = brittle.read_table("run"), torch.Generator().manual_seed(5)
    assert table.record.data.class_names == ("bad", "good")
    column = table[brittle.scores.MonteCarlo(noise=brittle.noise.Relative(0.6), draws=400, limit=None)]
    for text, low, high, margin in zip(TEXTS, column.low, column.high, table["logit_margin"].value, strict=True):
        ids = torch.tensor(tokenizer(text, truncation=True)["input_ids"])
        with torch.no_grad():
            logits = model(input_ids=ids[None]).logits[0]
            words = model.get_input_embeddings()(ids)
            inner = words[1:-1]
            noise = torch.randn(3000, *inner.shape, generator=generator)
            moved = inner + 0.6 * inner.square().mean().sqrt() * noise
            ends = (words[:1].expand(3000, 1, -1), words[-1:].expand(3000, 1, -1))
            copies = model(inputs_embeds=torch.cat((ends[0], moved, ends[1]), 1)).logits
        flips = int((copies.argmax(1) != logits.argmax()).sum())
        truth_low, truth_high = (float(end) for end in clopper_pearson(flips, 3000, float(SURE)))
        assert low <= truth_high
        assert truth_low <= high
        assert margin == pytest.approx(float((logits[0] - logits[1]).abs()), rel=1e-6, abs=1e-6)


def test_code_in_a_folder_is_not_run(real: Any, tmp_path: Path) -> None:
    code = {"AutoModelForSequenceClassification": "own.Model", "AutoTokenizer": ["own.Tokenizer", None]}
    Path("bert/own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    for name in ("config.json", "tokenizer_config.json"):
        path = Path("bert") / name
        path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": code}))
    score("--noise", "relative:0.5", "--quiet")
    assert not (tmp_path / "ran").exists()
