"""Looking words up with one attention head: why scores are scaled, and why keys and values are two things."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..attention import scaled_dot_product_attention
from ..baselines import Lookup
from ..data.toy import lookup_batches
from ..training import seed_everything, train


def lookup_curve(
    d: int,
    *,
    tied: bool = False,
    scaled: bool = True,
    steps: int = 300,
    lr: float = 1e-3,
    seed: int = 0,
    attention: Callable[..., tuple[Tensor, Tensor]] = scaled_dot_product_attention,
) -> list[float]:
    """Accuracy at each training step of one attention head that looks words up in a dictionary of 16 pairs."""
    seed_everything(seed)
    model = Lookup(32, d, tied=tied, scaled=scaled, attention=attention)
    curve: list[float] = []

    def loss_of(model: nn.Module, batch: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
        keys, values, asked, answer = batch
        logits = model(keys, values, asked)
        curve.append((logits.argmax(dim=-1) == answer).double().mean().item())
        return F.cross_entropy(logits, answer)

    kind = "keys serve as values" if tied else "scaled" if scaled else "not scaled"
    train(model, loss_of, lookup_batches(seed=seed), steps, lr=lr, warmup=1, label=f"d = {d}, {kind}")
    return curve


def moving_mean(curve: Sequence[float], window: int = 10) -> list[float]:
    """The mean of the last `window` values at each step (of fewer, at the start)."""
    return [sum(curve[max(0, i - window) : i]) / min(i, window) for i in range(1, len(curve) + 1)]


def steps_to(curve: Sequence[float], level: float = 0.9, window: int = 10) -> int | None:
    """The first step at which the mean of the last `window` values exceeds `level`; None if that never happens."""
    for end in range(window, len(curve) + 1):
        if sum(curve[end - window : end]) / window > level:
            return end
    return None


@dataclass(frozen=True)
class LookupStart:
    """Gradients before training: share of dead examples, median norm for the scores, norm for W_Q."""

    dead: float
    median: float
    weights: float


def lookup_start(
    d: int,
    *,
    scaled: bool,
    seed: int = 0,
    attention: Callable[..., tuple[Tensor, Tensor]] = scaled_dot_product_attention,
    below: float = 1e-3,
) -> LookupStart:
    """What the loss of a fresh head depends on. An example is dead when it hardly depends on any of its scores.

    That is: when the norm of its gradient with respect to its 16 scores is below `below`. The gradient is that of a
    softmax-weighted mean: dL/ds_j = w_j (v_j - o) · dL/do, with output o and weights w.
    """
    seed_everything(seed)
    model = Lookup(32, d, scaled=scaled, attention=attention)
    keys, values, asked, answer = next(lookup_batches(batch_size=512, seed=seed))
    with torch.no_grad():
        q, k, v = model.project(keys, values, asked)
        output, weights = attention(q, k, v)
    output.requires_grad_()
    F.cross_entropy(model.out(output.squeeze(1)), answer, reduction="sum").backward()
    slopes = weights.squeeze(1) * ((v - output.detach()) @ output.grad.transpose(1, 2)).squeeze(-1)
    norms = slopes.norm(dim=-1)
    model.zero_grad()
    F.cross_entropy(model(keys, values, asked), answer).backward()
    return LookupStart((norms < below).double().mean().item(), norms.median().item(), model.W_Q.grad.norm().item())


def dead_share(
    d: int,
    *,
    scaled: bool,
    seed: int = 0,
    attention: Callable[..., tuple[Tensor, Tensor]] = scaled_dot_product_attention,
    below: float = 1e-3,
) -> float:
    """The share of dead examples alone, see `lookup_start`."""
    return lookup_start(d, scaled=scaled, seed=seed, attention=attention, below=below).dead
