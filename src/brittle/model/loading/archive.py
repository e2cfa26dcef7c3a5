"""Archives of `torch.export`, loaded without running code of theirs.

`torch.export.load` unpickles sample inputs, legacy weights, pickled tensors and custom objects, opens compiled
libraries, evaluates the text of symbolic sizes and compiles Python from the names in the graph. So the archive is
read here first: each record must be on a short list and hold nothing but tensors and plain names, and what PyTorch
loads is a copy of exactly those records.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from brittle.errors import ArtefactError, ModelError
from brittle.model.loading.archive_records import PROGRAMS, check_records, local_name, read_records, write_records
from brittle.model.loading.archive_tensors import check_claimed


@dataclass(frozen=True)
class Exported:
    """A network out of an archive.

    Attributes:
        module: the network.
        fixed_batch: the only number of rows it takes, or None where that number is free.
        torch_version: the version that wrote it, or None where the archive does not say.
    """

    module: nn.Module
    fixed_batch: int | None
    torch_version: str | None


def load_archive(content: bytes, name: str) -> Exported:
    """The network in an archive of `torch.export.save`.

    Args:
        content: the whole file.
        name: what to call it in messages.

    Raises:
        ArtefactError: the archive holds more than tensors and a graph of PyTorch operators.
        ModelError: the file is no such archive, or PyTorch cannot load it.
    """
    records = check_records(read_records(content, name), name)
    program = next((json.loads(one) for record, one in records.items() if local_name(record) in PROGRAMS), None)
    if program is None:
        raise ModelError("archive_format", f"{name} holds no exported program; write it with torch.export.save(...)")
    written_by = program.get("torch_version")
    try:
        with _without_log():
            exported = torch.export.load(io.BytesIO(write_records(records)))
            check_claimed(exported, records, name)
            module = exported.module()
    except ArtefactError:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelError(
            "archive_format",
            f"PyTorch {torch.__version__} cannot load {name} (written by {written_by or 'an unknown version'}): "
            f"{type(error).__name__}: {reason}",
        ) from error
    try:
        return Exported(module, _fixed_batch(program, name), written_by if isinstance(written_by, str) else None)
    except (LookupError, TypeError, AttributeError) as error:
        raise ArtefactError("archive_refused", f"the graph in {name} is malformed: {error!r}") from error


@contextmanager
def _without_log() -> Iterator[None]:
    """Keep PyTorch from writing the traceback of what it could not read to the terminal."""
    log = logging.getLogger("torch.export")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _fixed_batch(program: Mapping[str, Any], name: str) -> int | None:
    """The size of the first axis of the only input, where it is a number."""
    module = program["graph_module"]
    inputs = [spec["user_input"]["arg"] for spec in module["signature"]["input_specs"] if "user_input" in spec]
    tensors = [arg["as_tensor"]["name"] for arg in inputs if "as_tensor" in arg]
    if len(inputs) != 1 or not tensors:
        raise ModelError("inputs", f"{name} takes {len(inputs)} inputs, {len(tensors)} of them tensors; 1 is needed")
    sizes = module["graph"]["tensor_values"][tensors[0]]["sizes"]
    return sizes[0].get("as_int") if sizes else None
