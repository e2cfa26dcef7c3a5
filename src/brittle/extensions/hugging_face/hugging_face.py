"""Models of images and texts in folders of Hugging Face and its Hub, built by transformers from files alone."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch import nn

from brittle.errors import ModelError, UsageError, first_line, listed
from brittle.model.loading.load import Declared
from brittle.model.texts import TextReader
from brittle.registry import load
from brittle.user_code import import_package

CONFIG, WEIGHTS = "config.json", "model.safetensors"  # in the folder of a model, as Hugging Face and timm write it
MOST_BYTES = 1 << 24  # largest file that is read as a description


def read_description(path: Path) -> dict[str, Any]:
    """Read the object in a JSON file; empty where there is no file."""
    if not path.is_file():
        return {}
    try:
        content = path.read_bytes()
        description = json.loads(content) if len(content) <= MOST_BYTES else None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError("model_file", f"{path} cannot be read as JSON: {str(error).partition(chr(10))[0]}") from error
    if not isinstance(description, dict):
        raise ModelError("model_file", f"{path} is not the description of a model; expected one JSON object")
    return description


def digest_of(files: Iterable[Path]) -> str:
    """Return the sha256 over the names and the sha256 of files."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def names(value: Any) -> tuple[str, ...] | None:
    """Return names of classes as a tuple; None where they are not distinct texts."""
    plain = isinstance(value, list) and all(isinstance(name, str) and name for name in value)
    return tuple(value) if plain and value and len(set(value)) == len(value) else None


def numbers(value: Any) -> tuple[float, ...] | None:
    """Return a number or a list of numbers as a tuple; None for anything else."""
    values = value if isinstance(value, list | tuple) else [value]
    plain = all(isinstance(number, int | float) and not isinstance(number, bool) for number in values)
    return tuple(float(number) for number in values) if plain and values else None


PREPROCESSOR, TOKENIZER = "preprocessor_config.json", "tokenizer.json"  # files of a folder

TOKENIZER_FILES = (TOKENIZER, "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")

HUB = "hf:"  # prefix of a model of the Hub: `hf:OWNER/NAME`, `hf:OWNER/NAME@REVISION`

FETCHED = ("*.json", "*.txt", "*.model", "model*.safetensors")
"""Files fetched from the Hub: descriptions, files of tokenizers and weights; no code, no pickle and no subfolder."""

IMAGES, TEXTS = "ForImageClassification", "ForSequenceClassification"
KINDS = {ending: f"AutoModel{ending}" for ending in (IMAGES, TEXTS, "ForSemanticSegmentation", "ForObjectDetection")}
"""The class of transformers that reads a model, by the ending of the model's class name."""

LEVELS = 255  # largest value of a pixel before scaling
COLOURS, SIDE = ((0, 0, 0), (255, 128, 32), (16, 255, 200)), 64  # of the images that test a processor's normalisation
STAND_INS = ("eos_token", "unk_token", "bos_token")  # tokens that pad texts where a tokenizer has no padding token
UNLIMITED = 1 << 20  # largest declared length of a text in tokens that counts as one


def locate(spec: str) -> tuple[str, Path]:
    """Return a model's name in the record and its folder; for a model of the Hub, its commit and the Hub's cache. Files
    in the cache are not fetched again; without a network only the cache is read."""
    return _snapshot(spec) if spec.startswith(HUB) else (spec, Path(spec))


@cache
def _snapshot(spec: str) -> tuple[str, Path]:
    match = re.fullmatch(rf"{HUB}([\w.-]+/[\w.-]+)(?:@([\w.-]+(?:/[\w.-]+)*))?", spec)
    if match is None or ".." in spec:
        raise UsageError(f"{spec!r:.80} is not a model of the Hub; write {HUB}OWNER/NAME or {HUB}OWNER/NAME@REVISION")
    hub = import_package("huggingface_hub", spec, "pip install 'brittle[hf]'")
    try:
        location = hub.snapshot_download(match[1], revision=match[2], allow_patterns=FETCHED, ignore_patterns="*/*")
    except Exception as error:
        raise ModelError(
            "unreadable", f"{spec} is neither in the cache of the Hugging Face Hub nor reachable: {first_line(error)}"
        ) from error
    folder = Path(location)
    if not is_hugging_face(folder):
        raise ModelError("model_file", f"{spec} holds no {CONFIG}; models of transformers and timm have one")
    return f"{HUB}{match[1]}@{folder.name}", folder


