"""Shuffle the words: self-attention of shuffled words against shuffled self-attention."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import traitlets as t

from course_utils.plots import Figure, Table, format_value, table

from .base import CourseWidget
from .grids import Grid, grids
from .packing import numbers, pack_exact, unpack, words_of

WORDS = ("dog", "bites", "man")
MOST = 10  # words in a row, and columns of the outputs
D, DK, DV = 4, 4, 3
SEED = 10
ROUNDING = 1e-12  # smaller differences come of adding in another order


class Permutation(CourseWidget):
    """Words to put into another order: f(Px) = P f(x) without positions, and no longer with them.

    words: two to ten. x (T, d), W_q and W_k (d, dk), W_v (d, dv): made up unless given; all four or none. f is
    self-attention without a mask; P puts the rows of x into the order chosen. positions (T, d): added to x at the
    places, sinusoids unless given, and only while with_positions is True. order: for each place the index of the
    word that stands there at first, reversed unless given.

    `w.order` is the order that the learner has made, `w.with_positions` whether positions are on.
    Source: Vaswani et al. 2017, "Attention is all you need", sections 3.2.3 and 3.5.
    """

    module = "permutation"
    uses = ("numbers",)

    words = t.List(t.Unicode()).tag(sync=True)
    x = t.Dict().tag(sync=True)
    W_q = t.Dict().tag(sync=True)
    W_k = t.Dict().tag(sync=True)
    W_v = t.Dict().tag(sync=True)
    positions = t.Dict().tag(sync=True)
    order = t.List(t.Int()).tag(sync=True)
    with_positions = t.Bool(False).tag(sync=True)

    def __init__(
        self,
        words: Iterable[str] = WORDS,
        x: Any = None,
        W_q: Any = None,
        W_k: Any = None,
        W_v: Any = None,
        positions: Any = None,
        *,
        order: Iterable[int] | None = None,
        with_positions: bool = False,
        title: str = "Shuffle the words",
        predict: Any = None,
        prediction: str | None = None,
    ):
        where = "Permutation"
        words = words_of(where, "words", words)
        n = len(words)
        if not 2 <= n <= MOST:
            raise ValueError(f"{where}: words has {n} words; it must have 2 to {MOST}, so that they can be moved")
        if len({array is None for array in (x, W_q, W_k, W_v)}) > 1:
            raise ValueError(f"{where}: x, W_q, W_k and W_v come together; give all four or none of them")
        if x is None:
            random = np.random.default_rng(SEED)
            x, W_q, W_k, W_v = (random.standard_normal(s) for s in ((n, D), (D, DK), (D, DK), (D, DV)))
        x = numbers(where, "x", x, ("T", "d"), (n, None))
        d = x.shape[1]
        W_q = numbers(where, "W_q", W_q, ("d", "dk"), (d, None))
        W_k = numbers(where, "W_k", W_k, ("d", "dk"), W_q.shape)
        W_v = numbers(where, "W_v", W_v, ("d", "dv"), (d, None))
        if W_v.shape[1] > MOST:
            raise ValueError(f"{where}: W_v has shape {W_v.shape}; at most {MOST} output columns can be shown")
        if positions is None:
            from course_utils.positions import sinusoidal_positions

            positions = sinusoidal_positions(n, d)
        positions = numbers(where, "positions", positions, ("T", "d"), (n, d))
        if not isinstance(with_positions, bool):
            raise ValueError(f"{where}: with_positions is {with_positions!r}; it must be True or False")
        order = list(range(n))[::-1] if order is None else _order_of(order)
        if problem := _no_order(order, n):
            raise ValueError(problem)
        default = (
            "The words are put into another order; there are no positions. What becomes of the outputs of "
            "self-attention?",
            [
                "the output does not change at all",
                "the same rows, moved with their words",
                "other rows, which have nothing to do with the old ones",
            ],
        )
        self._n = n
        super().__init__(
            title=title,
            predict=predict,
            prediction=prediction,
            default=default,
            words=words,
            x=pack_exact(x),
            W_q=pack_exact(W_q),
            W_k=pack_exact(W_k),
            W_v=pack_exact(W_v),
            positions=pack_exact(positions),
            order=order,
            with_positions=with_positions,
        )

    @t.validate("order")
    def _a_permutation(self, proposal: Any) -> list[int]:
        if problem := _no_order(proposal["value"], self._n):
            raise t.TraitError(problem)
        return proposal["value"]

    def arrays(self) -> dict[str, np.ndarray]:
        """x, W_q, W_k, W_v and positions as float64."""
        n = self._n
        found = {"x": unpack(self.x, (n, -1)), "positions": unpack(self.positions, (n, -1))}
        d = found["x"].shape[1]
        return {**found, **{name: unpack(getattr(self, name), (d, -1)) for name in ("W_q", "W_k", "W_v")}}

    def outputs(self) -> tuple[np.ndarray, np.ndarray]:
        """f(Px) and P f(x), each (T, dv), in float64."""
        import torch

        from course_utils.attention import self_attention

        arrays = {name: torch.tensor(array) for name, array in self.arrays().items()}
        x, positions = arrays.pop("x"), arrays.pop("positions")
        added = positions if self.with_positions else torch.zeros_like(positions)
        left, _ = self_attention(x[self.order] + added, **arrays)
        right, _ = self_attention(x + added, **arrays)
        return left.numpy(), right[self.order].numpy()

    def difference(self) -> float:
        """max |f(Px) - P f(x)|: 0 but for rounding without positions."""
        left, right = self.outputs()
        return float(np.abs(left - right).max())

    def describe(self) -> str:
        left, right = self.outputs()
        rows = "; ".join(
            f"“{self.words[w]}” {_listed(a)} against {_listed(b)}"
            for w, a, b in zip(self.order, left, right, strict=True)
        )
        return (
            f"Self-attention of {self._n} words, put from the order “{' '.join(self.words)}” into "
            f"“{' '.join(self.words[w] for w in self.order)}”, positions {'on' if self.with_positions else 'off'}. "
            f"Largest difference between f(Px) and P f(x): {_told(np.abs(left - right).max())}. "
            f"Outputs f(Px) against P f(x), word by word: {rows}."
        )

    def static(self) -> Figure:
        left, right = self.outputs()
        ends = float(min(left.min(), right.min())), float(max(left.max(), right.max()))
        words, columns = [self.words[w] for w in self.order], [str(c + 1) for c in range(left.shape[1])]
        told = f"positions {'on' if self.with_positions else 'off'}, difference {_told(np.abs(left - right).max())}"
        panels = [
            Grid("f(Px): shuffle, then attention", left, words, columns, *ends),
            Grid("P f(x): attention, then shuffle", right, words, columns, *ends),
        ]
        return grids(panels, f"{self.title}: {told}", self.describe())

    def table(self) -> Table:
        """One row for each place: the word, its original place, both outputs and their largest difference."""
        left, right = self.outputs()
        rows = [
            (self.words[w], i + 1, w + 1, *map(float, left[i]), *map(float, right[i]), _told(gap))
            for i, (w, gap) in enumerate(zip(self.order, np.abs(left - right).max(axis=1), strict=True))
        ]
        columns = [f"{of}, column {c + 1}" for of in ("f(Px)", "P f(x)") for c in range(left.shape[1])]
        header = ("word", "place", "originally", *columns, "largest difference")
        caption = f"{self.title}, positions {'on' if self.with_positions else 'off'}"
        return table(rows, header, caption=caption, digits=4)


def _order_of(order: Any) -> list[Any]:
    return [int(i) if isinstance(i, np.integer) else i for i in (order.tolist() if hasattr(order, "tolist") else order)]


def _no_order(order: list[Any], n: int) -> str:
    """What is wrong with an order of n words; "" if nothing is."""
    if all(type(i) is int for i in order) and sorted(order) == list(range(n)):
        return ""
    return f"Permutation: order is {order}; it must hold each index from 0 to {n - 1} once"


def _told(difference: float) -> str:
    # Not the rounding itself: it differs from machine to machine.
    return "0 (but for rounding)" if difference < ROUNDING else format_value(float(difference), 3)


def _listed(row: np.ndarray) -> str:
    return ", ".join(format_value(float(value), 3) for value in row)
