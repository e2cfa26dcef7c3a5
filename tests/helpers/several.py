"""Networks of several tensors: tokens with a mask of those that exist, and further numbers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

TOKENS, WIDTH = 5, 16


class Reader(nn.Module):
    """Attention over the tokens in the mask, and a further number."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.ask, self.tell = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, 3)
        self.double()

    def forward(self, inputs_embeds: Tensor, attention_mask: Tensor, shift: Tensor) -> dict[str, Tensor]:
        visible = attention_mask[:, None, :].bool()
        weights = (self.ask(inputs_embeds) @ inputs_embeds.mT / 4).masked_fill(~visible, -torch.inf).softmax(dim=-1)
        read = torch.tanh(weights @ self.tell(inputs_embeds)) * attention_mask[:, :, None]
        pooled = read.sum(dim=1) / attention_mask.sum(dim=1, keepdim=True)
        return {"logits": self.out(3 * pooled + shift[:, None])}


def texts(points: int = 6, tokens: int = TOKENS, seed: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Return embeddings `[N, tokens, WIDTH]`, a mask of the first 2 to `TOKENS` of them, and further numbers."""
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(points, TOKENS, WIDTH, generator=generator, dtype=torch.float64).clamp(-2.9, 2.9)
    mask = (torch.arange(TOKENS) < 2 + torch.arange(points)[:, None] % (TOKENS - 1)).long()
    embeddings = torch.cat((embeddings * mask[:, :, None], torch.zeros(points, tokens - TOKENS, WIDTH)), dim=1)
    mask = torch.cat((mask, torch.zeros(points, tokens - TOKENS, dtype=torch.int64)), dim=1)
    return embeddings.double(), mask, torch.randn(points, generator=generator, dtype=torch.float64)
