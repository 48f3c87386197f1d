"""Small models that stand in for a trained one, built from a description where the answer runs."""

import torch
from torch import Tensor, nn

from course_utils.checks.values import Double


class LanguageModelDouble(nn.Module):
    """Logits from a table; the row is chosen by a state that has read every token so far.

    Being causal, position-dependent and without ties, it separates "fed the newest token only", "fed the wrong
    end" and "read the wrong position" from the right answer. It refuses more than `block_size` tokens.
    """

    def __init__(self, vocab: int, seed: int, block_size: int) -> None:
        super().__init__()
        self.vocab, self.block_size = vocab, block_size
        table = torch.randn(4 * vocab, vocab, generator=torch.Generator().manual_seed(seed))
        # A parameter, so that code which asks a model for its device or gradients meets the usual thing.
        self.table = nn.Parameter(table)

    def forward(self, idx: Tensor) -> Tensor:
        """idx (B, T) -> logits (B, T, V)."""
        if idx.dim() != 2:
            raise ValueError(f"this model reads token ids of shape (B, T), it was fed shape {tuple(idx.shape)}")
        if idx.shape[1] > self.block_size:
            raise ValueError(
                f"this model reads at most block_size = {self.block_size} tokens, it was fed {idx.shape[1]}"
            )
        state = torch.zeros_like(idx[:, 0])
        rows = []
        for t in range(idx.shape[1]):
            state = (5 * state + 3 * idx[:, t] + 7) % self.table.shape[0]
            rows.append(state)
        return self.table[torch.stack(rows, dim=1)]


class ChainDouble(LanguageModelDouble):
    """Says after each token which token follows, from a list: rows can be made to end when a case needs it."""

    def __init__(self, follow: list[int], seed: int, block_size: int) -> None:
        super().__init__(len(follow), seed, block_size)
        self.follow = torch.tensor(follow)

    def forward(self, idx: Tensor) -> Tensor:
        """idx (B, T) -> logits (B, T, V), largest at the follower of each token."""
        logits = super().forward(idx)
        winner = torch.nn.functional.one_hot(self.follow[idx], self.vocab).to(logits.dtype)
        return logits + 20 * winner


class RankedDouble(LanguageModelDouble):
    """The same logits in every state, each time for other words: how sharply it chooses is known beforehand."""

    def __init__(self, logits: list[float], seed: int, block_size: int) -> None:
        super().__init__(len(logits), seed, block_size)
        drawn = self.table.detach()
        # A state's own level changes no probability: it is there for code that compares the logits of two rows.
        self.table = nn.Parameter(torch.tensor(logits)[drawn.argsort(dim=-1)] + 5 * drawn[:, :1])


KINDS = {"ranked": RankedDouble, "language_model": LanguageModelDouble, "chain": ChainDouble}


def build(double: Double) -> nn.Module:
    """The model that a description stands for."""
    return KINDS[double.kind](**double.params)
