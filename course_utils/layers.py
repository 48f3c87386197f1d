"""What surrounds attention in a Transformer, as functions with their weights as arguments."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def layer_norm(
    x: Float[Tensor, "*batch d"], gamma: Float[Tensor, " d"], beta: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "*batch d"]:
    """Each vector on its own: mean 0, variance 1 (biased, eps under the root), then scaled and shifted.

    Source: Ba, Kiros and Hinton 2016, "Layer normalization", section 3.
    """
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.pow(2).mean(dim=-1, keepdim=True)
    return centred / torch.sqrt(variance + eps) * gamma + beta


def rms_norm(x: Float[Tensor, "*batch d"], gamma: Float[Tensor, " d"], eps: float = 1e-5) -> Float[Tensor, "*batch d"]:
    """Only the scale: divided by the root mean square, nothing is centred.

    Source: Zhang and Sennrich 2019, "Root mean square layer normalization", section 3.
    """
    return x / torch.sqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps) * gamma


def feed_forward(
    x: Float[Tensor, "*batch d"],
    W1: Float[Tensor, "d d_ff"],
    b1: Float[Tensor, " d_ff"],
    W2: Float[Tensor, "d_ff d"],
    b2: Float[Tensor, " d"],
) -> Float[Tensor, "*batch d"]:
    """Two linear maps with a ReLU between them, on each position alone. Source: Vaswani et al. 2017, section 3.3."""
    return F.relu(x @ W1 + b1) @ W2 + b2


def swiglu(
    x: Float[Tensor, "*batch d"],
    W_gate: Float[Tensor, "d d_ff"],
    W_up: Float[Tensor, "d d_ff"],
    W_down: Float[Tensor, "d_ff d"],
) -> Float[Tensor, "*batch d"]:
    """A feed-forward network with gated hidden features. Source: Shazeer 2020, "GLU variants improve Transformer"."""
    return (F.silu(x @ W_gate) * (x @ W_up)) @ W_down


def dropout(x: Float[Tensor, "..."], p: float, training: bool) -> Float[Tensor, "..."]:
    """Inverted dropout: in training each entry is zeroed with probability p and the rest divided by 1 - p.

    Source: Srivastava et al. 2014, "Dropout", section 10. Raises ValueError for p outside 0 ≤ p < 1.
    """
    if not 0 <= p < 1:
        raise ValueError(f"p: got {p}, must be at least 0 and below 1")
    if not training or p == 0:
        return x
    kept = torch.rand_like(x) >= p
    return torch.where(kept, x / (1 - p), torch.zeros_like(x))
