"""Attention: from Bahdanau's alignment model to the scaled dot product.

Masks are boolean, True = may attend. A query that may attend to nothing gets zero weights.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def masked_softmax(
    scores: Float[Tensor, "... Tk"], mask: Bool[Tensor, "... Tk"] | None = None
) -> Float[Tensor, "... Tk"]:
    """Softmax over the keys (last axis) that the mask allows; a row without any allowed key gets zeros.

    The mask may have any shape that broadcasts to the scores.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    # A row of nothing but -inf becomes NaN, forward and backward: such rows are softened first, zeroed after.
    empty = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, float("-inf")).masked_fill(empty, 0.0)
    return scores.softmax(dim=-1).masked_fill(~mask, 0.0)


def linear_score(
    query: Float[Tensor, "B D"],
    keys: Float[Tensor, "B T D"],
    w: Float[Tensor, " 2*D"],
) -> Float[Tensor, "B T"]:
    """The simplest alignment score: one linear layer on [query; key], as the lecture first draws it.

    The query adds the same number to every key of its sentence, and a softmax does not see such a shift.
    """
    D = query.shape[-1]
    return (query @ w[:D]).unsqueeze(1) + keys @ w[D:]


def additive_attention(
    query: Float[Tensor, "B D"],
    keys: Float[Tensor, "B T D"],
    W_q: Float[Tensor, "D A"],
    W_k: Float[Tensor, "D A"],
    v: Float[Tensor, " A"],
    mask: Bool[Tensor, "B T"] | None = None,
) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B T"]]:
    """Additive attention of one query per sentence; the keys are also what is averaged.

    Returns the context and the weights. Source: Bahdanau, Cho and Bengio 2015, "Neural Machine Translation
    by Jointly Learning to Align and Translate", appendix A.1.2.
    """
    hidden = torch.tanh((query @ W_q).unsqueeze(1) + keys @ W_k)
    weights = masked_softmax(hidden @ v, mask)
    context = torch.einsum("bt,btd->bd", weights, keys)
    return context, weights


def decode_step(
    y_emb: Float[Tensor, "B D"],
    h: Float[Tensor, "B H"],
    enc_out: Float[Tensor, "B T H"],
    enc_mask: Bool[Tensor, "B T"],
    p: dict[str, Tensor],
) -> tuple[Float[Tensor, "B V"], Float[Tensor, "B H"], Float[Tensor, "B T"]]:
    """One step of a decoder that looks back: score, softmax, context, new state, logits.

    p holds W_x (D+H, H), W_h (H, H), b (H), W_o (2H, V) and b_o (V). The incoming state h asks the question,
    with a plain dot product. Returns the logits, the next state and the attention weights.
    Source: Bahdanau, Cho and Bengio 2015, section 3.1, with the dot score of Luong, Pham and Manning 2015.
    """
    scores = torch.einsum("bh,bth->bt", h, enc_out)
    weights = masked_softmax(scores, enc_mask)
    context = torch.einsum("bt,bth->bh", weights, enc_out)
    h_next = torch.tanh(torch.cat([y_emb, context], dim=-1) @ p["W_x"] + h @ p["W_h"] + p["b"])
    logits = torch.cat([h_next, context], dim=-1) @ p["W_o"] + p["b_o"]
    return logits, h_next, weights


def scaled_dot_product_attention(
    q: Float[Tensor, "*batch Tq d"],
    k: Float[Tensor, "*batch Tk d"],
    v: Float[Tensor, "*batch Tk dv"],
    mask: Bool[Tensor, "..."] | None = None,
) -> tuple[Float[Tensor, "*batch Tq dv"], Float[Tensor, "*batch Tq Tk"]]:
    """Attention as one operator: every query meets every key, every output is a weighted mean of the values.

    The mask broadcasts to (..., Tq, Tk). Returns the outputs and the weights, whose rows sum to one.
    Source: Vaswani et al. 2017, "Attention is all you need", section 3.2.1.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = masked_softmax(scores, mask)
    return weights @ v, weights


def self_attention(
    x: Float[Tensor, "*batch T d_in"],
    W_q: Float[Tensor, "d_in d"],
    W_k: Float[Tensor, "d_in d"],
    W_v: Float[Tensor, "d_in dv"],
    mask: Bool[Tensor, "..."] | None = None,
) -> tuple[Float[Tensor, "*batch T dv"], Float[Tensor, "*batch T T"]]:
    """Queries, keys and values from the same sequence. Returns the outputs and the weights.

    Source: Vaswani et al. 2017, section 3.2.3.
    """
    return scaled_dot_product_attention(x @ W_q, x @ W_k, x @ W_v, mask)
