"""The one way in which a file is written: whole or not at all, and over nothing but a regular file or a free name.

Whoever can write a folder can put a link, a pipe or a device where a file of ours is to be. None is opened: not to
write through it, not to wait for it. The content gets a name of its own beside the file, is flushed, and is renamed.
"""

import difflib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from brittle.errors import StorageError, listed

TEMPORARY = ".tmp"  # ending of the name of a file that is being written; the name begins with a dot


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_NEW |= sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NOINHERIT", "O_BINARY"))
"""A name that is new, by `O_EXCL` alone where the system (Windows) has no `O_NOFOLLOW`."""


def check_target(path: Path) -> None:
    """Raise where `path` is anything but a regular file; nothing is opened."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError("unwritable", f"{path} cannot be written ({error.strerror}); choose another") from error
    if stat.S_ISREG(mode):
        return
    kind = f"a link to {path.readlink()}" if stat.S_ISLNK(mode) else "a folder" if stat.S_ISDIR(mode) else "no file"
    raise StorageError("unreadable", f"{path} is {kind}, and only regular files are written; choose another name")


def check_writable_file(path: Path) -> None:
    """Raise where no file can be written at `path`; nothing is opened."""
    check_target(path)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise StorageError("unwritable", f"{path} cannot be written: its folder must exist; choose another")


def make_folder(path: Path) -> None:
    """Make a folder, perhaps through a link, and those above it, so that they outlive a power cut."""
    try:
        new = [place for place in (path.absolute(), *path.absolute().parents) if not place.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for place in reversed(new):
            with suppress(PermissionError):  # a folder that takes files and shows none cannot be flushed
                _flush(place.parent)
    except OSError as error:
        raise StorageError("unwritable", f"{path} cannot be made ({error.strerror}); choose another") from error


@contextmanager
def replacing(path: Path, advice: str = "choose another") -> Iterator[BinaryIO]:
    """Open a file to write, which gets the name `path`, and its permissions, where the block ends well."""
    check_target(path)
    short = os.fsdecode(os.fsencode(path.name)[:200])  # file systems take 255 bytes, with what stands around
    temporary = path.with_name(f".{short}.{secrets.token_hex(6)}{TEMPORARY}")
    try:
        opened = os.fdopen(os.open(temporary, _NEW, 0o666), "wb")
        try:
            with opened as file:
                if path.exists() and hasattr(os, "fchmod"):  # Windows has none, and no permissions of this kind
                    os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
                yield file
                file.flush()
                os.fsync(file.fileno())
            check_target(path)
            temporary.replace(path)  # once it is closed: Windows renames no open file
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _flush(path.parent)
    except OSError as error:
        raise StorageError("unwritable", f"{path} cannot be written ({error.strerror}); {advice}") from error


def write(path: Path, content: bytes, advice: str = "choose another") -> None:
    """Write `content` so that a reader sees all of it or none, whenever the process dies."""
    with replacing(path, advice) as file:
        file.write(content)


def _flush(folder: Path) -> None:
    """Make renames in `folder` outlive a power cut, where a folder can be opened to be flushed (not on Windows)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def nearby(path: Path, is_candidate: Callable[[Path], bool]) -> str:
    """Return the end of a sentence: which candidates beside `path` have nearly its name, else some."""
    folder = path.parent
    try:
        names = [file.name for _, file in zip(range(1000), folder.iterdir(), strict=False) if is_candidate(file)]
    except OSError:
        return f"; there is no folder {folder}" if not folder.exists() else ""
    stems = {Path(name).stem: name for name in names}
    close = difflib.get_close_matches(path.stem, list(stems))
    if close:
        return f"; did you mean {' or '.join(str(folder / stems[stem]) for stem in close)}?"
    visible = sorted(name for name in names if not name.startswith("."))
    return f"; {folder.absolute().name or folder} holds {listed(visible)}" if visible else ""
