"""The permutation widget in the harness."""

import numpy as np

from course_utils.attention import self_attention
from course_utils.widgets import Permutation

from ..entry import Case, Entry, Fault, Keys


def make(seed):
    random = np.random.default_rng(seed)
    x, W_q, W_k, W_v = (random.standard_normal(shape) for shape in ((5, 4), (4, 6), (4, 6), (4, 3)))
    return Permutation("the dog bites a man", x, W_q, W_k, W_v, order=[4, 1, 2, 3, 0])


def cases(r):
    while True:
        n, d, dk, dv = r.sizes(4, 2)
        x, W_q, W_k, W_v = r.normal(n, d), r.normal(d, dk), r.normal(d, dk), r.normal(d, dv)
        positions = r.choice(None, r.normal(n, d))
        order = r.numbers.permutation(n).tolist()
        added = 0.0 if positions is None else positions
        plain = self_attention(x, W_q, W_k, W_v)[0]
        yield Case("selfAttention", (x, W_q, W_k, W_v, n, d, dk, dv), plain)
        left = self_attention(x[order] + added, W_q, W_k, W_v)[0]
        right = self_attention(x + added, W_q, W_k, W_v)[0][order]
        rows = (left - right).abs().amax(1)
        want = {"left": left, "right": right, "rows": rows, "most": rows.max()}
        yield Case("compare", (x, W_q, W_k, W_v, positions, order, n, d, dk, dv), want)
        yield Case("shuffled", (x, order, d), x[order])
        a, b = r.below(n), r.below(n)
        rest = [w for i, w in enumerate(order) if i != a]
        yield Case("moved", (order, a, b), [*rest[:b], order[a], *rest[b:]])
        both = list(order)
        both[a], both[b] = both[b], both[a]
        yield Case("swapped", (order, a, b), both)


ENTRY = Entry(
    name="permutation",
    make=make,
    cases=cases,
    faults={
        "the inverse order": Fault(
            "a.slice(from * width, from * width + width), i * width",
            "a.slice(i * width, i * width + width), from * width",
        ),
        "positions move with the words": Fault("f(shuffled(x, order, d))", "shuffled(f(x), order, dv)"),
        "positions forgotten on one side": Fault(
            "shuffled(f(x), order, dv)", "shuffled(selfAttention(x, W_q, W_k, W_v, n, d, dk, dv), order, dv)"
        ),
        "queries and keys of one matrix": Fault("matmul(x, W_k, n, d, dk)", "matmul(x, W_q, n, d, dk)"),
        "rows of the wrong width": Fault("let t = i * dv; t < i * dv + dv;", "let t = i * dk; t < i * dk + dk;"),
        "the sign is kept": Fault("Math.abs(left[t] - right[t])", "left[t] - right[t]"),
        "the mean of the rows": Fault("Math.max(...rows) }", "rows.reduce((a, b) => a + b, 0) / n }"),
        "one place too far": Fault("out.splice(to, 0,", "out.splice(to + 1, 0,"),
        "a copy instead of a swap": Fault("[out[b], out[a]]", "[out[b], out[b]]"),
    },
    keyboard=(
        Keys(".cw-chip", ("Alt+ArrowRight",), "“man” is now at place 2 of 5.", {"order": [1, 4, 2, 3, 0]}),
        Keys(".cw-chip", ("ArrowRight", "Alt+End"), "“man” is now at place 5 of 5.", {"order": [1, 2, 3, 0, 4]}),
        Keys(
            ".cw-chip",
            ("Enter", "ArrowRight", "ArrowRight", "Space"),
            "“dog” and “a” have changed places",
            {"order": [3, 2, 1, 0, 4]},
        ),
        Keys("button:has-text('Positions')", ("Space",), "not equal", {"with_positions": True}),
        Keys("button:has-text('Original')", ("Enter",), "Order: the dog bites a man.", {"order": [0, 1, 2, 3, 4]}),
        Keys("button:has-text('Reverse')", ("Enter",), "Order: man a bites dog the.", {"order": [4, 3, 2, 1, 0]}),
        Keys("button:has-text('Positions')", ("Space",), "equal, but for rounding", {"with_positions": False}),
    ),
    kernel="w.order",
)
