"""One process at a time: a lock on a folder that the system itself releases when its owner dies."""

from __future__ import annotations

import json
import os
import socket
import stat
from pathlib import Path
from types import TracebackType

from brittle.errors import StorageError
from brittle.store.files.writing import check_target

NAME = ".lock"
"""The file in the folder that is locked; it says who holds it."""

MOST_BYTES = 1 << 12
"""No lock is longer."""

TRIES = 1000
"""How often the file may be removed between two looks at it."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""No link is followed, no pipe waited for."""


class Lock:
    """Holds a folder while the block runs.

    The lock is the system's (`flock`), so one that was left behind by a killed process, or by a machine that went
    down, is free. The file says which process on which machine holds it, for the sentence that refuses a second one.
    Nothing is written before it is sure that the file is a regular one, has no other name, and is empty or a lock.

    Raises:
        StorageError: another process holds the folder, the lock file cannot be written, or what is there under its
            name is none.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._file = -1

    def __enter__(self) -> Lock:
        try:
            if not any(self._acquired() for _ in range(TRIES)):
                raise StorageError(
                    "locked", f"{self._path} comes and goes; wait for who writes there, or stop it first"
                )
        except OSError as error:
            raise StorageError("unwritable", f"{self._path} cannot be written ({error.strerror})") from error
        os.truncate(self._file, 0)
        os.pwrite(self._file, json.dumps(_owner()).encode(), 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._file)

    def _acquired(self) -> bool:
        """Lock the file; False where its last owner removed it in between."""
        check_target(self._path)  # before it is opened: to open a device may do something
        self._file = os.open(self._path, _OPEN, 0o644)
        try:
            taken = self._taken()
        except BaseException:
            os.close(self._file)
            raise
        if not taken:
            os.close(self._file)
        return taken

    def _taken(self) -> bool:
        import fcntl  # of POSIX alone; numbers in memory need none

        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            raise self._foreign("is no regular file")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StorageError(
                "locked", f"{self._path.parent} is being written by {self._holder()}; wait for it, or stop it first"
            ) from error
        opened = os.fstat(self._file)
        try:
            if self._path.lstat().st_ino != opened.st_ino:
                return False
        except FileNotFoundError:
            return False
        if opened.st_nlink > 1:
            raise self._foreign(f"is a file with {opened.st_nlink} names")
        if not self._is_lock():
            raise self._foreign("holds something else than a lock")
        return True

    def _is_lock(self) -> bool:
        """Whether the file is empty (or zeros, which a power cut may leave) or says who held it."""
        content = os.pread(self._file, MOST_BYTES + 1, 0)
        return len(content) <= MOST_BYTES and (not content.strip(b"\0") or _read(content) is not None)

    def _foreign(self, seen: str) -> StorageError:
        return StorageError(
            "no_lock", f"{self._path} {seen}, so it is not written over; choose another folder, or remove that file"
        )

    def _holder(self) -> str:
        owner = _read(os.pread(self._file, MOST_BYTES, 0))
        return "another process" if owner is None else f"process {owner['pid']} on {owner['host']}"


def _owner() -> dict[str, object]:
    boot = _BOOT_ID.read_text().strip() if _BOOT_ID.is_file() else None
    return {"pid": os.getpid(), "host": socket.gethostname(), "boot": boot}


def _read(content: bytes) -> dict[str, object] | None:
    """Who held a lock, or None where the content is of no lock."""
    try:
        owner = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return owner if isinstance(owner, dict) and owner.keys() == {"pid", "host", "boot"} else None
