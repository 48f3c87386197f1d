"""Scaled dot-product attention step by step, with numbers that the learner changes."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import traitlets as t

from course_utils.plots import Figure, Table, format_value, table

from .base import CourseWidget
from .grids import Grid, grids
from .packing import index, numbers, truths, words_of

QUERIES, KEYS = ("month?", "day?"), ("Thursday,", "March", "5,")
Q = ((0.0, 1.5), (1.0, 0.5))
K = ((1.0, 0.0), (0.0, 2.0), (1.0, 1.0))
V = ((3.0, 0.0), (-1.0, 2.0), (1.0, 1.0))
STEPS = ("scores", "scale", "mask", "softmax", "mix")
LARGEST = 1e6  # the browser takes no larger number either: a product of two must not overflow
MOST = 8  # words, and numbers in a vector: more fields than that nobody reads


def _numbers() -> Any:
    return t.TraitType().tag(  # unlike Any, it gives None to the check below
        sync=True, to_json=lambda array, _: array.tolist(), from_json=lambda rows, _: np.array(rows, dtype=float)
    )


class DotProductSteps(CourseWidget):
    """Attention in five steps: scores, scale, mask, softmax, mix. Every number can be changed.

    q (Tq, d), k (Tk, d), v (Tk, dv): two queries and three keys of two numbers unless given; all three or none.
    queries, keys: the words. mask: (Tq, Tk), True = may attend; None hides nothing. step: the one shown first, by
    name or by number from 0. query, column: a cell that is kept in view (column: a key, in the last step an output).

    `w.q`, `w.k` and `w.v` are the numbers as changed, read-only float64 arrays; assign a whole matrix to change them.
    Source: Vaswani et al. 2017, "Attention is all you need", section 3.2.1.
    """

    module = "dot_product_steps"
    uses = ("numbers",)

    query_words = t.List(t.Unicode()).tag(sync=True)
    key_words = t.List(t.Unicode()).tag(sync=True)
    q = _numbers()
    k = _numbers()
    v = _numbers()
    mask = t.Any(None).tag(
        sync=True,
        to_json=lambda mask, _: [] if mask is None else mask.astype(int).tolist(),
        from_json=lambda rows, _: np.array(rows, dtype=bool) if rows else None,
    )
    step = t.Int(0).tag(sync=True)
    query = t.Int(-1).tag(sync=True)
    column = t.Int(-1).tag(sync=True)

    def __init__(
        self,
        q: Any = None,
        k: Any = None,
        v: Any = None,
        queries: Iterable[str] | None = None,
        keys: Iterable[str] | None = None,
        mask: Any = None,
        *,
        step: int | str = 0,
        query: int | None = None,
        column: int | None = None,
        title: str = "Scaled dot-product attention, step by step",
        predict: Any = None,
        prediction: str | None = None,
    ):
        where = "DotProductSteps"
        if len({x is None for x in (q, k, v)}) > 1:
            raise ValueError(f"{where}: q, k and v come together; give all three or none of them")
        if q is None:
            q, k, v, queries, keys = Q, K, V, queries or QUERIES, keys or KEYS
        q = numbers(where, "q", q, ("Tq", "d"))
        k = numbers(where, "k", k, ("Tk", "d"), (None, q.shape[1]))
        v = numbers(where, "v", v, ("Tk", "dv"), (len(k), None))
        for name, array in (("q", q), ("k", k), ("v", v)):
            if max(array.shape) > MOST:
                raise ValueError(
                    f"{where}: {name} has shape {array.shape}; at most {MOST} rows and columns can be read number "
                    "by number, take a part"
                )
        queries = [f"query {i + 1}" for i in range(len(q))] if queries is None else words_of(where, "queries", queries)
        keys = [f"key {j + 1}" for j in range(len(k))] if keys is None else words_of(where, "keys", keys)
        for name, words, array, rows in (("queries", queries, q, "q"), ("keys", keys, k, "k")):
            if len(words) != len(array):
                raise ValueError(f"{where}: {name} has {len(words)} words, but {rows} has {len(array)} rows")
        if isinstance(step, str):
            if step not in STEPS:
                raise ValueError(f"{where}: step is {step!r}; it must be one of {', '.join(STEPS)}, or 0 to 4")
            step = STEPS.index(step)
        step = index(where, "step", step, len(STEPS), none=False)
        query = index(where, "query", query, len(q))
        column = index(where, "column", column, v.shape[1] if step == 4 else len(k))
        if (query < 0) != (column < 0):
            query, column = max(query, 0), max(column, 0)
        default = (
            "Queries and keys may be any numbers. Can an output be larger than the largest value in its column of V?",
            [
                "yes, if a score is large enough",
                "no, it always lies between the smallest and the largest value",
                "only if the scores are not divided by √d",
            ],
        )
        # The sizes first: the checks of what comes later compare with them.
        self._shapes = {"q": q.shape, "k": k.shape, "v": v.shape}
        super().__init__(
            title=title,
            predict=predict,
            prediction=prediction,
            default=default,
            query_words=queries,
            key_words=keys,
            q=q,
            k=k,
            v=v,
            mask=mask,
            step=step,
            query=query,
            column=column,
        )

    @t.validate("q", "k", "v")
    def _finite_numbers(self, proposal: Any) -> np.ndarray:
        name = proposal["trait"].name
        axes = {"q": ("Tq", "d"), "k": ("Tk", "d"), "v": ("Tk", "dv")}[name]
        try:
            array = numbers("DotProductSteps", name, proposal["value"], axes, self._shapes[name]).copy()
        except (ValueError, TypeError) as error:
            raise t.TraitError(str(error)) from None
        if np.abs(array).max() > LARGEST:
            worst = float(array.flat[np.abs(array).argmax()])
            raise t.TraitError(
                f"DotProductSteps: {name} holds {worst:g}; numbers can go from -{LARGEST:,.0f} to {LARGEST:,.0f}"
            )
        array.setflags(write=False)
        return array

    @t.validate("mask")
    def _a_mask(self, proposal: Any) -> np.ndarray | None:
        if proposal["value"] is None:
            return None
        shape = (self._shapes["q"][0], self._shapes["k"][0])
        try:
            mask = truths("DotProductSteps", "mask", proposal["value"], ("Tq", "Tk"), shape)
        except ValueError as error:
            raise t.TraitError(str(error)) from None
        mask.setflags(write=False)
        return mask

    @t.validate("step", "query", "column")
    def _in_range(self, proposal: Any) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        least = 0 if name == "step" else -1
        most = {"step": 4, "query": self._shapes["q"][0] - 1, "column": max(self._shapes["v"]) - 1}[name]
        if not least <= value <= most:
            none = "" if name == "step" else ", or -1 for none"
            raise t.TraitError(f"DotProductSteps: {name} is {value}; it must be 0 to {most}{none}")
        return value

    def results(self) -> dict[str, np.ndarray]:
        """Every step in float64: raw, scaled, masked, weights (Tq, Tk); out, low, high (Tq, dv).

        low, high: the smallest and largest value among the keys that the query may see (inf, -inf if there is none).
        """
        import torch

        from course_utils.attention import scaled_dot_product_attention

        q, k, v = (torch.tensor(array) for array in (self.q, self.k, self.v))
        seen = np.ones((len(q), len(k)), bool) if self.mask is None else self.mask
        out, weights = scaled_dot_product_attention(q, k, v, torch.tensor(seen))
        raw = self.q @ self.k.T
        scaled = raw / math.sqrt(self.q.shape[1])
        return {
            "raw": raw,
            "scaled": scaled,
            "masked": np.where(seen, scaled, -np.inf),
            "weights": weights.numpy(),
            "out": out.numpy(),
            "low": np.where(seen[:, :, None], self.v, np.inf).min(axis=1),
            "high": np.where(seen[:, :, None], self.v, -np.inf).max(axis=1),
        }

    def describe(self) -> str:
        now, d = self.results(), self.q.shape[1]
        parts = [
            f"Scaled dot-product attention, step by step: {len(self.q)} queries, {len(self.k)} keys "
            f"({', '.join(self.key_words)}), d = {d}. Step {self.step + 1} of {len(STEPS)}: {STEPS[self.step]}."
        ]
        for i, word in enumerate(self.query_words):
            if not now["weights"][i].any():
                parts.append(f"Query “{word}” may attend to nothing: weights and output are 0.")
                continue
            told = [f"{name} {_listed(now[key][i])}" for key, name in (("raw", "scores"), ("scaled", f"by √{d}:"))]
            ranges = ", ".join(
                f"{_short(x)} (values from {_short(low)} to {_short(high)})"
                for x, low, high in zip(now["out"][i], now["low"][i], now["high"][i], strict=True)
            )
            told.append(f"weights {_listed(now['weights'][i])}, which sum to {now['weights'][i].sum():.3f}")
            parts.append(f"Query “{word}”: {'; '.join(told)}; output {ranges}.")
        if self.mask is not None:
            parts.append(f"The mask hides {int((~self.mask).sum())} of {self.mask.size} cells.")
        parts.append("Every output is a mix of the values and lies between the smallest and the largest of them.")
        return " ".join(parts)

    def static(self) -> Figure:
        now, hidden = self.results(), None if self.mask is None else ~self.mask
        outputs = [f"output {c + 1}" for c in range(self.v.shape[1])]
        scores = float(now["scaled"].min()), float(now["scaled"].max())
        panels = [
            Grid("Q Kᵀ / √d", now["scaled"], self.query_words, self.key_words, *scores, hidden),
            Grid("weights", now["weights"], self.query_words, self.key_words, 0.0, 1.0, hidden),
            Grid("outputs", now["out"], self.query_words, outputs, float(self.v.min()), float(self.v.max())),
        ]
        return grids(panels, self.title, self.describe())

    def table(self) -> Table:
        """For each query: its score with every key, scaled, after the mask, the weight and the value; then the
        output, and the smallest and largest value that it may see."""
        now, rows = self.results(), []
        for i, query in enumerate(self.query_words):
            for j, key in enumerate(self.key_words):
                cells = (float(now[name][i, j]) for name in ("raw", "scaled", "masked", "weights"))
                rows.append((query, key, *cells, *map(float, self.v[j])))
            total = float(now["weights"][i].sum())
            rows.append((query, "sum, output", None, None, None, total, *map(float, now["out"][i])))
            for name, key in (("smallest value", "low"), ("largest value", "high")):
                rows.append((query, name, None, None, None, None, *map(float, now[key][i])))
        names = (f"value {c + 1}" for c in range(self.v.shape[1]))
        header = ("query", "key", "score", "scaled", "after the mask", "weight", *names)
        return table(rows, header, caption=self.title, digits=4)


def _short(x: float) -> str:
    return format_value(float(x), 3)


def _listed(row: np.ndarray) -> str:
    return ", ".join(_short(x) for x in row)
