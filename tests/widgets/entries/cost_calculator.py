"""The cost calculator in the harness. What matrix products cost is counted by torch itself."""

import math
from functools import cache

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_utils.widgets import CostCalculator

from ..entry import Case, Entry, Fault, Keys

LENGTHS = (64, 256, 1024, 4096)


def make(seed):
    random = np.random.default_rng(seed)
    seconds = [1e-6 * T**1.6 * random.uniform(0.7, 1.4) for T in LENGTHS]
    return CostCalculator(512, 64, 8, timings=list(zip(LENGTHS, seconds, strict=True)))


def products(run):
    """Multiply-adds of the matrix products in a run; torch counts two operations for each."""
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops() // 2


@cache
def counted(T, d, heads, layers, batch, window):
    """What a real forward pass costs, on tensors of these sizes without numbers."""
    met = min(window, T) if window else T
    with torch.device("meta"):
        x, W, wide = torch.empty(batch, T, d), torch.empty(d, d), torch.empty(d, 4 * d)
        q = torch.empty(batch * heads * T, 1, d // heads)
        k = torch.empty(batch * heads * T, met, d // heads)  # what each query meets
        weights = torch.empty(batch, heads, T, met)
    scores = products(lambda: (q @ k.transpose(1, 2)) @ k)
    projections = sum(products(lambda: x @ W) for _ in range(4))
    mlp = products(lambda: (x @ wide) @ wide.T)
    size = {"weights": weights.numel() * weights.element_size(), "qkv": 3 * x.numel() * x.element_size()}
    return {"projections": layers * projections, "scores": layers * scores, "mlp": layers * mlp, **size}


def crossing(d, window, mlp=False):
    """By trying every length."""
    for T in range(1, 8 * d):
        c = counted(T, d, 1, 1, 1, window)
        if c["scores"] >= c["projections"] + mlp * c["mlp"]:
            return T
    return math.inf


def cases(r):
    while True:
        T, width, heads, layers, batch = r.sizes(5, 2, 9)
        window = r.choice(0, 1 + r.below(12))
        yield Case(
            "costs",
            (T, width * heads, heads, layers, batch, window),
            counted(T, width * heads, heads, layers, batch, window),
        )
        d, mlp, window = 2 + r.below(5), bool(r.below(2)), r.choice(0, 1 + r.below(40))
        yield Case("crossing", (d, mlp, window), crossing(d, window, mlp))
        heads = r.choice(1, 2, 4)
        d = heads * (1 + r.below(4))
        T, window = 3 * d / heads, r.choice(0, 1 + r.below(12))
        yield Case("memoryCrossing", (d, heads, window), math.inf if window and window < T else T)
        n = 2 + r.below(6)
        lengths, seconds = (r.normal(n) * 2).exp(), r.normal(n).exp()
        line = torch.stack([lengths.log(), torch.ones(n, dtype=torch.float64)], 1)
        yield Case("power", (lengths, seconds), torch.linalg.lstsq(line, seconds.log()).solution[0])
        yield Case("rate", (lengths, seconds), (lengths / seconds).quantile(0.5))


ENTRY = Entry(
    name="cost_calculator",
    make=make,
    cases=cases,
    faults={
        "three projections": Fault("passes * 4 * T * d ** 2", "passes * 3 * T * d ** 2"),
        "scores without mixing": Fault("passes * 2 * met * d", "passes * met * d"),
        "heads counted twice": Fault("passes * 2 * met * d", "passes * 2 * met * d * heads"),
        "an MLP of width d": Fault("passes * 8 * T * d ** 2", "passes * 2 * T * d ** 2"),
        "a window wider than the text": Fault("Math.min(window, T) : T)", "window : T)"),
        "one head": Fault("batch * heads * met * 4", "batch * met * 4"),
        "keys forgotten": Fault("batch * 3 * T * d * 4", "batch * 2 * T * d * 4"),
        "a crossing for T²d alone": Fault("mlp ? 6 * d : 2 * d", "mlp ? 12 * d : 4 * d"),
        "no crossing at the window itself": Fault("window && window < T ?", "window && window <= T ?"),
        "slope the wrong way round": Fault("power(Ts, ys) {", "power(ys, Ts) {"),
        "time a count": Fault("count / seconds[i]", "seconds[i] / count"),
    },
    keyboard=(
        Keys("input", ("ArrowRight",) * 4, "At T = 1,024", {"T": 1024}),
        Keys(".cw-stage", ("Home", "ArrowRight"), "At T = 19", {"T": 19}),
        Keys("button:has-text('Count the MLP')", ("Enter",), "at T = 6d = 384", {"mlp": True}),
        Keys("select >> nth=0", ("ArrowUp",), "at T = 6d = 192", {"d": 32}),
        Keys("select >> nth=1", ("ArrowUp",), "1 · 4 · 19²", {"heads": 4}),
        Keys("select >> nth=4", ("ArrowDown",), "A window of 16 keeps", {"window": 16}),
        Keys("select >> nth=5", ("ArrowDown",), "", {"show": "memory"}),
    ),
    kernel="w.T",
)
