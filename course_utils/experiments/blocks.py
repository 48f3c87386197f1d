"""Language models of different sizes, and of different blocks, on Python's manual."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from ..block_variants import FeedForward, MixtureOfExperts, ModernBlock, RMSNorm, SwiGLU
from ..data.text import Characters
from ..training import seed_everything, train
from ..transformer import LanguageModel, next_symbol_loss

MakeBlock = Callable[[int, int, int], nn.Module]


class NoFeedForward(nn.Module):
    """Adds nothing: a block with it is attention alone."""

    def __init__(self, d_model: int, d_ff: int):
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)


def _ffn(make_ffn: Callable[..., nn.Module], times: float = 4, **options) -> MakeBlock:
    """Blocks with another feed-forward network, whose width is a multiple of d_model."""
    return partial(ModernBlock, make_ffn=lambda d, _: make_ffn(d, int(times * d), **options))


BLOCKS: dict[str, MakeBlock] = {
    "no feed-forward network": _ffn(NoFeedForward),
    "linear, 4 times as wide": _ffn(FeedForward, activation="none"),
    "ReLU, 1 times": _ffn(FeedForward, 1),
    "ReLU, 2 times": _ffn(FeedForward, 2),
    "ReLU, 4 times": _ffn(FeedForward),
    "GELU, 4 times": _ffn(FeedForward, activation="gelu"),
    # Three matrices instead of two: at two thirds of the width the parameters are the same.
    "SwiGLU, 8/3 times": _ffn(SwiGLU, 8 / 3),
    "RMSNorm, ReLU": partial(ModernBlock, make_norm=RMSNorm),
    "four experts": _ffn(MixtureOfExperts),
}
"""Variants of a block, called as make_block(d_model, n_heads, d_ff)."""


def train_blocks(
    make_block: MakeBlock,
    text: Characters,
    *,
    d: int = 32,
    n_layers: int = 2,
    steps: int = 400,
    lr: float = 4e-3,
    balance: float = 0.01,
    seed: int = 0,
    label: str = "language model",
) -> tuple[LanguageModel, float]:
    """Train a language model of these blocks on windows of 32 characters; the model and its nats on held-out ones.

    balance: how much the auxiliary loss of each mixture of experts counts.
    """
    seed_everything(seed)
    model = LanguageModel(len(text.alphabet), d, n_layers, block_size=32, make_block=make_block)
    mixtures = [module for module in model.modules() if isinstance(module, MixtureOfExperts)]

    def loss_of(model: nn.Module, windows: Tensor) -> Tensor:
        loss = next_symbol_loss(model, windows)
        return loss + balance * sum(mixture.balance_loss for mixture in mixtures) if mixtures else loss

    train(model, loss_of, text.batches(32, seed=seed), steps, lr=lr, label=label)
    return model, held_out_nats(model, text)


@torch.no_grad()
def held_out_nats(model: nn.Module, text: Characters, length: int = 32, n: int = 200) -> float:
    """Nats a character of a causal model on held-out windows; those of notebook 04."""
    return next_symbol_loss(model.eval(), text.windows(length, n, seed=1)).item()


def expert_load(model: nn.Module, text: Characters) -> list[list[float]]:
    """For each mixture of experts in the model, the share of held-out positions that chose each expert."""
    held_out_nats(model, text)
    return [module.load.tolist() for module in model.modules() if isinstance(module, MixtureOfExperts)]
