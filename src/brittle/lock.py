"""One process at a time: a lock on a folder that the system itself releases when its owner dies."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from pathlib import Path
from types import TracebackType

from brittle.errors import StorageError

NAME = ".lock"
"""The file in the folder that is locked; it says who holds it."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Lock:
    """Holds a folder while the block runs.

    The lock is the system's (`flock`), so one that was left behind by a killed process, or by a machine that went
    down, is free. The file says which process on which machine holds it, for the sentence that refuses a second one.

    Raises:
        StorageError: another process holds the folder, or the lock file cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._file = -1

    def __enter__(self) -> Lock:
        try:
            while not self._acquired():
                os.close(self._file)
        except BlockingIOError as error:
            os.close(self._file)
            raise StorageError(
                "locked", f"{self._path.parent} is being written by {self._holder()}; wait for it, or stop it first"
            ) from error
        except OSError as error:
            raise StorageError("unwritable", f"{self._path} cannot be written ({error.strerror})") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._file)

    def _acquired(self) -> bool:
        """Lock the file; False where its last owner removed it in between."""
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            if self._path.stat().st_ino != os.fstat(self._file).st_ino:
                return False
        except FileNotFoundError:
            return False
        os.truncate(self._file, 0)
        os.pwrite(self._file, json.dumps(_owner()).encode(), 0)
        return True

    def _holder(self) -> str:
        try:
            owner = json.loads(self._path.read_bytes())
            return f"process {owner['pid']} on {owner['host']}"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process"


def _owner() -> dict[str, object]:
    boot = _BOOT_ID.read_text().strip() if _BOOT_ID.is_file() else None
    return {"pid": os.getpid(), "host": socket.gethostname(), "boot": boot}
