"""Operators that change a tensor in place, and whether anything but their result sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import fx

from brittle.measure.certified.graph import UnsupportedLayer
from brittle.measure.certified.operators import SAME, VIEWS

SHARING = VIEWS | SAME
"""Operators whose value may share memory with their first argument."""


class ChangedInPlace(UnsupportedLayer):
    """A tensor that is changed where others see it."""


def check_writes(graph: fx.Graph, name: Callable[[fx.Node], str]) -> None:
    """Refuse an operator that changes a tensor which is read later by another way than through its result.

    Values of layers are not changed, so that a later reader would get what stood there before. What was read before
    stays as it was.

    Args:
        graph: of an exported program.
        name: what `operators` calls the operator of a node.

    Raises:
        ChangedInPlace: there is one.
    """
    places = {node: place for place, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        for changed in _written(node):
            for one in _sharing(changed, node, name):
                if any(places[user] > places[node] for user in one.users):
                    raise ChangedInPlace(f"{name(node)} in place on a tensor that is used elsewhere")


def _written(node: fx.Node) -> Iterator[fx.Node]:
    """What the operator of `node` changes, as its schema says."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or node.op != "call_function":
        return
    for place, one in enumerate(schema.arguments):
        if one.alias_info is not None and one.alias_info.is_write:
            given = node.args[place] if place < len(node.args) else node.kwargs.get(one.name)
            for changed in given if isinstance(given, list | tuple) else (given,):
                if isinstance(changed, fx.Node):
                    yield changed


def _sharing(changed: fx.Node, writer: fx.Node, name: Callable[[fx.Node], str]) -> list[fx.Node]:
    """All values that may share memory with `changed`, but for what `writer` returns and what is made of that."""
    root = changed
    while (source := _source(root, name)) is not None:
        root = source
    found = [root]
    if root.op == "get_attr":  # a node for each time that it is read
        found = [one for one in root.graph.nodes if one.op == "get_attr" and one.target == root.target]
    for one in found:
        found += [user for user in one.users if user is not writer and _source(user, name) is one]
    return found


def _source(node: fx.Node, name: Callable[[fx.Node], str]) -> fx.Node | None:
    """The value whose memory that of `node` may be; None where it has its own."""
    first = node.args[0] if node.op == "call_function" and node.args else None
    if not isinstance(first, fx.Node):
        return None
    schema = getattr(node.target, "_schema", None)
    returned = schema is not None and any(one.alias_info is not None for one in schema.returns)
    return first if returned or name(node) in SHARING else None
