"""A model by its name, as `brittle.score` takes it, and how its files say that data are read."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from brittle.data.formats import Data, reads_images
from brittle.data.points import Points
from brittle.decisions import Decision
from brittle.errors import ParameterError
from brittle.model.arrays import is_estimator
from brittle.model.classifier import Classifier
from brittle.model.loading.load import declare, find_source, load_batched
from brittle.model.texts import is_text_function
from brittle.noise.named import changes


def open_model(
    model: str | os.PathLike[str],
    data: Data,
    words: Mapping[str, Any],
    decision: Decision | str | None,
    name: str | None,
    noise: str | None,
) -> tuple[Classifier, dict[str, Any]]:
    """Open a model by its name; return it, and the words by which its data are read: `words` and what it declares."""
    spec, changed = os.fspath(model), changes(noise) if isinstance(noise, str) else "values"
    loaded = load_batched(spec, texts=changed == "characters" or "text_column" in words)
    form = None if loaded.declared is None else loaded.declared.texts
    if form is not None and changed == "characters":
        loaded = replace(loaded, module=form.of_characters(loaded.provenance["state_sha256"]))
    texts = loaded.module if is_text_function(loaded.module) else form
    if is_text_function(loaded.module) and changed != "characters":
        raise ParameterError(
            f"{spec} is a function of texts; say how characters change: noise='typos:0.05', 'case', 'spaces', "
            f"'homoglyphs' or 'paraphrases:FILE.json'; found noise={noise!r:.40}"
        )
    is_path = isinstance(data, str | os.PathLike)
    if texts is not None and not is_path and not isinstance(data, Points):
        raise ParameterError(
            f"{spec} reads texts; give a table of texts by its path, or points: brittle.data.text_points; found a "
            f"{type(data).__name__}"
        )
    bounds = None if changed == "columns" or is_estimator(loaded.module) else (0.0, 1.0)
    if name is not None:
        loaded = replace(loaded, provenance=loaded.provenance | {"spec": name})
    classifier = declare(loaded, bounds, decision=decision)
    declared = _image_words(spec, data, words) if is_path else {}
    return classifier, {**declared, **words} | ({"texts": texts} if texts is not None and is_path else {})


def _image_words(spec: str, path: str | os.PathLike[str], words: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model declares of encoded images, where `words` do not say how these become alike."""
    source = find_source(spec)
    steps = source.image_steps(spec) if source is not None and reads_images(path, words.get("format")) else None
    sized = words.keys() & {"resize", "center_crop"}
    if isinstance(steps, str) and not sized:
        raise ParameterError(
            f"{spec} prepares images in a way that brittle does not copy ({steps}); say what is done to them, with "
            "resize= and center_crop="
        )
    if steps is None or isinstance(steps, str):
        return {}
    if sized:
        return {"interpolation": steps.interpolation} if "resize" in words else {}
    return dict(vars(steps))
