"""A Transformer block step by step, and the stream as the sum of what the blocks added to it."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import traitlets as t

from course_utils.plots import Figure, Table, format_value, table
from course_utils.plots.figure import canvas, finish
from course_utils.plots.style import BLUE, INK, MUTED, VERMILLION, course_style

from .base import CourseWidget
from .packing import index, numbers, pack_exact, unpack, words_of
from .stream import PARTS, trace

MOST = 20_000  # numbers; more would make the notebook heavy
NORMS = {"pre": "pre-norm", "post": "post-norm"}
STEPS = {
    "pre": ("norm", "attention", "add", "norm", "MLP", "add"),
    "post": ("attention", "add", "norm", "MLP", "add", "norm"),
}


class BlockStepper(CourseWidget):
    """Norm, attention, add, norm, MLP, add: one step at a time, for a whole stack of blocks.

    pre, post: what happened in a stack of L pre-norm (post-norm) blocks, as `BlockStepper.trace` gives it: a mapping
    with start (T, d), the stream before the first block, and for each of the 2L sub-layers read (2L, T, d), what it
    read, added (2L, T, d), what it gave, and stream (2L, T, d), the stream after it. words: the T positions.
    gradients: {"pre": norms, "post": norms}, one norm for each block, of any depth.
    norm: "pre" or "post"; step: 0 to 6L - 1; position: whose vectors are shown.
    """

    module = "block_stepper"

    words = t.List(t.Unicode()).tag(sync=True)
    sizes = t.List(t.Int()).tag(sync=True)
    pre = t.Dict().tag(sync=True)
    post = t.Dict().tag(sync=True)
    gradients = t.Dict().tag(sync=True)
    norm = t.Enum(tuple(NORMS), "pre").tag(sync=True)
    step = t.Int(0).tag(sync=True)
    position = t.Int(0).tag(sync=True)

    trace = staticmethod(trace)

    def __init__(
        self,
        pre: Mapping[str, Any],
        post: Mapping[str, Any] | None = None,
        words: Iterable[str] | None = None,
        gradients: Mapping[str, Any] | None = None,
        *,
        norm: str = "pre",
        step: int = 0,
        position: int = 0,
        title: str = "A stack of Transformer blocks, step by step",
        predict: Any = None,
        prediction: str | None = None,
    ):
        where = "BlockStepper"
        traces = {"pre": _parts(where, "pre", pre, None)}
        layers, T, d = traces["pre"]["added"].shape
        if layers % 2:
            raise ValueError(f"{where}: pre added has {layers} sub-layers; a block has two, so the number must be even")
        _is_a_sum(where, traces["pre"])
        if post is not None:
            traces["post"] = _parts(where, "post", post, (layers, T, d))
        packed = {name: np.concatenate([_flat(x) for x in trace.values()]) for name, trace in traces.items()}
        if (size := sum(len(x) for x in packed.values())) > MOST:
            raise ValueError(
                f"{where}: pre and post hold {size:,} numbers, and at most {MOST:,} can be shown; "
                "take fewer positions, blocks or features"
            )
        words = [str(i) for i in range(T)] if words is None else words_of(where, "words", words)
        if len(words) != T:
            raise ValueError(f"{where}: words has {len(words)} words, but the stream has {T} positions")
        self._has = tuple(traces)
        default = (
            "In a pre-norm stack every sub-layer adds a vector to the stream. What is the stream after the last block?",
            [
                "what the last block gave; what came before is overwritten",
                "the sum of the embedding and everything that was added, exactly",
                "the sum, but scaled anew by every norm on the way",
            ],
        )
        super().__init__(
            title=title,
            predict=predict,
            prediction=prediction,
            default=default,
            words=words,
            sizes=[layers // 2, T, d],
            pre=pack_exact(packed["pre"]),
            post=pack_exact(packed.get("post", np.zeros(0))),
            gradients=_gradients(where, gradients),
            norm=norm,
            step=index(where, "step", step, 3 * layers, none=False),
            position=index(where, "position", position, T, none=False),
        )

    @t.validate("norm")
    def _a_norm(self, proposal: Any) -> str:
        if proposal["value"] not in self._has:
            raise t.TraitError('BlockStepper: norm is "post", but nothing was given for post')
        return proposal["value"]

    @t.validate("step", "position")
    def _an_index(self, proposal: Any) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        size = 6 * self.sizes[0] if name == "step" else self.sizes[1]
        if not 0 <= value < size:
            raise t.TraitError(f"BlockStepper: {name} is {value}; it must be 0 to {size - 1}")
        return value

    def arrays(self) -> dict[str, np.ndarray]:
        """start (d,), and read, added and stream (2L, d), of the chosen norm and position."""
        blocks, T, d = self.sizes
        flat = unpack(getattr(self, self.norm), (-1, T, d))[:, self.position]
        return {"start": flat[0]} | dict(zip(PARTS, flat[1:].reshape(3, 2 * blocks, d), strict=True))

    def sums(self) -> np.ndarray:
        """The start plus everything added up to each sub-layer (2L, d): in pre-norm, this is the stream."""
        arrays = self.arrays()
        return np.cumsum(np.concatenate([arrays["start"][None], arrays["added"]]), axis=0)[1:]

    def differences(self) -> np.ndarray:
        """The largest entry of sum minus stream, after each sub-layer (2L,)."""
        return np.abs(self.sums() - self.arrays()["stream"]).max(axis=-1)

    def along(self) -> np.ndarray:
        """The part of the start and of each added vector along the stream after the last block (1 + 2L,).

        These parts add up, as lengths do not: in pre-norm, to the length of that stream.
        """
        arrays = self.arrays()
        last = arrays["stream"][-1]
        return np.vstack([arrays["start"], arrays["added"]]) @ last / (np.linalg.norm(last) or 1.0)

    def _name(self, k: int) -> str:
        return f"block {k // 2}, {('attention', 'MLP')[k % 2]}"

    def describe(self) -> str:
        blocks, T, d = self.sizes
        arrays, step = self.arrays(), STEPS[self.norm][self.step % 6]
        added, stream = (np.linalg.norm(arrays[name], axis=-1) for name in ("added", "stream"))
        largest = int(added.argmax())
        parts = [
            f"Block stepper: {self.title.rstrip('.?!')}. {blocks} {NORMS[self.norm]} blocks, {T} positions, "
            f"{d} features.",
            f"Shown: block {self.step // 6}, step {self.step % 6 + 1} of 6, {step}, position "
            f"“{self.words[self.position]}”.",
            f"The stream begins with length {format_value(float(np.linalg.norm(arrays['start'])))} and ends with "
            f"{format_value(float(stream[-1]))}; the longest vector added is {format_value(float(added[largest]))} "
            f"({self._name(largest)}).",
            f"Start plus everything added, minus the stream: {_exact(self.differences()[-1])} in the largest entry.",
        ]
        for name, norms in self.gradients.items():
            parts.append(
                f"Gradient norm in {NORMS[name]}, {len(norms)} blocks: {format_value(norms[0])} in the first, "
                f"{format_value(norms[-1])} in the last."
            )
        return " ".join(parts)

    def static(self) -> Figure:
        arrays, parts = self.arrays(), self.along()
        names = ["start", *(self._name(k) for k in range(len(arrays["added"]))), "last stream"]
        begins = np.concatenate([[0.0], np.cumsum(parts)])[:-1]
        end = np.linalg.norm(arrays["stream"][-1])
        both = bool(self.gradients)
        fig, _ = canvas(9.6 if both else 6.0, max(0.26 * len(names) + 1.5, 3.0))
        fig.clear()
        with course_style():
            ax = fig.add_subplot(1, 1 + both, 1)
            ax.barh(names, [*parts, end], left=[*begins, 0.0], color=[BLUE] * len(parts) + [MUTED])
            ax.axvline(end, color=INK, linestyle="--", linewidth=1.2)
            ax.set_xlim(right=1.04 * max(end, np.cumsum(parts).max()))
            ax.invert_yaxis()
            ax.tick_params(labelsize=9)
            ax.set_title(f"{NORMS[self.norm]}, “{self.words[self.position]}”: what was added", fontsize=10.5)
            ax.set_xlabel(
                f"part along the last stream\n(sum minus stream: {_exact(self.differences()[-1])})", fontsize=9.5
            )
            if both:
                ax = fig.add_subplot(1, 2, 2)
                looks = {"pre": (BLUE, "o-"), "post": (VERMILLION, "s--")}
                for name, norms in self.gradients.items():
                    ax.plot(np.maximum(norms, 1e-300), looks[name][1], color=looks[name][0], label=NORMS[name])
                ax.set(yscale="log", xlabel="block")
                ax.set_title("Gradient norm, by block", fontsize=10.5)
                ax.legend(fontsize=9)
        return finish(fig, self.title, self.describe(), None)

    def table(self) -> Table:
        """One row for each vector that is added, then one for each block with a gradient."""
        arrays = self.arrays()
        length, parts = np.linalg.norm, self.along().tolist()
        rows = [("start", float(length(arrays["start"])), parts[0], float(length(arrays["start"])), 0.0, None, None)]
        for k, wrong in enumerate(self.differences()):
            added, stream = (float(length(arrays[name][k])) for name in ("added", "stream"))
            rows.append((self._name(k), added, parts[k + 1], stream, float(wrong), None, None))
        depth = max(map(len, self.gradients.values()), default=0)
        for b in range(depth):
            found = [norms[b] if b < len(norms) else None for norms in map(self.gradients.get, NORMS, ((), ()))]
            rows.append((f"block {b}", None, None, None, None, *found))
        header = ("vector or block", "length", "part along last stream", "stream after it", "sum minus stream")
        header += ("gradient, pre-norm", "gradient, post-norm")
        return table(rows, header, caption=f"{NORMS[self.norm]}, “{self.words[self.position]}”", digits=4)


def _exact(x: float) -> str:
    return "exactly 0" if x == 0 else "nothing but rounding (below 1e-12)" if x < 1e-12 else f"{x:.2g}"


def _flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1)


def _parts(where: str, name: str, given: Any, shape: tuple[int, ...] | None) -> dict[str, np.ndarray]:
    """start, read, added and stream, in this order, checked."""
    if not isinstance(given, Mapping) or not {"start", *PARTS} <= set(given):
        found = sorted(given) if isinstance(given, Mapping) else type(given).__name__
        raise ValueError(
            f"{where}: {name} must map start, read, added and stream to arrays, got {found}; "
            "BlockStepper.trace(blocks, x) makes one"
        )
    known = shape or (None, None, None)
    added = numbers(where, f"{name} added", given["added"], ("2L", "T", "d"), known)
    parts = {"start": numbers(where, f"{name} start", given["start"], ("T", "d"), added.shape[1:])}
    for part in PARTS:
        parts[part] = numbers(where, f"{name} {part}", given[part], ("2L", "T", "d"), added.shape)
    return parts


def _is_a_sum(where: str, parts: dict[str, np.ndarray]) -> None:
    """Raise ValueError unless each sub-layer only adds to the stream, to the precision of float32."""
    before = np.concatenate([parts["start"][None], parts["stream"][:-1]])
    wrong = np.abs(before + parts["added"] - parts["stream"]).max(axis=(1, 2))
    if (wrong > 1e-4 * max(1.0, np.abs(parts["stream"]).max())).any():
        k = int(wrong.argmax())
        raise ValueError(
            f"{where}: pre: the stream after sub-layer {k} is not the one before it plus what was added (it differs by "
            f"{wrong[k]:.3g}); is this a post-norm stack? It goes into post"
        )


def _gradients(where: str, given: Mapping[str, Any] | None) -> dict[str, list[float]]:
    given = given or {}
    if not isinstance(given, Mapping) or not set(given) <= set(NORMS):
        found = sorted(map(str, given)) if isinstance(given, Mapping) else type(given).__name__
        raise ValueError(f'{where}: gradients must map "pre" and "post" to one norm a block, got {found}')
    found = {}
    for name in (n for n in NORMS if n in given):
        norms = numbers(where, f"gradients[{name!r}]", given[name], ("blocks",))
        if norms.min() < 0:
            raise ValueError(f"{where}: gradients[{name!r}] holds {norms.min():.3g}; a norm is never negative")
        found[name] = norms.tolist()
    return found
