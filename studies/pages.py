"""Builds the pages of the studies: each from the template in its folder and the results in Parquet files alone."""

from __future__ import annotations

import shutil
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from studies import markdown
from studies.study import HERE, Finding, Study, StudyError, Tables, all_studies
from studies.tables import read_tables

RESULTS = HERE / "results"
"""The results that pages are built from, a folder for each study."""

DOCS = HERE.parent / "docs"
TEMPLATE = "page.md.jinja"


def take_over(out: Path) -> None:
    """Put the results of a run, the folder of its `--out`, in the place of those that are kept here.

    Raises:
        StudyError: the folder holds no results.
    """
    found = [name for name in all_studies() if (out / name / "results").is_dir()]
    if not found:
        raise StudyError(f"{out} holds the results of no study; give the --out of a run that was finished")
    for name in found:
        shutil.rmtree(RESULTS / name, ignore_errors=True)
        shutil.copytree(out / name / "results", RESULTS / name)


def build_pages(results: Path = RESULTS, docs: Path = DOCS) -> None:
    """Write `docs/studies/NAME.md`, and its pictures into `docs/images/studies`, for every study with results."""
    for name, study in all_studies().items():
        if (results / name).is_dir():
            tables = read_tables(results / name)
            (docs / "studies").mkdir(exist_ok=True)
            (docs / "studies" / f"{name}.md").write_text(page_of(study, tables), encoding="utf-8")
            for picture, svg in study.pictures(tables).items():
                path = docs / "images" / "studies" / f"{picture}.svg"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(svg, encoding="utf-8")


def page_of(study: Study, results: Tables) -> str:
    """The page of a study as Markdown."""
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    template = environment.from_string((HERE / study.name / TEMPLATE).read_text(encoding="utf-8"))
    return template.render(
        name=study.name,
        title=study.title,
        papers=study.papers,
        findings=findings_table(study.findings(results)),
        **study.content(results),
    )


def findings_table(findings: list[Finding]) -> str:
    """A line for each finding."""
    rows = [(one.said, one.found, one.agreement, one.why) for one in findings]
    return markdown.table(("what a paper says", "what we find", "agreement", "why"), rows)
