"""Sentences about right and wrong predictions fit the decision of the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers.tables import make_table, with_model
from torch import nn

import brittle
from brittle.analysis import overview
from brittle.analysis.overview import Overview
from brittle.analysis.overview_text import format_overview, how_brittle, words_of
from brittle.decisions import Custom

X = torch.rand(12, 3, generator=torch.Generator().manual_seed(0))


def first_leads(start: torch.Tensor, copy: torch.Tensor) -> torch.Tensor:
    return copy[:, 0] - start[:, 0] + 1


SENTENCES = {
    "class": "4 of 12 labels (33%) are predicted right.",
    "top:2": "4 of 12 labels (33%) are among the 2 classes that score highest.",
    "multilabel": "4 of 12 points (33%) have every label predicted right.",
    "multilabel:1": "4 of 12 labels (33%) are predicted right.",
    "within:0.5": "4 of 12 predictions (33%) are right: within 0.5 of what the data say.",
}


def with_decision(decision: str | None) -> Overview:
    return replace(overview(with_model(make_table(points=12), decision=decision)), correct=4, labelled=12)


@pytest.mark.parametrize("decision", SENTENCES)
def test_the_accuracy_is_in_the_words_of_the_decision(decision: str) -> None:
    assert how_brittle(with_decision(None if decision == "class" else decision)).endswith(SENTENCES[decision])


@pytest.mark.parametrize("decision", ["within:0.5", "custom:first_leads"])
def test_decisions_without_labels_mention_none(decision: str) -> None:
    words = words_of(decision)
    text = " ".join(map(str, words)) if decision.startswith("within") else words.unlabelled
    assert "label" not in text


@pytest.mark.usefixtures("nothing_drawn")
@pytest.mark.parametrize("decision", ["within:0.5", Custom(first_leads)])
def test_terminal_and_page_have_the_same_sentence(decision: str | Custom, tmp_path: Path) -> None:
    network = nn.Linear(3, 2).eval()
    classifier = brittle.Classifier(network, bounds=(0, 1), decision=decision)
    targets = (torch.arange(24).reshape(12, 2) % 2).double()
    points = brittle.data.array_points(X, targets, targets=True)
    table = brittle.score(classifier, points, [brittle.scores.Shrinkage(sigma=0.1, draws=20, limit=None)])
    screen = overview(table)
    sentence = how_brittle(screen)
    assert sentence in format_overview(screen)
    page = table.report(tmp_path / "page.html").html
    assert sentence in page
    if isinstance(decision, str) and decision.startswith("within"):
        target, decided = (table.points[name][0].as_py() for name in ("target", "decided"))
        assert f'"{target}"' in page
        assert f'"{decided}"' in page
