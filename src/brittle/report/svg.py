"""Drawings that hold shapes and text and nothing else."""

from __future__ import annotations

from xml.etree import ElementTree

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


def inert(svg: str, name: str, kind: str = "") -> str:
    """`svg` rebuilt from the elements and attributes that a drawing needs, its identifiers unique to the figure.

    Args:
        svg: the drawing.
        name: begins its identifiers.
        kind: its class on the page; empty for none.
    """
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(svg)
    found = dict.fromkeys(node.attrib["id"] for node in root.iter() if "id" in node.attrib)
    ids = {identifier: f"{name}-{order}" for order, identifier in enumerate(found)}
    _clean(root, ids)
    if kind:
        root.set("class", kind)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(node: ElementTree.Element, ids: dict[str, str]) -> None:
    for child in list(node):
        if child.tag.removeprefix(f"{{{_SVG}}}") in _ELEMENTS:
            _clean(child, ids)
        else:
            node.remove(child)
    kept = {key: value for key, value in node.attrib.items() if key in _ATTRIBUTES}
    if "id" in kept:
        kept["id"] = ids[kept["id"]]
    if "clip-path" in kept:
        kept["clip-path"] = f"url(#{ids[kept['clip-path'].removeprefix('url(#').removesuffix(')')]})"
    node.attrib.clear()
    node.attrib.update(kept)
