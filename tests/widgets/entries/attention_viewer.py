"""The attention viewer in the harness."""

import numpy as np

from course_utils.widgets import AttentionViewer
from course_utils.widgets.packing import spread

from ..entry import Case, Entry, Fault, Keys

WORDS = "when the rain had stopped she opened the window and looked out at the wet street".split()


def heads(T, seed=0, count=8):
    """Weights as trained causal heads have them, from sharp to broad: scores of growing spread, no future."""
    random = np.random.default_rng(seed)
    scores = random.standard_normal((count, T, T)) * np.linspace(1, 6, count)[:, None, None]
    scores = np.where(np.tri(T, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def make(seed, T=16):
    words = [WORDS[i % len(WORDS)] for i in range(T)]
    return AttentionViewer(heads(T, seed), words, mask=np.tri(T, dtype=bool), other=3)


def cases(r):
    while True:
        h, n, m = r.sizes(3, 2)
        weights = r.normal(h, n, m, scale=3).softmax(-1)
        weights = weights.masked_fill(~r.mask(1, n, 1, share=0.8), 0.0)  # some queries attend to nothing
        head, i, count = r.below(h), r.below(n), 1 + r.below(m)
        yield Case("rowOf", (weights, head, i, n, m), weights[head, i])
        row, other = r.normal(m).softmax(-1), r.normal(m).softmax(-1)
        yield Case("topKeys", (row, count), row.topk(count).indices)
        yield Case("distance", (row, other), (row - other).abs().sum() / 2)
        told = [spread(x.numpy()) for x in weights[head] if x.any()]
        yield Case("typicalSpread", (weights, head, n, m), float(np.median(told)) if told else float("nan"))


ENTRY = Entry(
    name="attention_viewer",
    make=make,
    cases=cases,
    faults={
        "transposed matrix": Fault("(head * n + i) * m,", "(head * m + i) * n,"),
        "another head": Fault("rowOf(weights, head, i, n, m))", "rowOf(weights, 0, i, n, m))"),
        "smallest first": Fault("row[b] - row[a]", "row[a] - row[b]"),
        "not halved": Fault("- b[j]), 0) / 2", "- b[j]), 0)"),
        "empty rows counted": Fault("rows.filter((row) => row.some((x) => x > 0)).map(spread)", "rows.map(spread)"),
    },
    keyboard=(
        Keys(".cw-stage", ("End", "ArrowDown", "ArrowDown", "Enter"), "Query “rain”", {"query": 2, "key": 15}),
        Keys(".cw-stage", ("Home", "Space"), "key “when”", {"query": 2, "key": 0}),
        Keys(".cw-stage", ("Escape",), "", {"query": -1, "key": -1}),
        Keys("select >> nth=0", ("ArrowDown",), "(head 1)", {"head": 1}),
        Keys("select >> nth=2", ("ArrowDown", "ArrowDown"), "Query “the”", {"query": 1}),
    ),
    kernel="(w.query, w.head)",
    acts_on="query",
)
