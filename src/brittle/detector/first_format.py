"""Detector files of format 1, which knew margins alone, as those of format 2."""

from __future__ import annotations

from typing import Any

FIRST = 1
"""The format."""


def lifted(value: object) -> object:
    """The JSON value of a file of format 1 as it would stand in one of format 2; any other value as it is.

    A part that is not as format 1 has it stays as it is, so that whoever reads the result refuses it.
    """
    if not isinstance(value, dict) or type(value.get("format")) is not int or value["format"] != FIRST:
        return value
    criterion = {name: value[name] for name in ("epsilon", "norm", "margin") if name in value}
    if "criterion" in value:
        return value
    changed: dict[str, Any] = {name: one for name, one in value.items() if name not in criterion}
    changed |= {"format": FIRST + 1, "criterion": criterion}
    changed["counts"] = _with(_renamed(changed.get("counts")), {"undecided": 0, "choice": 0})
    for name in ("true_positives", "false_positives"):
        changed[name] = _with(changed.get(name), {"undecided": 0, "undecided_flagged": 0})
    return changed


def _with(part: object, added: dict[str, int]) -> object:
    """`part` with keys that format 1 has not; unchanged where it is no object, or has one of them."""
    return part | added if isinstance(part, dict) and not part.keys() & added.keys() else part


def _renamed(counts: object) -> object:
    """The counts with the name that format 2 has for points without a margin."""
    if not isinstance(counts, dict) or "without_number" in counts:
        return counts
    return {"without_number" if name == "without_margin" else name: one for name, one in counts.items()}
