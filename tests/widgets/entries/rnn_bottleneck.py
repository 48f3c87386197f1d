"""The RNN's bottleneck in the harness."""

import numpy as np
import torch

from course_utils.recurrent import rnn_step
from course_utils.widgets import RNNBottleneck

from ..entry import Case, Entry, Fault, Keys

WORDS = "the dog that the old man had found as a puppy barks".split()


def make(seed):
    random = np.random.default_rng(seed)
    T, D, H = len(WORDS), 5, 8
    bound = H**-0.5
    weights = [random.uniform(-bound, bound, shape) for shape in ((D, H), (H, H), (H,))]
    return RNNBottleneck(WORDS, random.standard_normal((T, D)), *weights)


def run(x, W_xh, W_hh, b):
    h, states = torch.zeros(1, len(b), dtype=torch.float64), []
    for x_t in x:
        h = rnn_step(x_t[None], h, W_xh, W_hh, b)
        states.append(h[0])
    return torch.stack(states)


def norms_of(x, *weights):
    """Norms (T, T) of the Jacobian of every state (rows) with respect to every input."""
    jacobian = torch.autograd.functional.jacobian(lambda x: run(x, *weights), x)  # (T, H, T, D)
    return jacobian.permute(0, 2, 1, 3).flatten(2).norm(dim=2)


def cases(r):
    while True:
        T, D, H = r.sizes(3, 2, 8)
        x, W_xh, W_hh, b = r.normal(T, D), r.normal(D, H, scale=0.5), r.normal(H, H, scale=0.4), r.normal(H, scale=0.3)
        h = run(x, W_xh, W_hh, b)
        yield Case("states", (x, W_xh, W_hh, b, T, D, H), h)
        norms = norms_of(x, W_xh, W_hh, b)
        yield Case("influence", (W_xh, W_hh, h, T, D, H), norms)
        last = r.below(T)
        shares = norms[last, : last + 1] / norms[last, last]
        yield Case("left", (norms, last, T), shares)
        yield Case("decades", (shares,), shares.log10())
        if last:
            yield Case("factor", (shares,), shares[:-1].div(shares[1:]).log().mean().exp())


ENTRY = Entry(
    name="rnn_bottleneck",
    make=make,
    cases=cases,
    faults={
        "the transposed recurrence": Fault("matmul(J, W_hh, D, H, H)", "matmul(J, transpose(W_hh, H, H), D, H, H)"),
        "one step late": Fault(
            "squashed(last > t ? matmul(J, W_hh, D, H, H) : J, last)", "squashed(matmul(J, W_hh, D, H, H), last)"
        ),
        "no squashing on the way": Fault("squashed(last > t ?", "(last > t ?"),
        "the slope at another state": Fault("h[t * H + (c % H)] ** 2", "h[c % H] ** 2"),
        "no bias": Fault("+ kept[j] + b[j])", "+ kept[j])"),
        "no memory": Fault("+ kept[j] + b[j])", "+ b[j])"),
        "compared with the first word": Fault("/ norms[last * T + last])", "/ norms[last * T])"),
        "one step too many": Fault("(1 / (shares.length - 1))", "(1 / shares.length)"),
        "another logarithm": Fault("Math.log10(x)", "Math.log2(x)"),
    },
    keyboard=(
        Keys("input >> nth=0", ("ArrowLeft", "ArrowLeft"), "Word 1 of 10, “the”", {"length": 10}),
        Keys("input >> nth=1", ("ArrowRight",), "Word 2 of 10, “dog”", {"step": 1}),
        Keys(".cw-stage", ("End", "ArrowUp"), "Word 9 of 10, “as”", {"step": 8}),
        Keys(
            ".cw-stage", ("Home", "ArrowRight"), "takes 10 steps to get there, attention 1", {"step": 0, "length": 11}
        ),
    ),
    kernel="(w.length, w.step)",
)
