"""Noise for texts: tokens that are dropped, or replaced by others."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Parameters
from brittle.noise.base import reserve_name
from brittle.noise.transform import Transforming


@reserve_name
@dataclass(frozen=True, init=False)
class TokenDropout(Transforming):
    """Each token is replaced with some probability: by nothing (zeros), by one embedding, or by a random one of many.

    A point is the embeddings of its tokens, `[T, E]`, as `brittle.data.text_points` makes it; padding and the tokens
    that mark the beginning and the end stay as they are.

    Attributes:
        sigma: probability with which a token is replaced.
        replacements: the embeddings to take, `[R, E]`, such as that of the mask token, or all of them; None for zeros.
        digest: of these.

    Raises:
        ParameterError: the probability is not above 0 and at most 1, or the embeddings are not finite, `[E]` or
            `[R, E]`.
    """

    replacements: Tensor | None = field(init=False, repr=False, compare=False)
    digest: str = field(init=False, repr=False)

    name: ClassVar[str] = "token-dropout"
    explanation: ClassVar[str] = "A random share of the tokens is replaced"
    unit: ClassVar[str] = "of the tokens"

    def __init__(self, share: float, replacements: Tensor | None = None) -> None:
        """Replace a token with the probability `share`."""
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share <= 1.0:
            raise ParameterError(f"the share of dropped tokens is above 0 and at most 1; found {share!r:.40}")
        rows = None if replacements is None else replacements.detach().cpu().clone()
        if rows is not None:
            rows = rows[None] if rows.dim() == 1 else rows
            if rows.dim() != 2 or not len(rows) or not bool(rows.isfinite().all()):
                raise ParameterError(
                    f"embeddings to replace tokens with must be finite, [R, E]; found {list(rows.shape)}"
                )
        content = b"" if rows is None else rows.contiguous().double().numpy().tobytes()
        digest = hashlib.sha256(content).hexdigest()[:16]
        for name, value in {"sigma": share, "replacements": rows, "digest": digest}.items():
            object.__setattr__(self, name, value)
        super().__post_init__()

    @property
    def parameters(self) -> Parameters:
        """The share, and the digest of the embeddings where there are any."""
        if self.replacements is None:
            return {"sigma": self.sigma, "unit": self.unit, "noise": self.name}
        by = "one vector" if len(self.replacements) == 1 else "others"
        unit = f"{self.unit} replaced by {by}"
        return {"sigma": self.sigma, "unit": unit, "noise": self.name, "rows": self.digest}

    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """The point with some of its tokens replaced."""
        rows = self.replacements
        if x.dim() != 2 or (rows is not None and rows.shape[1] != x.shape[1]):
            width = "" if rows is None else f" with E = {rows.shape[1]}"
            raise ParameterError(f"tokens are dropped from inputs [T, E]{width}; found inputs {list(x.shape)}")
        chance, other = torch.rand(len(x), 2, generator=generator, dtype=torch.float64).unbind(dim=1)
        taken = x.new_zeros(1, x.shape[1]) if rows is None else rows.to(x)
        place = (other * len(taken)).long().clamp_max(len(taken) - 1)
        return torch.where((chance < self.sigma)[:, None], taken[place], x)
