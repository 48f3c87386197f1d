"""The step-by-step attention in the harness."""

import math

import numpy as np
import torch

from course_utils.attention import scaled_dot_product_attention
from course_utils.widgets import DotProductSteps

from ..entry import Case, Entry, Fault, Keys


def make(seed):
    random = np.random.default_rng(seed)
    q, k, v = (random.standard_normal(shape) for shape in ((2, 3), (4, 3), (4, 2)))
    return DotProductSteps(q, k, v, "who what", "the dog ate cake", [[1, 1, 1, 0], [1, 1, 1, 1]])


def cases(r):
    while True:
        n, m, d, dv = r.sizes(4)
        q, k, v = r.normal(n, d, scale=2), r.normal(m, d, scale=2), r.normal(m, dv)
        mask = r.choice(None, r.mask(n, m), r.mask(n, m, share=0.3))
        seen = torch.ones(n, m, dtype=torch.bool) if mask is None else mask
        out, weights = scaled_dot_product_attention(q, k, v, mask)
        scaled = q @ k.T / math.sqrt(d)
        values, seen_values = v.expand(n, m, dv), seen.unsqueeze(-1)
        low = values.masked_fill(~seen_values, math.inf).amin(1)
        high = values.masked_fill(~seen_values, -math.inf).amax(1)
        want = {"raw": q @ k.T, "scaled": scaled, "masked": scaled.masked_fill(~seen, -math.inf), "weights": weights}
        yield Case("steps", (q, k, v, mask, n, m, d, dv), {**want, "out": out, "low": low, "high": high})
        i, j, c = r.below(n), r.below(m), r.below(dv)
        yield Case("scoreTerms", (q, k, i, j, d), torch.stack([q[i], k[j]], 1).tolist())
        yield Case("mixTerms", (weights, v, i, c, m, dv), torch.stack([weights[i], v[:, c]], 1).tolist())
        # Outputs that leave the range of the values: by how much is told.
        bent = out + r.normal(n, dv) * r.below(2)
        outside = max(0.0, (low[i] - bent[i]).max().item(), (bent[i] - high[i]).max().item())
        now = {"weights": weights.reshape(-1).tolist(), "out": bent, "low": low, "high": high}
        yield Case("convex", (now, i, m, dv), {"least": weights[i].min(), "sum": weights[i].sum(), "outside": outside})


ENTRY = Entry(
    name="dot_product_steps",
    make=make,
    cases=cases,
    faults={
        "keys not transposed": Fault("matmul(q, transpose(k, m, d), n, d, m);", "matmul(q, k, n, d, m);"),
        "no scale": Fault("x / Math.sqrt(d)", "x"),
        "mask sign": Fault("(!mask || mask[t] ? x : -Infinity)", "(!mask || !mask[t] ? x : -Infinity)"),
        "hidden values count": Fault("if (!mask || mask[i * m + j]) seen.push", "seen.push"),
        "range over rows of v": Fault("v[j * dv + (t % dv)]", "v[j * dv + (i % dv)]"),
        "smallest and largest exchanged": Fault(
            "low: ends(Math.min), high: ends(Math.max)", "low: ends(Math.max), high: ends(Math.min)"
        ),
        "the sum of another key": Fault("k[j * d + c]", "k[c * d + j]"),
        "the sum of another column": Fault("v[j * dv + c]]", "v[c * dv + j]]"),
        "the weights of another query": Fault(
            "now.weights.slice(i * m, i * m + m), outside", "now.weights.slice(0, m), outside"
        ),
        "above is not outside": Fault(", now.out[t] - now.high[t]", ""),
    },
    keyboard=(
        Keys("input[aria-label^='q of who, number 2']", ("Control+a", *"-2.5", "Tab"), "No cell is chosen", {}),
        Keys("button:has-text('2 scale')", ("Enter",), "", {"step": 1}),
        Keys("button:has-text('Next')", ("Space", "Space"), "their sum is 1.000", {"step": 3}),
        Keys("button:has-text('Previous')", ("Enter", "Enter", "Enter"), "No cell", {"step": 0}),
        Keys(".cw-stage", ("ArrowRight",), "Query “who”, key “dog”: q1·k1 + q2·k2 + q3·k3 ="),
        Keys(".cw-stage", ("End", "ArrowUp", "PageDown", "PageDown"), "hidden by the mask, score −∞", {"step": 2}),  # noqa: RUF001
        Keys(".cw-stage", ("Control+End", "Enter", "PageDown"), "key “cake”: exp(score)", {"query": 1, "column": 3}),
        Keys(".cw-stage", ("PageDown", "Home"), "Query “what”, output 1: sum of weight · value", {"step": 4}),
        Keys(".cw-stage", ("Escape",), "Smallest value ≤ output ≤ largest value", {"query": -1, "column": -1}),
    ),
    kernel="w.q.round(3).tolist()",
    acts_on="query",
)
