"""Section of a model card about the model of a run."""

import json
import math
from pathlib import Path
from typing import Any

from brittle.analysis.overview import Overview, overview
from brittle.analysis.overview_text import decision_text, how_brittle, how_sure, still_text, where, words_of
from brittle.analysis.rules import Checked, Verdict, check
from brittle.errors import printable
from brittle.store.record import RunRecord
from brittle.store.table import Table
from brittle.text import in_markdown, number, span

DIGITS = 10_000  # steps in which shares are told, intervals rounded outwards: YAML reads exponents as text
MODALITIES = {1: "tabular", 3: "image"}  # words for inputs by their number of axes


def model_card(table: Table, limit: float | None = None) -> str:
    """Return the model card of a run in Markdown: front matter and a section.

    The front matter is the `model-index` of the Hugging Face Hub, with the metrics `holds`, the share of the points
    that are known to be kept with probability `limit` or more, and `accuracy`, the share of the labelled points that
    are predicted right. The `args` of a metric hold the ends of its interval, as `check` has them: both hold together
    at the confidence of the run. A metric that the run does not know is left out. There is no front matter where it
    knows neither, or its points were chosen by their ids or are one part of a run. The section has the sentences of
    `overview`, and what was measured.

    Validity: as of `check`. The Hub shows name and value of a metric, and no interval.

    References: Mitchell et al., Model cards for model reporting (2019), https://arxiv.org/abs/1810.03993;
    https://huggingface.co/docs/hub/model-cards

    Args:
        table: a run.
        limit: between 0 and 1; by default the one that points were drawn for, else `brittle.estimate.LIMIT`.

    Returns:
        the text of a file; names from the data are text alone in it. Of files and folders it tells the last name.

    Raises:
        ParameterError: the limit is not between 0 and 1.

    Example:
        >>> import brittle, torch
        >>> model = brittle.Classifier(torch.nn.Linear(3, 2))
        >>> table = brittle.score(model, (torch.eye(3), [0, 1, 1]), "monte_carlo", sigma=0.1)
        >>> print(model_card(table).partition("metrics:")[0])
        ---
        model-index:
        - name: "Linear"
          results:
          - task:
              type: tabular-classification
            dataset:
              type: "data in memory"
              name: "data in memory"
        <BLANKLINE>
    """
    view = overview(table, limit)
    holds, accuracy = (0.0 if is_known else None for is_known in (view.is_decisive and view.rated, view.labelled))
    checked = None if holds is accuracy is None else check(table, limit=limit, holds=holds, accuracy=accuracy)
    is_partial = view.record.data.ids_sha256 is not None or view.record.part is not None
    matter = [] if checked is None or is_partial else _front_matter(view, checked)
    return "\n".join([*matter, *_section(view, checked)]) + "\n"


def _front_matter(run_overview: Overview, checked: Checked) -> list[str]:
    """Return the metadata in YAML; texts and maps stand there as JSON, which is YAML, too."""
    record = run_overview.record
    data = _text(_data_name(record))
    lines = ["---", "model-index:", f"- name: {_text(Path(record.model.spec).name)}", "  results:"]
    lines += ["  - task:", f"      type: {_task(record)}", "    dataset:", f"      type: {data}", f"      name: {data}"]
    lines += [f"      split: {_text(record.data.split)}"] if record.data.split else []
    lines += ["    metrics:"]
    for verdict in checked.verdicts:
        low, high = math.floor(DIGITS * verdict.low) / DIGITS, math.ceil(DIGITS * verdict.high) / DIGITS
        args = json.dumps({"confidence": checked.confidence, "low": low, "high": high, "points": verdict.points})
        lines += [
            f"    - type: {verdict.rule}",
            f"      value: {round(verdict.value, 4)}",
            f"      name: {_text(_words(run_overview, verdict))}",
        ]
        lines += [f"      args: {args}"]
    return [*lines, "---", ""]


def _section(view: Overview, checked: Checked | None) -> list[str]:
    record = view.record
    sentences = [how_brittle(view), decision_text(record.model), still_text(record.data), where(view)]
    lines = ["## How easily predictions break", ""]
    lines += [f"- {in_markdown(text)}" for text in (*sentences, how_sure(view), *view.margins) if text]
    if checked is not None:
        lines += ["", f"| share of the points | found | {100 * checked.confidence:.4g}% interval, of all together |"]
        lines += ["| --- | --- | --- |"]
        rows = ((_words(view, row), number(row.value), span(row.low, row.high)) for row in checked.verdicts)
        lines += [f"| {' | '.join(map(in_markdown, row))} |" for row in rows]
    scores = ", ".join(score.label for score in record.scores)
    model, data = Path(record.model.spec).name, _data_name(record)
    part = "" if record.part is None else f" (part {record.part[0]} of {record.part[1]} of a run)"
    facts = f"Measured by brittle {record.brittle} of {model} on {view.points:,} points of {data}{part}"
    facts += f", seed {record.seed}"
    return [*lines, "", in_markdown(f"{facts}: {scores}.")]


def _words(run_overview: Overview, verdict: Verdict) -> str:
    if verdict.rule != "holds" or run_overview.column is None:
        return words_of(run_overview.record.model.decision).correct
    setting = run_overview.column.setting
    noise = "" if setting.sigma is None else f" under noise of {setting}"
    return f"known to be kept with probability {run_overview.limit:.12g} or more{noise}"


def _task(record: RunRecord) -> str:
    number_of_axes = len(record.data.input_shape or ())
    kind = "text" if "tokenizer" in record.data.reading else MODALITIES.get(number_of_axes)
    ending = "regression" if (record.model.decision or "").startswith("within:") else "classification"
    return "other" if kind is None else f"{kind}-{ending}"


def _data_name(record: RunRecord) -> str:
    return "data in memory" if record.data.path is None else Path(record.data.path).name


def _text(text: Any) -> str:
    """Text in YAML, on one line."""
    return json.dumps(printable(str(text)), ensure_ascii=False)
