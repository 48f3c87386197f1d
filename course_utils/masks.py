"""Who may attend to whom. Masks are boolean, True = may attend or real token.

B sentences, T positions. Every mask broadcasts to the scores (..., Tq, Tk).
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def causal_mask(T: int, device: torch.device | str | None = None) -> Bool[Tensor, "T T"]:
    """Row t may attend to the columns 0 … t: itself and the past."""
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


def window_mask(T: int, window: int, device: torch.device | str | None = None) -> Bool[Tensor, "T T"]:
    """Causal, and only the last `window` positions (itself included). Raises ValueError for a window below 1."""
    if window < 1:
        raise ValueError(f"window: got {window}, must be at least 1: a position may always see itself")
    mask = torch.ones(T, T, dtype=torch.bool, device=device)
    return mask.tril() & mask.triu(1 - window)


def padding_mask(lengths: Int[Tensor, " B"], T: int) -> Bool[Tensor, "B T"]:
    """True at the real tokens of each sentence."""
    return torch.arange(T, device=lengths.device) < lengths.unsqueeze(1)


def decoder_mask(tokens: Int[Tensor, "B T"], pad_id: int) -> Bool[Tensor, "B 1 T T"]:
    """Causal, and no padding as a key. Rows of padding are left alone: nobody reads them."""
    visible = (tokens != pad_id)[:, None, None, :]
    return causal_mask(tokens.shape[1], tokens.device) & visible


def mean_pool(x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"]) -> Float[Tensor, "B D"]:
    """The mean over the real positions of each sentence; zeros for a sentence without any."""
    real = padding_mask(lengths, x.shape[1]).unsqueeze(-1)
    return x.masked_fill(~real, 0.0).sum(dim=1) / lengths.clamp(min=1).unsqueeze(-1)
