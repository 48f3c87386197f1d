"""The functions that all widgets share, in shared.js. No widget of its own: only cases and faults."""

import math

import numpy as np
import torch

from course_utils import masks
from course_utils.attention import scaled_dot_product_attention
from course_utils.widgets.packing import spread

from ..entry import Case, Fault

KEYS = {"ArrowUp": (-1, 0), "ArrowDown": (1, 0), "ArrowLeft": (0, -1), "ArrowRight": (0, 1)}


def attention_case(r, plain=False):
    n, m, d, dv = r.sizes(4)
    q, k, v = r.normal(n, d, scale=3), r.normal(m, d, scale=3), r.normal(m, dv)
    mask = r.choice(None, r.mask(n, m), torch.zeros(n, m, dtype=torch.bool))
    out, weights = scaled_dot_product_attention(q, k, v, mask)
    if plain and mask is not None:
        empty = ~mask.any(-1, keepdim=True)
        out, weights = out.masked_fill(empty, math.nan), weights.masked_fill(empty, math.nan)
    want = {"scores": q @ k.T / math.sqrt(d), "weights": weights, "out": out}
    return Case("attention", (q, k, v, mask, n, m, d, dv, plain), want)


def softmax_case(r):
    row = r.normal(r.sizes(1)[0], scale=r.choice(1, 30, 3000))
    row = row.masked_fill(~r.mask(len(row)), -math.inf) if r.below(2) else row
    return Case("softmax", (row,), row.softmax(-1))


def product_case(r):
    n, k, m = r.sizes(3)
    a, b = r.normal(n, k), r.normal(k, m)
    if r.below(3) == 0:
        a[0, 0], b[0, 0] = 0.0, math.nan  # 0 times NaN is NaN
    return Case("matmul", (a, b, n, k, m), a @ b)


def transposed_case(r):
    n, m = r.sizes(2)
    a = r.normal(n, m)
    return Case("transpose", (a, n, m), a.T)


def mask_case(r):
    n = r.sizes(1)[0]
    width, real = 1 + r.below(n), r.mask(n)
    return r.choice(
        Case("causalMask", (n,), masks.causal_mask(n)),
        Case("windowMask", (n, width), masks.window_mask(n, width)),
        Case("keyMask", (n, real), real.expand(n, n)),
    )


def cell_case(r):
    """Points inside cells and outside the grid, told apart by the middle of the cell that is meant."""
    rows, cols, cell, left, top = r.sizes(5, 2, 40)
    i, j = r.below(rows + 2) - 1, r.below(cols + 2) - 1
    x, y = left + (j + 0.05 + 0.9 * r.numbers.random()) * cell, top + (i + 0.05 + 0.9 * r.numbers.random()) * cell
    want = {"i": i, "j": j} if 0 <= i < rows and 0 <= j < cols else None
    return Case("cellAt", (x, y, {"left": left, "top": top, "cell": cell, "rows": rows, "cols": cols}), want)


def move_case(r):
    rows, cols = r.sizes(2)
    i, j, key, control = r.below(rows), r.below(cols), r.choice(*KEYS, "Home", "End", "x"), bool(r.below(2))
    if key in KEYS:
        down, right = KEYS[key]
        want = {"i": int(np.clip(i + down, 0, rows - 1)), "j": int(np.clip(j + right, 0, cols - 1))}
    else:
        ends = {"Home": (0, 0), "End": (rows - 1, cols - 1)}
        want = {"i": ends[key][0] if control else i, "j": ends[key][1]} if key in ends else None
    return Case("moveCell", ({"i": i, "j": j}, key, rows, cols, control), want)


def summary_case(r):
    row = r.normal(r.sizes(1, 2)[0], scale=3).softmax(-1)
    row = row.masked_fill(row < 0.05, 0.0)
    return r.choice(Case("spread", (row,), spread(row.numpy())), Case("median", (row,), row.quantile(0.5)))


def cases(r):
    makers = [softmax_case, product_case, transposed_case, mask_case, cell_case, move_case, summary_case]
    while True:
        yield attention_case(r)
        yield attention_case(r, plain=True)
        for make in makers:
            yield make(r)


COUNT = 9 * 50  # fifty rounds

FAULTS = {
    "mask sign": Fault("!mask || mask[i * m + j] ? x : -Infinity", "!mask || !mask[i * m + j] ? x : -Infinity"),
    "mask after the softmax": Fault("mask[i * m + j] ? x : -Infinity", "mask[i * m + j] ? x : -1e1"),
    "transposed matrix": Fault("transpose(k, m, d), n, d, m", "k, n, d, m"),
    "transpose with the wrong width": Fault("a[(t % n) * m + Math.floor(t / n)]", "a[(t % m) * n + Math.floor(t / m)]"),
    "no max subtraction": Fault("Math.exp(x - top)", "Math.exp(x)"),
    "no scale": Fault("x / Math.sqrt(d)", "x"),
    "off-by-one pin": Fault("Math.floor((y - g.top) / g.cell)", "Math.ceil((y - g.top) / g.cell)"),
    "rows and columns exchanged under the pointer": Fault("i < g.rows && j < g.cols", "i < g.cols && j < g.rows"),
    "arrows exchanged": Fault("ArrowUp: [-1, 0], ArrowDown: [1, 0]", "ArrowUp: [1, 0], ArrowDown: [-1, 0]"),
    "End one too far": Fault("j: cols - 1 };\n", "j: cols };\n"),
    "future visible": Fault("t % n <= Math.floor(t / n) &&", "t % n >= Math.floor(t / n) &&"),
    "window one too wide": Fault("(t % n) < w)", "(t % n) <= w)"),
    "keys taken for queries": Fault("+real[t % real.length]", "+real[Math.floor(t / n)]"),
    "entropy in bits": Fault("p * Math.log(p)", "p * Math.log2(p)"),
    "zeros skipped": Fault("out[i * m + j] += x * b[c * m + j]", "out[i * m + j] += x && x * b[c * m + j]"),
}  # fmt: skip
