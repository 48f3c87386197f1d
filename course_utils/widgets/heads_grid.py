"""All heads of a model at once: how they differ, one row in each of them, and what the loss says without one."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import traitlets as t

from course_utils.plots import Figure, Table, format_value, table
from course_utils.plots.figure import canvas, finish
from course_utils.plots.style import MUTED, VERMILLION, course_style
from course_utils.plots.values import to_array

from .base import CourseWidget
from .layered import check_hidden, layered_weights
from .packing import index, numbers, pack, pack_exact, spread, truths, unpack, words_of

MANY = 32  # keys; among more each weight is small, and the colour shows its square root, as in the module
ORDERS = ("place", "loss", "spread")


class HeadsGrid(CourseWidget):
    """Layers x heads of small matrices, and what each head is worth.

    weights: (layers, heads, Tq, Tk), a list with (heads, Tq, Tk) for each layer, or (heads, Tq, Tk) for one layer.
    queries, keys: the words; keys are the queries unless given. losses: (layers, heads), or (heads,) for one layer:
    the loss that was measured with this head taken out; loss: the one with all heads. They come together; without
    them only the weights are shown. mask: (Tq, Tk), True = may attend. query: the row that is marked in every head.
    ablated: (layer, head) of the head taken out, or None. order: heads by "place", by what the "loss" rises without
    them, or by their "spread" (e to the power of the entropy in nats, of a typical query).
    """

    module = "heads_grid"

    query_words = t.List(t.Unicode()).tag(sync=True)
    key_words = t.List(t.Unicode()).tag(sync=True)
    weights = t.Dict().tag(sync=True)
    hidden = t.Dict().tag(sync=True)
    losses = t.Dict().tag(sync=True)
    loss = t.Float(None, allow_none=True).tag(sync=True)
    grid = t.List(t.Int()).tag(sync=True)
    query = t.Int(0).tag(sync=True)
    ablated = t.List(t.Int()).tag(sync=True)
    order = t.Enum(ORDERS, "place").tag(sync=True)

    def __init__(
        self,
        weights: Any,
        queries: Iterable[str],
        keys: Iterable[str] | None = None,
        losses: Any = None,
        loss: float | None = None,
        mask: Any = None,
        *,
        query: int = 0,
        ablated: tuple[int, int] | None = None,
        order: str = "place",
        title: str = "What are the heads for?",
        predict: Any = None,
        prediction: str | None = None,
    ):
        where = "HeadsGrid"
        queries = words_of(where, "queries", queries)
        keys = queries if keys is None else words_of(where, "keys", keys)
        n, m = len(queries), len(keys)
        if getattr(weights, "ndim", None) == 3:
            weights = weights[None]
        array = layered_weights(where, weights, ("layers", "heads", "Tq", "Tk"), (None, None, n, m))
        layers, heads = array.shape[:2]
        visible = np.ones((n, m), bool) if mask is None else truths(where, "mask", mask, ("Tq", "Tk"), (n, m))
        check_hidden(where, array, visible)
        losses = _losses(where, losses, loss, layers, heads)
        if order == "loss" and not losses.size:
            raise ValueError(f'{where}: order is "loss", but no losses were given; choose "place" or "spread"')
        default = (
            "One head is taken out at a time. What happens to the loss?",
            [
                "it rises by about the same, whichever head",
                "it rises much for some heads, and hardly for others",
                "it hardly rises for any: the other heads step in",
            ],
        )
        if not losses.size:
            default = (
                "Over how many keys does a typical query spread its weight, head by head?",
                ["about as many in every head", "few in some heads, many in others"],
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
            losses=pack_exact(losses),
            loss=float(loss) if losses.size else None,
            grid=[layers, heads],
            query=index(where, "query", query, n, none=False),
            ablated=[] if ablated is None else list(ablated),
            order=order,
        )

    @t.validate("query")
    def _a_query(self, proposal: Any) -> int:
        if not 0 <= proposal["value"] < len(self.query_words):
            last = len(self.query_words) - 1
            raise t.TraitError(f"HeadsGrid: query is {proposal['value']}; it must be 0 to {last}")
        return proposal["value"]

    @t.validate("ablated")
    def _a_head(self, proposal: Any) -> list[int]:
        value, (layers, heads) = proposal["value"], self.grid
        fits = len(value) == 2 and 0 <= value[0] < layers and 0 <= value[1] < heads
        if value and not (fits and self.loss is not None):
            way = f"[layer, head] with layer 0 to {layers - 1} and head 0 to {heads - 1}, or [] for none"
            if self.loss is None:
                way = "[], as no losses were given"
            raise t.TraitError(f"HeadsGrid: ablated is {value}; it must be {way}")
        return value

    @t.validate("order")
    def _an_order(self, proposal: Any) -> str:
        if proposal["value"] == "loss" and self.loss is None:
            raise t.TraitError('HeadsGrid: order is "loss", but no losses were given; choose "place" or "spread"')
        return proposal["value"]

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights (layers, heads, Tq, Tk), to 8e-6 as in the browser, and which cells are hidden (Tq, Tk)."""
        n, m = len(self.query_words), len(self.key_words)
        return unpack(self.weights, (*self.grid, n, m)), unpack(self.hidden, (n, m)) > 0

    def changes(self) -> np.ndarray | None:
        """By how much the loss rises without each head (layers, heads); None if no losses were given."""
        return None if self.loss is None else unpack(self.losses, self.grid) - self.loss

    def spreads(self) -> np.ndarray:
        """Over how many keys a typical query of each head spreads (layers, heads): the median over queries."""
        weights = self.arrays()[0]
        found = np.full(self.grid, np.nan)
        for at in np.ndindex(*self.grid):
            rows = [spread(row) for row in weights[at] if row.any()]
            found[at] = np.median(rows) if rows else np.nan
        return found

    def heads_in_order(self) -> list[tuple[int, int]]:
        """(layer, head) as they are shown: the largest rise of the loss first, or the sharpest head first."""
        places = [(int(i), int(j)) for i, j in np.ndindex(*self.grid)]
        if self.order == "place":
            return places
        values = self.spreads() if self.order == "spread" else -self.changes()
        return sorted(places, key=lambda at: np.inf if np.isnan(values[at]) else values[at])

    def describe(self) -> str:
        layers, heads = self.grid
        parts = [
            f"Heads grid: {self.title.rstrip('.?!')}. {layers} layer{'s' * (layers > 1)} of {heads} heads, "
            f"{len(self.query_words)} queries, {len(self.key_words)} keys."
        ]
        typical = self.spreads()
        parts.append(
            f"A typical query spreads over {format_value(float(np.nanmin(typical)), 2)} keys in {_most(typical, -1)} "
            f"and over {format_value(float(np.nanmax(typical)), 2)} in {_most(typical, 1)}."
            if np.isfinite(typical).any()
            else "No query attends to anything."
        )
        changes = self.changes()
        if changes is not None:
            parts.append(
                f"Loss with all heads: {format_value(self.loss, 4)}. Taking one out raises it most for "
                f"{_most(changes, 1)} ({changes.max():+.3g}) and least for {_most(changes, -1)} ({changes.min():+.3g})."
            )
        if self.ablated:
            change = changes[tuple(self.ablated)]
            parts.append(
                f"Taken out: layer {self.ablated[0]}, head {self.ablated[1]}; loss "
                f"{format_value(self.loss + change, 4)}, a change of {change:+.3g}."
            )
        parts.append(f"Marked in every head: query “{self.query_words[self.query]}”.")
        return " ".join(parts)

    def static(self) -> Figure:
        from matplotlib.patches import Rectangle

        weights, hidden = self.arrays()
        (layers, heads), changes, typical = self.grid, self.changes(), self.spreads()
        n, m = hidden.shape
        shade, note = (np.sqrt, " Colour: square root of the weight.") if m > MANY else (np.asarray, "")
        fig, _ = canvas(max(min(1.6 * heads, 11), 4.2), layers * (min(1.6, 11 / heads) * n / m + 0.3) + 0.7)
        fig.clear()
        with course_style():
            for place, at in enumerate(self.heads_in_order(), start=1):
                ax = fig.add_subplot(layers, heads, place)
                ax.imshow(np.where(hidden, np.nan, shade(weights[at])), cmap="Blues", vmin=0, vmax=1, aspect="equal")
                ax.set_facecolor("#d3d7dc")
                for i, j in np.argwhere(hidden) if hidden.size <= 400 else ():
                    ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, hatch="////", fill=False, edgecolor=MUTED, lw=0))
                ax.set_xticks([])
                ax.set_yticks([])
                ax.grid(False)
                ax.axhspan(self.query - 0.5, self.query + 0.5, fill=False, edgecolor=VERMILLION, linewidth=1.2)
                worth = f"{typical[at]:.1f} keys" if changes is None else f"loss {changes[at]:+.2f}"
                ax.set_title(f"L{at[0]} H{at[1]}: {worth}", fontsize=8.5, pad=3)
                if list(at) == self.ablated:
                    ax.plot([-0.5, m - 0.5], [-0.5, n - 0.5], color=VERMILLION)
                    ax.plot([-0.5, m - 0.5], [n - 0.5, -0.5], color=VERMILLION)
                ax.spines[:].set_visible(True)
                ax.spines[:].set_color(MUTED)
        caption = f"Marked: query “{self.query_words[self.query]}”. Rows are queries, columns keys.{note}"
        return finish(fig, self.title, self.describe(), caption)

    def table(self) -> Table:
        """One row a head, as they are ordered: its spread, the loss without it, the weights of the marked query."""
        weights, hidden = self.arrays()
        changes, typical = self.changes(), self.spreads()
        rows = []
        for at in self.heads_in_order():
            worth = (None, None) if changes is None else (float(self.loss + changes[at]), float(changes[at]))
            row = weights[at][self.query]
            read = ("hidden" if hidden[self.query, j] else float(x) for j, x in enumerate(row))
            rows.append((f"layer {at[0]}, head {at[1]}", float(typical[at]), *worth, *read))
        header = ("head", "spread, keys", "loss without", "change", *(f"key {word}" for word in self.key_words))
        return table(rows, header, caption=f"Heads, and what query “{self.query_words[self.query]}” reads", digits=4)


def _most(values: np.ndarray, sign: int) -> str:
    layer, head = np.unravel_index(np.nanargmax(sign * values), values.shape)
    return f"layer {layer}, head {head}"


def _losses(where: str, losses: Any, loss: Any, layers: int, heads: int) -> np.ndarray:
    """(layers, heads), or nothing."""
    if (losses is None) != (loss is None):
        raise ValueError(f"{where}: losses (one without each head) and loss (with all of them) come together")
    if losses is None:
        return np.zeros((0, heads))
    array = to_array(f"{where}: losses", losses)
    array = array[None] if array.ndim == 1 and layers == 1 else array
    array = numbers(where, "losses", array, ("layers", "heads"), (layers, heads))
    numbers(where, "loss", [float(loss)], ("1",))
    return array
