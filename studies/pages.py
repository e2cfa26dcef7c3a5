"""Builds the pages of the studies: each from the template in its folder and the results in Parquet files alone."""

from __future__ import annotations

import shutil
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from studies import markdown
from studies.errors import StudyError
from studies.study import HERE, Finding, Study, Tables, all_studies
from studies.tables import read_tables

RESULTS = HERE / "results"
"""The results that pages are built from, a folder for each study."""

DOCS = HERE.parent / "docs"
TEMPLATE = "page.md.jinja"
INDEX = """# Studies

What papers say of the robustness of classifiers, measured again with this library on networks trained for it and on
networks of others. Each study is one folder of `studies/` and one page here; every number is read from the results when
the page is built. `make studies` runs them all.

What a paper says *agrees* where it holds in every case that the line looks at, such as networks or levels of noise,
*does not agree* where it holds in none, else *in part*. A page or a line with another rule says so. *Not said by a
paper*: a question that none of these papers answers.
"""
"""How the page that lists the studies begins."""


def take_over(out: Path) -> None:
    """Put the results of a run, the folder of its `--out`, in the place of those that are kept here.

    Raises:
        StudyError: the folder holds no results.
    """
    found = [name for name in all_studies() if (out / name / "results").is_dir()]
    if not found:
        raise StudyError(f"{out} holds the results of no study; give the --out of a run that was finished")
    for name in found:
        part = RESULTS / f"{name}.part"
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(out / name / "results", part)
        shutil.rmtree(RESULTS / name, ignore_errors=True)
        part.rename(RESULTS / name)


def build_pages(results: Path = RESULTS, docs: Path = DOCS) -> None:
    """Write `docs/studies/NAME.md` for every study with results, its pictures, and `docs/studies/README.md`."""
    for name, study in all_studies().items():
        if (results / name).is_dir():
            tables = read_tables(results / name)
            (docs / "studies").mkdir(exist_ok=True)
            (docs / "studies" / f"{name}.md").write_text(page_of(study, tables), encoding="utf-8")
            for picture, svg in study.pictures(tables).items():
                path = docs / "images" / "studies" / f"{picture}.svg"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(svg, encoding="utf-8")
    (docs / "studies" / "README.md").write_text(index_of(results), encoding="utf-8")


def index_of(results: Path) -> str:
    """The page that lists the studies with results, a line for each finding."""
    parts = [INDEX]
    for name, study in all_studies().items():
        if (results / name).is_dir():
            rows = [(one.said, one.found, one.agreement) for one in study.findings(read_tables(results / name))]
            found = markdown.table(("what a paper says", "what we find", "agreement"), rows)
            parts.append(f"## [{study.title}]({name}.md)\n\nBeside {'; '.join(study.papers)}.\n\n{found}\n")
    return "\n".join(parts)


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
