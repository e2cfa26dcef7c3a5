"""Studies: steps that run one after the other, their tables, and findings compared with the papers'."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from studies.glance import Glance
from studies.networks import Network

HERE = Path(__file__).parent

Tables = Mapping[str, pa.Table]
"""Tables by their names."""

SIZES = ("cpu", "paper", "tiny")
"""How much is measured: what two cores do in hours; what the papers measured, for a graphics card; or what shows in
seconds that all of it runs."""


class Agreement(StrEnum):
    """Agreement of a finding with a paper."""

    AGREES = "agrees"
    IN_PART = "in part"
    DIFFERS = "does not agree"
    NOT_REFUTED = "not refuted"
    UNSAID = "not said by a paper"
    UNMEASURED = "not measured"


@dataclass(frozen=True)
class Finding:
    """A line of the findings of a study.

    Attributes:
        claim: claim of the paper with its figure, or the question where no paper answers it.
        source: paper and section; empty without a paper.
        outcome: finding of the study, with its figure.
        agreement: agreement of both.
        why: the reason, as far as it is known; empty on pages that say it elsewhere.
        on: the data or networks that it is about, where a claim is split.
    """

    claim: str
    source: str
    outcome: str
    agreement: Agreement
    why: str = ""
    on: str = ""

    @property
    def statement(self) -> str:
        """The claim with what it is about, and its source in brackets."""
        claim = f"{self.claim}, {self.on}" if self.on else self.claim
        return f"{claim} ({self.source})" if self.source else claim


@dataclass(frozen=True)
class Setting:
    """Options of the command line.

    Attributes:
        shared: folder that holds `data` and `models`.
        networks: folder of further networks, or None.
        size: one of `SIZES`.
        seed: of everything that is drawn.
        device: that networks compute on.
        estimators: further estimators, `FILE.py:NAME` each.
    """

    shared: Path
    networks: Path | None
    size: str
    seed: int
    device: str = "cpu"
    estimators: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """A part of a study that is done once.

    Attributes:
        name: where its tables are kept, below the folder of the study.
        identity: all that decides its numbers, as JSON; a step of another identity is done again.
        run: does it.
    """

    name: str
    identity: Mapping[str, Any]
    run: Callable[[], Tables]


@dataclass(frozen=True)
class Headline:
    """A sentence of the front page, and the pictures that show it.

    Attributes:
        text: from the results.
        picture: the name of that of the page.
        glance: the small one.
    """

    text: str
    picture: str
    glance: Glance


Steps = Generator[Step, Tables, None]
"""Steps in their order; each is answered with the tables that it left, now or in a run before."""


def none_alone(setting: Setting) -> Iterable[Step]:
    """For a study all of whose steps are of networks."""
    return ()


def none_after(setting: Setting, networks: Sequence[Network], tables_by_step: Mapping[str, Tables]) -> Iterable[Step]:
    """For a study whose steps need one network each."""
    return ()


@dataclass(frozen=True)
class Study:
    """A study.

    Attributes:
        name: of its folder, its results and its page.
        title: what it is about.
        papers: what it is set beside, from author to year.
        of_network: the steps of one network.
        summarise: the results, from the tables of all steps by their names, and the seed.
        findings: what the results say.
        content: what the template of the page reads beside the findings, all of it from the results.
        pictures: SVG by name, from the results.
        headlines: what the front page says of it, from the results.
        alone: steps that need no network.
        after: steps that need the tables of many networks, by the names of their steps.
        repeats: whether networks that differ from another in the seed of their training alone take part.
    """

    name: str
    title: str
    papers: tuple[str, ...]
    of_network: Callable[[Network, Setting], Steps]
    summarise: Callable[[Mapping[str, Tables], int], Tables]
    findings: Callable[[Tables], list[Finding]]
    content: Callable[[Tables], Mapping[str, Any]]
    pictures: Callable[[Tables], Mapping[str, str]]
    headlines: Callable[[Tables], Sequence[Headline]]
    alone: Callable[[Setting], Iterable[Step]] = none_alone
    after: Callable[[Setting, Sequence[Network], Mapping[str, Tables]], Iterable[Step]] = none_after
    repeats: bool = False

    def of(self, networks: Sequence[Network]) -> list[Network]:
        """Those that take part."""
        return [network for network in networks if self.repeats or not network.repeat]


def all_studies() -> dict[str, Study]:
    """Every study by its name: the folders beside this file that hold a `study.py` with a `STUDY`."""
    names = sorted(folder.parent.name for folder in HERE.glob("*/study.py"))
    return {name: import_module(f"studies.{name}.study").STUDY for name in names}
