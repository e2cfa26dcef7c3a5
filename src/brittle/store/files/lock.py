"""One process at a time: a lock on a folder that the system itself releases when its owner dies."""

from __future__ import annotations

import json
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from filelock import lock_descriptor

from brittle.errors import StorageError
from brittle.store.files.writing import check_target, opening

NAME = ".lock"
"""The file in the folder that is locked; it says who holds it."""

MOST_BYTES = 1 << 12
"""No lock is longer."""

TRIES = 1000
"""How often the file may be removed between two looks at it."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_OPEN = os.O_RDWR | os.O_CREAT | opening("O_NOFOLLOW", "O_NONBLOCK")
"""No link is followed, no pipe waited for."""


class Lock:
    """Holds a folder while the block runs.

    The lock is the system's, by `filelock`, so one that was left behind by a killed process, or by a machine that went
    down, is free. The file says which process on which machine holds it, for the sentence that refuses a second one.
    It is opened and looked at here, because a lock of `filelock` by a path empties what lies there or waits at a pipe,
    as the release has it: nothing is written before it is sure that the file is a regular one, has no other name, and
    is empty or a lock.

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
        try:
            self._write(json.dumps(_owner()).encode())
        except OSError as error:
            self._release()
            raise StorageError("unwritable", f"{self._path} cannot be written ({error.strerror})") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def _release(self) -> None:
        """Remove the file while it is held, so that it is nobody else's; where that is not to be, it is a free lock."""
        with suppress(PermissionError):  # Windows removes no open file
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
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            raise self._foreign("is no regular file")
        if not lock_descriptor(self._file, blocking=False):
            raise StorageError(
                "locked", f"{self._path.parent} is being written by {self._holder()}; wait for it, or stop it first"
            )
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
        content = self._read()
        return len(content) <= MOST_BYTES and (not content.strip(b"\0") or _owner_in(content) is not None)

    def _read(self) -> bytes:
        """The start of the file, with a byte more than a lock may have."""
        os.lseek(self._file, 0, os.SEEK_SET)
        return os.read(self._file, MOST_BYTES + 1)

    def _write(self, content: bytes) -> None:
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, content)

    def _foreign(self, found: str) -> StorageError:
        return StorageError(
            "unwritable", f"{self._path} {found}, so it is not written over; choose another folder, or remove that file"
        )

    def _holder(self) -> str:
        try:
            owner = _owner_in(self._read())
        except PermissionError:  # Windows lets nobody read what another process holds
            owner = None
        return "another process" if owner is None else f"process {owner['pid']} on {owner['host']}"


def _owner() -> dict[str, object]:
    boot = _BOOT_ID.read_text().strip() if _BOOT_ID.is_file() else None
    return {"pid": os.getpid(), "host": socket.gethostname(), "boot": boot}


def _owner_in(content: bytes) -> dict[str, object] | None:
    """Who held a lock, or None where the content is of no lock."""
    try:
        owner = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return owner if isinstance(owner, dict) and owner.keys() == {"pid", "host", "boot"} else None
