"""Model cards have the figures of the run, in YAML that the Hub reads and Markdown that no name in the data breaks."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from helpers.data_files import refused
from helpers.tables import HOSTILE, make_table
from scipy import stats

import brittle
from brittle.analysis import model_card
from brittle.cli.commands import main
from brittle.scores import MonteCarlo
from brittle.store.table import Table


def parts(card: str) -> tuple[dict[str, Any], str]:
    """Return the metadata of a card, by a plain parser of YAML, and its text."""
    empty, matter, text = card.split("---\n", 2)
    assert not empty
    return yaml.safe_load(matter), text


def metrics(card: str) -> dict[str, dict[str, Any]]:
    (model,) = parts(card)[0]["model-index"]
    (result,) = model["results"]
    return {metric["type"]: metric for metric in result["metrics"]}


def signs(wrong: int, near: int, points: int = 40) -> Table:
    """Score the sign of numbers far from 0; the first `near` are almost 0, so that half of their copies flip."""
    x = torch.where(torch.arange(points) % 2 == 0, 1.0, -1.0)[:, None]
    y = (x[:, 0] < 0).long()
    y[-wrong:] = 1 - y[-wrong:]
    x[:near] *= 1e-6
    classifier = brittle.Classifier(lambda x: torch.cat([x, -x], 1), bounds=(-1, 1))
    return brittle.score(classifier, (x, y), [MonteCarlo(0.1, draws=400, limit=None)])


def test_the_figures_are_those_of_the_run() -> None:
    """Count here, with intervals of the beta distribution that may each miss by half of 1%."""
    table, metrics_by_name = signs(wrong=3, near=6), metrics(model_card(signs(wrong=3, near=6)))
    counts = {"holds": 34, "accuracy": 37}
    assert metrics_by_name.keys() == counts.keys()
    for name, count in counts.items():
        low, high = stats.beta.ppf(0.0025, count, 41 - count), stats.beta.ppf(0.9975, count + 1, 40 - count)
        args = metrics_by_name[name]["args"]
        assert metrics_by_name[name]["value"] == count / 40
        assert args["points"] == 40
        assert args["confidence"] == table.record.confidence
        slack = 0.006 if name == "holds" else 1e-4  # states of points are wrong at times, which widens the interval
        assert low - slack <= args["low"] <= low
        assert high <= args["high"] <= high + slack
    section = parts(model_card(table))[1]
    assert [float(share) for share in re.findall(r"\| ([\d.]+) \|", section)] == [34 / 40, 37 / 40]
    assert {"34", "37", "40"} <= {*re.findall(r"\d+", section)}


@pytest.mark.parametrize("suffix", [".md", ".MD"])
def test_a_command_writes_it(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = make_table(points=30, scores=("monte_carlo",))
    table.save("run")
    assert main(["export", "run", f"card{suffix}", "--limit", "0.6"]) == 0
    card = Path(f"card{suffix}").read_text(encoding="utf-8")
    assert card == model_card(table, 0.6)
    assert card != model_card(table)
    assert main(["export", "run", f"card{suffix}"]) == 7
    refused("parameter", "limit", model_card, table, 2.0)


def test_missing_figures_are_left_out() -> None:
    assert metrics(model_card(make_table(points=30, scores=("monte_carlo",), labels=False))).keys() == {"holds"}
    assert metrics(model_card(make_table(points=30, scores=("softmax",)))).keys() == {"accuracy"}
    unlabelled = make_table(points=30, scores=("input_margin",), labels=False)
    labelled = make_table(points=30, scores=("monte_carlo",))
    data = replace(labelled.record.data, ids_sha256="0" * 64, chosen_from=500)
    records = replace(labelled.record, data=data), replace(labelled.record, part=(1, 3))
    for table in (unlabelled, *(replace(labelled, record=record) for record in records)):
        card = model_card(table)
        assert card.startswith("## ")
        assert "model-index" not in card


@pytest.mark.parametrize(
    ("shape", "reading", "decision", "task"),
    [
        ((3, 8, 8), {}, None, "image-classification"),
        ((13,), {}, "top:5", "tabular-classification"),
        ((13,), {}, "within:0.5", "tabular-regression"),
        ((9, 16), {"tokenizer": "Tokenizer"}, None, "text-classification"),
        ((2, 100), {}, None, "other"),
    ],
)
def test_the_task_is_what_the_hub_calls_it(shape: Any, reading: Any, decision: str | None, task: str) -> None:
    table = make_table(points=30, scores=("monte_carlo",))
    data = replace(table.record.data, input_shape=shape, reading=reading)
    model = replace(table.record.model, decision=decision)
    card = model_card(replace(table, record=replace(table.record, data=data, model=model)))
    assert parts(card)[0]["model-index"][0]["results"][0]["task"] == {"type": task}


TEXTS = (
    *HOSTILE, "---\n- a: {b", "'\"\\", "null", "1e3", "| | |", "@someone #1",
    "www.evil.example https://evil.example &copy;",
)  # fmt: skip


@pytest.mark.every_other
@pytest.mark.parametrize("start", range(4))
def test_names_are_text_alone(start: int) -> None:
    table = make_table(points=30, classes=3, scores=("monte_carlo",))
    for text in TEXTS[start::4]:
        path = f"folder/{text.replace('/', '')}"
        data = replace(table.record.data, class_names=(text, "b", "c"), path=path, split=text)
        record = replace(table.record, data=data, model=replace(table.record.model, spec=text.replace("/", "")))
        card = model_card(replace(table, record=record))
        metadata, section = parts(card)
        (model,) = metadata["model-index"]
        printed = brittle.errors.printable(text.replace("/", ""))
        assert model["name"] == model["results"][0]["dataset"]["name"] == printed, repr(text)
        assert len(model["results"][0]["metrics"]) == 2, repr(text)
        assert not re.search(r"(?<!\\)<|@|://|www\.|&copy;", section), repr(text)
        pipes = {line.count("|") - line.count("\\|") for line in section.splitlines()}
        assert pipes <= {0, 4}, repr(text)
        assert all(line.isprintable() for line in card.split("\n")), repr(text)


def test_the_hub_reads_it() -> None:
    hub = pytest.importorskip("huggingface_hub")
    table = signs(wrong=3, near=6)
    card = hub.ModelCard(model_card(table))
    holds, accuracy = card.data.eval_results
    assert (holds.metric_type, holds.metric_value, accuracy.metric_type, accuracy.metric_value) == (
        "holds",
        0.85,
        "accuracy",
        0.925,
    )
    assert accuracy.task_type == "tabular-classification"
    assert accuracy.metric_args == metrics(model_card(table))["accuracy"]["args"]
    copied = hub.ModelCard(str(hub.ModelCard.from_template(card.data, template_str="---\n{{ card_data }}\n---\n")))
    assert copied.data.eval_results == card.data.eval_results
