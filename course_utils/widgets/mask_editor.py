"""Paint who may attend to whom, and see which outputs a change of one word can reach."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import traitlets as t

from course_utils.plots import Figure, Table, format_value, table

from .base import CourseWidget
from .packing import index, numbers, pack_exact, truths, unpack, words_of
from .twin import Panel, matrices

WORDS = ("the", "dog", "bites", "a", "man", "<pad>")
PAD = "<pad>"
MOST = 24  # words; more cells than that would be too small for a finger
D = 4
SEED = 3
GOALS = ("causal", "padding", "causal and padding")
GOAL_GIVEN = "A mask is to be painted; the button Check says which cells are wrong."
NUDGE = 1.0  # added to every entry of the query, key and value of the word that changes


class MaskEditor(CourseWidget):
    """A mask to paint, with the attention that follows from it.

    words: up to 24 of them. mask: (T, T), True = may attend; everything unless given. q, k (T, d) and v (T, dv):
    made up unless given. changed: the word that is nudged, the middle one unless given, -1 for none; 1 is added to
    every entry of its query, key and value, and the widget says how far each output moves. real: which words are no
    padding, for the button "Hide padding"; all but "<pad>" unless given. goal: the mask to paint, (T, T) or "causal",
    "padding", "causal and padding"; with it comes a button that says which cells are wrong.

    `w.mask` is the mask as painted, a read-only boolean array; assign a whole matrix to change it. `w.checked`: the
    mask as it stands has been checked with the button. `w.solved`: it was checked and is the goal.
    """

    module = "mask_editor"
    uses = ("numbers", "heatmap")

    words = t.List(t.Unicode()).tag(sync=True)
    q = t.Dict().tag(sync=True)
    k = t.Dict().tag(sync=True)
    v = t.Dict().tag(sync=True)
    real = t.List(t.Bool()).tag(sync=True)
    initial = t.Dict().tag(sync=True)
    goal = t.List().tag(sync=True)
    checked = t.Bool(False).tag(sync=True)
    solved = t.Bool(False).tag(sync=True)
    changed = t.Int(-1).tag(sync=True)
    empty = t.Enum(("zeros", "nan"), "zeros").tag(sync=True)
    mask = t.TraitType().tag(  # unlike Any, it gives None to the check below
        sync=True,
        to_json=lambda mask, _: mask.astype(int).tolist(),
        from_json=lambda rows, _: np.array(rows, dtype=bool),
    )

    def __init__(
        self,
        words: Iterable[str] = WORDS,
        mask: Any = None,
        q: Any = None,
        k: Any = None,
        v: Any = None,
        *,
        changed: int | None = None,
        real: Any = None,
        goal: Any = None,
        title: str = "Who may attend to whom",
        predict: Any = None,
        prediction: str | None = None,
    ):
        where = "MaskEditor"
        words = words_of(where, "words", words)
        n = len(words)
        if n > MOST:
            raise ValueError(f"{where}: words has {n} words; at most {MOST} can be painted, take a part of the text")
        if (q is None) != (k is None) or (q is None) != (v is None):
            raise ValueError(f"{where}: q, k and v come together; give all three or none of them")
        if q is None:
            q, k, v = np.random.default_rng(SEED).standard_normal((3, n, D))
        q = numbers(where, "q", q, ("T", "d"), (n,))
        k = numbers(where, "k", k, ("T", "d"), q.shape)
        v = numbers(where, "v", v, ("T", "dv"), (n,))
        mask = np.ones((n, n), bool) if mask is None else truths(where, "mask", mask, ("T", "T"), (n, n))
        real = [w != PAD for w in words] if real is None else truths(where, "real", real, ("T",), (n,)).tolist()
        middle = (n - 1) // 2
        chosen = middle if changed is None else changed if changed == -1 else index(where, "changed", changed, n)
        default = (
            f"Only “{words[chosen if chosen >= 0 else middle]}” changes. "
            "With a mask that hides the future, which outputs can move?",
            ["all of them", "its own and those after it", "its own only", "those before it"],
        )
        super().__init__(
            title=title,
            predict=predict,
            prediction=prediction,
            default=default,
            words=words,
            q=pack_exact(q),
            k=pack_exact(k),
            v=pack_exact(v),
            real=real,
            changed=chosen,
            goal=[] if goal is None else _goal(where, goal, real).astype(int).tolist(),
            mask=mask,
            initial={"mask": mask.astype(int).tolist(), "changed": chosen},
        )

    @t.validate("mask")
    def _a_mask(self, proposal: Any) -> np.ndarray:
        n = len(self.words)
        try:
            mask = truths("MaskEditor", "mask", proposal["value"], ("T", "T"), (n, n))
        except ValueError as error:
            raise t.TraitError(str(error)) from None
        mask.setflags(write=False)
        return mask

    @t.validate("changed")
    def _a_word(self, proposal: Any) -> int:
        if not -1 <= proposal["value"] < len(self.words):
            last = len(self.words) - 1
            raise t.TraitError(f"MaskEditor: changed is {proposal['value']}; it must be 0 to {last}, or -1 for none")
        return proposal["value"]

    @t.observe("mask")
    def _not_checked_yet(self, _: Any) -> None:
        self.checked = self.solved = False

    @t.validate("solved")
    def _really_solved(self, proposal: Any) -> bool:
        return proposal["value"] and bool(self.goal) and not self.wrong().any()

    def wrong(self) -> np.ndarray:
        """(T, T), True where the mask as painted differs from the goal. Raises ValueError where no goal was given."""
        if not self.goal:
            raise ValueError('MaskEditor: this editor has no goal; give it one, as in MaskEditor(words, goal="causal")')
        return self.mask != np.array(self.goal, dtype=bool)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, k and v as float64."""
        n = len(self.words)
        q, k, v = (unpack(packed, (n, -1)) for packed in (self.q, self.k, self.v))
        return q, k, v

    def attention(self, changed: int = -1) -> tuple[np.ndarray, np.ndarray]:
        """Outputs (T, dv) and weights (T, T) under the mask as painted; with a word nudged, if one is named."""
        import torch

        from course_utils.attention import scaled_dot_product_attention

        nudge = NUDGE * (np.arange(len(self.words)) == changed)[:, None]
        q, k, v = (torch.tensor(array + nudge) for array in self.arrays())
        out, weights = (x.numpy() for x in scaled_dot_product_attention(q, k, v, torch.tensor(self.mask)))
        if self.empty == "nan":
            nothing = ~self.mask.any(axis=1)[:, None]
            out, weights = np.where(nothing, np.nan, out), np.where(nothing, np.nan, weights)
        return out, weights

    def moves(self, changed: int | None = None) -> np.ndarray:
        """How far each output moves (T,), in its largest entry, when one word changes; `self.changed` unless named."""
        changed = self.changed if changed is None else index("MaskEditor.moves", "changed", changed, len(self.words))
        return np.abs(self.attention(changed)[0] - self.attention()[0]).max(axis=1)

    def reaches_back(self) -> np.ndarray:
        """For each word (T,): how far outputs before it move when it changes. All zero: nothing reaches back."""
        return np.array([np.nan_to_num(self.moves(j)[:j]).max(initial=0.0) for j in range(len(self.words))])

    def describe(self) -> str:
        n, mask = len(self.words), self.mask
        parts = [f"Mask editor. {n} words: {' '.join(self.words)}. {int(mask.sum())} of {n * n} cells may attend."]
        if self.changed >= 0:
            moved = ", ".join(f"{w} {format_value(float(x), 2)}" for w, x in zip(self.words, self.moves(), strict=True))
            parts.append(f"When “{self.words[self.changed]}” changes, the outputs move by: {moved}.")
        back = [(w, x) for w, x in zip(self.words, self.reaches_back(), strict=True) if x > 0]
        told = ", ".join(f"“{w}” by {format_value(float(x), 2)}" for w, x in back)
        parts.append(
            f"A change reaches outputs before it for: {told}." if back else "No change reaches an output before it."
        )
        if empty := [w for w, row in zip(self.words, mask, strict=True) if not row.any()]:
            gives = "zeros" if self.empty == "zeros" else "NaN, as a bare softmax"
            parts.append(f"May attend to nothing, which gives {gives}: {', '.join(empty)}.")
        if self.goal:
            parts.append(f"Checked against the goal: {_told(self.wrong(), self.words)}" if self.checked else GOAL_GIVEN)
        return " ".join(parts)

    def static(self) -> Figure:
        _, weights = self.attention()
        moved = [format_value(float(x), 2) for x in self.moves()] if self.changed >= 0 else None
        title = f"moved by “{self.words[self.changed]}”" if moved else ""
        panel = Panel("", weights, ~self.mask, moved, title)
        return matrices([panel], self.words, self.words, self.title, self.describe(), numbers=True)

    def table(self) -> Table:
        """One row a query: its weight on every key (None where the mask hides it), and how far its output moved."""
        _, weights = self.attention()
        moved = self.moves() if self.changed >= 0 else [None] * len(self.words)
        rows = [
            (word, *(float(x) if shown else "hidden" for x, shown in zip(row, mask, strict=True)), move)
            for word, row, mask, move in zip(self.words, weights, self.mask, moved, strict=True)
        ]
        header = ("query", *(f"key {word}" for word in self.words), "moved by")
        return table(rows, header, caption=self.title, digits=4)


def _goal(where: str, goal: Any, real: list[bool]) -> np.ndarray:
    """The mask to paint, by name or as a matrix."""
    n = len(real)
    if not isinstance(goal, str):
        return truths(where, "goal", goal, ("T", "T"), (n, n))
    if goal not in GOALS:
        names = ", ".join(f'"{name}"' for name in GOALS)
        raise ValueError(
            f"{where}: goal is {goal!r}; it must be one of {names}, or a ({n}, {n}) matrix of True and False"
        )
    causal = np.tri(n, dtype=bool) if "causal" in goal else np.ones((n, n), bool)
    return causal & np.array(real, dtype=bool) if "padding" in goal else causal


def _told(wrong: np.ndarray, words: list[str]) -> str:
    if not wrong.any():
        return "every cell is right."
    i, j = np.argwhere(wrong)[0]
    return f"{int(wrong.sum())} of {wrong.size} cells wrong, the first: query “{words[i]}”, key “{words[j]}”."
