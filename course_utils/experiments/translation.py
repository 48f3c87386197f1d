"""Translating dates, and the copy task that is its core."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..baselines import CopyModel
from ..data.batches import Batch, training_batches
from ..data.dates import Corpus
from ..data.toy import copy_batches, copy_test
from ..data.vocab import Vocab
from ..losses import lm_loss
from ..recurrent import seq2seq_encode
from ..training import History, seed_everything, train


def train_translator(
    model: nn.Module,
    corpus: Corpus,
    *,
    steps: int = 1000,
    lr: float = 5e-3,
    batch_size: int = 32,
    seed: int = 0,
    loss: Callable[[Tensor, Tensor, int], Tensor] = lm_loss,
    label: str = "translator",
    measure: Callable[[nn.Module], object] | None = None,
    measure_every: int = 0,
) -> History:
    """Train a translation model of the course. The same steps and seed mean the same examples for every model."""

    def loss_of(model: nn.Module, batch: Batch) -> Tensor:
        return loss(model(batch), batch.target, Vocab.pad_id)

    batches = training_batches(corpus, batch_size, seed)
    return train(model, loss_of, batches, steps, lr=lr, label=label, measure=measure, measure_every=measure_every)


def copy_capacity(
    d: int,
    *,
    max_length: int = 10,
    steps: int = 600,
    seed: int = 0,
    encode: Callable[..., tuple[Tensor, Tensor]] = seq2seq_encode,
) -> dict[int, float]:
    """Exact match by length when sequences of digits must pass through a vector of d numbers."""
    seed_everything(seed)
    model = CopyModel(10, d, encode)

    def loss_of(model: nn.Module, x: Tensor) -> Tensor:
        return F.cross_entropy(model(x).flatten(0, 1), x.flatten())

    train(model, loss_of, copy_batches(10, max_length, seed=seed), steps, lr=5e-3, label=f"copy, {d} numbers")
    with torch.no_grad():
        return {
            n: (model(x).argmax(dim=-1) == x).all(dim=1).double().mean().item()
            for n, x in copy_test(10, max_length).items()
        }


def half_length(exact_match: dict[int, float]) -> float:
    """The length at which exact match falls through one half, interpolated between neighbours.

    0.0 if it never reaches one half, the longest length if it never falls below.
    """
    lengths = sorted(exact_match)
    if exact_match[lengths[0]] < 0.5:
        return 0.0
    above, value = 0, 1.0
    for n in lengths:
        if exact_match[n] < 0.5:
            return above + (n - above) * (value - 0.5) / (value - exact_match[n])
        above, value = n, exact_match[n]
    return float(above)
