"""Modules in evaluation mode as long as any thread evaluates them.

Whether a module trains, and whether its parameters collect gradients, belongs to the module: every thread that uses it
has the same mode. So both are counted for the whole process, for each module and each parameter, also where two
classifiers are of one network, or of two networks that share layers. The first to evaluate switches the mode, the last
restores it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from brittle.errors import ModelError

SHOWN = 5
"""Modules that a message names."""


@dataclass
class _Switched:
    """A module or a parameter that is held.

    Attributes:
        one: the module or parameter; held here, so that nothing else gets its `id`.
        before: its mode before it was first held.
        holders: how many hold it.
    """

    one: nn.Module | nn.Parameter
    before: bool
    holders: int = 0


@dataclass
class _Evaluated:
    """A network that is being evaluated.

    Attributes:
        modules: it and all its submodules.
        parameters: all its parameters.
        watched: those of its modules that can be switched, all of them but exported programs.
        holders: how many evaluate it.
    """

    modules: Sequence[nn.Module]
    parameters: Sequence[nn.Parameter]
    watched: Sequence[nn.Module] = ()
    holders: int = 0


_lock = threading.RLock()
_modules: dict[int, _Switched] = {}
_parameters: dict[int, _Switched] = {}
_evaluated: dict[int, _Evaluated] = {}


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[bool]:
    """Evaluation mode without parameter gradients inside the block, in all threads.

    Yields whether the model was in training mode before it was evaluated, and is not now. A module that other code
    puts into training mode meanwhile is left in it.

    Raises:
        ModelError: a module stays in training mode after `eval()`, or was put into it in the meantime.
    """
    with _lock:
        _enter(model)
        was_training = _modules[id(model)].before and not model.training
    try:
        yield was_training
        check_mode(model)
    finally:
        with _lock:
            _leave(model)


def check_mode(model: object) -> None:
    """Raise if `model` is being evaluated and a module of it is in training mode.

    Raises:
        ModelError: other code put it there.
    """
    held = _evaluated.get(id(model))
    if held is None or not any(module.training for module in held.watched):
        return
    training = {id(module) for module in held.watched if module.training}
    raise ModelError(
        "model_changed",
        f"{_named(held.modules[0], training)} was put into training mode while the model was measured, by another "
        f"thread or by the model itself, so the numbers would mix both modes; measure a copy (copy.deepcopy(model)), "
        f"or do not train until it is done",
    )


def _enter(model: nn.Module) -> None:
    held = _evaluated.get(id(model))
    if held is None:
        held = _Evaluated(tuple(model.modules()), tuple(model.parameters()))
        _hold(_modules, held.modules, "training")
        _hold(_parameters, held.parameters, "requires_grad")
        _evaluated[id(model)] = held
    held.holders += 1
    try:
        if held.holders == 1:
            _check_not_trained(held)
            held.watched = _switch(held)
        check_mode(model)
    except BaseException:
        _leave(model)
        raise


def _leave(model: nn.Module) -> None:
    held = _evaluated[id(model)]
    held.holders -= 1
    if held.holders:
        return
    del _evaluated[id(model)]
    for switched in _release(_parameters, held.parameters):
        if switched.before:
            # Outside inference mode a parameter that was made in it cannot be made to require gradients.
            with torch.inference_mode(switched.one.is_inference()):  # type: ignore[operator]
                switched.one.requires_grad_(True)
    for switched in _release(_modules, held.modules):
        if switched.before:
            switched.one.training = True  # type: ignore[union-attr]


def _hold(switched: dict[int, _Switched], ones: Sequence[nn.Module | nn.Parameter], mode: str) -> None:
    for one in ones:
        switched.setdefault(id(one), _Switched(one, getattr(one, mode))).holders += 1


def _release(switched: dict[int, _Switched], ones: Sequence[nn.Module | nn.Parameter]) -> list[_Switched]:
    """One holder less for each; returns those that have none left."""
    for one in ones:
        switched[id(one)].holders -= 1
    return [switched.pop(id(one)) for one in ones if not switched[id(one)].holders]


def _check_not_trained(held: _Evaluated) -> None:
    """Raise where a part that others evaluate was put into training mode: `eval()` would hide it from them."""
    own = {id(module) for module in held.modules}
    for network in _evaluated.values():
        if any(id(module) in own for module in network.watched):
            check_mode(network.modules[0])


def _switch(held: _Evaluated) -> list[nn.Module]:
    """Switch to evaluation mode; returns the modules that could be switched."""
    for parameter in held.parameters:
        if parameter.requires_grad:
            parameter.requires_grad_(False)
    fixed: set[int] = set()
    _evaluate(held.modules[0], fixed)
    switched = [module for module in held.modules if id(module) not in fixed or not module.training]
    training = {id(module) for module in switched if module.training}
    if training:
        stubborn = _named(held.modules[0], training)
        raise ModelError(
            "train_mode",
            f"still in training mode after eval(): {stubborn}; let an overridden train() or eval() call super()",
        )
    return switched


def _evaluate(module: nn.Module, fixed: set[int]) -> None:
    """`module.eval()`; where a part of it is an exported program, whose mode was fixed then, that of every other."""
    try:
        module.eval()
    except NotImplementedError:
        fixed.add(id(module))
        for child in module.children():
            _evaluate(child, fixed)


def _named(model: nn.Module, wanted: set[int]) -> str:
    names = [name or type(module).__name__ for name, module in model.named_modules() if id(module) in wanted]
    return ", ".join(names[:SHOWN])
