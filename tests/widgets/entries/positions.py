"""The positions in the harness."""

import numpy as np
import torch

from course_utils.positions import apply_rope, sinusoidal_positions
from course_utils.widgets import Positions

from ..entry import Case, Entry, Fault, Keys

SIZE, D = 24, 16


def make(seed):
    random = np.random.default_rng(seed)
    q, k = random.standard_normal((2, D))
    return Positions(q, k, random.standard_normal((SIZE, D)) * 0.5)


def turned(x, T):
    return apply_rope(x.expand(T, -1))


def waves(T, d):
    """The course's sinusoids in float64."""
    torch.set_default_dtype(torch.float64)
    try:
        return sinusoidal_positions(T, d)
    finally:
        torch.set_default_dtype(torch.float32)


def cases(r):
    while True:
        T, half = r.sizes(2, 2)
        d = 2 * half
        q, k, table, t = r.normal(d), r.normal(d), r.normal(T, d), r.below(T)
        yield Case("sinusoid", (t, d), waves(T, d)[t])
        yield Case("rotate", (q, t), turned(q, T)[t])
        yield Case("scoresOf", ("rope", q, k, None, T), turned(q, T) @ turned(k, T).T)
        added = (q + table) @ (k + table).T
        yield Case("scoresOf", ("learned", q, k, table, T), added)
        yield Case(
            "likeness", ("learned", table, T, d), torch.nn.functional.cosine_similarity(table[:, None], table, dim=-1)
        )
        yield Case(
            "likeness",
            ("rope", None, T, d),
            turned(torch.ones(d).double(), T) @ turned(torch.ones(d).double(), T).T / d,
        )
        spread = [added.diagonal(offset) for offset in range(1 - T, T)]
        yield Case("unevenness", (added, T), max(x.max() - x.min() for x in spread))
        a, b = table[r.below(T)], table[t]
        yield Case("terms", (q, k, a, b), [q @ k, q @ b, a @ k, a @ b])
        i, j, shift = r.below(T), r.below(T), r.below(2 * T) - T
        fits = [s for s in range(-T, T) if 0 <= i + s < T and 0 <= j + s < T]
        yield Case("within", (shift, i, j, T), min(fits, key=lambda s: abs(s - shift)))


ENTRY = Entry(
    name="positions",
    make=make,
    cases=cases,
    faults={
        "sin and cos exchanged": Fault("c % 2 ? Math.cos : Math.sin", "c % 2 ? Math.sin : Math.cos"),
        "every feature its own frequency": Fault("(angle(t, c >> 1, d))", "(angle(t, c / 2, d))"),
        "another base": Fault("10000 ** ((-2 * pair) / d)", "1000 ** ((-2 * pair) / d)"),
        "pairs of halves": Fault("angle(t, c / 2, x.length)", "angle(t, c, x.length)"),
        "turned the other way": Fault("x[c] * cos - x[c + 1] * sin", "x[c] * cos + x[c + 1] * sin"),
        "transposed matrix": Fault("table[t * x.length + c]", "table[c * x.length + t]"),
        "only the query is placed": Fault("keys = all(k)", "keys = Array.from({ length: T }, () => k)"),
        "one diagonal forgotten": Fault("let offset = 1 - T;", "let offset = 1;"),
        "terms exchanged": Fault("dot(q, b), dot(a, k)", "dot(q, a), dot(b, k)"),
        "shifted over the edge": Fault(
            "Math.min(T - 1 - Math.max(i, j), shift)", "Math.min(T - Math.max(i, j), shift)"
        ),
    },
    keyboard=(
        Keys("input[type=range] >> nth=0", ("ArrowRight",), "score at (6, 2)", {"i": 6}),
        Keys("input[type=range] >> nth=1", ("Home",), "score at (6, 0)", {"j": 0}),
        Keys("input[type=range] >> nth=2", ("End",), "at (23, 17)", {"shift": 17}),
        Keys(".cw-stage", ("ArrowUp", "ArrowRight", "ArrowRight"), "score at (5, 2)", {"i": 5, "j": 2}),
        Keys("button:has-text('Added sinusoids')", ("Enter",), "Added sinusoids: score", {"kind": "sinusoid"}),
        Keys("button:has-text('Added learned')", ("Space",), "Added learned vectors: score", {"kind": "learned"}),
        Keys("select >> nth=0", ("ArrowDown",), "", {"show": "positions"}),
    ),
    kernel="(w.kind, w.i, w.j, w.shift)",
    acts_on="i",
)
