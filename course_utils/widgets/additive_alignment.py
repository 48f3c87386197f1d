"""Where a translator's decoder looks while it writes: the alignment that additive attention has learned."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import traitlets as t

from course_utils.plots import Figure, Table, heatmap, table
from course_utils.plots.values import check_links

from .base import CourseWidget
from .packing import index, numbers, pack_exact, unpack, words_of

MOST = 32  # words of a sentence; each is a row of its own
SLACK = 1e-3  # rows of float32 weights do not sum to one exactly


class AdditiveAlignment(CourseWidget):
    """The weights of a decoder with attention, one row for each target word (Bahdanau, Cho and Bengio 2015).

    weights: (Tt, Ts), what the softmax gave for one sentence without its padding. source, target: Ts and Tt words, at
    most 32 each, with "<eos>" if the weights have a row or column for it. gold: for each target word the index
    of the source word that it says, or None; only to judge. step: the target word that is looked at, counted from 0.
    source_word: a source word to look at; by default the one with the largest weight.
    """

    module = "additive_alignment"
    uses = ("heatmap", "slider")

    source_words = t.List(t.Unicode()).tag(sync=True)
    target_words = t.List(t.Unicode()).tag(sync=True)
    weights = t.Dict().tag(sync=True)
    gold = t.List(t.Int()).tag(sync=True)
    step = t.Int(0).tag(sync=True)
    source_word = t.Int(-1).tag(sync=True)

    def __init__(
        self,
        weights: Any,
        source: Iterable[str],
        target: Iterable[str],
        gold: Sequence[int | None] | None = None,
        *,
        step: int = 0,
        source_word: int | None = None,
        title: str = "Where the decoder looks",
        predict: Any = None,
        prediction: str | None = None,
    ):
        where = "AdditiveAlignment"
        source, target = words_of(where, "source", source), words_of(where, "target", target)
        for name, words in (("source", source), ("target", target)):
            if len(words) > MOST:
                raise ValueError(
                    f"{where}: {name} has {len(words)} words; at most {MOST} can be shown, take a shorter sentence"
                )
        array = numbers(where, "weights", weights, ("Tt", "Ts"))
        if array.shape != (len(target), len(source)):
            turned = (
                " They may be transposed: one row a target word." if array.T.shape == (len(target), len(source)) else ""
            )
            raise ValueError(
                f"{where}: weights has shape {array.shape}, but there are {len(target)} target and {len(source)} "
                f'source words; it must be (Tt, Ts). Is a word such as "<eos>" missing, or padding still there?{turned}'
            )
        _rows_sum_to_one(where, array, target)
        links = check_links(where, "gold", gold, len(target), len(source)) or [None] * len(target)
        default = (
            f"The decoder writes {len(target)} words from {len(source)} source words. How many different mixtures of "
            "the encoder's states can it use?",
            ["one, for the whole sentence", "two, a first and a last one", "one for each word that it writes"],
        )
        super().__init__(
            title=title,
            predict=predict,
            prediction=prediction,
            default=default,
            source_words=source,
            target_words=target,
            weights=pack_exact(array),
            gold=[-1 if j is None else int(j) for j in links],
            step=index(where, "step", step, len(target), none=False),
            source_word=index(where, "source_word", source_word, len(source)),
        )

    @t.validate("step", "source_word")
    def _an_index(self, proposal: Any) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        low, size = (0, len(self.target_words)) if name == "step" else (-1, len(self.source_words))
        if not low <= value < size:
            nothing = "" if name == "step" else ", or -1 for the most read one"
            raise t.TraitError(f"AdditiveAlignment: {name} is {value}; it must be 0 to {size - 1}{nothing}")
        return value

    def array(self) -> np.ndarray:
        """The weights (Tt, Ts) as float64."""
        return unpack(self.weights, (len(self.target_words), len(self.source_words)))

    def largest(self) -> list[int]:
        """For each target word the source word with the largest weight."""
        return [int(j) for j in self.array().argmax(axis=1)]

    def agreement(self) -> tuple[int, int]:
        """How many target words read their gold word most, of how many that have one."""
        pairs = [(j, gold) for j, gold in zip(self.largest(), self.gold, strict=True) if gold >= 0]
        return sum(j == gold for j, gold in pairs), len(pairs)

    def reversed_pairs(self) -> int:
        """How many pairs of target words read their source words in reverse order."""
        best = np.array(self.largest())
        return int(np.triu(best[:, None] > best[None, :], 1).sum())

    def describe(self) -> str:
        n, weights, best = len(self.target_words), self.array(), self.largest()
        sums = weights.sum(axis=1)
        parts = [
            f"Additive alignment. {self.title}. {len(self.source_words)} source words: {' '.join(self.source_words)}. "
            f"{n} target words: {' '.join(self.target_words)}.",
            f"{n} rows of weights, {n} context vectors; the rows sum to {sums.min():.4f} … {sums.max():.4f}.",
        ]
        told = (
            f"“{word}” on “{self.source_words[j]}” ({row[j]:.2f})"
            for word, j, row in zip(self.target_words, best, weights, strict=True)
        )
        parts.append(f"Largest weights: {', '.join(told)}.")
        right, judged = self.agreement()
        if judged:
            parts.append(f"It lies on the gold word for {right} of {judged} target words that have one.")
        pairs = n * (n - 1) // 2
        parts.append(f"{self.reversed_pairs()} of {pairs} pairs of target words read in reverse order.")
        parts.append(f"Step {self.step + 1}: “{self.target_words[self.step]}”.")
        return " ".join(parts)

    def static(self) -> Figure:
        judged = self.agreement()[1]
        return heatmap(
            self.array(),
            queries=self.target_words,
            keys=self.source_words,
            title=self.title,
            description=self.describe(),
            gold=[None if j < 0 else j for j in self.gold] if judged else None,
            caption="Small squares: the gold alignment" if judged else None,
        )

    def table(self) -> Table:
        """One row for each target word: its weights, their sum, the word with the largest, the gold word."""
        words = self.source_words
        rows = [
            (word, *map(float, row), float(row.sum()), words[j], words[gold] if gold >= 0 else None)
            for word, row, j, gold in zip(self.target_words, self.array(), self.largest(), self.gold, strict=True)
        ]
        return table(rows, ("target word", *words, "sum", "largest on", "gold"), caption=self.title, digits=4)


def _rows_sum_to_one(where: str, array: np.ndarray, target: Sequence[str]) -> None:
    """Raise ValueError unless every row can be what a softmax over the source words gave."""
    low, high, sums = array.min(), array.max(), array.sum(axis=1)
    if low < 0 or high > 1 + SLACK:
        raise ValueError(
            f"{where}: weights run from {low:.3g} to {high:.3g}; weights lie between 0 and 1. "
            "If these are scores, apply the softmax over the source words first"
        )
    i = int(np.abs(sums - 1).argmax())
    if abs(sums[i] - 1) > SLACK:
        columns = np.abs(array.sum(axis=0) - 1).max() <= SLACK
        why = (
            "Its columns do: take the transpose, or the softmax over the other axis"
            if columns
            else ("Was a source word cut off, the softmax over another axis, or dropout still on?")
        )
        raise ValueError(
            f"{where}: the weights of target word {i}, “{target[i]}”, sum to {sums[i]:.3g}; every row sums to 1. {why}"
        )
