"""Networks in ONNX files, run by onnxruntime on the processor, without gradients."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.errors import ArtefactError, ModelError
from brittle.model.arrays import ArrayModel
from brittle.model.passes import WITHOUT_GRADIENT

THREADS = 2
"""At most so many threads compute a batch."""

_TYPES = {"tensor(float)": torch.float32, "tensor(double)": torch.float64, "tensor(float16)": torch.float16}

_OTHER_FILE = re.compile(rb"[\x00\x08]location")
"""A weight that lies in another file names it under this key; before it stands the last byte of its length."""

_FATAL_ONLY = 4


class OnnxModel(ArrayModel):
    """The network in an ONNX file as a function of tensors; the result has no gradient.

    Inputs get the type that the graph declares. Where the graph fixes the number of rows, so many are run at a time and
    the last batch is filled up with copies of its last row. An image `[C, H, W]` is flattened, or its channels are put
    last, where the graph takes it so.

    Args:
        content: the whole file.
        name: what to call it in messages.

    Attributes:
        input: name of the input of the graph.
        output: name of the class scores.
        batch: the only number of rows that the graph takes, or None where that number is free.
        forward_only: why there are no gradients, in a sentence, or None where nobody has said so.

    Raises:
        ArtefactError: the file names other files.
        ModelError: onnxruntime is not installed or cannot load the file, or it has not one input of real numbers.
    """

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(self._scores)
        self.__name__ = name
        self._session = _open(content, name)
        inputs = self._session.get_inputs()
        if len(inputs) != 1 or inputs[0].type not in _TYPES or not inputs[0].shape:
            found = ", ".join(f"{one.name}: {one.type} {one.shape}" for one in inputs) or "none"
            raise ModelError(
                "input_shape", f"expected 1 input, a tensor of real numbers with a batch axis; {name} has {found}"
            )
        self.input, self._type = inputs[0].name, _TYPES[inputs[0].type]
        sizes = [size if isinstance(size, int) and size > 0 else None for size in inputs[0].shape]
        self.batch, self._shape = sizes[0], tuple(sizes[1:])
        self.output = _output(self._session, name)
        self.forward_only: str | None = None

    def __call__(self, inputs: Tensor) -> Tensor:
        """Class scores `[B, C]` of `inputs`, `[B, *shape]`, on their device."""
        return self.run(self.arranged(inputs))

    def __deepcopy__(self, memo: dict[int, Any]) -> OnnxModel:
        return self  # nothing of it changes

    def sentence(self, reason: str) -> str:
        """Why there are no gradients and what to do, in a sentence."""
        return f"{self.__name__} runs forward only, because {reason}; {WITHOUT_GRADIENT}"

    def run(self, rows: Tensor) -> Tensor:
        """Class scores `[B, C]` of rows as the graph takes them."""
        return super().__call__(rows)

    def batches(self, rows: Tensor) -> list[Tensor]:
        """Batches of so many rows as the graph takes, the last filled up with copies of the last row."""
        if self.batch is None:
            return [rows]
        missing = -len(rows) % self.batch
        filled = torch.cat((rows, rows[-1:].expand(missing, *rows.shape[1:]))) if missing else rows
        return list(filled.split(self.batch))

    def arranged(self, inputs: Tensor) -> Tensor:
        """`[B, *shape]` in the type and the shape that the graph takes.

        Raises:
            ModelError: it takes another shape.
        """
        rows = inputs.to(self._type)
        found, taken = tuple(rows.shape[1:]), self._shape
        if _fits(found, taken):
            return rows
        if len(found) == 3 and _fits((*found[1:], found[0]), taken):
            return rows.permute(0, 2, 3, 1)
        sizes = [size for size in taken if size is not None]
        whole = len(sizes) == len(taken) and prod(sizes) == prod(found)
        kept = [size for size in taken if size != 1]
        if whole and (len(kept) <= 1 or kept == [size for size in found if size != 1]):
            return rows.reshape(len(rows), *sizes)
        raise ModelError(
            "input_shape",
            f"{self.__name__} takes inputs of shape {[size or 'any' for size in taken]}, found {list(found)}; give "
            f"data of that shape",
        )

    def _scores(self, rows: np.ndarray) -> np.ndarray:
        batches = [batch.numpy() for batch in self.batches(torch.from_numpy(rows))]
        return np.concatenate([self._run(batch) for batch in batches])[: len(rows)]

    def _run(self, rows: np.ndarray) -> np.ndarray:
        try:
            return self._session.run([self.output], {self.input: np.ascontiguousarray(rows)})[0]
        except Exception as error:  # onnxruntime has errors of its own
            raise RuntimeError(str(error).strip().partition("\n")[0]) from error


def _open(content: bytes, name: str) -> Any:
    """A session of onnxruntime."""
    try:
        onnxruntime = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise ModelError(
            "not_installed", f"{name} needs onnxruntime, which is not installed; pip install 'brittle[onnx]'"
        ) from error
    if _OTHER_FILE.search(content) or content[4:8] == b"ORTM":
        raise ArtefactError(
            "file_refused",
            f"{name} keeps weights in another file, or is in onnxruntime's own form; save it in one file: "
            f"onnx.save(onnx.load(...), 'model.onnx')",
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    options.use_deterministic_compute = True
    options.log_severity_level = _FATAL_ONLY
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # where it prints errors that it also raises
            return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelError("model_file", f"onnxruntime {onnxruntime.__version__} cannot load {name}: {reason}") from error


def _output(session: Any, name: str) -> str:
    """The name of the class scores: the only output of real numbers, or the one called logits."""
    outputs = [one.name for one in session.get_outputs() if one.type in _TYPES]
    if len(outputs) == 1 or "logits" in outputs:
        return outputs[0] if len(outputs) == 1 else "logits"
    found = ", ".join(f"{one.name}: {one.type}" for one in session.get_outputs())
    raise ModelError(
        "output_shape",
        f"{name} returns {found}; export it with one output of class scores, or call that one logits (skl2onnx: "
        f"options={{'zipmap': False}})",
    )


def _fits(found: tuple[int, ...], taken: tuple[int | None, ...]) -> bool:
    return len(found) == len(taken) and all(size in (None, own) for own, size in zip(found, taken, strict=True))
