"""Noise of texts whose points are the embeddings of their tokens: replaced tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Parameters
from brittle.noise.families import digest_of_tensors
from brittle.noise.named import NamedNoise, NoiseData
from brittle.noise.transform import Transforming, check_share


@dataclass(frozen=True, init=False)
class TokenDropout(Transforming):
    """Replace each token with some probability: by zeros, by one embedding, or by a random one of many.

    A point is the embeddings of its tokens, `[T, E]`, as `brittle.data.text_points` makes it; padding and the tokens
    that mark the beginning and the end stay as they are.

    Attributes:
        sigma: probability with which a token is replaced.
        replacements: embeddings to draw from, `[R, E]`: that of the mask token, or the vocabulary; None for zeros.
        digest: digest of the embeddings.

    Raises:
        ParameterError: the probability is not above 0 and at most 1, or the embeddings are not finite or no rows.
    """

    replacements: Tensor | None = field(init=False, repr=False, compare=False)
    digest: str = field(init=False, repr=False)

    of_rows: ClassVar[bool] = True

    name: ClassVar[str] = "token-dropout"
    explanation: ClassVar[str] = "A random share of the tokens is replaced"
    unit: ClassVar[str] = "of the tokens"

    def __init__(self, share: float, replacements: Tensor | None = None) -> None:
        """Set the probability `share` of a replacement."""
        check_share(share)
        rows = None if replacements is None else replacements.detach().cpu().clone()
        if rows is not None:
            rows = rows[None] if rows.dim() == 1 else rows
            if rows.dim() != 2 or not len(rows) or not bool(rows.isfinite().all()):
                raise ParameterError(
                    f"embeddings to replace tokens with must be finite, [R, E]; found {list(rows.shape)}"
                )
        self._set(sigma=share, replacements=rows, digest=digest_of_tensors(*([] if rows is None else [rows])))

    @property
    def parameters(self) -> Parameters:
        """The share, and the digest of the embeddings, if any."""
        parameters: Parameters = {"sigma": self.sigma, "unit": self.unit, "noise": self.name}
        if self.replacements is None:
            return parameters
        by = "one vector" if len(self.replacements) == 1 else "others"
        return parameters | {"unit": f"{self.unit} replaced by {by}", "rows": self.digest}

    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        rows = self.replacements
        if x.dim() != 2 or (rows is not None and rows.shape[1] != x.shape[1]):
            width = "" if rows is None else f" with E = {rows.shape[1]}"
            raise ParameterError(f"tokens are dropped from inputs [T, E]{width}; found inputs {list(x.shape)}")
        chance, choice = torch.rand(len(x), 2, generator=generator, dtype=torch.float64).unbind(dim=1)
        vectors = x.new_zeros(1, x.shape[1]) if rows is None else rows.to(x)
        place = (choice * len(vectors)).long().clamp_max(len(vectors) - 1)
        return torch.where((chance < self.sigma)[:, None], vectors[place], x)


def _make_noises(replacements: str, shares: Sequence[float], data: NoiseData) -> list[TokenDropout]:
    """Return noises that replace tokens by a field of the text form, or by zeros where there is no field or no form."""
    vectors = getattr(data.texts, replacements) if replacements and data.texts is not None else None
    return [TokenDropout(share, vectors) for share in shares]


TOKEN_DROPOUT, TOKEN_MASK, TOKEN_REPLACEMENT = (
    NamedNoise(partial(_make_noises, replacements), example=0.2, changes="tokens")
    for replacements in ("", "mask_vector", "vocabulary")
)
