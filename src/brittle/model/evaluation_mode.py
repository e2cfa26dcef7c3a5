"""State of a network while it is measured: evaluation mode, gradients, precision, nothing compiled, nothing printed.

All of it but the modes of the caller belongs to the process, so one thread measures at a time and another waits for it.
To train a network in one thread while another measures it is not supported: measure a copy (`copy.deepcopy`).
"""

import io
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from brittle.errors import ModelError, listed

_lock, _one_thread = threading.RLock(), threading.RLock()

_measured: list[tuple[nn.Module, list[nn.Module]]] = []  # by the holder of the lock, with their modules


@contextmanager
def evaluating(model: object, device: torch.device) -> Iterator[None]:
    """Enter evaluation mode without parameter gradients inside the block, for this thread alone; restore all after it.
    What was compiled runs as PyTorch alone: its backward pass cannot be differentiated."""
    with _lock, standard_modes(device), ExitStack() as held:
        if "torch._dynamo" in sys.modules:
            held.enter_context(torch.compiler.set_stance("force_eager"))
        if isinstance(model, nn.Module):
            held.enter_context(_evaluation_mode(model))
        yield


@contextmanager
def standard_modes(device: torch.device) -> Iterator[None]:
    """Allow gradients inside the block, whatever `no_grad`, `inference_mode` or `autocast` the caller is in."""
    with torch.inference_mode(False), torch.enable_grad(), ExitStack() as modes:
        for kind in dict.fromkeys(("cpu", device.type)):
            if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
                modes.enter_context(torch.autocast(kind, enabled=False))
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute by one thread inside the block: sums over several depend on how many there are."""
    with _one_thread:  # the number is the process's: two at once would each put back what the other had set
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


@contextmanager
def twice_differentiable() -> Iterator[None]:
    """Attention is computed by elementary operations inside the block; its kernels have no second derivatives."""
    with _lock, sdpa_kernel(SDPBackend.MATH):
        yield


@contextmanager
def traced() -> Iterator[None]:
    """Inside the block this thread alone uses networks, as tracing swaps their parameters; nothing is printed."""
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """Hold back what is written to stderr inside the block; lost where the block raises."""
    written = io.StringIO()
    with _lock, redirect_stderr(written):
        yield
    if written.tell():
        sys.stderr.write(written.getvalue())


def check_mode(model: object) -> None:
    """Raise if `model` is being measured and a module of it was put into training mode; asked around each pass."""
    for measured_model, watched in _measured:
        if measured_model is model and (changed := _training(measured_model, watched)):
            raise ModelError(
                "model_changed",
                f"{changed} was put into training mode while the model was measured, by another thread or by the model "
                "itself; measure a copy (copy.deepcopy(model)), or do not train until it is done",
            )


@contextmanager
def _evaluation_mode(model: nn.Module) -> Iterator[None]:
    # A frozen TorchScript module has no mode.
    modules = [module for module in model.modules() if hasattr(module, "training")]
    training = [module for module in modules if module.training]
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    try:
        for parameter in learned:
            parameter.requires_grad_(False)
        fixed = _evaluate(model)
        watched = [module for module in modules if not (module in fixed and module.training)]
        if stubborn := _training(model, watched):
            raise ModelError(
                "train_mode", f"still in training mode after eval(): {stubborn}; let an overridden train() call super()"
            )
        _measured.append((model, watched))
        try:
            yield
            check_mode(model)
        finally:
            _measured.pop()
    finally:
        for parameter in learned:
            # Outside inference mode a parameter that was made in it cannot be made to require gradients.
            with torch.inference_mode(parameter.is_inference()):
                parameter.requires_grad_(True)
        for module in training:
            module.training = True


def _evaluate(module: nn.Module) -> set[nn.Module]:
    """Switch to evaluation mode; the modules that cannot be, exported programs, whose mode was fixed then."""
    try:
        module.eval()
    except NotImplementedError:
        return {module}.union(*map(_evaluate, module.children()))
    return set()


def _training(model: nn.Module, watched: list[nn.Module]) -> str:
    """Return the names of those that are in training mode; empty where none is."""
    ids = {id(module) for module in watched if module.training}
    names = ids and [name or type(module).__name__ for name, module in model.named_modules() if id(module) in ids]
    return listed([*names])