def is_hugging_face(folder: Path) -> bool:
    """Return whether a folder holds the description of a model, as Hugging Face and timm write it."""
    return (folder / CONFIG).is_file()


def reads_texts(spec: str) -> bool:
    """Return whether a folder holds a Hugging Face classifier of texts, by its `config.json` alone."""
    folder = locate(spec)[1]
    return is_hugging_face(folder) and _is_kind(read_description(folder / CONFIG), TEXTS)


def load_hugging_face(folder: Path) -> tuple[nn.Module, Declared, str]:
    """Load the model of images or texts in a folder; return it with the declarations of its files and their digest.

    Nothing is downloaded, no code of the folder runs, and weights come from `.safetensors` files alone. Attention is
    computed by elementary operations, which have second derivatives.
    """
    config = read_description(folder / CONFIG)
    ending = next((name for name in KINDS if _is_kind(config, name)), None)
    if ending is None:
        raise ModelError(
            "model_file",
            f"{folder} holds no supported model ({config.get('architectures')!r:.80}); expected a class name that "
            f"ends in {', '.join(KINDS)}",
        )
    transformers = _transformers(folder)
    kind = getattr(transformers, KINDS[ending])
    options = {"use_safetensors": True, "attn_implementation": "eager", "output_loading_info": True}
    module, info = _from_folder(transformers, kind, folder, **options)
    keys = [str(key) for problem in ("missing_keys", "mismatched_keys") for key in info.get(problem) or ()]
    if keys:  # these parameters are random
        raise ModelError(
            "weights", f"the weights of {folder} do not fit the network: {listed(sorted(keys))} are missing"
        )
    module.config.return_dict = True
    descriptions = [path for name in (CONFIG, PREPROCESSOR) if (path := folder / name).is_file()]
    digest = digest_of([*descriptions, *folder.glob("model*.safetensors*")])
    if _is_kind(config, TEXTS):
        form = _text_form(folder, module, config, transformers)
        return module, Declared(class_names=_class_names(config), texts=form), digest
    processor = image_processor(folder)
    mean, std = _normalisation(folder, processor) if processor else (None, None)
    return module, Declared(mean, std, _class_names(config)), digest


def _is_kind(config: Mapping[str, Any], ending: str) -> bool:
    names = config.get("architectures")
    return isinstance(names, list) and any(isinstance(name, str) and ending in name for name in names)


def _transformers(folder: Path) -> Any:
    """Import transformers without servers and progress bars."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    transformers = import_package("transformers", str(folder), "pip install 'brittle[hf]'")
    logging = import_package("transformers.utils.logging", str(folder), "")
    logging.disable_progress_bar()
    logging.set_verbosity_error()  # it warns that decoders miss the ends of embeddings; brittle checks that
    return transformers


def _from_folder(transformers: Any, kind: Any, folder: Path, **options: Any) -> Any:
    """Let a class of transformers read a folder, without a server and without code in the folder."""
    try:
        return kind.from_pretrained(os.fspath(folder), local_files_only=True, trust_remote_code=False, **options)
    except Exception as error:
        version = transformers.__version__
        raise ModelError("model_file", f"transformers {version} cannot load {folder}: {first_line(error)}") from error


def image_processor(folder: Path) -> Any | None:
    """Return the image processor of transformers that a folder declares; None where it declares none."""
    if not (folder / PREPROCESSOR).is_file():
        return None
    transformers = _transformers(folder)
    return _from_folder(transformers, transformers.AutoImageProcessor, folder, backend="pil")


def run_processor(processor: Any, image: Image.Image, **options: bool) -> np.ndarray:
    """Return the pixels that an image processor makes of an image, `[C, H, W]`.

    Raises:
        ModelError: it fails, or gives another shape.
    """
    try:
        pixels = np.asarray(processor(image, return_tensors="np", **options)["pixel_values"][0])
    except Exception as error:
        raise ModelError("model_file", f"{type(processor).__name__} fails on an image: {first_line(error)}") from error
    if pixels.ndim != 3:
        raise ModelError("model_file", f"{type(processor).__name__} gives shape {list(pixels.shape)}, not [C, H, W]")
    return pixels


def _normalisation(folder: Path, processor: Any) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
    """Return mean and std for pixels in [0, 1], from the options of a processor and checked on plain colours."""
    options = processor.to_dict()
    factors = numbers(options.get("rescale_factor")) if options.get("do_rescale") else (1.0,)
    factor = factors[0] if factors and len(factors) == 1 else 0.0
    means, stds = numbers(options.get("image_mean")), numbers(options.get("image_std"))
    mean, std = (means, stds) if options.get("do_normalize") else ((0.0,), (1.0,))
    if options.get("include_top") and std and stds:  # divides once more
        channels = std * len(stds) if len(std) == 1 else std
        std = tuple(value * divisor for value, divisor in zip(channels, stds, strict=True))
    if factor and mean and std and all(std):
        mean, std = (tuple(round(value / (LEVELS * factor), 12) for value in values) for values in (mean, std))
        if all(_is_normalised(processor, colour, mean, std) for colour in COLOURS):
            return (None, None) if {*mean} == {0.0} and {*std} == {1.0} else (mean, std)
    raise ModelError(
        "model_file",
        f"{folder / PREPROCESSOR} changes pixels by more than (x - mean) / std, or orders the colours blue, green, "
        f"red; name a factory that does it",
    )


def _is_normalised(processor: Any, colour: Sequence[int], mean: Sequence[float], std: Sequence[float]) -> bool:
    """Return whether the middle of an image of one colour becomes `(x - mean) / std`: resizing does not change it."""
    pixels = run_processor(processor, Image.new("RGB", (SIDE, SIDE), tuple(colour)))
    middle = pixels[:, pixels.shape[1] // 2, pixels.shape[2] // 2]
    expected = (np.array(colour) / LEVELS - mean) / std
    return middle.shape == expected.shape and np.allclose(middle, expected, rtol=1e-4, atol=1e-4)


def _class_names(config: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the names in `id2label`, in the order of the outputs; None where transformers made them from numbers."""
    labels = config.get("id2label")
    class_names = names([labels.get(str(at)) for at in range(len(labels))]) if isinstance(labels, Mapping) else None
    return None if class_names == tuple(f"LABEL_{at}" for at in range(len(class_names or ()))) else class_names


