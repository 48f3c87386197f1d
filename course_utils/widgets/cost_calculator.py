"""What attention costs: multiply-adds and memory for a length, where they cross, beside the reader's own timings."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import traitlets as t

from course_utils.plots import Figure, Table, format_value, table

from .base import CourseWidget

SHORTEST, LONGEST = 16, 131_072  # the axis of lengths
SIZES = {"d": 16_384, "heads": 128, "layers": 1024, "batch": 65_536}  # the largest of each


class Costs(NamedTuple):
    """Multiply-adds of one forward pass, all layers and the whole batch; bytes of one layer, 4 a number."""

    projections: int  # 4 T d²: W_Q, W_K, W_V, W_O
    scores: int  # 2 T² d: scores and mixing; with a window, 2 T min(w, T) d
    mlp: int  # 8 T d²: two matrices, hidden layer four times as wide
    weights: int  # bytes: batch · heads · T² · 4; with a window, T min(w, T) in the place of T²
    qkv: int  # bytes: batch · 3 T d · 4


class CostCalculator(CourseWidget):
    """Sizes to choose, and what they cost.

    T: positions, 16 to 131,072. d: features; heads must divide it. layers, batch: how many. window: how many positions
    each one sees, itself included; None for all. mlp: count the feed-forward network as well. timings: pairs (T,
    seconds) that the reader measured with these sizes (and with mlp, if that is True), drawn on the same axes.
    show: "operations" or "memory", what is drawn.

    Counted are the multiply-adds of matrix products: four projections 4 T d², scores and mixing 2 T² d, the MLP
    8 T d². Softmax, norms and biases are left out. Memory is that of the weights alone, in float32; an
    implementation that keeps the scores as well takes twice as much, one that works in blocks next to nothing.
    """

    module = "cost_calculator"
    uses = ("picture", "slider")

    T = t.Int(512).tag(sync=True)
    d = t.Int(64).tag(sync=True)
    heads = t.Int(8).tag(sync=True)
    layers = t.Int(1).tag(sync=True)
    batch = t.Int(1).tag(sync=True)
    window = t.Int(0).tag(sync=True)
    mlp = t.Bool(False).tag(sync=True)
    show = t.Enum(("operations", "memory"), "operations").tag(sync=True)
    timings = t.List().tag(sync=True)
    measured = t.Dict().tag(sync=True)

    def __init__(
        self,
        T: int = 512,
        d: int = 64,
        heads: int = 8,
        layers: int = 1,
        batch: int = 1,
        window: int | None = None,
        *,
        mlp: bool = False,
        timings: Sequence[tuple[int, float]] = (),
        show: str = "operations",
        title: str = "What attention costs",
        predict: Any = None,
        prediction: str | None = None,
    ):
        where = "CostCalculator"
        sizes = {"T": T, "d": d, "heads": heads, "layers": layers, "batch": batch, "window": window or 0}
        for name, value in sizes.items():
            _whole(where, name, value)
        if heads > d or d % heads:
            raise ValueError(f"{where}: heads is {heads}, d is {d}; d must be a multiple of heads")
        if show not in ("operations", "memory"):
            raise ValueError(f'{where}: show is {show!r}; it must be "operations" or "memory"')
        sizes = {name: int(value) for name, value in sizes.items()}
        default = (
            "The sequence becomes twice as long. How much do the multiply-adds of scores and mixing grow, and how much "
            "does the memory of the attention weights?",
            ["both twofold", "multiply-adds fourfold, memory twofold", "both fourfold"],
        )
        super().__init__(
            title=title,
            predict=predict,
            prediction=prediction,
            default=default,
            **sizes,
            mlp=bool(mlp),
            show=show,
            timings=_pairs(where, timings),
            measured={**{name: sizes[name] for name in sizes if name != "T"}, "mlp": bool(mlp)},
        )

    @t.validate("T", "d", "heads", "layers", "batch", "window")
    def _a_size(self, proposal: Any) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        try:
            _whole("CostCalculator", name, value)
        except ValueError as error:
            raise t.TraitError(str(error)) from None
        d, heads = (value if name == "d" else self.d), (value if name == "heads" else self.heads)
        if name in ("d", "heads") and d % heads:
            raise t.TraitError(f"CostCalculator: heads is {heads}, d is {d}; d must be a multiple of heads")
        return value

    def costs(self, T: int | None = None) -> Costs:
        """What the chosen sizes cost, at the chosen length or another."""
        sizes = {name: getattr(self, name) for name in ("d", "heads", "layers", "batch", "window")}
        return _costs(self.T if T is None else T, **sizes)

    def crossing(self) -> float:
        """The length at which scores and mixing cost as much as the rest; infinite if a window keeps them below."""
        T = (6 if self.mlp else 2) * self.d
        return math.inf if 0 < self.window < T else float(T)

    def memory_crossing(self) -> float:
        """The length at which the weights take as much memory as queries, keys and values; infinite with a window."""
        T = 3 * self.d / self.heads
        return math.inf if 0 < self.window < T else T

    def rate(self) -> float:
        """Multiply-adds a second: the median over the timings; NaN without any."""
        return float(np.median([n / s for n, (_, s) in zip(self._counted(), self.timings, strict=True)] or [math.nan]))

    def powers(self) -> tuple[float, float] | None:
        """The powers of T with which the measured times and the count for them grow; None for a single length."""
        lengths = [T for T, _ in self.timings]
        if len(set(lengths)) < 2:
            return None
        x = np.log(lengths)
        time, count = (float(np.polyfit(x, np.log(y), 1)[0]) for y in ([s for _, s in self.timings], self._counted()))
        return time, count

    def _counted(self) -> list[int]:
        sizes = {name: value for name, value in self.measured.items() if name != "mlp"}
        return [_operations(_costs(T, **sizes), self.measured["mlp"]) for T, _ in self.timings]

    def describe(self) -> str:
        now, cross, memory = self.costs(), self.crossing(), self.memory_crossing()
        window = f"a window of {self.window:,}" if self.window else "no window"
        parts = [
            f"Cost calculator. T = {self.T:,}, d = {self.d:,}, heads {self.heads}, layers {self.layers:,}, batch "
            f"{self.batch:,}, {window}.",
            f"Multiply-adds of a forward pass: projections (4Td²) {now.projections:,}, MLP (8Td²) {now.mlp:,}"
            f"{'' if self.mlp else ', not counted below'}, scores and mixing ({self._formula()}) {now.scores:,}.",
        ]
        others = f"{'12Td² of projections and MLP' if self.mlp else '4Td² of the projections'}"
        parts.append(
            f"A window keeps scores and mixing below the {others} at every T."
            if math.isinf(cross)
            else f"Scores and mixing equal the {others} at T = {6 if self.mlp else 2}d = {cross:,.0f}."
        )
        parts.append(
            f"Memory of the weights in a layer: {_bytes(now.weights)}; queries, keys and values: {_bytes(now.qkv)}; "
            + ("with this window never equal." if math.isinf(memory) else f"equal at T = 3d/h = {memory:,.0f}.")
        )
        if self.timings:
            told = ", ".join(f"T = {T:,} {format_value(s, 3)} s" for T, s in self.timings)
            parts.append(f"Timings: {told}; {format_value(self.rate(), 3)} multiply-adds a second in the median.")
            if powers := self.powers():
                parts.append(f"The times grow like T to the {powers[0]:.2f}, the count like T to the {powers[1]:.2f}.")
        return " ".join(parts)

    def _formula(self) -> str:
        return "2T·min(w, T)·d" if self.window else "2T²d"

    def static(self) -> Figure:
        from course_utils.plots.figure import canvas, finish
        from course_utils.plots.style import BLUE, CARD, INK, MUTED, VERMILLION, course_style

        Ts = [2**i for i in range(4, 18)]
        costs = [self.costs(T) for T in Ts]
        fig, ax = canvas(7.2, 4.2)
        with course_style():
            if self.show == "operations":
                name = "projections and MLP, 12Td²" if self.mlp else "projections, 4Td²"
                ax.plot(Ts, [c.projections + self.mlp * c.mlp for c in costs], "--", color=BLUE, label=name)
                ax.plot(Ts, [c.scores for c in costs], color=VERMILLION, label=f"scores and mixing, {self._formula()}")
                if self.timings:
                    points = np.array(self.timings).T
                    label = "your timings (right: seconds)"
                    ax.plot(points[0], points[1] * self.rate(), "-D", color=INK, markerfacecolor="white", label=label)
                    rate = self.rate()
                    side = ax.secondary_yaxis("right", functions=(lambda y: y / rate, lambda s: s * rate))
                    side.set_ylabel("seconds")
            else:
                ax.plot(Ts, [c.qkv for c in costs], "--", color=BLUE, label="queries, keys, values")
                ax.plot(Ts, [c.weights for c in costs], color=VERMILLION, label="weights")
            cross = self.crossing() if self.show == "operations" else self.memory_crossing()
            ax.axvline(self.T, color=MUTED, linestyle=":", linewidth=1.2)
            ax.set(xscale="log", yscale="log", xlabel="length T", xlim=(Ts[0], Ts[-1]))
            ax.set_ylabel("multiply-adds" if self.show == "operations" else "bytes of one layer")
            if Ts[0] <= cross <= Ts[-1]:
                ax.axvline(cross, color=INK, linewidth=1)
                low = ax.get_ylim()[0]
                ax.text(cross, low * 2, f" equal at T = {cross:,.0f}", va="bottom", fontsize=10, color=INK)
            ax.set_xticks(Ts[::2], [f"{T:,}" for T in Ts[::2]], fontsize=9)
            ax.minorticks_off()
            ax.legend(loc="upper left", fontsize=9.5, frameon=True, facecolor=CARD, framealpha=1, edgecolor="none")
        return finish(fig, self.title, self.describe(), None)

    def table(self) -> Table:
        """One row for each power of two, the chosen length, and every length that was timed."""
        rows = []
        for T in sorted({*(2**i for i in range(4, 18)), self.T, *(T for T, _ in self.timings)}):
            c, took = self.costs(T), [format_value(s, 4) for length, s in self.timings if length == T]
            rows.append((T, c.projections, c.mlp, c.scores, c.qkv, c.weights, ", ".join(took) or None))
        header = ("T", "projections", "MLP", "scores and mixing", "Q, K, V (bytes)", "weights (bytes)", "seconds")
        return table(rows, header, caption=self.title)


def _costs(T: int, d: int, heads: int, layers: int, batch: int, window: int) -> Costs:
    passes, met = layers * batch, T * (min(window, T) if window else T)
    return Costs(
        passes * 4 * T * d**2,
        passes * 2 * met * d,
        passes * 8 * T * d**2,
        batch * heads * met * 4,
        batch * 3 * T * d * 4,
    )


def _operations(costs: Costs, mlp: bool) -> int:
    return costs.projections + costs.scores + mlp * costs.mlp


def _bytes(count: int) -> str:
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
    power = min(int(math.log2(count)) // 10, len(units) - 1)
    return f"{format_value(count / 1024**power, 3)} {units[power]}"


def _whole(where: str, name: str, value: Any) -> None:
    low, high = (SHORTEST, LONGEST) if name == "T" else (1, SIZES.get(name, LONGEST))
    low = 0 if name == "window" else low
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
        none = " (0 or None: no window)" if name == "window" else ""
        raise ValueError(f"{where}: {name} is {value!r}; it must be a whole number from {low} to {high:,}{none}")


def _pairs(where: str, timings: Any) -> list[list[float]]:
    """Timings as [[T, seconds], …], in the order of T."""
    pairs = []
    for i, pair in enumerate(timings):
        try:
            T, seconds = pair
            T, seconds = getattr(T, "item", lambda T=T: T)(), float(seconds)
        except (TypeError, ValueError):
            raise ValueError(f"{where}: timings[{i}] is {pair!r}; it must be a pair (T, seconds)") from None
        if not isinstance(T, int) or not SHORTEST <= T <= LONGEST or not 0 < seconds < math.inf:
            raise ValueError(
                f"{where}: timings[{i}] is {pair!r}; it must be (T, seconds) with T from {SHORTEST} to {LONGEST:,} "
                "and seconds above 0"
            )
        pairs.append([T, seconds])
    return sorted(pairs)
