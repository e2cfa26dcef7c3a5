"""The sources of this extension: folders of models, models of the Hub, and networks of timm by name."""

from __future__ import annotations

import os
from pathlib import Path

from brittle.errors import UsageError
from brittle.extensions.hugging_face.description import CONFIG
from brittle.extensions.hugging_face.hugging_face import is_hugging_face, load_hugging_face, locate, reads_texts
from brittle.extensions.hugging_face.image_steps import declared_steps
from brittle.extensions.hugging_face.timm_model import build_timm, is_timm, load_timm
from brittle.model.loading.load import LoadedModel, Source, network_advice


def _find(name: str) -> tuple[str, Path]:
    """Return a model's name in the record and its folder."""
    recorded, folder = locate(name)
    if not is_hugging_face(folder):
        raise UsageError(
            f"{name} is a folder without {CONFIG}; a model of Hugging Face has one, and DATA comes second; "
            f"{network_advice()}"
        )
    return recorded, folder


def _load_folder(name: str, _: Path | None) -> LoadedModel:
    recorded, folder = _find(name)
    form, load = ("timm", load_timm) if is_timm(folder) else ("transformers", load_hugging_face)
    module, declared, digest = load(folder)
    facts = {"spec": recorded, "format": form, "file": os.fspath(folder), "sha256": digest}
    return LoadedModel(module, facts, declared)


def _load_timm(name: str, weights: Path | None) -> LoadedModel:
    module, declared = build_timm(name, weights)
    return LoadedModel(module, {"format": "timm"}, declared)


FOLDER = Source(_load_folder, _find, reads_texts=reads_texts, image_steps=declared_steps)
"""Folders as transformers and timm write them, and models of the Hub, `hf:OWNER/NAME`, `hf:OWNER/NAME@REVISION`."""

TIMM = Source(_load_timm, lambda _: None, takes_weights=True, image_steps=declared_steps)
"""Networks of timm by name, `timm:resnet18`, with weights from a file."""
