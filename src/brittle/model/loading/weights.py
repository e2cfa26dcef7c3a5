"""The weights of a network: found in a `.safetensors` file or a checkpoint of PyTorch, and checked.

A checkpoint is a pickle. PyTorch reads of it tensors and plain values alone (`weights_only`); other objects in it are
put aside unmade, so nothing of the file is run.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import warnings
import zipfile
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import safetensors
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from brittle.errors import ArtefactError, ModelError, first_line, listed
from brittle.model.digest import dense
from brittle.model.inputs import refuse_lazy
from brittle.store.writing import nearby

NAMED = 5  # number of weights that a message names, and of places in a file
PICKLED = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")  # tensors and plain values alone are read
NORMALISATIONS = {"mean": "std", "mu": "sigma", "new_mean": "new_std"}  # of a layer that normalises inputs
COUNTER = "num_batches_tracked"  # name of counters that no prediction needs and old checkpoints lack

Numbers: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class ReadWeights:
    """Weights read from a file: fields of `ModelRecord`, in words where they were, mean and std of inputs in [0, 1]."""

    record: dict[str, str]
    summary: str = ""
    mean: Numbers | None = None
    std: Numbers | None = None


class _Table(NamedTuple):
    """Tensors by name at a `place` of a file such as `model.ema`, `shared` of them weights behind a `prefix`."""

    place: str
    tensors: Mapping[str, Tensor]
    prefix: str
    shared: int

    @property
    def words(self) -> str:
        place = self.place or "the top of the file"
        return f"{place} (prefix {self.prefix})" if self.prefix else place


def load_weights(module: nn.Module, path: Path) -> ReadWeights:
    """Load a `.safetensors` file, or a checkpoint with the weights anywhere inside, into `module`.
    Of all mappings and prefixes of their names (`module.`, `_orig_mod.`, ..) the one with every weight in its shape is
    taken. What it holds besides must be copies of these, the count of an average, or mean and std of inputs."""
    content = read_content(path)
    unmade, held = read_weights(path, content)
    weights = _own(module)
    tables = [table for place, tensors in _mappings(held) for table in _tables(place, tensors, weights)]
    table = _chosen(tables, weights, path)
    state = {name.removeprefix(table.prefix): x for name, x in table.tensors.items() if name.startswith(table.prefix)}
    try:
        missing, unexpected = module.load_state_dict(state, strict=False)
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines()[1 : NAMED + 1]]
        raise _misfit(path, " ".join(lines), tables, weights) from error
    present = {id(weight) for name, weight in weights.items() if table.prefix + name in table.tensors}  # or a tied one
    missing = [name for name in missing if not name.endswith(COUNTER) and id(weights.get(name)) not in present]
    foreign = [name for name in table.tensors if not name.startswith(table.prefix)]
    foreign += [table.prefix + name for name in unexpected]
    extra = [name for name in foreign if not _is_spare(name, table, weights)]
    normalisation, normalising = _normalisation({name: table.tensors[name] for name in extra})
    kinds = ((missing, "missing"), (sorted(set(extra) - normalising), "unexpected"))
    misfits = "; ".join(f"{len(keys)} {kind}: {', '.join(sorted(keys)[:NAMED])}" for keys, kind in kinds if keys)
    if misfits:
        raise _misfit(path, misfits, tables, weights)
    ignored = len(table.tensors.keys() - {table.prefix + name for name in weights} - normalising)
    parts = (
        (table.place, f"found in {table.place}"),
        (table.prefix, f"taken off their names {table.prefix!r}"),
        (normalising, f"mean and std of inputs {' and '.join(sorted(normalising))}"),
        (ignored, f"left out {ignored} other tensors"),
        (unmade, f"not made objects of {listed(unmade)}"),
    )
    summary = "; ".join(words for is_present, words in parts if is_present)
    record = {"weights": os.fspath(path), "weights_sha256": hashlib.sha256(content).hexdigest()}
    return ReadWeights(record, f"weights of {path}: {summary}" if summary else "", *(normalisation or ()))


def rows_of(path: Path, name: str) -> int | None:
    """Return the first size of the tensor of a name in a file of weights, whatever its prefix; None without one."""
    tables = _mappings(read_weights(path, read_content(path))[1])
    ends = ((tensor, ("." + key).endswith("." + name)) for _, tensors in tables for key, tensor in tensors.items())
    return next((len(tensor) for tensor, is_it in ends if is_it and tensor.dim()), None)


def read_weights(path: Path, content: bytes) -> tuple[list[str], Any]:
    """Return the content of a file of weights, and the names of the kinds of objects in it that were not made."""
    if path.suffix == ".safetensors":
        try:
            return [], load_file(path)
        except (safetensors.SafetensorError, LookupError, TypeError, ValueError, OverflowError) as error:
            fault = f"{path} is no sound .safetensors file ({first_line(error)})"
            raise ArtefactError("file_refused", f"{fault}; save it again") from error
    unmade: list[str] = []
    try:
        with warnings.catch_warnings(action="ignore"):
            zipped = content.startswith(b"PK\x03\x04")
            if zipped:
                with zipfile.ZipFile(io.BytesIO(content)) as archive:
                    check_uncompressed(archive.infolist(), len(content), str(path))
                unmade = sorted(torch.serialization.get_unsafe_globals_in_checkpoint(path))
            with torch.serialization.safe_globals([(_Unmade, name) for name in unmade]):
                # Mapped, a tensor that claims more than its record has is cut and refused, and never read beyond it.
                return unmade, torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except ArtefactError:
        raise
    except Exception as error:
        refused = re.search(r"GLOBAL ([\w.]+)", str(error))
        why = f"it holds {refused[1]}, which could run code" if refused else first_line(error)
        raise ArtefactError(
            "file_refused",
            f"{path} is no checkpoint of which the tensors alone can be read ({why:.200}); where it was made, save "
            f"the weights alone: torch.save(model.state_dict(), 'weights.pt')",
        ) from error


def check_uncompressed(members: Sequence[zipfile.ZipInfo], size: int, name: str) -> None:
    """Raise where records of an archive of `size` bytes are compressed, of one name, or larger than the archive."""
    packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
    twice = len({member.filename for member in members}) < len(members)
    if packed or twice or sum(member.file_size for member in members) > size:
        fault = f"{name} is compressed, has two records of one name, or claims more than its {size} bytes"
        raise ArtefactError("file_refused", f"{fault}; save or export the network again")


class _Unmade:
    """Placeholder in a checkpoint for an object that is not a tensor: nothing of it is kept or run."""

    def __new__(cls, *_: Any) -> _Unmade:
        return object.__new__(cls)

    def __init__(self, *_: Any) -> None: ...

    def __setstate__(self, _: Any) -> None: ...


def _own(module: nn.Module) -> dict[str, Tensor]:
    """Return the weights of a network by the names under which they are saved, tied ones by each name."""
    saved = module.state_dict().keys()
    parts = (part(remove_duplicate=False) for part in (module.named_parameters, module.named_buffers))
    return {name: tensor for name, tensor in chain(*parts) if name in saved}


def _mappings(held: Any) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Every mapping from names to tensors in what a file holds, the outermost first, and the keys that lead to it."""
    queue, seen_ids = deque([("", held)]), set[int]()
    while queue:
        place, part = queue.popleft()
        if not isinstance(part, Mapping) or id(part) in seen_ids:
            continue
        seen_ids.add(id(part))
        by_name = {name: value for name, value in part.items() if isinstance(name, str)}
        tensors = {name: value for name, value in by_name.items() if isinstance(value, Tensor)}
        plain = (torch.strided, "cpu", False)  # one with numbers, and one for each place
        yield place, {k: v for k, v in tensors.items() if (v.layout, v.device.type, v.is_quantized) == plain}
        queue.extend((f"{place}.{name}".removeprefix("."), value) for name, value in by_name.items())


