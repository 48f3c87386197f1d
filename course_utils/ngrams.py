"""n-gram language models: what counting alone can do."""

import numpy as np
from jaxtyping import Int
from torch import Tensor


class NGram:
    """Probability of the next symbol from the n - 1 before it, smoothed after Witten and Bell.

    A context c that was seen t times with u different continuations gives p(x | c) = (count(c, x) + u · p(x | shorter
    c)) / (t + u): the more continuations it had, the more it trusts the shorter context. The shortest is uniform.
    Source: Witten and Bell 1991, "The zero-frequency problem", method C. Raises ValueError for n < 1, a text
    shorter than n, and symbols beyond the vocabulary.
    """

    def __init__(self, ids: Int[Tensor, " N"], vocab: int, n: int):
        if n < 1:
            raise ValueError(f"n: got {n}, must be at least 1")
        if vocab**n >= 2**62:
            raise ValueError(f"vocab, n: {vocab} symbols and n = {n} give more than 2^62 different n-grams")
        if len(ids) < n:
            raise ValueError(f"ids: got {len(ids)} symbols, but n-grams of n = {n} need a text of at least {n}")
        self.vocab, self.n = vocab, n
        text = _symbols("ids", ids, vocab)
        self.tables = []
        for k in range(n):  # contexts of k symbols
            grams, counts = np.unique(_codes(text, k + 1, vocab), return_counts=True)
            contexts, first = np.unique(grams // vocab, return_index=True)
            totals = np.add.reduceat(counts, first)
            kinds = np.diff(np.append(first, len(grams)))
            self.tables.append((grams, counts, contexts, totals, kinds))

    def nats(self, windows: Int[Tensor, "N T1"], skip: int = 1) -> float:
        """Mean surprise, in nats a symbol, at the symbols skip … T of windows (N, T + 1).

        A symbol is predicted from what stands before it in its window, as in a model that is fed the window.
        Raises ValueError when there is nothing left to predict.
        """
        if not 0 <= skip < windows.shape[1]:
            raise ValueError(
                f"skip: got {skip}; windows of {windows.shape[1]} symbols leave 0 … {windows.shape[1] - 1}"
            )
        rows = _symbols("windows", windows, self.vocab)
        surprise = []
        for t in range(skip, rows.shape[1]):
            p = np.full(len(rows), 1.0 / self.vocab)
            for k in range(min(self.n, t + 1)):
                context = np.zeros(len(rows), dtype=np.int64)
                for symbol in rows[:, t - k : t].T:
                    context = context * self.vocab + symbol
                p = self._refine(k, context, rows[:, t], p)
            surprise.append(-np.log(p).mean())
        return float(np.mean(surprise))

    def _refine(self, k: int, context: np.ndarray, symbol: np.ndarray, shorter: np.ndarray) -> np.ndarray:
        grams, counts, contexts, totals, kinds = self.tables[k]
        seen = _look_up(grams, counts, context * self.vocab + symbol)
        total, kind = _look_up(contexts, totals, context), _look_up(contexts, kinds, context)
        weight = np.maximum(total + kind, 1)  # an unseen context has total and kind 0: the shorter one decides
        return np.where(total > 0, (seen + kind * shorter) / weight, shorter)


def _symbols(name: str, ids: Tensor, vocab: int) -> np.ndarray:
    """The ids as numbers; one beyond the vocabulary would count as part of another n-gram."""
    numbers = ids.cpu().numpy().astype(np.int64)
    wrong = numbers[(numbers < 0) | (numbers >= vocab)]
    if wrong.size:
        raise ValueError(f"{name}: got {wrong[0]}, must be 0 … {vocab - 1}, the symbols of this vocabulary")
    return numbers


def _codes(text: np.ndarray, length: int, vocab: int) -> np.ndarray:
    """Every run of `length` symbols as one number in base `vocab`."""
    codes = np.zeros(len(text) - length + 1, dtype=np.int64)
    for i in range(length):
        codes = codes * vocab + text[i : i + len(codes)]
    return codes


def _look_up(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """values at `wanted` in the sorted keys, 0 where it is not among them."""
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], 0)
