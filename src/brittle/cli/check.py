"""The gate: whether a run keeps rules, as an exit code and in the forms that pipelines read."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from brittle.cli.common import Config, Json, Run, as_called, check_own, open_run, show
from brittle.errors import UsageError
from brittle.registry import load


def check(
    run_folder: Run,
    *,
    holds: float | None = None,
    every_class: float | None = None,
    limit: float | None = None,
    accuracy: float | None = None,
    robust_accuracy: float | None = None,
    expected_robustness: float | None = None,
    epsilon: str | None = None,
    norm: str | None = None,
    against: Path | None = None,
    no_worse_than: float | None = None,
    detector: Path | None = None,
    detector_tpr: float | None = None,
    undecided: Literal["10", "0", "1"] = "10",
    junit: Path | None = None,
    markdown: Path | None = None,
    github: bool = False,
    json: Json = False,
    config: Config = None,
) -> int:
    """Say whether RUN keeps rules: each passes, fails, or is undecided, by its whole interval.

    Exits with 0 where all rules pass, with 1 where one fails, and with 10 where none fails and one is undecided. The
    intervals hold for all rules and classes together. Of a run of more than a million rows of scores points are drawn
    at random, which is said. Rules may stand in a TOML file: --config rules.toml.

    Args:
        run_folder: A folder that `brittle score` wrote.
        holds: At least this share of the predictions holds: each is kept with probability --limit.
        every_class: The same for each class alone.
        limit: That probability; by default the one that points were drawn for, or 0.9.
        accuracy: At least this share of the labelled points is predicted right.
        robust_accuracy: At least this share is right, with no other prediction found within --epsilon.
        expected_robustness: The same, averaged over the distances from 0 to --epsilon.
        epsilon: That distance, such as 8/255.
        norm: Of the margins, where RUN has them in several.
        against: Another run over the same points, which RUN may be less robust than by --no-worse-than at most.
        no_worse_than: How much less the mean of p_robust may be there; 0 by default.
        detector: A detector that `brittle detector fit` wrote.
        detector_tpr: At least this share of the brittle predictions that it was not fitted on is flagged by it.
        undecided: Exit code where a rule is undecided and none fails.
        junit: File to write the verdicts to as the XML of JUnit.
        markdown: File to write them to as Markdown, for a pull request.
        github: Print them as annotations of a GitHub action, too.
    """
    from brittle.analysis.rules import FAILS, PASSES
    from brittle.analysis.rules import check as check_rules
    from brittle.store.writing import write

    if json and github:
        raise UsageError("--json and --github both print; give one of them")
    files = {"junit": junit, "markdown": markdown}
    if junit is not None and junit == markdown:
        raise UsageError("--junit and --markdown name one file; give each its own")
    for form, mark in (("junit", "<testsuites"), ("markdown", "**brittle: ")):
        if (path := files[form]) is not None:
            check_own(path, mark, f"{form} file")
    rivals = () if against is None else (against,)
    checked = check_rules(
        open_run(run_folder, *rivals),
        holds=holds,
        every_class=every_class,
        limit=limit,
        accuracy=accuracy,
        robust_accuracy=robust_accuracy,
        expected_robustness=expected_robustness,
        epsilon=epsilon,
        norm=norm,
        against=None if against is None else open_run(against, run_folder),
        no_worse_than=no_worse_than,
        detector=None if detector is None else load("file", "detector").load(detector),
        detector_tpr=detector_tpr,
    )
    show(checked.json().rstrip() if json else as_called(str(checked)))
    if github:
        show(checked.github())
    for form, path in files.items():
        if path is not None:
            write(path, getattr(checked, form)().encode("utf-8"))
    return 0 if checked.state == PASSES else 1 if checked.state == FAILS else int(undecided)
