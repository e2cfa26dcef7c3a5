"""What was learned of the margins: a regressor, how it came about, and from which points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from brittle.detector.identity import Source
from brittle.detector.pseudo_margin.recipe import Recipe
from brittle.detector.pseudo_margin.regressor import Regressor
from brittle.errors import ModelError, ParameterError
from brittle.model.loading.weights import state_digest


@dataclass(frozen=True, eq=False, repr=False)
class LearnedMargin:
    """A regressor from features to margins, with what is known of its training.

    Attributes:
        recipe: how it came about.
        regressor: the network, in evaluation mode.
        points: ids of the points it was trained on, where they were given; `recipe.data` says of which data.
    """

    recipe: Recipe
    regressor: Regressor
    points: tuple[str, ...] = ()

    def __repr__(self) -> str:
        learned = self.recipe
        return (
            f"{type(self).__name__}({learned.points} points, {learned.features} features, norm={learned.norm!r}, "
            f"validation_loss={learned.validation_loss:.4g})"
        )

    def learned_from(self, source: Source) -> tuple[str, ...]:
        """Ids that it was trained on, as far as they are of `source`."""
        own = self.recipe.data
        return self.points if own is not None and own.may_share(source) else ()

    def check_model(self, model: str | None) -> None:
        """Raise where it is known to be learned from another model than the one of the digest `model`.

        Raises:
            ModelError: it was.
        """
        if self.recipe.model not in (None, model):
            raise ModelError(
                "other_model",
                f"the pseudo-margin was learned from the features of the model {self.recipe.model}; found {model}; "
                f"learn one for this model",
            )

    def predict(self, features: Tensor | ArrayLike) -> Tensor:
        """The pseudo-margins of `features` `[B, d]`: `[B]`, double precision, NaN where a feature is not finite.

        Raises:
            ParameterError: the features have another size than those it was trained on.
        """
        rows = features if isinstance(features, Tensor) else torch.from_numpy(np.asarray(features, np.float32))
        if rows.dim() != 2 or rows.shape[1] != self.recipe.features:
            raise ParameterError(f"expected [B, {self.recipe.features}], found {list(rows.shape)}")
        with torch.no_grad():
            return self.regressor(rows.to(self.regressor.mean.device))

    @cached_property
    def digest(self) -> str:
        """The sha256 of its weights."""
        return state_digest(self.regressor)
