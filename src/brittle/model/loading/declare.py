"""A model by its name, refused where it cannot be scored, and with what its files declare of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from brittle.errors import ModelError
from brittle.model.arrays import is_estimator
from brittle.model.bounds import Bounds, BoundsLike
from brittle.model.classifier import Classifier
from brittle.model.loading.load import LoadedModel, argument_of, load_model
from brittle.model.texts import is_text_function
from brittle.registry import load

EXPORT = (
    "torch.export.save(torch.export.export(model, (inputs,), "
    "dynamic_shapes=({{0: torch.export.Dim('batch')}},)), '{path}')"
)
"""Advice to export a network for batches of any size, to be formatted with the path of the archive."""


def load_batched(model: str, weights: Path | None = None, *, texts: bool = False) -> LoadedModel:
    """Load what a name stands for, with nothing declared of it yet; one whose batch size is fixed is refused.

    A plain function, or an estimator, is one of texts where these are read; other functions are refused.
    """
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
