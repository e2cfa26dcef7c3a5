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
from brittle.store.writing import nearby

NAMED = 5
"""How many weights a message names, and places in a file."""

PICKLED = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")
"""Endings of files that hold a pickle, of which tensors and plain values alone are read."""

NORMALISATIONS = {"mean": "std", "mu": "sigma", "new_mean": "new_std"}
"""What the mean and the deviation of a layer that normalises inputs are called."""

COUNTER = "num_batches_tracked"
"""What no network needs to predict, and old checkpoints do not have."""

Numbers: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class ReadWeights:
    """What a file gave a network.

    `record` holds fields of `brittle.store.record.ModelRecord`; `said` where the weights were, what was taken off their
    names and what was left out, in words, empty where the file holds them alone. `mean` and `std` are of inputs
    in [0, 1].
    """

    record: dict[str, str]
    said: str = ""
    mean: Numbers | None = None
    std: Numbers | None = None


class _Table(NamedTuple):
    """Tensors by name somewhere in a file, and a prefix under which some have the names of the network's weights.

    `place` are the keys that lead to them, such as `model.ema`; `shared` counts the names of the network behind
    `prefix`.
    """

    place: str
    tensors: Mapping[str, Tensor]
    prefix: str
    shared: int

    @property
    def words(self) -> str:
        place = self.place or "the top of the file"
        return f"{place} (prefix {self.prefix})" if self.prefix else place


def load_weights(module: nn.Module, path: Path) -> ReadWeights:
    """Load a file of weights into `module`: a `.safetensors` file, or a checkpoint with them anywhere inside.

    Of all mappings from names to tensors in the file, and all prefixes of their names (`module.` of `DataParallel`,
    `_orig_mod.` of `torch.compile`, ..), the one that has every weight of the network in its shape is taken. What the
    mapping holds besides must be copies of these, the count of an average of weights, or mean and std of inputs.
    """
    content = read_content(path)
    unmade, held = read_weights(path, content)
    own = _own(module)
    tables = [found for place, tensors in _mappings(held) for found in _tables(place, tensors, own)]
    table = _chosen(tables, own, path)
    given = {
        name.removeprefix(table.prefix): one for name, one in table.tensors.items() if name.startswith(table.prefix)
    }
    try:
        missing, unexpected = module.load_state_dict(given, strict=False)
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines()[1 : NAMED + 1]]
        raise _misfit(path, " ".join(lines), tables, own) from error
    missing = [name for name in missing if not name.endswith(COUNTER) and not _is_tied(name, table, own)]
    rest = [name for name in table.tensors if not name.startswith(table.prefix)]
    rest = [name for name in (*rest, *(table.prefix + name for name in unexpected)) if not _is_spare(name, table, own)]
    normalisation, normalising = _normalisation({name: table.tensors[name] for name in rest})
    kinds = ((missing, "missing"), (sorted(set(rest) - normalising), "unexpected"))
    found = "; ".join(f"{len(keys)} {kind}: {', '.join(sorted(keys)[:NAMED])}" for keys, kind in kinds if keys)
    if found:
        raise _misfit(path, found, tables, own)
    ignored = len(table.tensors.keys() - {table.prefix + name for name in own} - normalising)
    parts = (
        (table.place, f"found in {table.place}"),
        (table.prefix, f"taken off their names {table.prefix!r}"),
        (normalising, f"mean and std of inputs {' and '.join(sorted(normalising))}"),
        (ignored, f"left out {ignored} other tensors"),
        (unmade, f"not made objects of {listed(unmade)}"),
    )
    said = "; ".join(words for there, words in parts if there)
    record = {"weights": os.fspath(path), "weights_sha256": hashlib.sha256(content).hexdigest()}
    return ReadWeights(record, f"weights of {path}: {said}" if said else "", *(normalisation or ()))


