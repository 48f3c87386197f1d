"""The alignment of a translator in the harness."""

import numpy as np
import torch

from course_utils.widgets import AdditiveAlignment

from ..entry import Case, Entry, Fault, Keys

SOURCE = "Thursday, November 9, 2000 and Tuesday, March 8, 2005 <eos>".split()
TARGET = "2000. november 9., csütörtök és 2005. március 8., kedd <eos>".split()
GOLD = [3, 1, 2, 0, None, 8, 6, 7, 5, None]


def make(seed):
    random = np.random.default_rng(seed)
    scores = random.standard_normal((len(TARGET), len(SOURCE)))
    for i, j in enumerate(GOLD):
        scores[i, 4 if j is None else j] += random.uniform(2.0, 6.0)
    weights = np.exp(scores)
    return AdditiveAlignment(weights / weights.sum(axis=1, keepdims=True), SOURCE, TARGET, GOLD)


def cases(r):
    while True:
        n, m = r.sizes(2, 2)
        weights = r.normal(n, m, scale=2).softmax(-1)
        best, i = weights.argmax(-1), 1 + r.below(n - 1)
        gold = torch.where(r.mask(n), torch.where(r.mask(n), best, r.below(m)), -1)
        yield Case("largest", (weights, n, m), best)
        yield Case("columnSums", (weights, n, m), weights.sum(0))
        yield Case("rowOf", (weights, i, m), weights[i])
        yield Case("agree", (best, gold), {"right": (best == gold).sum(), "of": (gold >= 0).sum()})
        yield Case("reversed", (best,), (best[:, None] > best).triu(1).sum())
        yield Case("moved", (weights, i, m), torch.nn.functional.l1_loss(weights[i], weights[i - 1]) * m / 2)


ENTRY = Entry(
    name="additive_alignment",
    make=make,
    cases=cases,
    faults={
        "transposed matrix": Fault("slice(i * m, i * m + m)", "slice(i, i + m)"),
        "smallest weight": Fault("x > row[best] ? j : best", "x < row[best] ? j : best"),
        "columns taken for rows": Fault("weights[i * m + j])));", "weights[j * m + i])));"),
        "words without gold are judged": Fault("of: gold.filter((j) => j >= 0).length", "of: gold.length"),
        "gold next door": Fault("best[i] === j).length", "best[i] === j + 1).length"),
        "equal counts as reversed": Fault("before > j)", "before >= j)"),
        "later words counted": Fault("best.slice(0, i).filter((before)", "best.slice(i).filter((before)"),
        "compared with itself": Fault("weights[(i - 1) * m + j]", "weights[i * m + j]"),
        "not halved": Fault("* m + j]))) / 2", "* m + j])))"),
    },
    keyboard=(
        Keys("input", ("ArrowRight", "ArrowRight"), "Query “9.,” (step 3 of 10)", {"step": 2, "source_word": -1}),
        Keys("button:has-text('Next word')", ("Enter",), "Query “csütörtök” (step 4 of 10)", {"step": 3}),
        Keys(".cw-stage", ("Home", "ArrowDown", "Enter"), "key “Thursday,”", {"step": 4, "source_word": 0}),
        Keys(".cw-stage", ("Escape",), "", {"source_word": -1}),
    ),
    kernel="(w.step, w.source_word)",
    acts_on="step",
)
