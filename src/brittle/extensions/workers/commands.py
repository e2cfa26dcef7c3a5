"""The command that puts the parts of a run together, or adds later runs to a first one."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from brittle.cli.common import Quiet, program, say


def join(out: Path, runs: tuple[Path, ...], /, *, quiet: Quiet = False) -> int:
    """Put parts of a run together, or add later runs to a first one, in the new run folder OUT.

    Args:
        out: Folder for the whole run; it must not hold one yet.
        runs: All parts of a run, made by --part, in any order; or a run and later ones over its points; of numbers of
            the same point and score the one with most passes stays.
    """
    from brittle.extensions.workers.join import join as join_runs

    record = join_runs(out, runs)
    account, where = record.account, shlex.quote(str(out))
    again = f"{program()} show {where}, {program()} report {where}"
    say(quiet, f"{account.points} points, {account.passes:,} passes; next: {again}")
    for warning in record.warnings:
        print(f"brittle: note: {warning.code}: {warning.sentence}", file=sys.stderr)
    return 0
