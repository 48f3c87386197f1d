"""Losses of language and translation models."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def lm_loss(logits: Float[Tensor, "B T V"], targets: Int[Tensor, "B T"], pad_id: int) -> Float[Tensor, ""]:
    """Mean cross-entropy in nats over the real tokens of the whole batch.

    A batch without any real token has no mean; the loss is then NaN, as in torch.
    """
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id)
