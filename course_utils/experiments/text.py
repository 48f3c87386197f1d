"""Small language models on Python's manual."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from ..data.text import Characters
from ..training import History, seed_everything, train
from ..transformer import LanguageModel, next_symbol_loss


def train_language_model(
    model: nn.Module,
    text: Characters,
    *,
    length: int = 32,
    steps: int = 600,
    lr: float = 4e-3,
    seed: int = 0,
    label: str = "language model",
) -> History:
    """Train on random windows of `length` characters. The same seed means the same windows for every model."""
    return train(model, next_symbol_loss, text.batches(length, seed=seed), steps, lr=lr, label=label)


def loss_by_position(
    positions: str,
    text: Characters,
    *,
    spans: Sequence[tuple[int, int]],
    length: int = 32,
    steps: int = 400,
    seed: int = 0,
    label: str = "language model",
) -> list[float]:
    """Train on windows of `length` characters, then read longer ones: mean nats in each span of positions."""
    longest = max(end for _, end in spans)
    seed_everything(seed)
    model = LanguageModel(len(text.alphabet), block_size=longest, positions=positions)
    train_language_model(model, text, length=length, steps=steps, seed=seed, label=label)
    windows = text.windows(longest, 100, seed=1)
    with torch.no_grad():
        logits = model(windows[:, :-1]).transpose(1, 2)
        nats = F.cross_entropy(logits, windows[:, 1:], reduction="none").mean(dim=0)
    return [nats[start:end].mean().item() for start, end in spans]