def _tables(place: str, tensors: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> Iterator[_Table]:
    """Yield these tensors under every prefix of a name of the network."""
    splits = ((name, at) for name in tensors for at in _starts(name))
    prefixes = Counter(name[:at] for name, at in splits if name[at:] in weights)
    return (_Table(place, tensors, prefix, shared) for prefix, shared in prefixes.items())


def _starts(name: str) -> list[int]:
    """Return the positions where the name of a weight may begin: at the front, and behind every dot."""
    return [0, *(dot.end() for dot in re.finditer(r"\.", name))]


def _chosen(tables: list[_Table], weights: Mapping[str, Tensor], path: Path) -> _Table:
    """Return the first table that fits the network; the nearest where none does, for PyTorch to judge."""
    if not tables:
        names = listed(list(weights)) or "it has no weights"
        raise ModelError("weights", f"{path} does not fit the network: it has none of its names ({names})")
    fitting = sorted((table for table in tables if _fits(table, weights)), key=lambda table: len(table.prefix))
    table = fitting[0] if fitting else max(tables, key=lambda table: table.shared)
    for rival in fitting[1:]:
        names = [name for name in weights if not name.endswith(COUNTER)]
        pairs = ((table.tensors.get(table.prefix + name), rival.tensors.get(rival.prefix + name)) for name in names)
        if any(a is not b and (a is None or b is None or not _are_equal(a, b)) for a, b in pairs):
            raise ModelError(
                "weights",
                f"{path} holds two sets of weights that fit the network and differ, {table.words} and {rival.words}; "
                f"save the one that you mean: torch.save(torch.load(FILE, weights_only=True)[KEY], 'weights.pt')",
            )
    return table


def _fits(table: _Table, weights: Mapping[str, Tensor]) -> bool:
    """Return whether the table has every weight of the network in its shape."""
    ids = {id(weight) for name, weight in weights.items() if not name.endswith(COUNTER)}
    if table.shared < len(ids):
        return False
    pairs = ((table.tensors.get(table.prefix + name), weight) for name, weight in weights.items())
    return ids <= {id(weight) for x, weight in pairs if x is not None and (is_lazy(weight) or x.shape == weight.shape)}


def _are_equal(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and torch.equal(a, b)


def _is_spare(name: str, table: _Table, weights: Mapping[str, Tensor]) -> bool:
    """Return whether a tensor is the count of an average of weights, or a copy of a weight of the network."""
    copied = (table.tensors.get(table.prefix + name[at:]) for at in _starts(name) if name[at:] in weights)
    equal = (tensor is not None and _are_equal(tensor, table.tensors[name]) for tensor in copied)
    return name.rpartition(".")[2] == "n_averaged" or any(equal)


def _normalisation(tensors: Mapping[str, Tensor]) -> tuple[tuple[Numbers, Numbers] | None, set[str]]:
    """Mean and std of inputs in [0, 1] among tensors, and the names of these; none where there are two that differ."""
    pairs, names = set[tuple[Numbers, Numbers]](), set[str]()
    short = {name for name, x in tensors.items() if x.is_floating_point() and 1 <= x.numel() <= 4}  # channels
    for parent, last in (name.rpartition(".")[::2] for name in short):
        pair = {f"{parent}.{last_name}".removeprefix(".") for last_name in (last, NORMALISATIONS.get(last, ""))}
        if len(pair) == 2 and pair <= short:
            mean, std = (tuple(tensors[name].flatten().tolist()) for name in sorted(pair))  # mean, std; mu, sigma
            if all(0 <= number <= 1 for number in (*mean, *std)) and min(std) > 0:
                pairs.add((mean, std))
                names |= pair
    return (pairs.pop(), names) if len(pairs) == 1 else (None, set())


def _misfit(path: Path, why: str, tables: list[_Table], weights: Mapping[str, Tensor]) -> ModelError:
    """Return the error for weights that are not those of the network, with the places in the file that come nearest."""
    nearest = sorted(tables, key=lambda table: -table.shared)[:NAMED]
    shares = ", ".join(f"{table.words} has {table.shared} of {len(weights)} names" for table in nearest)
    return ModelError("weights", f"{path} does not fit the network ({why}); all must agree; nearest: {shares}")


def check_weights(module: nn.Module, name: str) -> None:
    """Raise where a weight has no shape yet, or holds NaN or infinite values (minus infinity may mask in a buffer)."""
    refuse_lazy(module)
    for tensor_name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if not (tensor.is_floating_point() or tensor.is_complex()):
            continue
        numbers = dense(tensor)
        bad = ~numbers.isfinite()
        if not isinstance(tensor, nn.Parameter):
            bad &= numbers != -torch.inf  # attention masks are buffers that hold it on purpose
        if count := int(bad.sum()):
            fault = f"{tensor_name} of {name} holds {count} NaN or infinite values among {tensor.numel()}"
            raise ModelError("weights", f"{fault}; the training has diverged, or the file is damaged")


def read_content(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise ModelError("unreadable", f"{path} is no regular file; name the file itself")
    try:
        return path.read_bytes()
    except OSError as error:
        meant = "" if path.exists() else nearby(path, lambda file: file.suffix == path.suffix)
        raise ModelError("unreadable", f"{path} cannot be read: {error.strerror or error}{meant}") from error
