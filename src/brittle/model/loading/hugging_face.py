"""Classifiers of images and of texts in folders of Hugging Face, built by transformers from local files alone."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from brittle.errors import ArtefactError, ModelError, listed
from brittle.model.loading.declared import Declared, digest_of, numbers, read_description
from brittle.model.loading.hf_tokenizer import TEXTS, is_text_classifier, text_form
from brittle.model.loading.weights import NAMED

CONFIG, PREPROCESSOR, WEIGHTS, INDEX = (
    "config.json",
    "preprocessor_config.json",
    "model.safetensors",
    "model.safetensors.index.json",
)
"""Files of a folder; the index stands for weights in several files."""

IMAGES = "ForImageClassification"
"""How the names of image classifiers end."""

LEVELS = 255
"""Largest number of a pixel before it is scaled."""


def is_hugging_face(folder: Path) -> bool:
    """Whether a folder holds the description of a model as Hugging Face and timm write it."""
    return (folder / CONFIG).is_file()


def reads_texts(spec: str | os.PathLike[str]) -> bool:
    """Whether a model is a folder of a Hugging Face classifier of texts, by its `config.json` alone.

    Raises:
        ModelError: that file cannot be read.
    """
    return is_hugging_face(Path(spec)) and is_text_classifier(read_description(Path(spec) / CONFIG))


def load_hugging_face(folder: Path) -> tuple[nn.Module, Declared, str]:
    """The classifier of images or of texts in a folder with what its files declare and their digest.

    Nothing is downloaded, no code of the folder is run, and weights are read from `.safetensors` files alone. Attention
    is computed by elementary operations, which have second derivatives.

    Raises:
        ArtefactError: the weights are in a pickle.
        ModelError: transformers is not installed or cannot build the model, its weights do not fit, it is no
            classifier of images or texts, or one of texts has no tokenizer.
    """
    config = read_description(folder / CONFIG)
    of_texts = is_text_classifier(config)
    if not of_texts:
        _check_images(folder, config)
    files = _weights(folder)
    transformers = _transformers(folder)
    try:
        kind = (
            transformers.AutoModelForSequenceClassification
            if of_texts
            else transformers.AutoModelForImageClassification
        )
        module, info = kind.from_pretrained(
            os.fspath(folder),
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            attn_implementation="eager",
            output_loading_info=True,
        )
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelError(
            "model_file", f"transformers {transformers.__version__} cannot load {folder}: {reason}"
        ) from error
    _check_loaded(folder, info)
    module.config.return_dict = True
    described = [path for name in (CONFIG, PREPROCESSOR) if (path := folder / name).is_file()]
    digest = digest_of([*described, *files])
    if of_texts:
        form = text_form(folder, module, config, transformers)
        return module, Declared(class_names=_class_names(config), texts=form), digest
    return module, _declared(folder, config), digest


def _check_images(folder: Path, config: Mapping[str, Any]) -> None:
    names = [name for name in config.get("architectures") or [] if isinstance(name, str)]
    if any(IMAGES in name for name in names):
        return
    found = listed(names, NAMED) or f"no architectures in {CONFIG}"
    raise ModelError(
        "model_file",
        f"{folder} holds no classifier of images or texts ({found}); expected a model such as ViT{IMAGES} or "
        f"Bert{TEXTS}",
    )


def _weights(folder: Path) -> list[Path]:
    """The files of the weights, with their index."""
    if (folder / INDEX).is_file():
        return [folder / INDEX, *sorted(folder.glob("model-*.safetensors"))]
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    pickled = sorted(path.name for path in folder.glob("*.bin"))
    if pickled:
        raise ArtefactError(
            "file_refused",
            f"the weights of {folder} are in {pickled[0]}, a pickle that could run code and is not read; where you "
            f"trust it, load the model in Python and save it again: model.save_pretrained(folder)",
        )
    raise ModelError("weights", f"{folder} holds no {WEIGHTS}; model.save_pretrained(folder) writes it")


def _transformers(folder: Path) -> Any:
    """The package transformers, kept from asking any server and from drawing bars."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        transformers = importlib.import_module("transformers")
        logging = importlib.import_module("transformers.utils.logging")
    except ImportError as error:
        raise ModelError(
            "not_installed",
            f"{folder} needs transformers, which is not installed or cannot be imported ({error}); pip install "
            f"'brittle[huggingface]'",
        ) from error
    logging.disable_progress_bar()
    return transformers


