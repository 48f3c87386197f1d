"""Sentences of different length in one tensor."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .dates import Corpus, Pair
from .vocab import Vocab


def pad(rows: Sequence[Sequence[int]], pad_id: int = Vocab.pad_id) -> tuple[Tensor, Tensor]:
    """Ids (B, T), filled up on the right with pad_id, and the real lengths (B). Raises ValueError for no rows."""
    if len(rows) == 0:
        raise ValueError("rows: got an empty batch; a batch needs at least one sentence")
    lengths = torch.tensor([len(row) for row in rows])
    padded = torch.full((len(rows), max(1, int(lengths.max()))), pad_id)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = torch.tensor(row, dtype=torch.long)
    return padded, lengths


@dataclass(frozen=True)
class Batch:
    """Source ids (B, Ts) with their lengths (B), and target ids (B, Tt); every sentence ends in EOS, then padding.

    The lengths stay on the CPU wherever the rest goes: torch packs sequences by lengths that it can read there.
    """

    source: Tensor
    source_lengths: Tensor
    target: Tensor

    @property
    def source_mask(self) -> Tensor:
        """(B, Ts), True at real source words."""
        mask = torch.arange(self.source.shape[1]) < self.source_lengths.unsqueeze(1)
        return mask.to(self.source.device)

    @property
    def all_full(self) -> bool:
        """True if no source sentence is padded."""
        return bool((self.source_lengths == self.source.shape[1]).all())

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on another device."""
        return Batch(self.source.to(device), self.source_lengths, self.target.to(device))

    @property
    def target_mask(self) -> Tensor:
        """(B, Tt), True at real target words."""
        return self.target != Vocab.pad_id


def make_batch(pairs: Sequence[Pair], corpus: Corpus) -> Batch:
    """Encode and pad sentence pairs. Raises ValueError for no pairs and for words outside the vocabularies."""
    if len(pairs) == 0:
        raise ValueError("pairs: got an empty batch; a batch needs at least one sentence pair")
    end = [Vocab.eos_id]
    source, lengths = pad([corpus.source_vocab.encode(pair.source) + end for pair in pairs])
    target, _ = pad([corpus.target_vocab.encode(pair.target) + end for pair in pairs])
    return Batch(source, lengths, target)


def training_batches(corpus: Corpus, batch_size: int = 32, seed: int = 0) -> Iterator[Batch]:
    """Endless random batches; the sentences of one batch have the same number of dates, so little is padding.

    The same seed gives the same batches, whatever the model does in between: "the same examples".
    """
    if batch_size < 1:
        raise ValueError(f"batch_size: got {batch_size}, must be at least 1")
    rng = random.Random(seed)
    groups: dict[int, list[Pair]] = {}
    for pair in corpus.train:
        groups.setdefault(pair.n_dates, []).append(pair)
    sizes = [len(group) for group in groups.values()]
    while True:
        (group,) = rng.choices(list(groups.values()), weights=sizes)
        yield make_batch(rng.choices(group, k=batch_size), corpus)
