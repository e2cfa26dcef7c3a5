"""A system without POSIX, such as Windows: brittle can be imported there, scores in memory, and writes files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.processes import LIMIT

WITHOUT_POSIX = '''
import importlib.abc, os, sys
from pathlib import Path

MISSING = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"}


class Refusing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def refuse_open(name):
    """No file is renamed or removed while it is open."""
    method = getattr(Path, name)

    def refusing(self, *arguments, **options):
        opened = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
        if os.path.realpath(self) in opened:
            raise PermissionError(13, "The process cannot access the file because it is being used", str(self))
        return method(self, *arguments, **options)

    setattr(Path, name, refusing)


for module in MISSING:
    sys.modules.pop(module, None)
sys.meta_path.insert(0, Refusing())
for name in ("replace", "unlink"):
    refuse_open(name)
for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY", "fchmod", "pread", "pwrite", "getuid", "fork"):
    delattr(os, name)
'''
"""Beginning of a process that makes this system like Windows."""

SCORE = """
import torch
import brittle
from brittle.scores import Moments, Taylor

torch.manual_seed(0)
classifier = brittle.Classifier(torch.nn.Linear(4, 3).eval(), bounds=(0, 1))
data = torch.rand(5, 4), torch.tensor([0, 1, 2, 0, 1])
scores = [Taylor(sigma=0.1), Moments(sigma=0.1, draws=20)]
table = brittle.score(classifier, data, scores)
assert len(table.frame(whole=True)) == 5
print("scored")
"""

WRITE = """
from brittle.extensions.report import figure

figure.draw = lambda image, identity: ""  # as tests/test_installed.py draws
place = Path(sys.argv[1])
for _ in range(2):  # a report is replaced by the next one
    table.report(place / "report.html")
written = brittle.score(classifier, data, scores, out=place / "run")
assert written.scores.equals(table.scores)
assert brittle.score(classifier, data, scores, out=place / "run", resume=True).scores.equals(table.scores)
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="which files are open is read there")
def test_numbers_and_files_need_no_posix(tmp_path: Path) -> None:
    """Score and write without the missing flags of the system, and without renaming or removing open files."""
    quiet = "ignore:only soft file lock"  # filelock's own word on a POSIX system without locks
    command = [sys.executable, "-W", quiet, "-c", WITHOUT_POSIX + SCORE + WRITE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert (done.stdout, done.stderr) == ("scored\n", "")
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "run"}
    assert not [path for path in tmp_path.rglob("*") if path.suffix == ".tmp"]
