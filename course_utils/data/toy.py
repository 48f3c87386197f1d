"""Tasks whose right answer is known exactly and whose difficulty is one number."""

import random
from collections.abc import Iterator

import torch
from torch import Tensor

from .. import mode


def copy_batches(n_symbols: int = 10, max_length: int = 16, batch_size: int = 64, seed: int = 0) -> Iterator[Tensor]:
    """Endless batches (B, n) of random symbols 0 … n_symbols - 1; n is drawn anew from 1 … max_length each time.

    Raises ValueError for numbers below one.
    """
    for name, value in (("n_symbols", n_symbols), ("max_length", max_length), ("batch_size", batch_size)):
        if value < 1:
            raise ValueError(f"{name}: got {value}, must be at least 1")
    lengths, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    while True:
        n = lengths.randint(1, max_length)
        yield torch.randint(n_symbols, (batch_size, n), generator=generator)


def copy_test(n_symbols: int = 10, max_length: int = 16, n_test: int = 500, seed: int = 1) -> dict[int, Tensor]:
    """For each length 1 … max_length, n_test random sequences (n_test, n)."""
    generator = torch.Generator().manual_seed(seed)
    n_test = mode.size(n_test, 20)
    return {n: torch.randint(n_symbols, (n_test, n), generator=generator) for n in range(1, max_length + 1)}


def recall_batches(
    distance: int, n_symbols: int = 8, batch_size: int = 64, seed: int = 0
) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless batches: distance + 1 random symbols (B, distance + 1), and the first of them (B): the answer.

    Raises ValueError for a distance below zero.
    """
    if distance < 0:
        raise ValueError(f"distance: got {distance}, must be at least 0")
    generator = torch.Generator().manual_seed(seed)
    while True:
        x = torch.randint(n_symbols, (batch_size, distance + 1), generator=generator)
        yield x, x[:, 0]


def lookup_batches(
    n_words: int = 32, n_pairs: int = 16, batch_size: int = 128, seed: int = 0
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Endless batches of small dictionaries: keys (B, n), values (B, n), a key to look up (B), its value (B).

    The keys of one dictionary differ. Raises ValueError when there are not enough words for that.
    """
    if not 1 <= n_pairs <= n_words:
        raise ValueError(f"n_pairs: got {n_pairs}; {n_words} words allow 1 … {n_words} different keys")
    generator = torch.Generator().manual_seed(seed)
    while True:
        keys = torch.rand(batch_size, n_words, generator=generator).argsort(dim=1)[:, :n_pairs]
        values = torch.randint(n_words, (batch_size, n_pairs), generator=generator)
        which = torch.randint(n_pairs, (batch_size, 1), generator=generator)
        yield keys, values, keys.gather(1, which).squeeze(1), values.gather(1, which).squeeze(1)
