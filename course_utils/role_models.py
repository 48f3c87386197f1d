"""Models that read who does something to whom: one layer of attention, read at the first position.

They are as small as the questions of notebooks 03 and 05 allow: no feed-forward network, no norm. B sentences,
T positions, d features.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from .attention import self_attention
from .data.roles import NOUNS, WORDS
from .multihead import MultiHeadAttention
from .positions import LearnedPositions, TokenEmbedding

POSITIONS = ("none", "learned", "sinusoidal")


class RoleEmbedding(nn.Module):
    """Word vectors of unit variance, with the chosen positions added."""

    def __init__(self, d: int, positions: str, token_embedding: Callable[..., nn.Module] = TokenEmbedding):
        super().__init__()
        if positions not in POSITIONS:
            raise ValueError(f"positions: got {positions!r}, must be one of {', '.join(map(repr, POSITIONS))}")
        self.positions = LearnedPositions(8, d) if positions == "learned" else None
        if positions == "sinusoidal":
            self.emb = token_embedding(len(WORDS), d)
            nn.init.normal_(self.emb.emb.weight, std=d**-0.5)  # the embedding multiplies by √d again
        else:
            self.emb = nn.Embedding(len(WORDS), d)
        if self.positions is not None:
            nn.init.normal_(self.positions.table)

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T d"]:
        x = self.emb(tokens)
        return x if self.positions is None else self.positions(x)


class SingleHeadReader(nn.Module):
    """Names the biter: one head of self-attention with given weights, read at the first position."""

    def __init__(
        self,
        d: int = 32,
        positions: str = "learned",
        attend: Callable[..., tuple[Tensor, Tensor]] = self_attention,
        token_embedding: Callable[..., nn.Module] = TokenEmbedding,
    ):
        super().__init__()
        self.attend = attend
        self.embed = RoleEmbedding(d, positions, token_embedding)
        self.W_q, self.W_k, self.W_v = (nn.Parameter(torch.randn(d, d) * d**-0.5) for _ in range(3))
        self.out = nn.Linear(d, len(NOUNS))

    def read(self, tokens: Int[Tensor, "B T"]) -> tuple[Float[Tensor, "B V"], Float[Tensor, "B T T"]]:
        """Scores of the nouns, and the attention weights."""
        x = self.embed(tokens)
        real = (tokens != 0).unsqueeze(1)
        out, weights = self.attend(x, self.W_q, self.W_k, self.W_v, real.expand(-1, tokens.shape[1], -1))
        return self.out((x + out)[:, 0]), weights

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B V"]:
        return self.read(tokens)[0]


class MultiHeadReader(nn.Module):
    """Names biter and bitten, both from the one vector at the first position: layers of multi-head attention."""

    def __init__(
        self,
        d: int = 32,
        n_heads: int = 1,
        n_layers: int = 1,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
    ):
        super().__init__()
        self.embed = RoleEmbedding(d, "learned")
        self.layers = nn.ModuleList(attention(d, n_heads) for _ in range(n_layers))
        self.biter, self.bitten = nn.Linear(d, len(NOUNS)), nn.Linear(d, len(NOUNS))

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B 2 V"]:
        """Scores of the nouns for the biter and for the bitten."""
        x = self.embed(tokens)
        mask = (tokens != 0)[:, None, None, :].expand(-1, 1, tokens.shape[1], -1)
        for layer in self.layers:
            x = x + layer(x, None, mask)
        return torch.stack([self.biter(x[:, 0]), self.bitten(x[:, 0])], dim=1)
