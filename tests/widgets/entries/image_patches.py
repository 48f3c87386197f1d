"""The image patches in the harness."""

import math

import numpy as np
import torch

from course_utils.experiments.images import correlation
from course_utils.widgets import ImagePatches
from course_utils.widgets.image_patches import tinted

from ..entry import Case, Entry, Fault, Keys

ROWS, COLUMNS, P = 4, 5, 6


def picture():
    """A bright ring on black: the same for every seed, as it is shown before the prediction."""
    y, x = np.mgrid[: ROWS * P, : COLUMNS * P]
    return np.clip(1.5 - np.abs(np.hypot(y - 11.5, x - 14.5) - 7) / 2, 0, 1)


def weights(seed, layers=2, heads=3, n=1 + ROWS * COLUMNS):
    scores = torch.tensor(np.random.default_rng(seed).standard_normal((layers, heads, n, n)))
    return (scores * torch.tensor([1.0, 2.0, 3.0])[:heads, None, None]).softmax(-1)


def make(seed):
    return ImagePatches(picture(), weights(seed), P)


def cases(r):
    while True:
        layers, heads, n = r.sizes(3, 3)
        all_weights = r.normal(layers, heads, n, n, scale=2).softmax(-1)
        layer, head, query = r.below(layers), r.below(heads + 1) - 1, r.below(n)
        row = all_weights[layer].mean(0)[query] if head < 0 else all_weights[layer, head, query]
        yield Case("rawRow", (all_weights, layer, head, query, heads, n), row)
        other = r.choice(r.normal(n).softmax(-1), torch.full((n,), 0.25, dtype=torch.float64))
        kept = [j for j in range(1, n) if j != query]
        constant = len(kept) < 2 or other[kept].min() == other[kept].max()
        yield Case("agreement", (row, other, query), math.nan if constant else correlation(row[kept], other[kept]))
        shares = (row[1:] / row[kept].max()).clamp(0, 1)
        yield Case("amounts", (row, query), shares)
        pixel, amount, strength = r.normal(3).sigmoid(), r.numbers.random(), r.numbers.random()
        want = tinted(pixel.numpy()[None, None], np.array([[amount]]), 1, strength)
        yield Case("tint", (pixel, amount, strength), torch.tensor(want))


ENTRY = Entry(
    name="image_patches",
    make=make,
    cases=cases,
    faults={
        "transposed matrix": Fault("+ query) * n + j]", "+ j) * n + query]"),
        "another layer": Fault("((layer * heads + x)", "((layer * n + x)"),
        "heads summed, not averaged": Fault("* n + j] / few", "* n + j]"),
        "the class token counts as a patch": Fault("j > 0 && j !== query", "j !== query"),
        "its own patch counts": Fault("j > 0 && j !== query", "j > 0"),
        "not centred": Fault("x.map((v) => v - mean)", "x"),
        "off by one patch": Fault("Float64Array.from(row.slice(1),", "Float64Array.from(row.slice(0, -1),"),
        "the picture covers the map": Fault("(1 - a) + glow * a", "a + glow * (1 - a)"),
    },
    keyboard=(
        Keys(".cw-stage >> nth=0", ("ArrowRight", "ArrowDown", "Enter"), "Query: patch row 1, column 1", {"query": 7}),
        Keys(".cw-stage >> nth=1", ("End", "Space"), "Query: patch row 1, column 4", {"query": 10}),
        Keys(".cw-stage >> nth=1", ("Escape",), "Query: class token", {"query": 0}),
        Keys("select >> nth=0", ("ArrowDown",), "Query: patch row 0, column 0", {"query": 1}),
        Keys("button:has-text('Class token')", ("Enter",), "Query: class token", {"query": 0}),
        Keys("select >> nth=1", ("ArrowUp",), "", {"layer": 0}),
        Keys("select >> nth=2", ("ArrowDown", "ArrowDown"), "", {"head": 1}),
        Keys("input[type=range]", ("Home",), "", {"overlay": 0}),
        Keys("select >> nth=3", ("ArrowDown",), "", {"show": "raw"}),
    ),
    kernel="(w.query, w.layer, w.head)",
    acts_on="query",
)
