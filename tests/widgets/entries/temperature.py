"""The temperature widget in the harness."""

import math

import torch

from course_utils.widgets import Temperature
from course_utils.widgets.temperature import normals, scores_by_size

from ..entry import Case, Entry, Fault, Keys


def make(seed):
    return Temperature(d_k=16, seed=seed)


def by_definition(seed, n, m, most):
    """The dot products with torch, each size by itself, from the numbers that Python makes."""
    vectors = torch.tensor(normals(seed, n * (m + 1) * most)).reshape(n, m + 1, most)
    sizes = [2**s for s in range(int(math.log2(most)) + 1)]
    return [torch.einsum("nd,nmd->nm", vectors[:, 0, :d], vectors[:, 1:, :d]) for d in sizes]


def cases(r):
    while True:
        seed, start, count = r.below(1000), 2 * r.below(50), 2 + 2 * r.below(30)
        yield Case("normals", (seed, start, count), normals(seed, start + count)[start:])
        n, m, power = r.sizes(3, 2, 7)
        want = by_definition(seed, n, m, 2**power)
        assert torch.allclose(torch.tensor(scores_by_size(seed, n, m, 2**power)), torch.stack(want), atol=1e-12)
        yield Case("scoresBySize", (seed, n, m, 2**power), [x.reshape(-1).tolist() for x in want])
        scores, by = r.normal(n, m, scale=r.choice(1, 8, 900)), float(r.choice(1, 2, 0.25, math.sqrt(8)))
        weights, i = (scores / by).softmax(-1), r.below(n)
        yield Case("weightsOf", (scores, i, m, by), weights[i])
        told = {
            "variance": (scores / by).var(),
            "largest": weights.amax(-1).mean(),
            "entropy": torch.special.entr(weights).sum(-1).mean() / math.log(m),
            "slope": (weights * (1 - weights)).mean(),
        }
        yield Case("measure", (scores, n, m, by), told)


ENTRY = Entry(
    name="temperature",
    make=make,
    cases=cases,
    faults={
        "another hash": Fault("0x85ebca6b", "0x85ebca6d"),
        "sine and cosine exchanged": Fault("out[t] = radius * Math.cos(angle)", "out[t] = radius * Math.sin(angle)"),
        "the same numbers for every query": Fault("normals(seed, i * (m + 1) * most,", "normals(seed, 0,"),
        "the query as a key": Fault("key = (j + 1) * most", "key = j * most"),
        "a size too early": Fault("if (c + 1 < next)", "if (c + 2 < next)"),
        "not divided": Fault("i * m + m).map((x) => x / by)", "i * m + m)"),
        "variance over n": Fault("squares / (n * m - 1)", "squares / (n * m)"),
        "variance before the division": Fault("squares += (x / by - sum", "squares += (x - sum"),
        "entropy in nats": Fault("nats / Math.log(m) / n", "nats / n"),
        "slope a squared": Fault("(a * (1 - a))", "(a * a)"),
        "no max subtraction": Fault("Math.exp(scores[i * m + j] / by - top)", "Math.exp(scores[i * m + j] / by)"),
    },
    keyboard=(
        Keys(
            "input[type=range] >> nth=0", ("End",), "d_k = 1024, scores not divided: nearly all weight", {"d_k": 1024}
        ),
        Keys(
            "button:has-text('Divide by')", ("Space",), "divided by √1024 = 32.00: weight on several", {"scaled": True}
        ),
        Keys("input[type=range] >> nth=0", ("ArrowLeft", "ArrowLeft"), "d_k = 256", {"d_k": 256}),
        Keys("input[type=range] >> nth=1", ("Home",), "then by τ = 1/16: nearly all weight", {"log_tau": -4}),
        Keys("button:has-text('Resample')", ("Enter", "Enter"), "sample 2", {"seed": 2}),
        Keys("select", ("ArrowDown",), "sample 2"),
    ),
    kernel="(w.d_k, w.scaled)",
)
