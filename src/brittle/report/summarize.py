"""From a table to everything the page says."""

from __future__ import annotations

from collections.abc import Mapping

from brittle.report.average_case import (
    summarize_agreement,
    summarize_distribution,
    summarize_fragile,
    summarize_headline,
    summarize_margins,
)
from brittle.report.by_class import class_biases, summarize_classes, summarize_images
from brittle.report.comparison import summarize_comparison
from brittle.report.expected_change import summarize_expected_change
from brittle.report.scored import summarize_repeat, summarize_scored, summarize_warnings
from brittle.report.subject import Subject, open_table
from brittle.report.summary import Summary
from brittle.report.wording import shown
from brittle.report.worst_case import summarize_worst_case
from brittle.store.table import Table


def summarize(table: Table, epsilon: float | None = None, against: Mapping[str, Table] | None = None) -> Summary:
    """Everything that the page says of `table`.

    Args:
        table: a run.
        epsilon: perturbation size of the worst-case chapter, in pixel units; by default one that suits the margins.
        against: other runs over the same points, by the names that the page gives them.
    """
    subject = open_table(table)
    biases = class_biases(subject)
    bias = biases.get(subject.chosen.setting) if subject.chosen is not None else None
    worst_case = summarize_worst_case(subject, epsilon)
    expected_change = summarize_expected_change(subject)
    return Summary(
        title=_title(subject),
        subtitle=_subtitle(subject),
        warnings=summarize_warnings(subject),
        headline=summarize_headline(subject, bias, (*worst_case, *([expected_change] if expected_change else []))),
        scored=summarize_scored(subject),
        average_case=subject.chosen is not None or not (worst_case or expected_change),
        distribution=summarize_distribution(subject),
        classes=summarize_classes(subject, biases, bias),
        images=summarize_images(subject, bias),
        agreement=summarize_agreement(subject),
        margins=summarize_margins(subject),
        fragile=summarize_fragile(subject),
        worst_case=worst_case,
        expected_change=expected_change,
        other_runs=summarize_comparison(subject, against or {}),
        repeat=summarize_repeat(subject),
    )


def _title(subject: Subject) -> str:
    spec = str(subject.part("model").get("spec") or "the model")
    return f"How easily do the predictions of {shown(spec.rpartition('/')[2] or spec, 48)} break?"


def _subtitle(subject: Subject) -> str:
    created = shown(subject.provenance.get("created"), 60)[:16].replace("T", " ")
    state = "" if subject.provenance.get("finished") else " The run had not finished: the page shows what it had."
    return f"Scored {created} with brittle {shown(subject.provenance.get('brittle'))}.{state}"