def rows_of(path: Path, name: str) -> int | None:
    """The first size of the tensor that a file of weights has under a name, whatever its prefix; None without one."""
    tables = _mappings(read_weights(path, read_content(path))[1])
    ends = ((one, ("." + own).endswith("." + name)) for _, tensors in tables for own, one in tensors.items())
    return next((len(one) for one, is_it in ends if is_it and one.dim()), None)


def read_weights(path: Path, content: bytes) -> tuple[list[str], Any]:
    """What a file of weights holds, and the names of the kinds of objects in it that were not made."""
    if path.suffix == ".safetensors":
        try:
            return [], load_file(path)
        except (safetensors.SafetensorError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise ArtefactError(
                "file_refused", f"{path} is not a sound .safetensors file ({first_line(error)}); save it again"
            ) from error
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
        raise ArtefactError(
            "file_refused",
            f"{name} is compressed, holds two records of one name, or claims more than its {size} bytes; save or "
            f"export the network again",
        )


class _Unmade:
    """Stands in a checkpoint for an object that is no tensor, of which nothing is kept and nothing is run."""

    def __new__(cls, *_: Any) -> _Unmade:
        return object.__new__(cls)

    def __init__(self, *_: Any) -> None: ...

    def __setstate__(self, _: Any) -> None: ...


def _own(module: nn.Module) -> dict[str, Tensor]:
    """The weights of a network by the names under which they are saved; what is tied stands there more than once."""
    saved = module.state_dict().keys()
    parts = (part(remove_duplicate=False) for part in (module.named_parameters, module.named_buffers))
    return {name: tensor for name, tensor in chain(*parts) if name in saved}


def _mappings(held: Any) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Every mapping from names to tensors in what a file holds, the outermost first, and the keys that lead to it."""
    queue, seen = deque([("", held)]), set[int]()
    while queue:
        place, one = queue.popleft()
        if not isinstance(one, Mapping) or id(one) in seen:
            continue
        seen.add(id(one))
        by_name = {name: value for name, value in one.items() if isinstance(name, str)}
        tensors = {name: value for name, value in by_name.items() if isinstance(value, Tensor)}
        plain = (torch.strided, "cpu", False)  # one with numbers, and one for each place
        yield place, {k: v for k, v in tensors.items() if (v.layout, v.device.type, v.is_quantized) == plain}
        queue.extend((f"{place}.{name}".removeprefix("."), value) for name, value in by_name.items())


def _tables(place: str, tensors: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> Iterator[_Table]:
    """These tensors under every prefix that stands before a name of the network."""
    splits = ((name, at) for name in tensors for at in _starts(name))
    prefixes = Counter(name[:at] for name, at in splits if name[at:] in own)
    return (_Table(place, tensors, prefix, shared) for prefix, shared in prefixes.items())


def _starts(name: str) -> list[int]:
    """Where the name of a weight may begin: at the front, and behind every dot."""
    return [0, *(dot.end() for dot in re.finditer(r"\.", name))]


def _chosen(tables: list[_Table], own: Mapping[str, Tensor], path: Path) -> _Table:
    """The table that fits the network, of equal ones the first; the nearest where none does, for PyTorch to judge."""
    if not tables:
        names = listed(list(own)) or "it has no weights"
        raise ModelError("weights", f"{path} does not fit the network: it has none of its names ({names})")
    fitting = sorted((one for one in tables if _fits(one, own)), key=lambda one: len(one.prefix))
    table = fitting[0] if fitting else max(tables, key=lambda one: one.shared)
    for other in fitting[1:]:
        if not all(_is_same(table, other, name) for name in own):
            raise ModelError(
                "weights",
                f"{path} holds two sets of weights that fit the network and differ, {table.words} and {other.words}; "
                f"save the one that you mean: torch.save(torch.load(FILE, weights_only=True)[KEY], 'weights.pt')",
            )
    return table


def _fits(table: _Table, own: Mapping[str, Tensor]) -> bool:
    """Whether every weight of the network is there in its shape."""
    needed = {id(one) for name, one in own.items() if not name.endswith(COUNTER)}
    if table.shared < len(needed):
        return False
    found = ((table.tensors.get(table.prefix + name), one) for name, one in own.items())
    return needed <= {
        id(one) for tensor, one in found if tensor is not None and (is_lazy(one) or tensor.shape == one.shape)
    }


def _is_same(table: _Table, other: _Table, name: str) -> bool:
    """Whether two tables have the same numbers under a name of the network, or neither has any."""
    one, two = (each.tensors.get(each.prefix + name) for each in (table, other))
    return name.endswith(COUNTER) or one is two or (one is not None and two is not None and _are_equal(one, two))


def _are_equal(one: Tensor, other: Tensor) -> bool:
    return one.dtype == other.dtype and torch.equal(one, other)


def _is_tied(name: str, table: _Table, own: Mapping[str, Tensor]) -> bool:
    """Whether the table has a weight under the name of another that is tied to it."""
    return any(one is own.get(name) and table.prefix + other in table.tensors for other, one in own.items())


def _is_spare(name: str, table: _Table, own: Mapping[str, Tensor]) -> bool:
    """Whether a tensor is the count of an average of weights, or the copy of one that was taken."""
    copied = (table.tensors.get(table.prefix + name[at:]) for at in _starts(name) if name[at:] in own)
    equal = (one is not None and _are_equal(one, table.tensors[name]) for one in copied)
    return name.rpartition(".")[2] == "n_averaged" or any(equal)


def _normalisation(tensors: Mapping[str, Tensor]) -> tuple[tuple[Numbers, Numbers] | None, set[str]]:
    """Mean and std of inputs in [0, 1] among tensors, and the names of these; none where there are two that differ."""
    found, names = set[tuple[Numbers, Numbers]](), set[str]()
    few = {name for name, one in tensors.items() if one.is_floating_point() and 1 <= one.numel() <= 4}  # channels
    for parent, last in (name.rpartition(".")[::2] for name in few):
        pair = {f"{parent}.{one}".removeprefix(".") for one in (last, NORMALISATIONS.get(last, ""))}
        if len(pair) == 2 and pair <= few:
            mean, std = (tuple(tensors[name].flatten().tolist()) for name in sorted(pair))  # mean, std; mu, sigma
            if all(0 <= number <= 1 for number in (*mean, *std)) and min(std) > 0:
                found.add((mean, std))
                names |= pair
    return (found.pop(), names) if len(found) == 1 else (None, set())


def _misfit(path: Path, why: str, tables: list[_Table], own: Mapping[str, Tensor]) -> ModelError:
    """The error for weights that are not those of the network, with the places in the file that come nearest."""
    nearest = sorted(tables, key=lambda one: -one.shared)[:NAMED]
    shares = ", ".join(f"{one.words} has {one.shared} of {len(own)} names" for one in nearest)
    return ModelError("weights", f"{path} does not fit the network ({why}); all must agree; nearest: {shares}")


def check_weights(module: nn.Module, name: str) -> None:
    """Raise where a parameter or buffer holds NaN or infinite values (minus infinity may mask in a buffer)."""
    for tensor_name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if not (tensor.is_floating_point() or tensor.is_complex()):
            continue
        numbers = dense(tensor)
        bad = ~numbers.isfinite()
        if not isinstance(tensor, nn.Parameter):
            bad &= numbers != -torch.inf  # attention masks are buffers that hold it on purpose
        if count := int(bad.sum()):
            raise ModelError(
                "weights",
                f"{tensor_name} of {name} holds {count} NaN or infinite values among {tensor.numel()}; the "
                f"training has diverged or the file is damaged",
            )


def read_content(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise ModelError("unreadable", f"{path} is no regular file; name the file itself")
    try:
        return path.read_bytes()
    except OSError as error:
        meant = "" if path.exists() else nearby(path, lambda one: one.suffix == path.suffix)
        raise ModelError("unreadable", f"{path} cannot be read: {error.strerror or error}{meant}") from error
