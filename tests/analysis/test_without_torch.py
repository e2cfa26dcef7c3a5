"""Reading a table needs no torch."""

from __future__ import annotations

import subprocess
import sys


def test_does_not_load_torch() -> None:
    """One process imports one after the other and names those after which torch is there."""
    modules = ("brittle.store.table", "brittle.analysis", "brittle.report")
    code = (
        "import importlib, sys\n"
        f"for name in {modules}:\n"
        "    importlib.import_module(name)\n"
        "    if 'torch' in sys.modules:\n"
        "        sys.exit(name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
