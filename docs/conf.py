"""The documentation as a site: `make docs`."""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # tutorials call brittle
os.environ["COLUMNS"] = "120"

project = "brittle"
author = "the brittle contributors"
release = version = version_of("brittle")

extensions = [
    "cyclopts.ext.sphinx",
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
html_theme = "furo"
html_title = "brittle"
html_static_path = []

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_use_ivar = True
napoleon_custom_sections = [("Class attributes", "Attributes")]
python_maximum_signature_line_length = 88

MARKED = re.compile(r"(?<![`:])`((?:[^`\n]|\n(?!\n))+)`(?![`_])")  # within a paragraph
FORMULA = re.compile(r"^\$\$(.+)\$\$$", re.MULTILINE)


def as_literal(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings mark code and formulas as Markdown does: between single backticks, and between two dollars."""
    lines[:] = FORMULA.sub(r".. math:: \1", MARKED.sub(r"``\1``", "\n".join(lines))).splitlines()


REACHABLE = """addEventListener("DOMContentLoaded", () => {
  for (const one of document.querySelectorAll("[role=heading]")) one.ariaLevel = "2";
  for (const one of document.querySelectorAll("pre, .table-wrapper, .cell_output")) one.tabIndex = 0;
});"""
"""What the theme leaves out: levels of its headings, and places that scroll by keyboard."""


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", as_literal)
    app.add_js_file(None, body=REACHABLE)
