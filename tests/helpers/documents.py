"""The README and the documents, and their blocks of code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    """Return the code blocks of a document in this language."""
    return re.findall(rf"```{language}\n(.*?)```", read(name), flags=re.DOTALL)


def pages() -> list[Path]:
    """Return the pages below `docs/` that people wrote, without those that studies generate."""
    return [path for path in sorted(ROOT.glob("docs/**/*.md")) if "studies" not in path.parts]
