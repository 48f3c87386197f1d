"""Translating dates, and the copy task that is its core."""

import textwrap
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
from ..transformer import TransformerBlock


def encoder_block(make_block: Callable[[int, int, int], nn.Module]) -> Callable[[int, int, int], nn.Module]:
    """make_block, if its blocks hide the padding of each sentence; else the course's block, and a line that says why.

    A reader's block has been checked with causal masks, (T, T). In an encoder every sentence has a mask of its own,
    (B, 1, T, T), and a block that cannot take it is better replaced here than found in the middle of a training.
    """
    lengths = (3, 2)
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            block, x = make_block(8, 2, 16).eval(), torch.randn(2, 3, 8)
            real = torch.arange(3) < torch.tensor(lengths).unsqueeze(1)
            out = block(x, real[:, None, None].expand(-1, 1, 3, -1))
            alone = [block(x[i : i + 1, :n])[0] for i, n in enumerate(lengths)]
        if all(torch.allclose(out[i, :n], alone[i], atol=1e-4) for i, n in enumerate(lengths)):
            return make_block
        why = "a word still notices what is hidden from it, or misses what is not"
    except Exception as error:  # whatever the block does, the notebook goes on
        why = textwrap.shorten(f"{type(error).__name__}: {error}", 140, placeholder=" …")
    print(
        f"Your {getattr(make_block, '__name__', 'block')} is not used in the encoder: there each sentence has a mask "
        f"of its own, (B, 1, T, T), and with such a mask it does not work ({why}). The reference stands in."
    )
    return TransformerBlock


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