def _text_form(folder: Path, module: nn.Module, config: Mapping[str, Any], transformers: Any) -> TextReader:
    if not (folder / TOKENIZER).is_file():
        raise ModelError("model_file", f"{folder} holds no {TOKENIZER}; tokenizer.save_pretrained(folder) writes it")
    tokenizer = _from_folder(transformers, transformers.AutoTokenizer, folder, use_fast=True)
    if tokenizer.pad_token is None:  # any token will do: the mask marks padding
        tokenizer.pad_token = next(filter(None, (getattr(tokenizer, name, None) for name in STAND_INS)), None)
    if tokenizer.pad_token is None:
        raise ModelError(
            "model_file", f"the tokenizer of {folder} has no padding token; set tokenizer.pad_token and save it again"
        )
    _decide_at_the_last_token(module.config)
    length = max_length(module, config, getattr(tokenizer, "model_max_length", None))
    digest = digest_of(path for name in TOKENIZER_FILES if (path := folder / name).is_file())
    facts = {"tokenizer": type(tokenizer).__name__, "tokenizer_sha256": digest, "text_length": length}
    return load("texts", "TextForm")(module, tokenizer, length, facts)


def _decide_at_the_last_token(config: Any) -> None:
    """Let a decoder without a padding token take several rows, and cache nothing for later tokens."""
    ask = getattr(config, "get_text_config", None)
    part: Any
    for part in (config, ask() if callable(ask) else config):
        if getattr(part, "pad_token_id", 0) is None:
            part.pad_token_id = -1  # not a token: the last token of a row decides, as it does for a single text
        if hasattr(part, "use_cache"):
            part.use_cache = False


def max_length(module: nn.Module, config: Mapping[str, Any], declared: Any) -> int | None:
    """Return the most tokens of a text: the smaller of the tokenizer's limit and the network's number of positions.
    Networks such as RoBERTa count positions from behind that of padding. None where neither declares a limit."""
    lengths = [declared] if isinstance(declared, int) and 0 < declared <= UNLIMITED else []
    positions = getattr(module.config, "max_position_embeddings", config.get("max_position_embeddings"))
    if isinstance(positions, int) and positions > 0:
        layers = (layer for name, layer in module.named_modules() if name.endswith("position_embeddings"))
        padding = (layer.padding_idx for layer in layers if isinstance(layer, nn.Embedding))
        lengths.append(positions - max((place + 1 for place in padding if place is not None), default=0))
    return min(lengths, default=None)
