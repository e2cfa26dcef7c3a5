"""A run folder is written by one process at a time."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest
from helpers.processes import started
from helpers.resumed import run

from brittle.errors import StorageError
from brittle.store.files.lock import NAME, Lock


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    holding = (
        "import sys, time; from pathlib import Path; from brittle.store.files.lock import Lock\n"
        "with Lock(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with started([sys.executable, "-c", holding, str(tmp_path)], stdout=PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        began = time.monotonic()
        with pytest.raises(StorageError, match=rf"process {other.pid} on ") as caught:
            run(tmp_path)
        assert caught.value.code == "locked"
        assert time.monotonic() - began < 5
    assert (tmp_path / NAME).exists()
    run(tmp_path)  # the lock of a dead process is free
    assert not (tmp_path / NAME).exists()


def test_a_lock_is_held_by_one_of_two_in_one_process(tmp_path: Path) -> None:
    with Lock(tmp_path):
        with pytest.raises(StorageError), Lock(tmp_path):
            pass
        assert json.loads((tmp_path / NAME).read_text())["pid"] == os.getpid()
    with Lock(tmp_path):
        pass
