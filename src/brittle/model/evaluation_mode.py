"""What holds while a network is measured: evaluation mode, gradients, precision, nothing compiled, nothing printed.

All of it but the modes of the caller belongs to the process, so one thread measures at a time and another waits for it.
To train a network in one thread while another measures it is not supported: measure a copy (`copy.deepcopy`).
"""

from __future__ import annotations

import io
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stderr
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from brittle.errors import ModelError

SHOWN = 5
"""Modules that a message names."""

_lock = threading.RLock()


@dataclass(frozen=True)
class _Evaluated:
    """A network that is measured: whether it was in training mode before, and its modules that can be switched."""

    model: nn.Module
    was_training: bool
    watched: list[nn.Module]


_evaluated: list[_Evaluated] = []
"""Of the thread that holds the lock, the outermost block first."""


@contextmanager
def evaluating(model: object, device: torch.device) -> Iterator[bool]:
    """Evaluation mode without parameter gradients inside the block, for this thread alone; all is as before afterwards.

    Yields whether the model was in training mode before the outermost such block of it. A block in another thread waits
    until this one ends.

    Raises:
        ModelError: a module stays in training mode after `eval()`, or is put into it inside the block.
    """
    mode = _evaluation_mode(model) if isinstance(model, nn.Module) else nullcontext(False)
    with _lock, standard_modes(device), _uncompiled(), mode as was_training:
        yield was_training


@contextmanager
def one_pass(model: object) -> Iterator[None]:
    """One pass through `model`, which must be in evaluation mode before and after it where it is being measured."""
    with _lock, quiet():
        check_mode(model)
        yield
        check_mode(model)


@contextmanager
def standard_modes(device: torch.device) -> Iterator[None]:
    """Gradients can be taken inside the block, and nothing is computed in another precision than its own.

    `torch.no_grad` and `torch.inference_mode` of the caller would take away the derivatives, `torch.autocast` decides
    numbers without being part of the model. (Within the model's own `forward` all three do what they do.)
    """
    with ExitStack() as modes:
        modes.enter_context(torch.inference_mode(False))
        modes.enter_context(torch.enable_grad())
        for kind in dict.fromkeys(("cpu", device.type)):
            if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
                modes.enter_context(torch.autocast(kind, enabled=False))
        yield


@contextmanager
def twice_differentiable() -> Iterator[None]:
    """Attention is computed by elementary operations inside the block; its kernels have no second derivatives."""
    with _lock, sdpa_kernel(SDPBackend.MATH):
        yield


@contextmanager
def traced() -> Iterator[None]:
    """Inside the block this thread alone uses networks, as tracing puts other parameters into one, and nothing is
    printed."""
    with _lock, quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """What is written to stderr inside the block is written at its end, and is lost where the block raises.

    PyTorch prints the graph of a network that it fails to trace or to run, beside the error that it raises.
    """
    written = io.StringIO()
    with _lock, redirect_stderr(written):
        yield
    if written.tell():
        sys.stderr.write(written.getvalue())


def plain(model: nn.Module) -> nn.Module:
    """The module that `torch.compile` was given, where `model` is what it made; else `model`."""
    return getattr(model, "_orig_mod", model)


def check_mode(model: object) -> None:
    """Raise if `model` is being measured and a module of it is in training mode.

    Raises:
        ModelError: the model itself or other code put it there.
    """
    own = next((one for one in reversed(_evaluated) if one.model is model), None)
    training = [] if own is None else [module for module in own.watched if module.training]
    if own is not None and training:
        raise ModelError(
            "model_changed",
            f"{_names(own.model, training)} was put into training mode while the model was measured, by another "
            f"thread or by the model itself, so the numbers would mix both modes; measure a copy "
            f"(copy.deepcopy(model)), or do not train until it is done",
        )


@contextmanager
def _uncompiled() -> Iterator[None]:
    """What was compiled runs as PyTorch alone inside the block.

    The backward pass of a compiled network can be made once and cannot be differentiated, and it would be compiled
    again for every size of a batch.
    """
    compiled = "torch._dynamo" in sys.modules
    with torch.compiler.set_stance("force_eager") if compiled else nullcontext():
        yield


@contextmanager
def _evaluation_mode(model: nn.Module) -> Iterator[bool]:
    modules, training = list(model.modules()), [one for one in model.modules() if _trains(one)]
    learned = [one for one in model.parameters() if one.requires_grad]
    outer = any(one.model is model and one.was_training for one in _evaluated)
    try:
        for parameter in learned:
            parameter.requires_grad_(False)
        fixed = _evaluate(model)
        watched = [one for one in modules if hasattr(one, "training") and not (one in fixed and one.training)]
        if stubborn := [one for one in watched if one.training]:
            raise ModelError(
                "train_mode",
                f"still in training mode after eval(): {_names(model, stubborn)}; let an overridden train() or eval() "
                f"call super()",
            )
        _evaluated.append(_Evaluated(model, outer or (model in training and not _trains(model)), watched))
        try:
            yield _evaluated[-1].was_training
            check_mode(model)
        finally:
            _evaluated.pop()
    finally:
        for parameter in learned:
            # Outside inference mode a parameter that was made in it cannot be made to require gradients.
            with torch.inference_mode(parameter.is_inference()):
                parameter.requires_grad_(True)
        for module in training:
            module.training = True


def _trains(module: nn.Module) -> bool:
    return getattr(module, "training", False)  # a frozen TorchScript module has no mode


def _evaluate(module: nn.Module) -> set[nn.Module]:
    """Switch to evaluation mode; the modules that cannot be, exported programs, whose mode was fixed then."""
    try:
        module.eval()
    except NotImplementedError:
        return {module}.union(*map(_evaluate, module.children()))
    return set()


def _names(model: nn.Module, wanted: list[nn.Module]) -> str:
    names = [name or type(one).__name__ for name, one in model.named_modules() if any(one is each for each in wanted)]
    return ", ".join(names[:SHOWN])
