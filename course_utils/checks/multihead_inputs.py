"""Inputs of `MultiHeadAttention` that several cases share."""

from collections.abc import Callable

import torch
from torch import Tensor

from course_utils.checks.model import Draw
from course_utils.checks.modules import construction
from course_utils.checks.values import Construction


def made(d_model: int, n_heads: int) -> Callable[[Draw], Construction]:
    """A module with random weights copied in."""
    return lambda draw: construction("MultiHeadAttention", draw, d_model=d_model, n_heads=n_heads)


def bare(d_model: int, n_heads: int) -> Callable[[Draw], Construction]:
    """A module that keeps its own weights."""
    return lambda draw: Construction("MultiHeadAttention", {"d_model": d_model, "n_heads": n_heads})


def causal(T: int) -> Tensor:
    """A causal mask."""
    return torch.ones(T, T, dtype=torch.bool).tril()


def one_sample_each(draw: Draw) -> dict:
    """As many samples as heads, each with another mask; hidden words are large."""
    x_kv, mask = draw.normal(3, 4, 12), torch.ones(3, 5, 4, dtype=torch.bool)
    mask[0, :, 2:], mask[1, :, :3], mask[2, :3, 1] = False, False, False
    x_kv += 10 * (~mask).all(1).unsqueeze(-1)
    return {"x_q": draw.normal(3, 5, 12), "x_kv": x_kv, "mask": mask}
