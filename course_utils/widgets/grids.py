"""Still twins of numbers that are no weights: small matrices side by side, each with its own names and range."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_utils.plots.figure import Figure, canvas, finish
from course_utils.plots.style import CARD, INK, course_style, text_colour

CELL, LETTER, ABOVE = 0.62, 0.095, 0.85  # inches: width of a cell, of a letter, room for the titles
SQUEEZE = 0.75  # height of a cell by its width


@dataclass
class Grid:
    """A matrix under a name. low, high: the ends of its colours; hidden: True where a mask hides."""

    name: str
    values: np.ndarray
    rows: Sequence[str]
    columns: Sequence[str]
    low: float
    high: float
    hidden: np.ndarray | None = None


def grids(panels: Sequence[Grid], title: str, description: str) -> Figure:
    """Matrices with a number in every cell, side by side, as one figure."""
    # Placed in inches: a layout that looks for room would draw the cells of each matrix in another size.
    beside = [max(map(len, panel.rows)) * LETTER + 0.2 for panel in panels]
    across = [
        left + max(len(panel.columns) * CELL, len(panel.name) * LETTER + 0.1)
        for left, panel in zip(beside, panels, strict=True)
    ]
    longest = max(len(column) for panel in panels for column in panel.columns)
    turned = longest > 6
    rows = max(len(panel.rows) for panel in panels)
    width, below = max(sum(across) + 0.3, 4.2), 0.35 + turned * longest * LETTER * 0.8
    height = rows * CELL * SQUEEZE + below + ABOVE
    fig, _ = canvas(width, height)
    fig.clear()
    fig.set_layout_engine("none")
    at = 0.1
    with course_style():
        for left, space, panel in zip(beside, across, panels, strict=True):
            n, m = panel.values.shape
            size = m * CELL / width, n * CELL * SQUEEZE / height
            place = (at + left) / width, 1 - ABOVE / height - size[1]
            _draw(fig.add_axes((*place, *size)), panel, turned)
            at += space
    return finish(fig, title, description, None)


def _draw(ax: Any, panel: Grid, turned: bool) -> None:
    from matplotlib.patches import Rectangle

    n, m = panel.values.shape
    hidden = np.zeros((n, m), dtype=bool) if panel.hidden is None else panel.hidden
    high = panel.high if panel.high > panel.low else panel.low + 1
    shown = np.where(hidden, np.nan, panel.values)
    image = ax.imshow(shown, cmap="Blues", vmin=panel.low, vmax=high, aspect="auto")
    ax.set_facecolor(CARD)
    for i, j in np.argwhere(hidden):
        look = {"hatch": "////", "facecolor": "#d3d7dc", "edgecolor": "#767d86", "linewidth": 0}
        ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **look))
    for (i, j), value in np.ndenumerate(panel.values):
        if not hidden[i, j]:
            ink = text_colour(image.cmap(image.norm(value))) if np.isfinite(value) else INK
            ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=9.5, color=ink)
    ax.set_yticks(range(n), panel.rows, fontsize=9.5)
    ax.set_xticks(range(m), panel.columns, fontsize=9.5, rotation=90 if turned else 0)
    ax.set_title(panel.name, fontsize=10.5)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.set_xticks(np.arange(m - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(n - 1) + 0.5, minor=True)
    ax.grid(which="minor", color=CARD, linewidth=2)
    ax.tick_params(which="minor", length=0)
