"""How easily does each prediction of a trained classifier break, how sure is that, and what did it cost to find out.

Example:
    >>> import torch, brittle
    >>> from brittle.scores import Moments, Taylor
    >>> network = torch.nn.Linear(4, 3)
    >>> classifier = brittle.Classifier(network, bounds=(0, 1))
    >>> x, y = torch.rand(5, 4), torch.tensor([0, 1, 2, 0, 1])
    >>> table = brittle.score(classifier, x, y, [Taylor(sigma=0.1), Moments(sigma=0.1, draws=20)], seed=0)
    >>> len(table.frame(whole=True))
    5
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from brittle.analysis.rules import check
    from brittle.errors import BrittleWarning
    from brittle.measure.linearize import linearize
    from brittle.measure.nearest.nearest import nearest
    from brittle.model.classifier import Classifier
    from brittle.orthant import orthant_probability
    from brittle.run import score
    from brittle.store.reading import read_table
    from brittle.store.table import Table

__all__ = [
    "BrittleWarning", "Classifier", "Table", "__version__", "check", "linearize", "nearest", "orthant_probability",
    "read_table", "score",
]  # fmt: skip

_PACKAGES = ("analysis", "data", "decisions", "noise", "scores")
"""Packages that are there after `import brittle`, imported when they are first used."""

_HOMES = {
    "BrittleWarning": "errors", "Classifier": "model.classifier", "Table": "store.table", "check": "analysis.rules",
    "linearize": "measure.linearize", "nearest": "measure.nearest.nearest", "orthant_probability": "orthant",
    "read_table": "store.reading", "score": "run",
}  # fmt: skip
"""Modules of the public names; each is imported when first used, so that `import brittle` costs nothing."""


def __getattr__(name: str) -> Any:
    from importlib import import_module
    from importlib.metadata import version

    if name == "__version__":
        return version("brittle")
    if name in _PACKAGES:
        return import_module(f"brittle.{name}")
    if name in _HOMES:
        return getattr(import_module(f"brittle.{_HOMES[name]}"), name)
    from brittle.registry import find_attribute

    return find_attribute("brittle", "name")(name)


def __dir__() -> list[str]:
    from brittle.registry import PARTS

    added = [part.partition(".")[2] for part in PARTS if part.startswith("name.")]
    return sorted((*__all__, *_PACKAGES, *added))
