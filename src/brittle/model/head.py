"""The last linear layer of a network: found or named, and checked to give the logits from the features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import attrgetter
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, fx, nn

from brittle.errors import ModelError

OutputAndFeatures = tuple[Any, Tensor]  # output of a network, and the features that its head read in the same pass


@dataclass(frozen=True)
class Head:
    """The linear layer `z = W h + b` at the end of a network; `observe` gives output and features `[B, d]`."""

    name: str
    weight: Tensor
    bias: Tensor | None
    observe: Callable[..., OutputAndFeatures] = field(repr=False)

    def for_two_classes(self) -> Head:
        """Return the head of the two classes of a network with one logit: that of class 0 is 0."""
        none = torch.zeros_like(self.weight)
        bias = None if self.bias is None else torch.cat((torch.zeros_like(self.bias), self.bias))
        return replace(self, weight=torch.cat((none, self.weight)), bias=bias)

    def logits(self, features: Tensor) -> Tensor:
        """`W h + b`, `[B, C]`."""
        return nn.functional.linear(features, self.weight, self.bias)


def find_head(model: Any, name: str | None = None) -> Head:
    """Return the last linear layer of `model`, or the one called `name`; `check_head` says if it gives the logits."""
    layers = _linear_layers(model)
    layer_names = f"its linear layers: {', '.join(layers)}" if layers else "it has none that can be found"
    if name is not None and name not in layers:
        raise ModelError("no_head", f"the model has no linear layer called {name!r}; {layer_names}")
    if not layers:
        raise ModelError("no_head", f"the model has no linear layer that gives the logits ({layer_names}); {_WITHOUT}")
    chosen = list(layers)[-1] if name is None else name
    build = _with_features if isinstance(model, fx.GraphModule) else _hooked
    return build(model, chosen, layers[chosen])


def check_head(head: Head, features: Tensor, logits: Tensor) -> None:
    """Raise unless `logits` are those of `head` at `features`, up to a constant for each row."""
    if features.dim() == 2 and len(head.weight) == logits.shape[1]:
        pair = (head.logits(features).detach().double(), logits.detach().double())
        ours, theirs = (values - values.mean(1, keepdim=True) for values in pair)
        rows = ours.isfinite().all(1) & theirs.isfinite().all(1)
        scale = theirs[rows].abs().amax() if bool(rows.any()) else theirs.new_tensor(1.0)
        if torch.allclose(ours[rows], theirs[rows], rtol=1e-3, atol=1e-3 * float(scale)):
            return
    raise ModelError("no_head", f"the logits are not what the layer {head.name!r} gives; {_WITHOUT}")


_WITHOUT = "name the last linear layer with --head (head=), or leave out the scores that need features"


def _linear_layers(model: Any) -> dict[str, Any]:
    """Linear layers by name, in the order of their definition; those of an exported program in that of execution."""
    if not isinstance(model, fx.GraphModule):
        modules = model.named_modules() if isinstance(model, nn.Module) else ()
        return {name: layer for name, layer in modules if isinstance(layer, nn.Linear)}
    nodes = [node for node in model.graph.nodes if node.target is torch.ops.aten.linear.default]
    return {
        str(node.args[1].target).removesuffix(".weight"): node
        for node in nodes
        if all(isinstance(arg, fx.Node) and arg.op == "get_attr" for arg in node.args[1:] if arg is not None)
    }


def _hooked(model: nn.Module, name: str, layer: nn.Linear) -> Head:
    def observe(*inputs: Tensor, **extra_tensors: Tensor) -> OutputAndFeatures:
        captured: list[Tensor] = []
        caller = get_ident()

        def capture(_: nn.Module, arguments: Any, __: Any) -> None:
            if get_ident() == caller:  # a service answers several requests at once, each in a thread of its own
                captured.append(arguments[0])

        handle = layer.register_forward_hook(capture)
        try:
            output = model(*inputs, **extra_tensors)
        finally:
            handle.remove()
        if not captured:
            raise ModelError("no_head", f"the layer {name!r} takes no part in the forward pass; {_WITHOUT}")
        return output, captured[-1]

    return Head(name or type(layer).__name__, layer.weight, layer.bias, observe)


def _with_features(model: fx.GraphModule, name: str, node: fx.Node) -> Head:
    """Return a copy of the graph that returns the input of `node` as well; the weights are shared."""
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    output = graph.graph_copy(model.graph, copies)
    values = output[0] if isinstance(output, tuple | list) and len(output) == 1 else output
    features = node.args[0]
    assert isinstance(features, fx.Node)
    graph.output((values, copies[features]))
    observe = fx.GraphModule(model, graph)
    names = [argument if argument is None else str(argument.target) for argument in [*node.args[1:], None][:2]]
    weight, bias = (None if name is None else attrgetter(name)(model) for name in names)
    assert weight is not None
    return Head(name, weight, bias, observe)
