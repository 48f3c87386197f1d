"""Where a token stands: sinusoids, learned positions, rotary positions, and distance penalties.

Attention by itself treats its input as a set; each of these tells it the order. T positions, d features.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def sinusoidal_positions(T: int, d: int) -> Float[Tensor, "T d"]:
    """Waves of falling frequency: column 2i is sin(t / 10000^(2i/d)), column 2i+1 the cosine of the same angle.

    Works for any d ≥ 1: an odd d ends with a sine. Source: Vaswani et al. 2017, section 3.5.
    Raises ValueError for T < 0 or d < 1.
    """
    if T < 0 or d < 1:
        raise ValueError(f"T, d: got {T} and {d}; T must be at least 0 and d at least 1")
    frequencies = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = torch.arange(T, dtype=torch.float64).unsqueeze(1) * frequencies
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d]
    return waves.to(torch.get_default_dtype())


def apply_rope(x: Float[Tensor, "*batch T d"], start: int = 0) -> Float[Tensor, "*batch T d"]:
    """Rotate the pairs of features (0,1), (2,3), … of position t by the angles t / 10000^(2i/d).

    Positions are those of the second-last axis, from `start` on. The product of a query at m and a key at n then
    depends on m - n only. Source: Su et al. 2021, "RoFormer", section 3.2.2. Raises ValueError for an odd d.
    """
    T, d = x.shape[-2:]
    if d % 2:
        raise ValueError(f"x: got {d} features; rotary positions turn pairs, so the number must be even")
    frequencies = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = torch.arange(start, start + T, dtype=torch.float64).unsqueeze(1) * frequencies
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def alibi_bias(n_heads: int, T: int) -> Float[Tensor, "n_heads T T"]:
    """What ALiBi adds to the scores: a penalty in proportion to the distance, another slope for each head.

    Slopes are 2^(-8/n), 2^(-16/n), … Source: Press, Smith and Lewis 2022, "Train short, test long", section 3.
    """
    slopes = 2.0 ** (-8.0 * torch.arange(1, n_heads + 1) / n_heads)
    distance = (torch.arange(T).unsqueeze(1) - torch.arange(T)).abs()
    return -slopes[:, None, None] * distance


class LearnedPositions(nn.Module):
    """One learned vector for each position; there are none beyond max_len."""

    def __init__(self, max_len: int, d: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_len, d) * 0.02)

    def forward(self, x: Float[Tensor, "*batch T d"], start: int = 0) -> Float[Tensor, "*batch T d"]:
        """Add the vectors of positions start … start + T - 1. Raises ValueError beyond max_len."""
        end = start + x.shape[-2]
        if end > len(self.table):
            raise ValueError(f"x: got positions up to {end}, but only {len(self.table)} were learned (max_len)")
        return x + self.table[start:end]


class TokenEmbedding(nn.Module):
    """Token vectors, scaled by √d_model, plus sinusoidal positions. Source: Vaswani et al. 2017, sections 3.4, 3.5."""

    def __init__(self, vocab: int, d_model: int, max_len: int = 64):
        super().__init__()
        self.emb = nn.Embedding(vocab, d_model)
        # Not trained, but moved with the model to another device.
        self.register_buffer("positions", sinusoidal_positions(max_len, d_model), persistent=False)

    def forward(self, idx: Int[Tensor, "B T"]) -> Float[Tensor, "B T d_model"]:
        """Raises ValueError for more than max_len tokens."""
        T = idx.shape[-1]
        if len(self.positions) < T:
            raise ValueError(f"idx: got {T} tokens, but max_len is {len(self.positions)}")
        return self.emb(idx) * math.sqrt(self.emb.embedding_dim) + self.positions[:T]
