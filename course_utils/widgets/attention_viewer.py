"""Attention weights of trained heads: look at a cell, pin a query, compare two heads."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import traitlets as t

from course_utils.plots import Figure, Table, format_value, table
from course_utils.plots.values import to_array

from .base import CourseWidget
from .layered import check_hidden, check_weights
from .packing import index, numbers, pack, spread, truths, unpack, words_of
from .twin import Panel, matrices

MANY = 32  # keys; among more each weight is small, and the colour shows its square root, as in the module


class AttentionViewer(CourseWidget):
    """The attention weights of one layer, for any model.

    weights: (heads, Tq, Tk), or (Tq, Tk) for a single head; what softmax gave, between 0 and 1. queries, keys: the
    words; keys are the queries unless given. mask: (Tq, Tk), True = may attend; hidden cells are drawn hatched.
    head, other: the head shown, and one to compare it with. query, key: the pinned cell.
    """

    module = "attention_viewer"
    uses = ("heatmap",)

    query_words = t.List(t.Unicode()).tag(sync=True)
    key_words = t.List(t.Unicode()).tag(sync=True)
    weights = t.Dict().tag(sync=True)
    hidden = t.Dict().tag(sync=True)
    head = t.Int(0).tag(sync=True)
    other = t.Int(-1).tag(sync=True)
    query = t.Int(-1).tag(sync=True)
    key = t.Int(-1).tag(sync=True)

    def __init__(
        self,
        weights: Any,
        queries: Iterable[str],
        keys: Iterable[str] | None = None,
        mask: Any = None,
        *,
        head: int = 0,
        other: int | None = None,
        query: int | None = None,
        key: int | None = None,
        title: str = "Attention weights",
        predict: Any = None,
        prediction: str | None = None,
    ):
        where = "AttentionViewer"
        queries = words_of(where, "queries", queries)
        keys = queries if keys is None else words_of(where, "keys", keys)
        n, m = len(queries), len(keys)
        array = to_array(f"{where}: weights", weights)
        array = array[None] if array.ndim == 2 else array
        array = numbers(where, "weights", array, ("heads", "Tq", "Tk"), (None, n, m))
        check_weights(where, array)
        visible = np.ones((n, m), bool) if mask is None else truths(where, "mask", mask, ("Tq", "Tk"), (n, m))
        check_hidden(where, array, visible)
        self._heads = len(array)
        if (query is None) != (key is None):
            query, key = query or 0, key or 0
        default = (
            f"Before you look: over how many of the {m} keys does a typical query of head {head} spread its weight?",
            ["one or two", "a handful", "about half of them", "almost all of them, evenly"],
        )
        super().__init__(
            title=title,
            predict=predict,
            prediction=prediction,
            default=default,
            query_words=queries,
            key_words=keys,
            weights=pack(array),
            hidden=pack(~visible),
            head=index(where, "head", head, self._heads, none=False),
            other=index(where, "other", other, self._heads),
            query=index(where, "query", query, n),
            key=index(where, "key", key, m),
        )

    @t.validate("head", "other", "query", "key")
    def _an_index(self, proposal: Any) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        size = {"query": len(self.query_words), "key": len(self.key_words)}.get(name, self._heads)
        if not (0 if name == "head" else -1) <= value < size:
            nothing = "" if name == "head" else ", or -1 for none"
            raise t.TraitError(f"AttentionViewer: {name} is {value}; it must be 0 to {size - 1}{nothing}")
        return value

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights (heads, Tq, Tk), to 8e-6 as the browser sees them, and which cells are hidden (Tq, Tk)."""
        n, m = len(self.query_words), len(self.key_words)
        return unpack(self.weights, (-1, n, m)), unpack(self.hidden, (n, m)) > 0

    def typical_spread(self, head: int) -> float:
        """Over how many keys a query of this head spreads, in the median: e to the power of the entropy in nats."""
        weights = self.arrays()[0][index("AttentionViewer.typical_spread", "head", head, self._heads, none=False)]
        rows = [spread(row) for row in weights if row.any()]
        return float(np.median(rows)) if rows else float("nan")

    def _shown(self) -> list[int]:
        return [head for head in (self.head, self.other) if head >= 0]

    def describe(self) -> str:
        weights, hidden = self.arrays()
        n, m = len(self.query_words), len(self.key_words)
        parts = [f"Attention viewer. {self.title}. Heads: {self._heads}; queries: {n}; keys: {m}."]
        if hidden.any():
            parts.append(f"A mask hides {int(hidden.sum())} of {n * m} cells.")
        for head in self._shown():
            i, j = np.unravel_index(weights[head].argmax(), (n, m))
            parts.append(
                f"Head {head}: a typical query spreads over {format_value(self.typical_spread(head), 2)} keys; largest "
                f"weight {weights[head, i, j]:.2f}, query “{self.query_words[i]}”, key “{self.key_words[j]}”."
            )
        if self.query >= 0:
            told = ", ".join(f"{weights[head, self.query, self.key]:.3f} in head {head}" for head in self._shown())
            parts.append(f"Pinned: query “{self.query_words[self.query]}”, key “{self.key_words[self.key]}”: {told}.")
        return " ".join(parts)

    def static(self) -> Figure:
        weights, hidden = self.arrays()
        many = len(self.key_words) > MANY
        shade, note = (np.sqrt, "\n(colour: square root of the weight)") if many else (np.asarray, "")
        panels = [Panel(f"head {head}{note}", shade(weights[head]), hidden) for head in self._shown()]
        return matrices(panels, self.query_words, self.key_words, self.title, self.describe(), numbers=False)

    def table(self) -> Table:
        """One row for each head and query, one column for each key."""
        weights, hidden = self.arrays()
        rows = [
            (head, word, *("hidden" if hidden[i, j] else float(x) for j, x in enumerate(weights[head, i])))
            for head in range(self._heads)
            for i, word in enumerate(self.query_words)
        ]
        return table(rows, ("head", "query", *(f"key {word}" for word in self.key_words)), caption=self.title, digits=4)
