"""Multi-head attention: several questions at once, at the price of one; and ways around its T² cost.

B sentences, Tq queries, Tk keys, d_model features, n_heads heads of d_head = d_model / n_heads features.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from .attention import scaled_dot_product_attention


class MultiHeadAttention(nn.Module):
    """n_heads attentions on d_model / n_heads features each, concatenated and mixed once more.

    Head i owns the features i·d_head … (i+1)·d_head - 1. `weights` holds the attention weights of the last call,
    (B, n_heads, Tq, Tk), detached. Source: Vaswani et al. 2017, section 3.2.2.
    Raises ValueError when n_heads does not divide d_model.
    """

    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        if n_heads < 1 or d_model % n_heads:
            raise ValueError(
                f"d_model, n_heads: got {d_model} and {n_heads}; the heads share the features evenly, "
                "so n_heads must divide d_model"
            )
        self.n_heads = n_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.weights: Tensor | None = None

    def split(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B n_heads T d_head"]:
        """Deal the features out to the heads. view alone would mix positions: the head axis has to move."""
        B, T, d_model = x.shape
        return x.view(B, T, self.n_heads, d_model // self.n_heads).transpose(1, 2)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Bool[Tensor, "..."] | None
    ) -> Float[Tensor, "B n_heads Tq d_head"]:
        """Attention in every head at once; q, k and v are (B, n_heads, T, d_head)."""
        out, weights = scaled_dot_product_attention(q, k, v, mask)
        self.weights = weights.detach()
        return out

    def place(self, q: Tensor, k: Tensor, start: int) -> tuple[Tensor, Tensor]:
        """What positions do to queries and keys; nothing here, a rotation in RotaryAttention."""
        return q, k

    def forward(
        self,
        x_q: Float[Tensor, "B Tq d_model"],
        x_kv: Float[Tensor, "B Tk d_model"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        cache: "KeyValueCache | None" = None,
    ) -> Float[Tensor, "B Tq d_model"]:
        """Self-attention, or cross-attention to x_kv; mask (Tq, Tk), (B, Tq, Tk) or (B, 1, Tq, Tk).

        With a cache, x_q holds the new positions only, and attends to those in the cache as well.
        """
        x_kv = x_q if x_kv is None else x_kv
        q, k, v = self.split(self.W_q(x_q)), self.split(self.W_k(x_kv)), self.split(self.W_v(x_kv))
        q, k = self.place(q, k, 0 if cache is None else len(cache))
        if cache is not None:
            k, v = cache.append(k, v)
        out = self.attend(q, k, v, head_mask(mask))
        return self.W_o(out.transpose(1, 2).flatten(2))


class FusedMultiHeadAttention(MultiHeadAttention):
    """The same, on torch's fused operator: faster, but it does not tell its weights. Long trainings use this one."""

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Bool[Tensor, "..."] | None
    ) -> Float[Tensor, "B n_heads Tq d_head"]:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def head_mask(mask: Bool[Tensor, "..."] | None) -> Bool[Tensor, "..."] | None:
    """Give a mask for each sentence, (B, Tq, Tk), the head axis it lacks; others broadcast as they are."""
    return mask.unsqueeze(1) if mask is not None and mask.dim() == 3 else mask


def blockwise_attention(
    q: Float[Tensor, "*batch Tq d"],
    k: Float[Tensor, "*batch Tk d"],
    v: Float[Tensor, "*batch Tk dv"],
    block: int = 64,
    *,
    causal: bool = False,
) -> Float[Tensor, "*batch Tq dv"]:
    """Exact attention that never holds more than (block, block) scores: keys come in blocks, sums are kept running.

    For each query the running maximum m, the running sum s of exp(score - m) and the running output are enough;
    when a block raises the maximum, what was summed before is scaled down by exp(m_old - m_new).
    Sources: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; Dao et al. 2022,
    "FlashAttention", section 3.1. Raises ValueError for a block below 1.
    """
    if block < 1:
        raise ValueError(f"block: got {block}, must be at least 1")
    Tq, Tk = q.shape[-2], k.shape[-2]
    out = []
    for i in range(0, Tq, block):
        rows = q[..., i : i + block, :] / math.sqrt(q.shape[-1])
        top = rows.new_full((*rows.shape[:-1], 1), -torch.inf)
        total = torch.zeros_like(top)
        mixed = rows.new_zeros(*rows.shape[:-1], v.shape[-1])
        last = min(Tk, i + block) if causal else Tk
        for j in range(0, last, block):
            scores = rows @ k[..., j : j + block, :].transpose(-2, -1)
            if causal:
                t = torch.arange(i, i + scores.shape[-2], device=q.device).unsqueeze(1)
                s = torch.arange(j, j + scores.shape[-1], device=q.device)
                scores = scores.masked_fill(s > t, -torch.inf)
            new_top = torch.maximum(top, scores.max(dim=-1, keepdim=True).values)
            weights = (scores - new_top).exp()
            keep = (top - new_top).exp()
            total = total * keep + weights.sum(dim=-1, keepdim=True)
            mixed = mixed * keep + weights @ v[..., j : j + block, :]
            top = new_top
        out.append(mixed / total)
    return torch.cat(out, dim=-2)


class KeyValueCache:
    """Keys and values of the positions that a decoder has already seen, so that each new one costs one row.

    append returns everything so far. Shapes (B, n_heads, T, d_head).
    """

    def __init__(self) -> None:
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.k is None else self.k.shape[-2]

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        self.k = k if self.k is None else torch.cat([self.k, k], dim=-2)
        self.v = v if self.v is None else torch.cat([self.v, v], dim=-2)
        return self.k, self.v
