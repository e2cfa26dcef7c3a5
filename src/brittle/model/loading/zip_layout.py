"""Whether every byte of a zip archive is of one of its records: nothing before, between or behind them.

Readers of zip archives pass over what no entry names, so a file of any size can travel in one unseen.
"""

from __future__ import annotations

import re
import struct
import zipfile
from itertools import pairwise

_LOCAL, _CENTRAL, _END = struct.Struct("<4s5H3I2H"), struct.Struct("<4s6H3I5H2I"), struct.Struct("<4s4H2IH")
_END_64, _LOCATOR_64 = 56, 20
"""Bytes of the end of a directory that has more than 2^32 bytes or 2^16 records, and of what says where it is."""

_DESCRIPTORS = (struct.Struct("<4sIQQ"), struct.Struct("<4sIII"))
"""What follows a record whose size was not known when it was begun: signature, checksum and both sizes."""

_EXTRA = re.compile(rb"(\x01\x00[\x00-\x1c]\x00.*|FB..Z*)*", re.DOTALL)
"""Sizes of 64 bits, and the padding by which PyTorch aligns a record."""


class SurplusBytesError(ValueError):
    """Bytes of a zip archive are of none of its records; the message says which."""


def check_layout(content: bytes, archive: zipfile.ZipFile) -> None:
    """Raise where a byte of `content`, the file of `archive`, is of no record.

    Raises:
        SurplusBytesError: one is.
        struct.error: it ends in the middle of a record.
    """
    members = sorted(archive.infolist(), key=lambda one: one.header_offset)
    spans = [(one.header_offset, _end_of(content, one)) for one in members]
    whole = [(0, 0), *spans, (archive.start_dir, len(content))]
    for (_, end), (start, _) in pairwise(whole):
        if start != end:
            raise SurplusBytesError(f"{abs(start - end)} bytes at {min(start, end)} are of no record, or of two")
    _check_directory(content, archive)


def _end_of(content: bytes, member: zipfile.ZipInfo) -> int:
    """The first byte behind a record and behind its data descriptor, where it has one."""
    start = member.header_offset
    *_, name, extra = _LOCAL.unpack_from(content, start)
    begin = start + _LOCAL.size + name
    if not _EXTRA.fullmatch(content[begin : begin + extra]) or member.comment or member.extra[:2] not in (b"", b"\1\0"):
        raise SurplusBytesError(f"{member.filename!r:.80} has a comment, or more beside it than its size")
    end = begin + extra + member.compress_size
    if not member.flag_bits & 8:
        return end
    descriptor = (b"PK\x07\x08", member.CRC, member.compress_size, member.file_size)
    for form in _DESCRIPTORS:
        if content[end : end + form.size] == _pack(form, descriptor):
            return end + form.size
    raise SurplusBytesError(f"{member.filename!r:.80} is not followed by its size")


def _pack(form: struct.Struct, descriptor: tuple[bytes, int, int, int]) -> bytes:
    try:
        return form.pack(*descriptor)
    except struct.error:  # a size of more than 32 bits
        return b"?"


def _check_directory(content: bytes, archive: zipfile.ZipFile) -> None:
    """Raise where something lies in the directory that is no entry of it, or behind it."""
    place = archive.start_dir
    for _ in archive.infolist():
        name, extra, comment = _CENTRAL.unpack_from(content, place)[10:13]
        place += _CENTRAL.size + name + extra + comment
    ends = _END.size + (_END_64 + _LOCATOR_64 if content[place : place + 4] == b"PK\x06\x06" else 0)
    if surplus := len(content) - place - ends:
        raise SurplusBytesError(f"{surplus} bytes behind the directory are of no record")
