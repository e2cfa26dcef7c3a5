"""Models by their names: one table of sources by the form of the name, those of extensions from the registry."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from torch import fx, nn

from brittle.errors import ArtefactError, BrittleError, ModelError, UsageError, first_line, listed
from brittle.model.arrays import ArrayModel, is_estimator
from brittle.model.bounds import Bounds, BoundsLike
from brittle.model.classifier import Classifier
from brittle.model.digest import state_digest
from brittle.model.loading.weights import PICKLED, check_weights, load_weights, read_content
from brittle.model.texts import TextReader, is_text_function
from brittle.registry import Registry, load, missing
from brittle.user_code import (
    defined_in,
    digest_of_module,
    import_advice,
    import_module,
    import_package,
    line_of,
    run_file,
)  # fmt: skip

_KERAS = "is a Keras or HDF5 file; convert it to ONNX, model.export('model.onnx', format='onnx') in Keras 3"
_DATA = "holds data and no model; MODEL comes first and DATA second: brittle score MODEL DATA"
_TENSORFLOW = "is a TensorFlow file; convert it to ONNX, python -m tf2onnx.convert --saved-model FOLDER (--tflite FILE)"
_ADVICE = {  # advice by the ending of a file that is no model
    **dict.fromkeys((".h5", ".keras"), _KERAS),
    **dict.fromkeys((".pb", ".tflite"), _TENSORFLOW),
    ".cbm": "is binary; save the model as .json: save_model('model.json', format='json')",
    **dict.fromkeys((".npz", ".npy", ".parquet", ".csv", ".png", ".jpg", ".jpeg"), _DATA),
}

POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

_failure = partial(ModelError, "user_code")


@dataclass(frozen=True)
class Declared:
    """Facts about a model that its own files declare."""

    mean: tuple[float, ...] | None = None  # those of inputs in [0, 1], one number a channel
    std: tuple[float, ...] | None = None
    class_names: tuple[str, ...] | None = None  # in the order of the outputs
    texts: TextReader | None = None  # how texts become inputs

    def within(self, low: float, high: float) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        """Mean and std for inputs in [`low`, `high`]: `low + (high - low) mean` and `(high - low) std`."""
        width = high - low
        mean = None if self.mean is None else tuple(low + width * number for number in self.mean)
        return mean, None if self.std is None else tuple(width * number for number in self.std)

    @property
    def words(self) -> str:
        numbers = (("mean", self.mean), ("std", self.std))
        parts = [f"{name} {' '.join(f'{value:.4g}' for value in row)}" for name, row in numbers if row is not None]
        if self.texts is not None:
            parts.append(self.texts.words)
        elif not parts:
            parts.append("neither mean nor std")
        if self.class_names is not None:
            examples = listed([f"{name!r:.40}" for name in self.class_names], 3)
            parts.append(f"{len(self.class_names)} classes ({examples})")
        return ", ".join(parts)


@dataclass(frozen=True)
class LoadedModel:
    """A model that can be scored, fields of `ModelRecord`, and what its `weights` file held in words."""

    module: Any
    provenance: dict[str, Any] = field(default_factory=dict[str, Any])
    declared: Declared | None = None
    weights: str = ""


def check_file(name: str) -> None:
    """Raise where a name is not a file, and suggest similar ones."""
    if not Path(name).is_file():
        read_content(Path(name))


@dataclass(frozen=True)
class Source:
    """A way to load the models whose names have one form.

    Attributes:
        load: makes a model of a name and of a file of weights, which it need not load.
        check: raises where no such model can be, or nothing is there; reads and runs nothing large.
        takes_weights: whether weights may be given; others are in the model's own files.
        reads_texts: tells by its description alone whether a model reads texts.
        image_steps: by its description alone, what a model expects images to become: `brittle.data.images.ImageSteps`,
            a reason why brittle does something else, or None where nothing is said.
    """

    load: Callable[[str, Path | None], LoadedModel]
    check: Callable[[str], object] = check_file
    takes_weights: bool = False
    reads_texts: Callable[[str], bool] = lambda _: False
    image_steps: Callable[[str], Any] = lambda _: None


def file_source(read: Callable[[bytes, str], Any]) -> Source:
    """Return the source of files that `read` turns into a model, given the content and the name of a file."""

    def load(name: str, _: Path | None) -> LoadedModel:
        content, facts = read_file(name)
        return LoadedModel(read(content, facts["file"]), facts)

    return Source(load)


def read_file(name: str) -> tuple[bytes, dict[str, Any]]:
    """Read a file: its content, and its facts for the record of a run."""
    path = Path(name)
    content = read_content(path)
    sha256 = hashlib.sha256(content).hexdigest()
    return content, {"format": path.suffix.removeprefix("."), "file": str(path), "sha256": sha256}


def load_model(spec: str | os.PathLike[str], *, weights: str | os.PathLike[str] | None = None) -> LoadedModel:
    """Load the model that `spec` names, by the `Source` of its form.

    A factory, `FILE.py:FACTORY` or `PACKAGE.MODULE:FACTORY`, is called without arguments, or is the model itself; the
    current folder is not searched for a module. Every other source runs no code. `weights` is a file for its network.
    """
    name, path = os.fspath(spec), None if weights is None else Path(weights)
    loaded = _source_of(name, path).load(name, path)
    module, provenance = loaded.module, {"spec": name, "runs_code": False} | loaded.provenance
    if path is not None:
        if not isinstance(module, nn.Module):
            raise UsageError(f"{name} is no network of PyTorch and has its own weights; leave out --weights")
        read = load_weights(module, path)
        provenance |= read.record
        loaded = replace(loaded, weights=read.summary)
        if read.mean is not None:
            loaded = replace(loaded, declared=replace(loaded.declared or Declared(), mean=read.mean, std=read.std))
    if isinstance(module, nn.Module):
        check_weights(module, provenance["spec"])
        provenance["state_sha256"] = state_digest(module)
    return replace(loaded, provenance=provenance)


def check_named(spec: str, weights: Path | None) -> None:
    """Raise where what `load_model` would be given cannot be a model, or is not there; nothing large is read or run."""
    _source_of(spec, weights).check(spec)
    if weights is not None:
        check_file(str(weights))


def find_source(spec: str) -> Source | None:
    """Return the source of the form that `spec` has; None where none has it."""
    form = form_of(spec)
    if form not in SOURCES:
        return None
    return SOURCES[form]


def reads_texts(spec: str) -> bool:
    """Tell whether a name is that of a model of texts, by its description alone."""
    source = find_source(spec)
    return source is not None and source.reads_texts(spec)


def form_of(spec: str) -> str:
    """Return the form of a name, as in `SOURCES`: `FOLDER`, `FILE` with an ending, a prefix, or a factory."""
    path = Path(spec)
    if path.is_dir():
        return "FOLDER"
    place, colon, _ = spec.removeprefix(path.drive).rpartition(":")
    if not colon or path.is_file():
        return f"FILE{path.suffix}"
    prefixed = f"{spec.partition(':')[0]}:NAME"
    if prefixed in SOURCES or missing("source", prefixed):
        return prefixed
    return "FILE.py:FACTORY" if place.endswith(".py") else "PACKAGE.MODULE:FACTORY"


def _source_of(spec: str, weights: Path | None) -> Source:
    """Return the source of `spec`, which takes weights where some are given."""
    if words := missing("source", form_of(spec)):
        raise BrittleError("not_installed", f"{spec} {words}")
    source = find_source(spec)
    if source is None:
        raise _refusal(spec)
    if weights is not None and not source.takes_weights:
        raise UsageError(f"{spec} holds its own weights; leave out --weights")
    return source


def _refusal(spec: str) -> BrittleError:
    """Return the error for a name that no source has the form of: what it is, and what to do."""
    path, suffix = Path(spec), Path(spec).suffix.lower()
    if suffix in (*PICKLED, ".joblib"):
        return ArtefactError(
            "model_file",
            f"{spec} is a {suffix} file, a pickle that could run code, and no model; weights in it go to --weights "
            "beside their network; save a scikit-learn classifier with skops.io.dump(model, 'model.skops'), of PyTorch "
            f"{network_advice()}; "
            "what you trust, a factory may load (torch.jit.load)",
        )
    if suffix == ".py":
        return UsageError(f"{spec} names no function in the file{defined_in(spec)}; {network_advice()}")
    if suffix == ".safetensors":
        return UsageError(f"{spec} holds weights without a network; give it with --weights; {network_advice()}")
    if suffix in _ADVICE:
        return UsageError(f"{spec} {_ADVICE[suffix]}")
    absent = "" if path.exists() else ", and is no file"
    return UsageError(f"{spec!r} is none of {', '.join(SOURCES)}{absent}; {network_advice()}")


def network_advice() -> str:
    """Advice for any network of PyTorch."""
    export = (
        "export the network with torch.export.save(torch.export.export(model, (inputs,), dynamic_shapes=...), "
        "'model.pt2'), or "
    )
    return f"{export if 'FILE.pt2' in SOURCES else ''}name a factory: FILE.py:FUNCTION"


def _load_skops(content: bytes, name: str) -> Any:
    """Return the classifier in a file of `skops.io.dump`, if skops trusts its types, which trees are not."""
    skops = import_package("skops.io", name, "pip install 'brittle[sklearn]'")
    try:
        untrusted = skops.get_untrusted_types(data=content)
        model = None if untrusted else skops.loads(content)
    except Exception as error:
        raise ModelError("model_file", f"skops cannot load {name}: {first_line(error)}; save it again") from error
    if untrusted:
        raise ArtefactError(
            "file_refused",
            f"{name} holds types that skops does not trust: {listed(untrusted, 3)}; if you trust them, load it in a "
            f"function of yours with skops.io.load('{name}', trusted=[...]) and name it: FILE.py:FUNCTION",
        )
    if not is_estimator(model):
        raise ModelError("model_file", f"{name} holds a {type(model).__name__}; save the fitted classifier")
    return model


def _load_code(spec: str, weights: Path | None) -> LoadedModel:
    """Return the network or estimator that a factory returns."""
    place, _, name = spec.rpartition(":")
    if place.endswith(".py"):
        module = run_file(Path(place), read_content(Path(place)), _failure)
    else:
        module = import_module(place, name, _failure)
    file = getattr(module, "__file__", None)
    place_text = spec if file in (None, place) else f"{spec} ({file})"
    if not hasattr(module, name):
        callables = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        raise _failure(f"{place_text} does not exist; the file has {', '.join(callables[:10]) or 'nothing'}")
    model = getattr(module, name)
    try:
        if callable(model) and not isinstance(model, nn.Module | ArrayModel) and not argument_of(model):
            model = model()
        if isinstance(model, nn.Module) and not isinstance(model, fx.GraphModule):
            model.eval()  # a new network is in training mode, which is nothing to warn of
    except (Exception, SystemExit) as error:
        advice = import_advice(error, Path(place)) if place.endswith(".py") else ""
        advice = advice or f"; it is called without arguments, and relative paths start at {Path.cwd()}"
        raise _failure(
            f"{place_text} failed{line_of(error, module)}: {type(error).__name__}: {error}{advice}"
        ) from error
    if not isinstance(model, nn.Module | ArrayModel) and not is_estimator(model) and not argument_of(model):
        kind = f"{type(model).__module__}.{type(model).__qualname__}"
        raise _failure(f"expected a torch.nn.Module, found that {place_text} gives an object of type {kind}")
    facts = {"format": "python", "runs_code": True, "file": file, "sha256": digest_of_module(module)}
    return LoadedModel(model, facts)


def argument_of(value: Any) -> str | None:
    """Return the name of the one argument that a function needs, which makes it a model; None of a factory."""
    if not callable(value) or isinstance(value, type | nn.Module | ArrayModel) or is_estimator(value):
        return None
    try:
        parameters = signature(value).parameters.values()
    except ValueError:  # of some functions in C
        return None
    names = [arg.name for arg in parameters if arg.default is arg.empty and arg.kind in POSITIONAL]
    return names[0] if len(names) == 1 else None


SOURCES: Mapping[str, Source] = Registry(  # by the form of the names: all that can stand for MODEL
    "source",
    {
        "FILE.py:FACTORY": Source(_load_code, lambda spec: check_file(spec.rpartition(":")[0]), takes_weights=True),
        "PACKAGE.MODULE:FACTORY": Source(_load_code, lambda _: None, takes_weights=True),
        "FILE.skops": file_source(_load_skops),
    },
    Source,
)


EXPORT = (  # advice for batches of any size, to be formatted with a path
    "torch.export.save(torch.export.export(model, (inputs,), "
    "dynamic_shapes=({{0: torch.export.Dim('batch')}},)), '{path}')"
)


def load_batched(model: str, weights: Path | None = None, *, texts: bool = False) -> LoadedModel:
    """Load what a name stands for, undeclared; a function or an estimator is one of texts where these are read."""
    loaded = load_model(model, weights=weights)
    if (argument := argument_of(loaded.module)) is not None:
        if not texts:
            raise ModelError(
                "user_code",
                f"{model} gives a function of {argument!r}, and no network: what makes one needs no argument; "
                "a function of texts goes with --text-column COLUMN --noise typos:0.05 (text_column=, noise=)",
            )
        loaded = replace(loaded, module=load("texts", "TextFunction")(loaded.module))
    if texts and is_estimator(loaded.module):
        loaded = replace(loaded, module=load("texts", "TextEstimator")(loaded.module))
    fixed_batch = loaded.provenance.get("fixed_batch")
    if fixed_batch is not None:
        raise ModelError(
            "fixed_batch",
            f"{model} was exported for batches of {fixed_batch}; export it with a dynamic batch dimension, "
            f"from 2 inputs or more: {EXPORT.format(path=Path(model).name)}",
        )
    return loaded


def declare(
    loaded: LoadedModel,
    bounds: BoundsLike,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    **declared: Any,
) -> Classifier:
    """Make the classifier of a model; where neither mean nor std is given, they are those of its own files."""
    facts, of_texts = loaded.declared, is_text_function(loaded.module)
    bounds = None if of_texts else bounds
    if facts is not None and facts.texts is not None and not of_texts:
        bounds, declared["perturb"] = facts.texts.bounds, facts.texts.perturb
    if facts is not None and facts.texts is None and mean is None and std is None:
        mean, std = facts.within(*Bounds.of(bounds))
    classifier = Classifier(loaded.module, bounds, mean, std, source=loaded.provenance, **declared)
    if facts is not None and facts.class_names is not None:
        classifier.class_names = facts.class_names
    return classifier
