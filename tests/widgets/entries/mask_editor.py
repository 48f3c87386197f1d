"""The mask editor in the harness."""

import math

import numpy as np
import torch

from course_utils.attention import scaled_dot_product_attention
from course_utils.widgets import MaskEditor

from ..entry import Case, Entry, Fault, Keys

WORDS = "the dog bites a man <pad>".split()


def make(seed):
    q, k, v = np.random.default_rng(seed).standard_normal((3, len(WORDS), 4))
    return MaskEditor(WORDS, np.tri(len(WORDS), dtype=bool), q, k, v, changed=2)


def out_of(q, k, v, mask, plain=False):
    out, _ = scaled_dot_product_attention(q, k, v, mask)
    return out.masked_fill(~mask.any(-1, keepdim=True), math.nan) if plain else out


def moved(q, k, v, mask, j, plain=False):
    nudge = torch.zeros(len(q), 1, dtype=torch.float64)
    nudge[j] = 1.0
    return (out_of(q + nudge, k + nudge, v + nudge, mask, plain) - out_of(q, k, v, mask, plain)).abs().amax(1)


def cases(r):
    while True:
        n, d, dv = r.sizes(3, 2)
        q, k, v = r.normal(n, d), r.normal(n, d), r.normal(n, dv)
        mask = r.choice(r.mask(n, n), torch.ones(n, n).tril().bool(), r.mask(n, n, share=0.3))
        j, plain = r.below(n), bool(r.below(2))
        want = moved(q, k, v, mask, j, plain)
        yield Case("moves", (q, k, v, mask, n, d, dv, j, plain), want)
        back = [moved(q, k, v, mask, t)[:t].max().item() if t else 0.0 for t in range(n)]
        yield Case("reachesBack", (q, k, v, mask, n, d, dv), back)
        bare = torch.full((n, n), -math.inf, dtype=torch.float64).masked_fill(mask, 0.0) + q @ k.T / math.sqrt(d)
        weights = bare.softmax(-1)
        after = (weights @ (weights @ v)).isnan().any(1).sum().item()
        yield Case("spoiled", (q, k, v, mask, n, d, dv), after)


ENTRY = Entry(
    name="mask_editor",
    make=make,
    cases=cases,
    faults={
        "the row before is nudged": Fault("Math.floor(t / width) === j", "Math.floor(t / width) === j - 1"),
        "only the query is nudged": Fault("nudged(k, d), nudged(v, dv)", "k, v"),
        "itself counts as before": Fault(".subarray(0, j)", ".subarray(0, j + 1)"),
        "mask sign": Fault("mask[i * m + j] ? x : -Infinity", "mask[i * m + j] ? -Infinity : x"),
        "rows of the wrong width": Fault("let c = i * dv; c < i * dv + dv;", "let c = i * d; c < i * d + d;"),
        "NaN forgotten": Fault("some(Number.isNaN)", "every(Number.isNaN) && false"),
    },
    keyboard=(
        Keys(".cw-stage", ("ArrowDown", "ArrowRight", "Enter"), "Query “dog”, key “dog”: hidden"),
        Keys(".cw-stage", ("Enter",), "Query “dog”, key “dog”: may attend"),
        Keys(".cw-stage", ("End", "Home", "ArrowLeft", "ArrowUp", "ArrowUp", "Space"), "“the”, key “the”: hidden"),
        Keys("button:has-text('Show everything')", ("Enter",), "outputs before it move for"),
        Keys("button:has-text('Hide the future')", ("Space",), "no output before it ever moves"),
        Keys("button:has-text('Reset')", ("Enter",), "", {"changed": 2}),
    ),
    kernel="w.mask.sum()",
    acts_on="mask",
)
