"""The experiments of the lessons, each one function: the notebooks run one seed, course_utils.measured runs them all.

Every function seeds what it makes itself, so that a cell gives the same numbers however often it runs.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import scaled_dot_product_attention
from .baselines import CausalAttention, CopyModel, DilatedCNN, LastState, Lookup, Recurrent
from .data.batches import Batch, training_batches
from .data.dates import Corpus
from .data.toy import copy_batches, copy_test, lookup_batches, recall_batches
from .data.vocab import Vocab
from .losses import lm_loss
from .recurrent import seq2seq_encode
from .training import History, seed_everything, train

LAYERS: dict[str, Callable[[int], nn.Module]] = {
    "RNN": lambda d: Recurrent("rnn", d),
    "GRU": lambda d: Recurrent("gru", d),
    "LSTM": lambda d: Recurrent("lstm", d),
    "LSTM, forget bias 1": lambda d: Recurrent("lstm", d, forget_bias=1.0),
    "dilated CNN": DilatedCNN,
    "attention": CausalAttention,
}
"""Layers from (B, T, d) to (B, T, d) that the lessons compare."""


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
    by_distance = x.grad.norm(dim=-1).mean(dim=0).flip(0)
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


def steps_to(curve: Sequence[float], level: float = 0.9, window: int = 10) -> int | None:
    """The first step at which the mean of the last `window` values exceeds `level`; None if that never happens."""
    for end in range(window, len(curve) + 1):
        if sum(curve[end - window : end]) / window > level:
            return end
    return None


def dead_share(
    d: int,
    *,
    scaled: bool,
    seed: int = 0,
    attention: Callable[..., tuple[Tensor, Tensor]] = scaled_dot_product_attention,
    below: float = 1e-3,
) -> float:
    """Share of examples whose loss, at initialisation, hardly depends on any of their scores: the softmax has decided.

    An example counts when the norm of its gradient with respect to its 16 scores is below `below`. The gradient is
    that of a softmax-weighted mean: dL/ds_j = w_j (v_j - o) · dL/do, with output o and weights w.
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
    return (slopes.norm(dim=-1) < below).double().mean().item()


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
    for _ in range(repeats):
        x = torch.randn(batch_size, T, d, requires_grad=True)
        started = time.perf_counter()
        layer(x).sum().backward()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The p of the best fit values ∝ sizes^p: the slope of a straight line through the logarithms."""
    return statistics.linear_regression([math.log(s) for s in sizes], [math.log(v) for v in values]).slope
