"""The heads grid in the harness."""

import numpy as np
import torch

from course_utils.widgets import HeadsGrid
from course_utils.widgets.packing import spread

from ..entry import Case, Entry, Fault, Keys

WORDS = "the old dog bites a small man".split()


def model(seed, layers=2, heads=3):
    """Weights of heads from sharp to broad, the loss without each of them, and the loss with all."""
    random, n = np.random.default_rng(seed), len(WORDS)
    sharp = torch.tensor([6.0, 3.0, 0.5, 2.0, 8.0, 1.0][: layers * heads]).reshape(layers, heads, 1, 1)
    weights = (torch.tensor(random.standard_normal((layers, heads, n, n))) * sharp).softmax(-1)
    losses = 0.4 + random.permutation([0.9, 0.35, 0.08, 0.02, -0.01, 0.0])[: layers * heads]
    return weights, losses.reshape(layers, heads) + random.random() / 100, 0.4


def make(seed):
    weights, losses, loss = model(seed)
    return HeadsGrid(weights, WORDS, losses=losses, loss=loss, query=3)


def pooled(matrix, size):
    """The largest weight of each part: cell (i, j) belongs to part (i·rows // n, j·columns // m)."""
    n, m = matrix.shape
    rows, columns = min(n, size), min(m, size)
    parts = [
        [matrix[torch.arange(n) * rows // n == i][:, torch.arange(m) * columns // m == j] for j in range(columns)]
        for i in range(rows)
    ]
    return torch.stack([torch.stack([part.max() for part in row]) for row in parts])


def cases(r):
    while True:
        heads, n, m = r.sizes(3, 2)
        weights = r.normal(heads, n, m, scale=3).softmax(-1)
        weights = weights.masked_fill(~r.mask(heads, n, 1, share=0.8), 0.0)  # some queries attend to nothing
        typical = []
        for head in weights:
            told = [spread(row.numpy()) for row in head if row.any()]
            typical.append(float(np.median(told)) if told else float("nan"))
        yield Case("spreads", (weights, heads, n, m), typical)
        query, head, size = r.below(n), r.below(heads), 1 + r.below(9)
        yield Case("rowsOf", (weights, query, heads, n, m), weights[:, query])
        yield Case("pooled", (weights, head, n, m, size), pooled(weights[head], size))
        losses, loss = r.normal(heads).round(decimals=1), r.normal(1).item()
        yield Case("changes", (losses, loss), losses - loss)
        yield Case("ascending", (losses,), losses.sort(stable=True).indices)


ENTRY = Entry(
    name="heads_grid",
    make=make,
    cases=cases,
    faults={
        "sign of the change": Fault("(x) => x - loss)", "(x) => loss - x)"),
        "largest first": Fault("x[a] < x[b] ? -1 : x[a] > x[b] ? 1", "x[a] > x[b] ? -1 : x[a] < x[b] ? 1"),
        "empty rows counted": Fault("rows.filter((row) => row.some((x) => x > 0)).map(spread)", "rows.map(spread)"),
        "transposed matrix": Fault(
            "(head * n + i) * m, (head * n + i + 1) * m", "(head * m + i) * n, (head * m + i + 1) * n"
        ),
        "row of another query": Fault("* n + query) * m", "* n + query - 1) * m"),
        "lines get lost": Fault("out[t] = Math.max(out[t], weights", "out[t] = (weights"),
        "rows and columns exchanged": Fault(
            "part(i, n, rows) * cols + part(j, m, cols)", "part(j, m, cols) * rows + part(i, n, rows)"
        ),
    },
    keyboard=(
        Keys(
            ".cw-stage >> nth=0",
            ("ArrowDown", "ArrowRight", "Enter"),
            "Without layer 1, head 1 the loss",
            {"ablated": [1, 1]},
        ),
        Keys(".cw-stage >> nth=0", ("Home", "Space"), "Without layer 1, head 0 the loss", {"ablated": [1, 0]}),
        Keys(".cw-stage >> nth=0", ("Escape",), "Loss with all heads", {"ablated": []}),
        Keys(
            ".cw-stage >> nth=0", ("Control+Home", "ArrowRight", "Enter"), "Layer 0, head 1. Query", {"ablated": [0, 1]}
        ),
        Keys("select >> nth=0", ("ArrowDown",), "", {"order": "loss"}),
        Keys("select >> nth=1", ("ArrowDown",), "Query “a”", {"query": 4}),
        Keys("select >> nth=2", ("ArrowUp", "ArrowUp"), "Loss with all heads", {"ablated": []}),
    ),
    kernel="(w.ablated, w.query)",
    acts_on="ablated",
)
