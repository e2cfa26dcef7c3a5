"""A figure: an Altair chart of a frame, drawn as SVG text when the page is written.

A figure's chart is a function from a frame to a specification, so that the same one can be drawn as an image here or
be shown by a live Vega-Lite elsewhere. No name out of the data enters an expression of the specification.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any
from xml.etree import ElementTree

import altair as alt
import pandas as pd
import vl_convert
from altair.utils.schemapi import debug_mode

from brittle.extensions.report.charts import NARROW, WIDTH, styled

WIDE_ONLY, NARROW_ONLY = "wide-only", "narrow-only"  # classes of drawings: shown on wide screens, and on narrow ones
GRAMMAR = "_".join(alt.SCHEMA_VERSION.split(".")[:2])  # version of Vega-Lite that Altair writes, as vl-convert calls it
_IMPORTED_IN = os.getpid()  # the process that has the threads of vl-convert, if any has

_DRAWING = """
import json, sys, vl_convert
for line in sys.stdin:
    print(json.dumps(vl_convert.vegalite_to_svg(json.loads(line), vl_version=sys.argv[1])), flush=True)
"""
"""Program of a process that draws for a forked one until its input is closed."""

_SVG = "http://www.w3.org/2000/svg"
_ELEMENTS = frozenset({"svg", "g", "path", "text", "tspan", "rect", "line", "circle", "defs", "clipPath"})
_ATTRIBUTES = frozenset(
    {
        "class", "clip-path", "cx", "cy", "d", "dominant-baseline", "dx", "dy", "fill", "fill-opacity", "font-family",
        "font-size", "font-style", "font-weight", "height", "id", "opacity", "pointer-events", "r", "rx", "ry",
        "stroke", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
        "stroke-opacity", "stroke-width", "text-anchor", "transform", "viewBox", "width", "x", "x1", "x2", "y", "y1",
        "y2",
    }
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Figure:
    """A drawing: the function that makes its Altair chart, the frame that this reads, and the result in words. The
    chart has a `width` in pixels; `alt_text` is read by screen readers."""

    chart: Callable[..., Any]
    frame: pd.DataFrame
    alt_text: str


def draw(figure: Figure, identity: str) -> str:
    """`figure` as SVG of shapes and text alone, for wide screens and for small ones; empty without data.

    The specification is not held against the schema of Vega-Lite, which takes a quarter of the time: tests do that.
    `identity` begins the identifiers inside the drawings; another one for every figure of a page.
    """
    if figure.frame.empty:
        return ""
    with debug_mode(False):
        wide = _drawn(figure.chart(figure.frame, width=WIDTH), f"{identity}-w", WIDE_ONLY)
        return wide + _drawn(figure.chart(figure.frame, width=NARROW), f"{identity}-n", NARROW_ONLY)


def _drawn(chart: Any, identity: str, kind: str) -> str:
    with alt.data_transformers.enable("default", max_rows=None):
        specification = styled(chart).to_dict(validate=False)
    return inert(_svg(specification), identity, kind)


def _svg(specification: dict[str, Any]) -> str:
    if os.getpid() == _IMPORTED_IN:
        return vl_convert.vegalite_to_svg(specification, vl_version=GRAMMAR)
    process, turn = _drawing_process(os.getpid())
    assert process.stdin is not None
    assert process.stdout is not None
    with turn, suppress(BrokenPipeError):
        print(json.dumps(specification), file=process.stdin, flush=True)
        if line := process.stdout.readline():
            return json.loads(line)
    raise RuntimeError(f"{sys.executable}, which draws for a forked process, has ended")


@cache
def _drawing_process(fork: int) -> tuple[subprocess.Popen[str], Lock]:
    """Start the process that draws for `fork`: vl-convert waits for ever for its threads, which no fork has."""
    command = [sys.executable, "-P", "-c", _DRAWING, GRAMMAR]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True), Lock()


def inert(svg: str, name: str, kind: str = "") -> str:
    """`svg` rebuilt from the elements and attributes that a drawing needs, its identifiers unique to the figure. `name`
    begins its identifiers; `kind` is its class on the page."""
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(svg)
    names_by_id = dict.fromkeys(node.attrib["id"] for node in root.iter() if "id" in node.attrib)
    _clean(root, {identifier: f"{name}-{order}" for order, identifier in enumerate(names_by_id)})
    if kind:
        root.set("class", kind)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(node: ElementTree.Element, ids: dict[str, str]) -> None:
    for child in list(node):
        if child.tag.removeprefix(f"{{{_SVG}}}") in _ELEMENTS:
            _clean(child, ids)
        else:
            node.remove(child)
    attributes = {key: value for key, value in node.attrib.items() if key in _ATTRIBUTES}
    if "id" in attributes:
        attributes["id"] = ids[attributes["id"]]
    if "clip-path" in attributes:
        attributes["clip-path"] = f"url(#{ids[attributes['clip-path'].removeprefix('url(#').removesuffix(')')]})"
    node.attrib.clear()
    node.attrib.update(attributes)
