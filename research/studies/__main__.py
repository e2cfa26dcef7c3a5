"""Run studies: the papers' tables and figures, beside what is found here.

    PYTHONPATH=research python -m studies [NAME ...] --shared PATH --networks DIR --out DIR
        [--size cpu|paper|tiny] [--seed N] [--device DEVICE] [--jobs N]
    PYTHONPATH=research python -m studies pages [--from DIR]

The first runs the studies named, or all of them, and prints a line for each finding. SHARED holds `data` and `models`,
DIR of the networks those of `python -m studies.train`. What is done is not done again; the same seed gives the same
results, whose times stand by themselves. With `--jobs` several processes share the work, each on one core. The second
builds the pages in `docs/studies` from the results that are kept beside the studies; with `--from`, which is the
`--out` of a run, it takes the results over from there first.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from studies.beside import add_jobs, processes_beside
from studies.errors import StudyError
from studies.estimators.entrants import check_estimators
from studies.networks import find_networks
from studies.pages import build_pages, take_over
from studies.running import measure_beside, run_study
from studies.study import SIZES, Finding, Setting, all_studies


def main(arguments: list[str] | None = None) -> int:
    """Do what is asked for; 0, or 2 where something is wrong with what was asked."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        if words[:1] == ["pages"]:
            pages(words)
        else:
            run(words)
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    return argparse.ArgumentParser("studies", None, __doc__, formatter_class=argparse.RawTextHelpFormatter)


def pages(words: list[str]) -> None:
    """Build the pages, from the results of a run where one is named."""
    parser = _parser()
    parser.add_argument("pages")
    parser.add_argument("--from", dest="out", type=Path, help="folder of a run whose results are taken over")
    options = parser.parse_args(words)
    if options.out is not None:
        take_over(options.out)
    build_pages()


def run(words: list[str]) -> None:
    """Run studies, and print what they found."""
    studies, parser = all_studies(), _parser()
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"of a study: {', '.join(studies)}; all by default")
    parser.add_argument("--shared", type=Path, required=True, help="folder of data and models")
    parser.add_argument("--networks", type=Path, help="folder of further networks")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--size", choices=SIZES, default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="that networks compute on, such as cuda")
    parser.add_argument("--estimator", metavar="FILE.py:NAME", action="append", default=[],
                        help="an estimator of yours, beside the others; may be given several times")  # fmt: skip
    add_jobs(parser)
    options = parser.parse_args(words)
    if unknown := [name for name in options.names if name not in studies]:
        raise StudyError(f"no study is called {unknown[0]}; there are {', '.join(studies)}")
    check_estimators(options.estimator)
    setting = Setting(
        options.shared, options.networks, options.size, options.seed, options.device, tuple(options.estimator)
    )
    chosen, networks = (
        [studies[name] for name in options.names or studies],
        find_networks(options.shared, options.networks),
    )
    with processes_beside("studies", words, options.jobs):
        measure_beside(chosen, networks, setting, options.out)
    if options.beside:
        return
    for study in chosen:
        results = run_study(study, networks, setting, options.out)
        print_findings(study.name, study.findings(results))


def print_findings(name: str, findings: list[Finding]) -> None:
    """Return a table with one line for each finding."""
    shown = Table("what a paper says", "what we find", "agreement", title=name)
    for finding in findings:
        shown.add_row(finding.statement, finding.outcome, finding.agreement)
    Console().print(shown)


if __name__ == "__main__":
    torch.set_num_threads(1)  # the same numbers on machines with more
    sys.exit(main())
