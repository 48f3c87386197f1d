"""The Transformer block, and the decoder-only language model made of it.

B sentences, T positions, V symbols, d_model features.
"""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from .masks import causal_mask
from .multihead import FusedMultiHeadAttention, KeyValueCache
from .positions import LearnedPositions, alibi_bias, apply_rope, sinusoidal_positions


class TransformerBlock(nn.Module):
    """Pre-norm block: attention and a feed-forward network, each on a normalised copy, each added to the stream.

    Sources: Vaswani et al. 2017, section 3.1 (the parts); Xiong et al. 2020, "On layer normalization in the
    Transformer architecture" (pre-norm). `attention` is the class to use, called as attention(d_model, n_heads).
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        attention: Callable[[int, int], nn.Module] = FusedMultiHeadAttention,
    ):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = attention(d_model, n_heads)
        self.ff1, self.ff2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "B T d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "B T d_model"]:
        options = {} if cache is None else {"cache": cache}  # a reader's own attention need not know caches
        x = x + self.drop(self.attn(self.ln1(x), None, mask, **options))
        return x + self.drop(self.ff2(F.relu(self.ff1(self.ln2(x)))))


class RotaryAttention(FusedMultiHeadAttention):
    """Multi-head attention whose queries and keys are turned by their position (RoPE)."""

    def place(self, q: Tensor, k: Tensor, start: int) -> tuple[Tensor, Tensor]:
        return apply_rope(q, start), apply_rope(k, start)


class AlibiAttention(FusedMultiHeadAttention):
    """Multi-head attention whose scores are lowered in proportion to the distance (ALiBi)."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        bias = alibi_bias(self.n_heads, k.shape[-2])[:, k.shape[-2] - q.shape[-2] :].to(q)
        if mask is not None:
            bias = bias.masked_fill(~mask, float("-inf"))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


class LanguageModel(nn.Module):
    """Predicts the next symbol at every position: embedding, blocks, a last norm, scores tied to the embedding.

    positions: "learned", "sinusoidal", "rope", "alibi" or "none". mask(T) says who may see whom; None lets everybody
    see everything, which is the mistake of notebook 04. Only learned positions end at block_size; the others run on.
    attention replaces the attention of the blocks, make_block(d_model, n_heads, d_ff) the blocks themselves. With
    "rope" and "alibi", which live in the attention, either is a ValueError, and so are both together.
    final_norm=False leaves out the last norm, which blocks that end in one of their own do not need.
    """

    POSITIONS: ClassVar = ("learned", "sinusoidal", "rope", "alibi", "none")

    def __init__(
        self,
        vocab: int,
        d_model: int = 64,
        n_layers: int = 2,
        n_heads: int = 4,
        block_size: int = 64,
        *,
        positions: str = "learned",
        mask: Callable[[int], Tensor] | None = causal_mask,
        attention: Callable[[int, int], nn.Module] | None = None,
        make_block: Callable[[int, int, int], nn.Module] | None = None,
        final_norm: bool = True,
    ):
        super().__init__()
        if positions not in self.POSITIONS:
            raise ValueError(f"positions: got {positions!r}, must be one of {', '.join(map(repr, self.POSITIONS))}")
        self.block_size, self.kind, self.mask = block_size, positions, mask
        placing = {"rope": RotaryAttention, "alibi": AlibiAttention}
        if attention is not None and positions in placing:
            raise ValueError(
                f"attention: with positions={positions!r}, {placing[positions].__name__} is what knows the positions; "
                "leave attention out, or choose other positions"
            )
        if make_block is not None and (attention is not None or positions in placing):
            other = "attention" if attention is not None else f"positions={positions!r}"
            raise ValueError(
                f"make_block: blocks made by it have their own attention, and {other} would have no effect"
            )
        attention = attention or placing.get(positions, FusedMultiHeadAttention)
        make_block = make_block or partial(TransformerBlock, attention=attention)
        self.emb = nn.Embedding(vocab, d_model)
        nn.init.normal_(self.emb.weight, std=0.1)
        self.learned = LearnedPositions(block_size, d_model) if positions == "learned" else None
        self.blocks = nn.ModuleList(make_block(d_model, n_heads, 4 * d_model) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model) if final_norm else nn.Identity()
        self.head = nn.Linear(d_model, vocab, bias=False)
        self.head.weight = self.emb.weight

    def new_caches(self) -> list[KeyValueCache]:
        """An empty cache for each block, for `forward(idx, caches)`."""
        return [KeyValueCache() for _ in self.blocks]

    def forward(self, idx: Int[Tensor, "B T"], caches: list[KeyValueCache] | None = None) -> Float[Tensor, "B T V"]:
        """Logits of the next symbol at every position.

        With caches, idx holds the new symbols only; what came before is in the caches, which grow by it.
        """
        T, start = idx.shape[1], 0 if caches is None else len(caches[0])
        x = self.emb(idx)
        if self.learned is not None:
            x = self.learned(x, start)
        elif self.kind == "sinusoidal":  # at the scale of the embedding
            x = x + 0.1 * sinusoidal_positions(start + T, x.shape[-1])[start:].to(x)
        mask = None if self.mask is None else self.mask(start + T)[start:].to(idx.device)
        for i, block in enumerate(self.blocks):
            x = block(x, mask) if caches is None else block(x, mask, caches[i])
        return self.head(self.norm(x))


class TiedLM(nn.Module):
    """The smallest language model with tied weights: one matrix looks symbols up and scores them.

    Source: Press and Wolf 2017, "Using the output embedding to improve language models".
    """

    def __init__(self, vocab: int, d_model: int):
        super().__init__()
        self.emb = nn.Embedding(vocab, d_model)
        self.head = nn.Linear(d_model, vocab, bias=False)
        self.head.weight = self.emb.weight

    def forward(self, idx: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        return self.head(self.emb(idx))


def next_symbol_loss(model: nn.Module, windows: Int[Tensor, "B T1"]) -> Float[Tensor, ""]:
    """Mean cross-entropy, in nats, of all T predictions of windows (B, T + 1): one forward pass for all of them."""
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


@torch.no_grad()
def honest_nats(model: nn.Module, windows: Int[Tensor, "B T1"]) -> float:
    """Nats a symbol when the model is fed the prefix alone, as in generation: T forward passes instead of one.

    For a causal model this equals `next_symbol_loss`; a model that peeks is found out.
    """
    T = windows.shape[1] - 1
    losses = [F.cross_entropy(model(windows[:, :t])[:, -1], windows[:, t]).item() for t in range(1, T + 1)]
    return sum(losses) / T
