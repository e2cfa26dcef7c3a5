"""A safeguard that is taken out in a copy of the tree, and the tests that run there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

COPIED = (
    "src",
    "tests",
    "docs",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "Makefile",
    "pyproject.toml",
    "benchmarks",
    "studies",
)
"""What tests need of the tree."""

PASSED, FAILED, OTHER_COPY = 0, 1, 70
"""Exit codes of a run of tests: two of pytest's, and that the copy was not what was imported."""

LIMIT = 300.0
"""Seconds that a run of tests may take."""

RUN = f"""
import sys
from pathlib import Path
import brittle, pytest
if not Path(brittle.__file__).is_relative_to(Path(sys.argv[1], "src")):
    print("imported", brittle.__file__)
    sys.exit({OTHER_COPY})
sys.exit(pytest.main(["-q", "--tb=line", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""
"""Runs tests where the copy of the package is the one that is imported."""


@dataclass(frozen=True)
class Mutation:
    """A safeguard that is taken out.

    Attributes:
        name: of the safeguard.
        file: where it stands, below `src/brittle`; below the root where it is one of `studies`.
        edits: texts that stand there exactly once, each with what takes its place.
        test: what turns red.
    """

    name: str
    file: str
    edits: tuple[tuple[str, str], ...]
    test: str

    @property
    def path(self) -> Path:
        """The file, below the root of the tree."""
        return Path(self.file) if self.file.startswith("studies/") else Path("src", "brittle", self.file)

    def applied(self, content: str) -> str:
        """`content` of the file without the safeguard.

        Raises:
            ValueError: a text to be replaced does not stand in it exactly once.
        """
        for old, new in self.edits:
            if (count := content.count(old)) != 1:
                raise ValueError(f"{self.name}: {old.strip()!r} stands {count} times in {self.path}, not once")
            content = content.replace(old, new)
        return content


def mutation(name: str, file: str, old: str, new: str, test: str) -> Mutation:
    """A mutation of one place."""
    return Mutation(name, file, ((old, new),), f"tests/{test}")


def copy_tree(place: Path) -> None:
    """Copy to the folder `place` what tests need."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy2(ROOT / name, place / name)


def run_tests(place: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Run tests of the copy in `place` on the package of that copy; gives the exit code and what was said."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}
    environment = inherited | {"PYTHONPATH": str(place / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", RUN, str(place), f"--basetemp={place / 'temporary'}", *tests]
    done = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    return done.returncode, done.stdout + done.stderr


def put(path: Path, content: str) -> None:
    """Write a file of the copy, and forget what Python compiled of the one before, however soon it follows."""
    path.write_text(content, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        compiled.unlink()


def survives(place: Path, chosen: Mutation) -> tuple[bool, str]:
    """Whether the test of a mutation does not fail, and what was seen, in words."""
    path = place / chosen.path
    whole = path.read_text(encoding="utf-8")
    put(path, chosen.applied(whole))
    try:
        code, said = run_tests(place, [chosen.test])
    finally:
        put(path, whole)
    counts = re.findall(r"\d+ (?:failed|passed|errors?)", said.rstrip().rpartition("\n")[2])
    failed = code == FAILED and any("failed" in count for count in counts) and not any("err" in one for one in counts)
    return not failed, ", ".join(counts) if code in (PASSED, FAILED) else f"exit code {code}"
