"""Kills of runs, made by a process of their own: what forks must have no other threads, and a process of tests has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from helpers.processes import LIMIT

TESTS = Path(__file__).parents[1]


def some_kills(work: str, shards: int, kills: int, *steps: int) -> tuple[int, list[dict[str, Any]]]:
    """The steps of a run, and what `checks.faults some` saw after so many random kills and those at these steps."""
    paths = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "checks.faults", "some", work, *map(str, (shards, kills, *steps))]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    return found["steps"], found["tallies"]
