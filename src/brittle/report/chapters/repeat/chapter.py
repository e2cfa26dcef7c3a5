"""How to repeat the run: its record, in words."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar

from brittle.report.chapter import Chapter, Text, files_beside
from brittle.report.contents import Contents
from brittle.report.parts import Entry
from brittle.report.wording import MISSING, show
from brittle.store.record import ModelRecord, RunRecord

FILES = files_beside(__name__)


@dataclass(frozen=True)
class Repeat:
    """Everything needed to repeat the run, entry by entry."""

    entries: tuple[Entry, ...]


class RepeatChapter(Chapter[Repeat]):
    """How to repeat the run."""

    name: ClassVar[str] = "repeat"
    title: ClassVar[str] = "How to repeat it"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"
    in_methods: ClassVar[bool] = True

    def summarize(self, contents: Contents) -> Repeat:
        """The record of the run."""
        record, model, data = contents.record, contents.record.model, contents.record.data
        references = dict.fromkeys(show(column.reference) for column in contents.columns if column.reference)
        versions = {"brittle": record.brittle} | asdict(record.versions)
        return Repeat(
            (
                Entry("Command", _command_text(record)),
                Entry("Seed", show(record.seed)),
                Entry("Checks before it", show(record.doctor)),
                Entry("Digest of the model", _model_digests(model)),
                Entry("Digest of the data", f"sha256 {show(data.sha256)}" if data.sha256 is not None else MISSING),
                Entry("Normalisation", f"mean {_numbers(model.mean)}; standard deviation {_numbers(model.std)}"),
                Entry("Versions", _listed(versions)),
                Entry("Machine", _listed(asdict(record.machine))),
                Entry("Started", show(record.created)),
                Entry("Finished", show(record.finished)),
                Entry("Definitions", "; ".join(references) or MISSING),
            )
        )


def _command_text(record: RunRecord) -> str:
    return show("Not recorded: run from Python." if record.command is None else shlex.join(record.command))


def _model_digests(model: ModelRecord) -> str:
    known = {"sha256": model.sha256, "weights sha256": model.weights_sha256, "state sha256": model.state_sha256}
    return ", ".join(f"{name} {show(digest)}" for name, digest in known.items() if digest is not None) or MISSING


def _numbers(values: tuple[float, ...] | None) -> str:
    return MISSING if values is None else ", ".join(show(value) for value in values)


def _listed(values: Mapping[str, object]) -> str:
    """Names and what they stand for, without those that stand for nothing."""
    return ", ".join(f"{name} {show(value)}" for name, value in values.items() if value is not None) or MISSING
