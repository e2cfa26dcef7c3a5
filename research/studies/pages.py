"""Builder of the pages of the studies, each from a template and the results in Parquet files alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
from jinja2 import Environment, StrictUndefined

from studies import markdown
from studies.errors import StudyError
from studies.glance import small
from studies.networks import EXACT
from studies.study import HERE, Finding, Study, Tables, all_studies
from studies.tables import minutes_of, read_tables

RESULTS = HERE / "results"
"""The results that pages are built from, a folder for each study."""

DOCS = HERE.parents[1] / "docs"
TEMPLATE = "page.md.jinja"
"""Template of a study in its folder, else the one next to this file."""

JPEG, IMAGES = "8.2", "854"
"""Grey levels that the JPEG copies of CIFAR-10 are off, and test images whose original pixels are known, by the README
of the data."""

INDEX = """# Studies

What papers say of the robustness of classifiers, measured again with this library on {networks} trained networks. Every
number of a study is read from stored results when the page is built. A study is one folder of
`research/studies/`; `make studies` runs them all.

Networks trained here learned from JPEG copies of CIFAR-10 and are measured on them. What such copies change was
measured on {exact} test images whose original pixels are known, many of them chosen because a network is right about
them, with four networks of others. Their accuracy changes by -0.009 to +0.002 and their mean `p_robust` (sigma 0.05) by
-0.012 to +0.003: every 99% interval holds 0 and stays within 0.03 of it. The first-order margin in Linf, in the median
2.9 to 4.4 grey levels, changes by -0.115 to -0.026 of them, and the interval lies below 0 on three of the four
(`python research/benchmarks/exact_images.py SHARED`).

## Twelve findings

{findings}

## The studies

{studies}
"""
"""The front page."""


def take_over(out: Path) -> None:
    """Put the results of a run, the folder of its `--out`, in the place of those that are kept here.

    Raises:
        StudyError: the folder holds no results.
    """
    names = [name for name in all_studies() if (out / name / "results").is_dir()]
    if not names:
        raise StudyError(f"{out} holds the results of no study; give the --out of a run that was finished")
    for name in names:
        part = RESULTS / f"{name}.part"
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(out / name / "results", part)
        shutil.rmtree(RESULTS / name, ignore_errors=True)
        part.rename(RESULTS / name)


def build_pages(results: Path = RESULTS, docs: Path = DOCS) -> None:
    """Write `docs/studies/NAME.md` for every study with results, its pictures and tables, and the front page."""
    for name, study in all_studies().items():
        if (results / name).is_dir():
            tables = read_tables(results / name)
            written = {f"studies/{name}.md": page_of(study, tables)}
            written |= {f"studies/{path}": text for path, text in files_of(study, tables).items()}
            drawn = {**study.pictures(tables), **glances(study, tables)}
            written |= {f"images/studies/{picture}.svg": svg for picture, svg in drawn.items()}
            for path, text in written.items():
                (docs / path).parent.mkdir(parents=True, exist_ok=True)
                (docs / path).write_text(text, encoding="utf-8")
    (docs / "studies" / "README.md").write_text(index_of(results), encoding="utf-8")


def index_of(results: Path) -> str:
    """Return the front page: what was found, a sentence each, and the list of the studies with results."""
    findings, studies, counts = [], [], []
    for name, study in all_studies().items():
        if (results / name).is_dir():
            tables = read_tables(results / name)
            counts.append(len(networks_of(tables)))
            for glance, headline in zip(glances(study, tables), study.headlines(tables), strict=True):
                picture = f"[figure](../images/studies/{headline.picture}.svg)"
                start = f"{len(findings) + 1}. "
                picture_line = f"{' ' * len(start)}![{headline.glance.seen}](../images/studies/{glance}.svg)"
                findings.append(f"{start}{headline.text} ({picture}, [study]({name}.md))\n\n{picture_line}")
            studies.append(f"- [{study.title}]({name}.md), beside {'; '.join(study.papers)}.")
    networks = " to ".join(map(str, sorted({min(counts), max(counts)}))) if counts else "no"
    return INDEX.format(networks=networks, exact=IMAGES, findings="\n\n".join(findings), studies="\n".join(studies))


def glances(study: Study, tables: Tables) -> dict[str, str]:
    """Return the small pictures of the front page by name, one for each headline in their order."""
    return {
        f"{study.name}_finding_{at}": small(headline.glance) for at, headline in enumerate(study.headlines(tables), 1)
    }


def networks_of(tables: Tables) -> set[str]:
    """Return the networks that some table names."""
    return named_in(tables, "network")


def data_of(tables: Tables) -> set[str]:
    """Return the data sets that some table names."""
    return named_in(tables, "dataset")


def named_in(tables: Tables, column: str) -> set[str]:
    """Return the values in a column of any table."""
    return set().union(*(table[column].to_pylist() for table in tables.values() if column in table.column_names))


def page_of(study: Study, results: Tables) -> str:
    """Return the page of a study as Markdown."""
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    specific = HERE / study.name / TEMPLATE
    template = environment.from_string(
        (specific if specific.is_file() else HERE / TEMPLATE).read_text(encoding="utf-8")
    )
    findings = study.findings(results)
    return template.render(
        name=study.name,
        title=study.title,
        papers=study.papers,
        findings=findings_table(findings),
        verdicts=verdicts_table(findings),
        jpeg=JPEG,
        exact=IMAGES,
        on_exact=data_of(results) >= {*EXACT.values()},
        minutes=markdown.decimals(minutes_of(results), 0),
        **study.content(results),
    )


def files_of(study: Study, results: Tables) -> dict[str, str]:
    """Return the tables that the page links, as CSV by their paths beside it."""
    linked = [Path(name) for name in study.content(results).get("files", {}) if name.endswith(".csv")]
    return {str(path): csv_of(results[path.stem]) for path in linked if path.stem in results}


def csv_of(table: pa.Table) -> str:
    """Return a table as CSV, to four digits."""
    frame = table.to_pandas()
    if "dataset" in frame:
        frame["dataset"] = frame["dataset"].map(markdown.data_name)
    return frame.to_csv(index=False, float_format="%.4g", lineterminator="\n")


def findings_table(findings: list[Finding]) -> str:
    """Return a line for each finding, with the reasons."""
    rows = [(finding.statement, finding.outcome, finding.agreement, finding.why) for finding in findings]
    return markdown.table(("what a paper says", "what we find", "agreement", "why"), rows)


def verdicts_table(findings: list[Finding]) -> str:
    """Return a line for each finding, in few words; a claim that is split stands once."""
    rows, before = [], ""
    for finding in findings:
        claim = finding.claim + (f" ({finding.source})" if finding.source else "")
        rows.append(("" if claim == before else claim, finding.on, finding.outcome, finding.agreement))
        before = claim
    return markdown.table(("what a paper says, or a question", "on", "what we find", "verdict"), rows)
