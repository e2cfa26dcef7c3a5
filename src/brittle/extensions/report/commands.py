"""The command that writes the page of a run."""

from pathlib import Path

from brittle.cli.common import Run, check_own, open_run, show
from brittle.errors import UsageError


def report(
    run_folder: Run, *, out: Path | None = None, epsilon: str | None = None, against: tuple[Path, ...] = ()
) -> int:
    """Write the report of RUN, one HTML file, and print how many predictions hold.

    Args:
        run_folder: A folder that `brittle score` wrote.
        out: The file to write; RUN/report.html by default; no file but an earlier report is replaced.
        epsilon: Size of the perturbation that the worst case is about, such as 8/255.
        against: Other runs over the same points to compare with: of other models, or of the same one on corrupted
            copies.
    """
    from brittle.analysis.columns import margin_columns
    from brittle.analysis.overview_text import how_brittle
    from brittle.extensions.report.notebook import ReportPage
    from brittle.extensions.report.render import MARK, open_contents, render

    page = out or run_folder / "report.html"
    check_own(page, MARK, "report")
    table = open_run(run_folder, *against, images=True)
    if epsilon is not None and not margin_columns(table):
        raise UsageError("--epsilon is for runs with input_margin; this one has none")
    rivals = {str(folder): open_run(folder, run_folder, *against, images=True) for folder in against}
    contents = open_contents(table, epsilon, rivals)
    path = ReportPage(render(contents)).save(page)
    if contents.tells_robustness:
        show(how_brittle(contents.overview))
    print(path)
    return 0