def _check_loaded(folder: Path, info: Mapping[str, Any]) -> None:
    """Raise where parameters have got no weights and are random."""
    for kind in ("missing_keys", "mismatched_keys"):
        keys = sorted(str(key[0] if isinstance(key, tuple) else key) for key in info.get(kind) or ())
        if keys:
            raise ModelError(
                "weights",
                f"the weights of {folder} do not fit the network ({len(keys)} {kind.removesuffix('_keys')}: "
                f"{listed(keys, NAMED)}); all names must agree",
            )


def _declared(folder: Path, config: Mapping[str, Any]) -> Declared:
    """What the files say of inputs and classes."""
    processor = read_description(folder / PREPROCESSOR)
    mean, std = _normalisation(folder, processor)
    return Declared(mean, std, _size(processor, config), _class_names(config))


def _normalisation(
    folder: Path, processor: Mapping[str, Any]
) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
    """Mean and std for pixels in [0, 1]: those of the file are for pixels that were multiplied by a factor."""
    if not processor:
        return None, None
    factor = numbers(processor.get("rescale_factor", 1 / LEVELS)) if processor.get("do_rescale", True) else (1.0,)
    normalised = processor.get("do_normalize", True)
    mean = numbers(processor.get("image_mean", 0.0)) if normalised else (0.0,)
    std = numbers(processor.get("image_std", 1.0)) if normalised else (1.0,)
    kind = str(processor.get("image_processor_type"))
    if std is not None and processor.get("include_top", "EfficientNet" in kind):  # divides once more
        again = numbers(processor.get("image_std", 1.0)) or ()
        std = tuple(one * other for one, other in zip(std * len(again) if len(std) == 1 else std, again, strict=False))
    if processor.get("do_flip_channel_order", "MobileViT" in kind):
        raise ModelError(
            "model_file",
            f"{folder / PREPROCESSOR} puts the colours in the order blue, green, red; name a factory that does it",
        )
    if factor is None or mean is None or std is None or processor.get("rescale_offset") or not factor[0]:
        raise ModelError(
            "model_file",
            f"what {folder / PREPROCESSOR} does to pixels is not (x - mean) / std; name a factory that does it",
        )
    scale = LEVELS * factor[0]
    mean, std = (tuple(round(one / scale, 12) for one in values) for values in (mean, std))
    plain = all(one == 0 for one in mean) and all(one == 1 for one in std)
    return (None, None) if plain else (mean, std)


def _size(processor: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[int, int] | None:
    """Height and width of the images: what the processor cuts out or makes them, or what the network was built for."""
    cut = processor.get("crop_size") if processor.get("do_center_crop") else None
    for found in (cut, processor.get("size"), config.get("image_size")):
        if isinstance(found, Mapping):
            edge = found.get("shortest_edge")
            height, width = found.get("height", edge), found.get("width", edge)
        else:
            height, width = found, found
        if isinstance(height, int) and isinstance(width, int) and min(height, width) > 0:
            return height, width
    return None


def _class_names(config: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The names in `id2label`, in the order of the outputs; None where these are numbers of transformers' own."""
    named = config.get("id2label")
    if not isinstance(named, Mapping):
        return None
    names = [named.get(str(at)) for at in range(len(named))]
    plain = [name for name in names if isinstance(name, str) and name]
    if len(plain) < len(named) or len(set(plain)) < len(plain) or plain == [f"LABEL_{at}" for at in range(len(plain))]:
        return None
    return tuple(plain)
