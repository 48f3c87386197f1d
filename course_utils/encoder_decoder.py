"""Stacks of blocks: post-norm beside pre-norm, encoder, decoder with cross-attention, and the translator of both.

B sentences, Ts source and Tt target positions, d_model features.
"""

import math
from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from .data.batches import Batch
from .data.vocab import Vocab
from .decoding import shift_right
from .masks import causal_mask
from .multihead import MultiHeadAttention
from .positions import sinusoidal_positions
from .transformer import TransformerBlock

# The source's states (B, Ts, d_model) and its real words, as a mask for cross-attention (B, 1, 1, Ts).
Memory = tuple[Float[Tensor, "B Ts d_model"], Bool[Tensor, "B 1 1 Ts"]]


class PostNormBlock(TransformerBlock):
    """The block as first published: each norm stands behind its addition, on the stream itself.

    Source: Vaswani et al. 2017, section 3.1.
    """

    def forward(
        self, x: Float[Tensor, "B T d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "B T d_model"]:
        x = self.ln1(x + self.drop(self.attn(x, None, mask)))
        return self.ln2(x + self.drop(self.ff2(F.relu(self.ff1(x)))))


class DecoderBlock(nn.Module):
    """Pre-norm decoder block: masked self-attention, cross-attention to the encoder's output, feed-forward network.

    Source: Vaswani et al. 2017, section 3.1; pre-norm as in `TransformerBlock`.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        cross_attention: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        self.ln1, self.ln2, self.ln3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.attn, self.cross = attention(d_model, n_heads), (cross_attention or attention)(d_model, n_heads)
        self.ff1, self.ff2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "B Tt d_model"],
        memory: Float[Tensor, "B Ts d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "B Tt d_model"]:
        x = x + self.drop(self.attn(self.ln1(x), None, mask))
        x = x + self.drop(self.cross(self.ln2(x), memory, memory_mask))
        return x + self.drop(self.ff2(F.relu(self.ff1(self.ln3(x)))))


class WithMask(nn.Module):
    """A block that is told its mask before the call, so that it can be called with x alone, however blocks are stacked.

    `mask` is the mask of the present call. Each block holds its own, and whoever calls a stack sets it on every block
    that is in there: one object that all blocks share would be lost where a stack deep-copies a layer.
    """

    def __init__(self, block: nn.Module):
        super().__init__()
        self.block = block
        self.mask: Tensor | None = None

    def forward(
        self, x: Float[Tensor, "B T d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "B T d_model"]:
        # A stack that hands a mask on has none to hand on here.
        return self.block(x, self.mask if mask is None else mask)


class Stack(nn.Module):
    """Layers one after the other, each with weights of its own; further arguments go to each of them."""

    def __init__(self, layers: list[nn.Module]):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Float[Tensor, "B T d_model"], *args, **kwargs) -> Float[Tensor, "B T d_model"]:
        for layer in self.layers:
            x = layer(x, *args, **kwargs)
        return x


def build_encoder(make_layer: Callable[[], nn.Module], n_layers: int) -> nn.Module:
    """n_layers layers, each made anew by make_layer(), all registered. Raises ValueError for n_layers below 1."""
    if n_layers < 1:
        raise ValueError(f"n_layers: got {n_layers}, must be at least 1")
    return Stack([make_layer() for _ in range(n_layers)])


class TransformerTranslator(nn.Module):
    """Encoder and decoder of Transformer blocks, with the interface of the translators in `seq2seq`.

    make_block(d_model, n_heads, d_ff) makes the encoder's blocks, stack(make_layer, n_layers) puts them together,
    attention(d_model, n_heads) is the decoder's self-attention. The cross-attention is the course's own, because it
    keeps its weights to be looked at. Source: Vaswani et al. 2017, section 3, with norms as in `TransformerBlock`.
    """

    def __init__(
        self,
        source_size: int,
        target_size: int,
        d_model: int = 64,
        n_heads: int = 4,
        n_layers: int = 1,
        *,
        make_block: Callable[[int, int, int], nn.Module] = TransformerBlock,
        stack: Callable[[Callable[[], nn.Module], int], nn.Module] = build_encoder,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        shift: Callable[[Tensor, int], Tensor] = shift_right,
    ):
        super().__init__()
        self.shift, self.d_model = shift, d_model
        self.source_emb, self.target_emb = nn.Embedding(source_size, d_model), nn.Embedding(target_size, d_model)
        for emb in (self.source_emb, self.target_emb):
            nn.init.normal_(emb.weight, std=d_model**-0.5)  # multiplied by √d_model again
        d_ff = 2 * d_model
        self.encoder = stack(lambda: WithMask(make_block(d_model, n_heads, d_ff)), n_layers)
        self.decoder = Stack(
            [
                DecoderBlock(d_model, n_heads, d_ff, attention=attention, cross_attention=MultiHeadAttention)
                for _ in range(n_layers)
            ]
        )
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.out = nn.Linear(d_model, target_size)

    def _embed(self, emb: nn.Embedding, idx: Int[Tensor, "B T"]) -> Float[Tensor, "B T d_model"]:
        x = emb(idx) * math.sqrt(self.d_model)
        return x + sinusoidal_positions(idx.shape[1], self.d_model).to(x)

    def encode(self, batch: Batch) -> Memory:
        """The state of every source word, and the mask of the real ones."""
        mask = batch.source_mask[:, None, None, :]
        full = mask.expand(-1, 1, batch.source.shape[1], -1)  # not every block broadcasts masks
        for layer in self.encoder.modules():
            if isinstance(layer, WithMask):
                layer.mask = full
        x = self.encoder(self._embed(self.source_emb, batch.source))
        return self.encoder_norm(x), mask

    def decode(self, words: Int[Tensor, "B Tt"], memory: Memory) -> Float[Tensor, "B Tt V"]:
        """Logits of the next word after each prefix of `words`."""
        states, source_mask = memory
        x = self._embed(self.target_emb, words)
        x = self.decoder(x, states, causal_mask(words.shape[1], words.device), source_mask)
        return self.out(self.decoder_norm(x))

    def forward(self, batch: Batch) -> Float[Tensor, "B Tt V"]:
        """Logits for every target word, with teacher forcing."""
        return self.decode(self.shift(batch.target, Vocab.bos_id), self.encode(batch))

    def forward_with_weights(self, batch: Batch) -> tuple[Float[Tensor, "B Tt V"], Float[Tensor, "B Tt Ts"]]:
        """Logits, and the cross-attention weights of the last decoder block, averaged over heads."""
        logits = self(batch)
        weights = self.decoder.layers[-1].cross.weights
        return logits, weights.mean(dim=1)
