"""The README and the documents, and the blocks of code in them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    """What a document says in this language, block by block."""
    return re.findall(rf"```{language}\n(.*?)```", read(name), flags=re.DOTALL)


def pages() -> list[Path]:
    """What people wrote below `docs/`; the pages of studies are written by their builder."""
    return [path for path in sorted(ROOT.glob("docs/**/*.md")) if "studies" not in path.parts]
