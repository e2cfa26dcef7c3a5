"""Classifiers of scikit-learn in files of skops, which hold no pickle."""

from __future__ import annotations

import importlib
from typing import Any

from brittle.errors import ArtefactError, ModelError, listed
from brittle.model.arrays import is_estimator

NAMED = 3


def load_skops(content: bytes, name: str) -> Any:
    """The classifier in a file of `skops.io.dump`.

    Only types that skops itself trusts are made. It does not trust trees and forests, because scikit-learn follows the
    numbers in them without looking whether they lead out of the tree.

    Args:
        content: the whole file.
        name: what to call it in messages.

    Raises:
        ArtefactError: the file holds types that skops does not trust.
        ModelError: skops is not installed or cannot load the file, or it holds no estimator.
    """
    try:
        skops = importlib.import_module("skops.io")
    except ImportError as error:
        raise ModelError(
            "not_installed", f"{name} needs skops, which is not installed; pip install 'brittle[sklearn]'"
        ) from error
    try:
        untrusted = skops.get_untrusted_types(data=content)
        model = None if untrusted else skops.loads(content)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ModelError("model_file", f"skops cannot load {name}: {type(error).__name__}: {reason}") from error
    if untrusted:
        raise ArtefactError(
            "file_refused",
            f"{name} holds types that skops does not trust: {listed(untrusted, NAMED)}; if you trust the file, load it "
            f"in a function of yours with skops.io.load('{name}', trusted=[...]) and name it: FILE.py:FUNCTION",
        )
    if not is_estimator(model):
        raise ModelError(
            "model_file", f"{name} holds a {type(model).__name__}, no estimator; save the fitted classifier"
        )
    return model
