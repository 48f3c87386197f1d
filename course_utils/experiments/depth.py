"""What must surround attention so that a deep stack trains: language models with parts left out."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import nn

from ..block_variants import BlockVariant
from ..data.text import Characters
from ..ngrams import NGram
from ..training import History, cosine_with_warmup, seed_everything, train
from ..transformer import LanguageModel, next_symbol_loss

VARIANTS: dict[str, dict] = {
    "pre-norm": {"norm": "pre"},
    "post-norm": {"norm": "post"},
    "no norm": {"norm": "none"},
    "no residual": {"norm": "pre", "residual": False},
    "neither": {"norm": "none", "residual": False},
}
"""How the blocks of `deep_model` may be put together; pre-norm is the course's own."""

STEPS, LAST = 150, 20  # of a short run, and those whose mean loss counts


def deep_model(text: Characters, n_blocks: int, variant: str = "pre-norm", *, seed: int = 0, d: int = 32) -> nn.Module:
    """A language model of many small blocks, with the weights of every matrix drawn as Glorot and Bengio (2010) do.

    Raises ValueError for an unknown variant.
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant: got {variant!r}, must be one of {', '.join(map(repr, VARIANTS))}")
    options = VARIANTS[variant]
    seed_everything(seed)
    model = LanguageModel(
        len(text.alphabet),
        d,
        n_blocks,
        block_size=32,
        make_block=partial(BlockVariant, **options),
        final_norm=options["norm"] == "pre",
    )
    for p in model.blocks.parameters():
        if p.dim() == 2:
            nn.init.xavier_uniform_(p)
    for name, p in model.blocks.named_parameters():
        if p.dim() == 1 and ".ln" not in name:
            nn.init.zeros_(p)
    nn.init.normal_(model.emb.weight, std=d**-0.5)
    return model


def gradient_norms(model: nn.Module, text: Characters, *, seed: int = 0) -> list[float]:
    """The norm of the gradient of every block's first feed-forward matrix, for one batch of 16 windows."""
    model.zero_grad()
    next_symbol_loss(model, next(text.batches(32, 16, seed))).backward()
    norms = [block.ff1.weight.grad.norm().item() for block in model.blocks]
    model.zero_grad()
    return norms


@contextmanager
def _watched(model: nn.Module, look: Callable[..., None]) -> Iterator[None]:
    """look(block, inputs, output) is called for each block while the model runs, and no longer."""
    hooks = [block.register_forward_hook(look) for block in model.blocks]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def stream_gradients(model: nn.Module, text: Characters, *, seed: int = 0) -> list[float]:
    """How strongly the loss depends on what each block hands on: the norm of that gradient, for one batch."""
    streams = []

    def look(_module: nn.Module, _inputs: tuple, out: torch.Tensor) -> None:
        out.retain_grad()
        streams.append(out)

    with _watched(model, look):
        next_symbol_loss(model, next(text.batches(32, 16, seed))).backward()
    model.zero_grad()
    return [stream.grad.double().norm().item() for stream in streams]


@torch.no_grad()
def likeness(model: nn.Module, text: Characters, *, seed: int = 0) -> list[float]:
    """How alike the positions are after each block: the mean cosine between different positions of a window."""
    windows = next(text.batches(32, 16, seed))
    cosines = []

    def look(_module: nn.Module, _inputs: tuple, out: torch.Tensor) -> None:
        unit = nn.functional.normalize(out.double(), dim=-1)
        T = unit.shape[1]
        cosines.append(((unit @ unit.mT).sum(dim=(1, 2)) - T).mean().item() / (T * (T - 1)))

    with _watched(model, look):
        model(windows[:, :-1])
    return cosines


def frequency_nats(text: Characters, *, seed: int = 0) -> float:
    """What a model reaches that knows how frequent each character is and nothing else, in the last steps of a run.

    It reads the very batches over which `train_deep` averages its loss.
    """
    batches = text.batches(32, 16, seed)
    windows = [next(batches) for _ in range(STEPS)][-LAST:]
    return NGram(text.train, len(text.alphabet), 1).nats(torch.cat(windows))


def train_deep(
    model: nn.Module,
    text: Characters,
    *,
    lr: float = 3e-3,
    warmup: int = 0,
    steps: int = STEPS,
    seed: int = 0,
    label: str = "deep model",
) -> tuple[float, History]:
    """A short run at a constant learning rate, without clipping; the mean loss of the last twenty steps, in nats.

    The rate rises over `warmup` steps first; 0 starts with all of it. Not a number if the run diverged.
    """
    history = train(
        model,
        next_symbol_loss,
        text.batches(32, 16, seed),
        steps,
        lr=lr,
        clip=None,
        betas=(0.9, 0.98),
        schedule=lambda step: cosine_with_warmup(step, steps, warmup, floor=1.0),
        label=label,
    )
    last = history.losses[-LAST:]
    return math.nan if history.diverged else sum(last) / len(last), history
