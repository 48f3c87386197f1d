"""Where two words stand: added sinusoids, learned vectors or rotations, and what a shift of both does to a score."""

from typing import Any

import numpy as np
import traitlets as t

from course_utils.plots import Figure, Table, format_value, table
from course_utils.plots.figure import canvas, finish
from course_utils.plots.style import BLUE, INK, MUTED, VERMILLION, course_style

from .base import CourseWidget
from .packing import index, numbers, pack_exact, unpack

KINDS = {"rope": "RoPE", "sinusoid": "added sinusoids", "learned": "added learned vectors"}
SHOWN = {"scores": "score", "positions": "likeness of the positions alone (cosine)"}
MOST = 64  # positions; smaller cells cannot be hit
D, SEED = 32, 0  # features and seed of what is made up


class Positions(CourseWidget):
    """The score of a query at position i with a key at position j, and of both moved by the same number of places.

    q, k: (d,), d even; made up unless given. T: the number of positions, up to 64. learned: (T, d), the table of a
    trained model, optional; then T and d are its own. kind: "rope", "sinusoid" or "learned". i, j: the two
    positions, 5 and 2 unless given; shift: by how much both move, 10 unless given, cut where one of them would leave.
    show: the matrix of "scores" of this q and k at all positions, or the likeness of the "positions" alone.
    """

    module = "positions"

    q = t.Dict().tag(sync=True)
    k = t.Dict().tag(sync=True)
    learned = t.Dict().tag(sync=True)
    size = t.Int().tag(sync=True)
    kind = t.Enum(tuple(KINDS), "rope").tag(sync=True)
    i = t.Int(0).tag(sync=True)
    j = t.Int(0).tag(sync=True)
    shift = t.Int(0).tag(sync=True)
    show = t.Enum(tuple(SHOWN), "scores").tag(sync=True)

    def __init__(
        self,
        q: Any = None,
        k: Any = None,
        learned: Any = None,
        *,
        T: int | None = None,
        kind: str = "rope",
        i: int | None = None,
        j: int | None = None,
        shift: int | None = None,
        show: str = "scores",
        title: str = "Does a score depend on where, or on how far?",
        predict: Any = None,
        prediction: str | None = None,
    ):
        where = "Positions"
        if (q is None) != (k is None):
            raise ValueError(f"{where}: q and k come together; give both or neither of them")
        rows = np.zeros((0, 0)) if learned is None else numbers(where, "learned", learned, ("T", "d"), (T, None))
        if q is None:
            d = rows.shape[1] or D
            q, k = np.random.default_rng(SEED).standard_normal((2, d))
        q = numbers(where, "q", q, ("d",), (rows.shape[1] or None,))
        k = numbers(where, "k", k, ("d",), q.shape)
        if len(q) % 2:
            raise ValueError(f"{where}: q has {len(q)} features; rotations turn pairs, so the number must be even")
        T = len(rows) or (32 if T is None else T)
        if isinstance(T, bool) or not isinstance(T, int) or not 2 <= T <= MOST:
            name = "learned has" if len(rows) else "T is"
            raise ValueError(
                f"{where}: {name} {T!r}; from 2 to {MOST} positions can be shown, take a part of the table"
            )
        if kind == "learned" and not rows.size:
            raise ValueError(f'{where}: kind is "learned", but learned, the table of positions, was not given')
        default = (
            "A query and a key both move by the same number of positions: their distance stays. What happens to their "
            "score?",
            [
                "it stays, with RoPE and with added positions",
                "with RoPE it stays; with added positions it changes",
                "it changes with both, as both words stand elsewhere",
            ],
        )
        super().__init__(
            title=title,
            predict=predict,
            prediction=prediction,
            default=default,
            q=pack_exact(q),
            k=pack_exact(k),
            learned=pack_exact(rows),
            size=T,
            kind=kind,
            i=index(where, "i", min(5, T - 1) if i is None else i, T, none=False),
            j=index(where, "j", min(2, T - 1) if j is None else j, T, none=False),
            shift=min(10, T - 1) if shift is None else shift,
            show=show,
        )

    @t.validate("kind")
    def _a_kind(self, proposal: Any) -> str:
        if proposal["value"] == "learned" and not self.learned["bytes"]:
            raise t.TraitError('Positions: kind is "learned", but learned, the table of positions, was not given')
        return proposal["value"]

    @t.validate("i", "j", "shift")
    def _a_position(self, proposal: Any) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        low = -self.size + 1 if name == "shift" else 0
        if not low <= value < self.size:
            raise t.TraitError(f"Positions: {name} is {value}; it must be {low} to {self.size - 1}")
        return value

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """q and k (d,)."""
        return unpack(self.q, (-1,)), unpack(self.k, (-1,))

    def kinds(self) -> list[str]:
        return [kind for kind in KINDS if kind != "learned" or self.learned["bytes"]]

    def added(self, kind: str) -> np.ndarray:
        """The vectors that are added (T, d); zeros for RoPE."""
        import torch

        from course_utils.positions import sinusoidal_positions

        d = len(self.arrays()[0])
        if kind == "learned":
            return unpack(self.learned, (self.size, d))
        if kind == "rope":
            return np.zeros((self.size, d))
        before = torch.get_default_dtype()
        try:
            torch.set_default_dtype(torch.float64)
            return sinusoidal_positions(self.size, d).numpy()
        finally:
            torch.set_default_dtype(before)

    def scores(self, kind: str | None = None) -> np.ndarray:
        """The score of the query at every position with the key at every position (T, T), not scaled."""
        kind = self.kind if kind is None else kind
        q, k = self.arrays()
        if kind != "rope":
            return (q + self.added(kind)) @ (k + self.added(kind)).T
        return _turned(q, self.size) @ _turned(k, self.size).T

    def likeness(self) -> np.ndarray:
        """The cosine of any two positions (T, T); for RoPE that of a vector of ones, turned to both."""
        d = len(self.arrays()[0])
        table = _turned(np.ones(d), self.size) if self.kind == "rope" else self.added(self.kind)
        length = np.linalg.norm(table, axis=1, keepdims=True)
        return (table / np.where(length > 0, length, 1)) @ (table / np.where(length > 0, length, 1)).T

    def moved(self) -> int:
        """The shift that is possible: both positions stay from 0 to T - 1."""
        low, high = sorted((self.i, self.j))
        return int(np.clip(self.shift, -low, self.size - 1 - high))

    def unevenness(self, kind: str | None = None) -> float:
        """By how much scores of the same distance differ at most, over all positions. RoPE: rounding only."""
        scores = self.scores(kind)
        return max(float(np.ptp(np.diagonal(scores, offset))) for offset in range(1 - self.size, self.size))

    def describe(self) -> str:
        scores, s = self.scores(), self.moved()
        one, two = float(scores[self.i, self.j]), float(scores[self.i + s, self.j + s])
        parts = [
            f"Positions: {self.title.rstrip('.?!')}. {self.size} positions, {len(self.arrays()[0])} features, "
            f"{KINDS[self.kind]}. Query at {self.i}, key at {self.j}: score {format_value(one, 5)}. "
            f"Both moved by {s}: {format_value(two, 5)}, a difference of {_tiny(two - one)}."
        ]
        for kind in self.kinds():
            parts.append(
                f"{KINDS[kind][0].upper()}{KINDS[kind][1:]}: scores of equal distance differ by "
                f"{_tiny(self.unevenness(kind), 'up to ')}."
            )
        return " ".join(parts)

    def static(self) -> Figure:
        matrix = self.scores() if self.show == "scores" else self.likeness()
        shifts, along = self._along()
        fig, _ = canvas(9.6, 4.2)
        fig.clear()
        with course_style():
            ax = fig.add_subplot(1, 2, 1)
            fig.colorbar(ax.imshow(matrix, cmap="cividis"), ax=ax, shrink=0.8)
            s = self.moved()
            for place, look in ((0, "o"), (s, "s")):
                for colour, width in (("#000000", 4.0), ("#ffffff", 1.8)):
                    ax.plot(self.j + place, self.i + place, look, ms=9, mfc="none", mec=colour, mew=width)
            ax.set(xlabel="position of the key", ylabel="position of the query")
            ax.set_title(f"{KINDS[self.kind]}: {SHOWN[self.show].split(' (')[0]}", fontsize=10.5)
            ax.grid(False)
            ax = fig.add_subplot(1, 2, 2)
            for (kind, line), dash in zip(along.items(), ("-.", ":", "--"), strict=False):
                look = {"color": BLUE} if kind == self.kind else {"color": MUTED, "linewidth": 0.9, "linestyle": dash}
                ax.plot(shifts, line, label=KINDS[kind], **look)
            ax.legend(fontsize=8.5)
            for place, look, colour in ((0, "o", INK), (s, "s", VERMILLION)):
                ax.plot(place, along[self.kind][list(shifts).index(place)], look, ms=9, color=colour)
            everything = np.concatenate(list(along.values()))
            margin = 0.08 * max(np.ptp(everything), 1e-9)
            ax.set_ylim(everything.min() - margin, everything.max() + margin)
            ax.set(xlabel="both moved by", ylabel="score")
            ax.set_title(f"distance {self.i - self.j} everywhere", fontsize=10.5)
        return finish(fig, self.title, self.describe(), None)

    def _along(self) -> tuple[range, dict[str, np.ndarray]]:
        """All possible shifts, and the score of the pair at each of them, for every kind."""
        low, high = sorted((self.i, self.j))
        offset = self.j - self.i
        return range(-low, self.size - high), {kind: np.diagonal(self.scores(kind), offset) for kind in self.kinds()}

    def table(self) -> Table:
        """One row for every place that the pair can move to: its score with each kind of position."""
        shifts, along = self._along()
        rows = [(s, self.i + s, self.j + s, *(float(x[n]) for x in along.values())) for n, s in enumerate(shifts)]
        header = ("both moved by", "query at", "key at", *(KINDS[kind] for kind in along))
        return table(rows, header, caption=f"Scores at distance {self.i - self.j}", digits=5)


def _tiny(x: float, before: str = "") -> str:
    """Differences of rounding alone are not the same on every machine, and these words must be."""
    return "nothing but rounding (below 1e-12)" if abs(x) < 1e-12 else f"{before}{x:.2g}"


def _turned(x: np.ndarray, T: int) -> np.ndarray:
    """The same vector at T positions (T, d), rotated."""
    import torch

    from course_utils.positions import apply_rope

    return apply_rope(torch.tensor(x).expand(T, -1)).numpy()
