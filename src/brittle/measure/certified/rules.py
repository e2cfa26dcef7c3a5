"""What an operator must be like for bounds to go through it."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from brittle.measure.certified.curves import CURVES
from brittle.measure.certified.graph import Edge, UnknownOperator, UnsupportedLayer
from brittle.measure.certified.operators import BILINEAR, SUMS, SUPPORTED

_PRECISIONS = (torch.float32, torch.float64)


def check(operator: str, args: tuple[Any, ...]) -> None:
    """Refuse what is no layer of `operators`, or one that does more than that operator does.

    Raises:
        UnsupportedLayer: which one, and why.
    """
    if operator not in SUPPORTED:
        raise UnknownOperator(operator)
    _check_edges(operator, args)
    for one in tree_leaves(args):
        if isinstance(one, torch.dtype) and one not in _PRECISIONS:
            half = "half precision" if one.is_floating_point else str(one).removeprefix("torch.")
            raise UnsupportedLayer(f"{operator} to {half}")
        infinite = isinstance(one, float) and math.isinf(one)
        infinite |= isinstance(one, Tensor) and one.is_floating_point() and not bool(one.isfinite().all())
        if infinite and operator not in CURVES:
            raise UnsupportedLayer(f"{operator} with an infinite number")
    if (operator == "batch_norm" and args[5]) or (operator in ("dropout", "feature_dropout") and args[2]):
        raise UnsupportedLayer(f"{operator} in training mode")
    if operator == "einsum" and len(args) > 3:
        raise UnsupportedLayer(f"einsum of {len(args) - 1} values")
    if operator in CURVES:
        CURVES[operator](*args[1:])


def _check_edges(operator: str, args: tuple[Any, ...]) -> None:
    """Refuse values that depend on the input where only constants can be."""
    edges = [isinstance(one, Edge) for one in args]
    first, second = edges[:1] == [True], edges[1:2] == [True]
    rest = any(isinstance(one, Edge) for one in tree_leaves(args[2:]))
    listed = operator in ("cat", "stack") and not any(isinstance(one, Edge) for one in tree_leaves(args[1:]))
    pair = operator in SUMS | BILINEAR | {"maximum", "expand_as", "view_as"} and not rest
    chosen = operator == "where" and not first
    alone = first and not second and not rest
    if not (listed or pair or chosen or alone):
        between = " of two values that both depend on the input" if sum(edges) > 1 else ""
        raise UnsupportedLayer(f"{operator}{between}")
    if operator == "amax" and args[1:2] in ((), ([],), ((),)):
        raise UnsupportedLayer("amax over all axes")
