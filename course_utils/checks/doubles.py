"""Small models that stand in for a trained one, built from a description where the answer runs."""

from collections.abc import Callable, Iterator
from typing import Any

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


class LayerDouble(nn.Module):
    """A layer (B, T, d) -> (B, T, d), other for every seed: adds to each word a function of the words it may see."""

    def __init__(self, d: int, seed: int) -> None:
        super().__init__()
        self.mix = _linear(d, d, torch.Generator().manual_seed(seed))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """mask (T, T), True = may see."""
        seen = x.new_ones(x.shape[1], x.shape[1]) if mask is None else mask.to(x.dtype)
        return x + torch.tanh(self.mix(seen @ x / seen.sum(-1, keepdim=True)))


def layer_factory(d: int, seed: int) -> Callable[[], LayerDouble]:
    """A function make_layer() that makes another layer each time; make_layer.made lists them."""

    def make_layer() -> LayerDouble:
        layer = LayerDouble(d, seed + len(make_layer.made))
        make_layer.made.append(layer)
        return layer

    make_layer.made = []
    return make_layer


class ClassifierDouble(nn.Module):
    """Two layers that classify, x (N, d) -> logits (N, V). In train mode every other hidden unit is dropped.

    Always the same ones, so that nothing is random. `log` notes when somebody looks through the parameters.
    """

    def __init__(self, d: int, hidden: int, classes: int, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.log: list[str] = []
        self.first, self.second = _linear(d, hidden, generator), _linear(hidden, classes, generator)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.first(x))
        if self.training:
            hidden = 2 * hidden * (torch.arange(hidden.shape[-1]) % 2)
        return self.second(hidden)

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        self.log.append("parameters")
        return super().parameters(recurse)

    def zero_grad(self, set_to_none: bool = True) -> None:
        noted = len(self.log)
        super().zero_grad(set_to_none)
        del self.log[noted:]  # that was no look of the caller's


def _linear(d_in: int, d_out: int, generator: torch.Generator) -> nn.Linear:
    layer = nn.Linear(d_in, d_out)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(torch.randn(p.shape, generator=generator))
    return layer


KINDS: dict[str, Callable[..., Any]] = {
    "ranked": RankedDouble,
    "language_model": LanguageModelDouble,
    "chain": ChainDouble,
    "layers": layer_factory,
    "classifier": ClassifierDouble,
}
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


def build(double: Double) -> Any:
    """The model, or the function that makes one, that a description stands for."""
    return KINDS[double.kind](**double.params)


def optimizer(double: Double, model: nn.Module) -> torch.optim.Optimizer:
    """The optimizer of a model's parameters that a description stands for."""
    return OPTIMIZERS[double.kind](model.parameters(), **double.params)
