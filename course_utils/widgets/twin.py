"""Still twins: matrices side by side, with hidden cells hatched as in the widgets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_utils.plots.figure import Figure, canvas, finish
from course_utils.plots.style import CARD, INK, MUTED, course_style, text_colour

LABELS = 24  # more words than this beside a matrix cannot be read


@dataclass
class Panel:
    """A matrix (queries, keys) under a name. hidden: True where a mask hides; beside: one text for each row."""

    name: str
    values: np.ndarray
    hidden: np.ndarray | None = None
    beside: Sequence[str] | None = None
    beside_title: str = ""


def matrices(
    panels: Sequence[Panel], queries: Sequence[str], keys: Sequence[str], title: str, description: str, numbers: bool
) -> Figure:
    """Matrices of weights from 0 to 1 over the same queries and keys, side by side, as one figure.

    numbers: write the values into the cells (up to 12 keys).
    """
    n, m = len(queries), len(keys)
    pitch = min(0.5 if numbers else 0.36, 4.6 / max(n, m)) if max(n, m) > 12 else 0.5
    left = min(max(map(len, queries)), 12) * 0.09 + 0.3
    extra = 1.5 if panels[0].beside else 0.2
    width = max(len(panels) * (m * pitch + left + extra), 4.2)
    fig, _ = canvas(width, n * pitch + 1.3 + (min(max(map(len, keys)), 12) * 0.09 if m > 6 else 0), "compressed")
    fig.clear()
    with course_style():
        for place, panel in enumerate(panels, start=1):
            ax = fig.add_subplot(1, len(panels), place)
            _draw(ax, panel, queries, keys, numbers and m <= 12)
    return finish(fig, title, description, None)


def _draw(ax: Any, panel: Panel, queries: Sequence[str], keys: Sequence[str], numbers: bool) -> None:
    n, m = len(queries), len(keys)
    hidden = np.zeros((n, m), dtype=bool) if panel.hidden is None else panel.hidden
    image = ax.imshow(np.where(hidden, np.nan, panel.values), cmap="Blues", vmin=0, vmax=1, aspect="equal")
    ax.set_facecolor("#ffffff")
    for i, j in np.argwhere(hidden) if hidden.size <= 2500 else ():
        ax.add_patch(_cell(i, j, hatch="////", facecolor="#d3d7dc", edgecolor="#767d86", linewidth=0))
    if hidden.size > 2500:  # thousands of patches would take seconds
        ax.contourf(hidden.astype(float), levels=[0.5, 1.5], colors=["#d3d7dc"], hatches=["////"])
    for (i, j), value in np.ndenumerate(panel.values) if numbers else ():
        if not hidden[i, j]:
            shown = "NaN" if np.isnan(value) else f"{value:.2f}"
            ink = INK if np.isnan(value) else text_colour(image.cmap(image.norm(value)))
            ax.text(j, i, shown, ha="center", va="center", fontsize=8.5, color=ink)
    for i, text in enumerate(panel.beside or ()):
        ax.text(m - 0.3, i, text, ha="left", va="center", fontsize=9.5)
    if panel.beside_title:
        ax.text(m - 0.3, -0.75, panel.beside_title, ha="left", va="center", fontsize=9, color=MUTED)
    rows, columns = (range(0, size, -(-size // LABELS)) for size in (n, m))
    ax.set_yticks(rows, [_short(queries[i]) for i in rows], fontsize=9.5)
    ax.set_xticks(columns, [_short(keys[j]) for j in columns], fontsize=9.5, rotation=90 if m > 6 else 0)
    ax.set_xlabel("key")
    ax.set_ylabel("query")
    if panel.name:
        ax.set_title(panel.name)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if max(n, m) <= 32:
        ax.set_xticks(np.arange(m - 1) + 0.5, minor=True)
        ax.set_yticks(np.arange(n - 1) + 0.5, minor=True)
        ax.grid(which="minor", color=CARD, linewidth=1)
        ax.tick_params(which="minor", length=0)


def _cell(i: int, j: int, **look: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((j - 0.5, i - 0.5), 1, 1, **look)


def _short(word: str) -> str:
    return word if len(word) <= 12 else word[:11] + "…"
