"""How far influence reaches, what has to wait for what, and what it costs."""

import math
import statistics
import time
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import mode
from ..baselines import CausalAttention, DilatedCNN, LastState, Recurrent
from ..data.toy import recall_batches
from ..training import seed_everything, train

LAYERS: dict[str, Callable[[int], nn.Module]] = {
    "RNN": lambda d: Recurrent("rnn", d),
    "GRU": lambda d: Recurrent("gru", d),
    "LSTM": lambda d: Recurrent("lstm", d),
    "LSTM, forget bias 1": lambda d: Recurrent("lstm", d, forget_bias=1.0),
    "dilated CNN": DilatedCNN,
    "attention": CausalAttention,
}
"""Layers from (B, T, d) to (B, T, d) that the lessons compare."""


def influence(
    make_layer: Callable[[int], nn.Module], distances: Sequence[int], *, d: int = 32, seed: int = 0
) -> list[float]:
    """How strongly the last output depends on an input k steps back, at initialisation, for each k.

    The norm of the gradient of a random projection of the last output with respect to the input, averaged over a
    batch of eight random sequences.
    """
    seed_everything(seed)
    layer = make_layer(d)
    x = torch.randn(8, max(distances) + 1, d, requires_grad=True)
    (layer(x)[:, -1] * torch.randn(8, d)).sum().backward()
    # A norm squares what it adds up: in single precision everything below 1e-19 would count as zero.
    by_distance = x.grad.double().norm(dim=-1).mean(dim=0).flip(0)
    return [by_distance[k].item() for k in distances]


def recall_accuracy(
    make_layer: Callable[[int], nn.Module],
    distance: int,
    *,
    steps: int = 300,
    d: int = 32,
    seed: int = 0,
    label: str = "recall",
) -> float:
    """Train a layer to name the first of distance + 1 symbols; accuracy on 500 new sequences. Chance is 1/8."""
    seed_everything(seed)
    model = LastState(make_layer(d), 8, d)

    def loss_of(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return F.cross_entropy(model(batch[0]), batch[1])

    label = f"{label}, distance {distance}"
    train(model, loss_of, recall_batches(distance, seed=seed), steps, lr=3e-3, label=label)
    x, y = next(recall_batches(distance, batch_size=500, seed=10_000 + seed))
    with torch.no_grad():
        return (model(x).argmax(dim=-1) == y).double().mean().item()


def longest_chain(output: Tensor) -> int:
    """The most matrix products (convolutions included) in a row behind a result, each waiting for the one before.

    Read off the graph that autograd recorded. No machine, however parallel, needs fewer rounds than that.
    """
    products = ("MmBackward", "AddmmBackward", "BmmBackward", "ConvolutionBackward")
    chain: dict[object, int] = {}
    stack = [output.grad_fn]
    while stack:  # depth first without recursion: the graph of an RNN is as deep as its sequence is long
        node = stack[-1]
        before = [n for n, _ in node.next_functions if n is not None]
        waiting = [n for n in before if n not in chain]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        chain[node] = max((chain[n] for n in before), default=0) + node.name().startswith(products)
    return chain[output.grad_fn]


def layer_seconds(layer: nn.Module, T: int, *, d: int = 64, batch_size: int = 4, repeats: int = 5) -> float:
    """Median seconds of one forward and backward pass over sequences of T positions."""
    seconds = []
    for _ in range(mode.size(repeats, 1)):
        x = torch.randn(batch_size, T, d, requires_grad=True)
        started = time.perf_counter()
        layer(x).sum().backward()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The p of the best fit values ∝ sizes^p: the slope of a straight line through the logarithms."""
    return statistics.linear_regression([math.log(s) for s in sizes], [math.log(v) for v in values]).slope
