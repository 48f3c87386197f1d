"""How much of each word is left in the last state of an RNN, and how many steps it took to get there."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import traitlets as t

from course_utils.plots import Figure, Table, format_value, table

from .base import CourseWidget
from .packing import index, numbers, pack_exact, unpack, words_of

WORDS = ("the", "dog", "that", "the", "old", "man", "next", "door", "had", "found", "as", "a", "puppy", "barks")
MOST_WORDS, MOST_FEATURES = 24, 16  # a row must be a target for a finger; a state must fit beside its word
D, H = 6, 8
SEED = 0


class RNNBottleneck(CourseWidget):
    """An RNN reads a sentence: h_t = tanh(x_t W_xh + h_{t-1} W_hh + b), from a zero state (Elman 1990).

    words: T of them, at most 24. x (T, D), W_xh (D, H), W_hh (H, H), b (H), with D and H up to 16: trained, or made
    up as `nn.RNN` begins (uniform within 1 / sqrt(H)) unless given; as in the course, W has the shape (in, out).
    length: how many words are read, all unless given. step: the word that is looked at, counted from 0.

    What is left of word t is the norm of the Jacobian of the last state with respect to x_t (the root of the sum
    of all squares), as a part of that of the last word read. The browser computes it from the weights.
    """

    module = "rnn_bottleneck"
    uses = ("numbers", "picture", "slider")

    words = t.List(t.Unicode()).tag(sync=True)
    x = t.Dict().tag(sync=True)
    W_xh = t.Dict().tag(sync=True)
    W_hh = t.Dict().tag(sync=True)
    b = t.Dict().tag(sync=True)
    length = t.Int(1).tag(sync=True)
    step = t.Int(0).tag(sync=True)

    def __init__(
        self,
        words: Iterable[str] = WORDS,
        x: Any = None,
        W_xh: Any = None,
        W_hh: Any = None,
        b: Any = None,
        *,
        length: int | None = None,
        step: int = 0,
        title: str = "What is left of a word",
        predict: Any = None,
        prediction: str | None = None,
    ):
        where = "RNNBottleneck"
        words = words_of(where, "words", words)
        n = len(words)
        if n > MOST_WORDS:
            raise ValueError(
                f"{where}: words has {n} words; at most {MOST_WORDS} can be shown, take a part of the text"
            )
        given = [array is not None for array in (x, W_xh, W_hh, b)]
        if any(given) and not all(given):
            raise ValueError(f"{where}: x, W_xh, W_hh and b come together; give all four or none of them")
        if x is None:
            random = np.random.default_rng(SEED)
            bound = 1 / math.sqrt(H)
            x = random.standard_normal((n, D))
            W_xh, W_hh, b = (random.uniform(-bound, bound, shape) for shape in ((D, H), (H, H), (H,)))
        x, W_xh, W_hh, b = _checked(where, x, W_xh, W_hh, b, n)
        default = (
            f"All {n} words are read. How much of the first word is left in the last state, compared "
            "with the last word?",
            [
                "as much: the same weights are used at every step",
                f"about 1/{n}: it falls in proportion to the distance",
                "far less than that: every step multiplies by a factor",
            ],
        )
        if length is not None and not _whole(length, 1, n):
            raise ValueError(
                f"{where}: length is {length!r}; it must be a number of words from 1 to {n}, or None for all"
            )
        super().__init__(
            title=title,
            predict=predict,
            prediction=prediction,
            default=default,
            words=words,
            x=pack_exact(x),
            W_xh=pack_exact(W_xh),
            W_hh=pack_exact(W_hh),
            b=pack_exact(b),
            length=n if length is None else int(length),
            step=index(where, "step", step, n, none=False),
        )

    @t.validate("length", "step")
    def _in_range(self, proposal: Any) -> int:
        name, value, n = proposal["trait"].name, proposal["value"], len(self.words)
        low, high = (1, n) if name == "length" else (0, n - 1)
        if not low <= value <= high:
            raise t.TraitError(f"RNNBottleneck: {name} is {value}; it must be {low} to {high}")
        return value

    @staticmethod
    def measure(x: Any, W_xh: Any, W_hh: Any, b: Any) -> np.ndarray:
        """Norms (T,) of the Jacobians of the last state with respect to each input, by torch in float64.

        x (T, D), W_xh (D, H), W_hh (H, H), b (H); any T and sizes. Norm: the root of the sum of all squares.
        """
        return _run(*_checked("RNNBottleneck.measure", x, W_xh, W_hh, b, None, None))[1]

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """x (T, D), W_xh (D, H), W_hh (H, H) and b (H) as float64, for all words."""
        x, b = unpack(self.x, (len(self.words), -1)), unpack(self.b, (-1,))
        return x, unpack(self.W_xh, (x.shape[1], b.size)), unpack(self.W_hh, (b.size, b.size)), b

    def states(self) -> np.ndarray:
        """The states (length, H) after each word that is read."""
        return self._measured()[0]

    def norms(self) -> np.ndarray:
        """Norms (length,) of the Jacobians of the last state with respect to each word that is read."""
        return self._measured()[1]

    def left(self) -> np.ndarray:
        """The same as parts of that of the last word."""
        norms = self.norms()
        with np.errstate(divide="ignore", invalid="ignore"):
            return norms / norms[-1]

    def _measured(self) -> tuple[np.ndarray, np.ndarray]:
        x, *weights = self.arrays()
        return _run(x[: self.length], *weights)

    def _step(self) -> int:
        return min(self.step, self.length - 1)

    def describe(self) -> str:
        n, left, at = self.length, self.left(), self._step()
        features, size = self.arrays()[1].shape
        parts = [
            f"RNN bottleneck. {n} of {len(self.words)} words read: {' '.join(self.words[:n])}.",
            f"{n * features} numbers have been read, {features} a word; the last state holds {size}, as at any length.",
        ]
        if n > 1:
            factor = float(left[0] ** (1 / (n - 1)))
            parts.append(
                f"Of the first word, “{self.words[0]}”, {format_value(float(left[0]))} is left in it, compared with "
                f"the last word: on average a factor of {format_value(factor, 2)} for each of {n - 1} steps."
            )
        parts.append(
            f"Word {at + 1}, “{self.words[at]}”: {format_value(float(left[at]))} is left. "
            f"Steps to the last state: RNN {n - 1 - at}, attention 1."
        )
        return " ".join(parts)

    def static(self) -> Figure:
        from course_utils.plots.figure import canvas, finish
        from course_utils.plots.style import BLUE, INK, VERMILLION, course_style

        words, left, states, at = self.words[: self.length], self.left(), self.states(), self._step()
        n = len(words)
        fig, _ = canvas(7.2, 0.27 * n + 1.5, "compressed")
        fig.clear()
        with course_style():
            one, two = fig.subplots(1, 2, sharey=True, width_ratios=(1, 2))
            one.imshow(states, cmap="Blues", vmin=-1, vmax=1, aspect="auto")
            one.set(xlabel=f"h: {states.shape[1]} numbers", xticks=[])
            one.set_yticks(range(n), words, fontsize=9.5)
            shown = np.where(left > 0, left, np.nan)
            two.barh(range(n), shown, height=0.6, color=[VERMILLION if i == at else BLUE for i in range(n)])
            low = 10.0 ** math.floor(math.log10(max(np.nanmin(shown, initial=1.0), 1e-16)) - 0.01)
            two.set(xscale="log", xlim=(low, max(1.0, float(np.nanmax(shown, initial=1.0)))))
            two.set_xlabel("left of it in the last state (the last word: 1)")
            for ax in (one, two):
                ax.tick_params(left=False)
            for i, x in enumerate(left):
                told = f"{format_value(float(x), 2)}\u2003RNN {n - 1 - i}, attention 1"
                two.text(1.03, i, told, va="center", fontsize=9, color=INK, transform=two.get_yaxis_transform())
            two.set_title("left, and steps to get there", fontsize=10)
            for ax in (one, two):
                ax.grid(False)
                ax.spines[:].set_visible(False)
            one.set_ylim(n - 0.5, -0.5)
        return finish(fig, f"{self.title}: steps, and what they leave", self.describe(), None)

    def table(self) -> Table:
        """One row for each word that is read: steps, norm, what is left, and the state after it."""
        n, states = self.length, self.states()
        rows = [
            (word, n - 1 - i, 1, float(norm), float(left), *map(float, state))
            for i, (word, norm, left, state) in enumerate(
                zip(self.words[:n], self.norms(), self.left(), states, strict=True)
            )
        ]
        header = ("word", "RNN steps", "attention steps", "norm", "left", *(f"h[{j}]" for j in range(states.shape[1])))
        return table(rows, header, caption=self.title, digits=4)


def _whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and low <= value <= high


def _checked(
    where: str, x: Any, W_xh: Any, W_hh: Any, b: Any, n: int | None, most: int | None = MOST_FEATURES
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The four arrays as float64; ValueError if sizes do not fit or are larger than `most`."""
    x = numbers(where, "x", x, ("T", "D"), (n, None))
    W_xh = numbers(where, "W_xh", W_xh, ("D", "H"), (x.shape[1], None))
    size = W_xh.shape[1]
    W_hh = numbers(where, "W_hh", W_hh, ("H", "H"), (size, size))
    b = numbers(where, "b", b, ("H",), (size,))
    if most is not None and max(W_xh.shape) > most:
        raise ValueError(
            f"{where}: W_xh has shape {W_xh.shape}; D and H can be at most {most} here, make a smaller RNN"
        )
    return x, W_xh, W_hh, b


def _run(x: np.ndarray, W_xh: np.ndarray, W_hh: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States (T, H), and the norms (T,) of the Jacobians of the last of them with respect to each input."""
    import torch

    from course_utils.recurrent import rnn_step

    inputs = torch.tensor(x[:, None]).requires_grad_()
    weights = [torch.tensor(array) for array in (W_xh, W_hh, b)]
    h = torch.zeros(1, b.size, dtype=torch.float64)
    states = []
    for x_t in inputs:
        h = rnn_step(x_t, h, *weights)
        states.append(h)
    (jacobians,) = torch.autograd.grad(h[0], inputs, torch.eye(b.size, dtype=torch.float64), is_grads_batched=True)
    norms = jacobians[:, :, 0].permute(1, 0, 2).flatten(1).norm(dim=1)  # (H, T, D) to (T, H * D)
    return torch.cat(states).detach().numpy(), norms.numpy()
