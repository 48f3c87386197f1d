"""Attention weights as a heatmap."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .descriptions import describe_heatmap
from .figure import Figure, canvas, finish
from .style import CARD, VERMILLION, course_style, text_colour
from .values import check_links, same, to_array


def heatmap(
    weights: Any,
    queries: Sequence[str],
    keys: Sequence[str],
    title: str,
    description: str | None = None,
    caption: str | None = None,
    *,
    gold: Sequence[int | None] | None = None,
    values: bool = False,
    query_label: str = "query (target word)",
    key_label: str = "key (source word)",
    value_label: str = "weight",
    vmax: float | None = None,
) -> Figure:
    """Attention weights (queries, keys): one row a query, one column a key, darker = more.

    gold: for each query the index of the key it should read, or None; drawn as small open squares.
    values: print the numbers. vmax: the value of the darkest colour; 1 for weights unless told otherwise, so
    that two maps can be compared. Scores below zero get a scale of their own, from dark blue to yellow.
    """
    array = to_array("weights", weights)
    if array.ndim != 2:
        shape = tuple(array.shape)
        raise ValueError(f"heatmap: weights must be (queries, keys), got shape {shape}; pick one sentence and head")
    n_q, n_k = array.shape
    same("heatmap", "weights has rows", n_q, "queries has labels", len(queries))
    same("heatmap", "weights has columns", n_k, "keys has labels", len(keys))
    if n_q == 0 or n_k == 0:
        raise ValueError(f"heatmap: weights has shape {(n_q, n_k)}; there is nothing to draw")
    queries, keys = [str(q) for q in queries], [str(k) for k in keys]
    links = None if gold is None else check_links("heatmap", "gold", gold, n_q, n_k)
    if description is None:
        description = describe_heatmap(array, queries, keys, title, links, value_label)
    if links and caption is None:
        caption = "Open squares: the gold alignment."

    finite = array[np.isfinite(array)]
    low, top = min(0.0, finite.min(initial=0.0)), finite.max(initial=0.0)
    if vmax is None:
        vmax = 1.0 if low == 0 and top <= 1 + 1e-6 else max(top, low + 1e-9)
    many = max(n_q, n_k) > 14
    pitch, size = (0.31, 9.5) if many else (0.62 if values else 0.46, 11)  # inches a cell, points a letter
    widest = max(len(k) for k in keys) * size * 0.0088
    beside = max(len(q) for q in queries) * size * 0.0085 + 1.9
    pitch = min(pitch, max(11.5 - beside, 3.0) / n_k)
    width = max(n_k * pitch + beside, 4.2)
    height = max(n_q * pitch + widest + 1.5, 2.6)
    fig, ax = canvas(width, height, "compressed")
    with course_style():
        image = ax.imshow(array, cmap="cividis" if low < 0 else "Blues", vmin=low, vmax=vmax, aspect="equal")
        ax.set_facecolor("#c9ccd1")  # what is not a number stays grey
        _cell_axes(ax, queries, keys, size, turned=0 if widest <= pitch else (90 if many else 50))
        ax.set(xlabel=key_label, ylabel=query_label)
        bar = fig.colorbar(image, ax=ax, shrink=min(1.0, 2.2 / (n_q * pitch)), aspect=14, pad=0.02)
        bar.outline.set_visible(False)
        bar.set_label(value_label)
        for query, key in enumerate(links or ()):
            if key is not None:  # a white rim keeps the square visible on a dark cell
                ax.plot(key, query, "s", ms=pitch * 34, mfc="none", mec="white", mew=3.6)
                ax.plot(key, query, "s", ms=pitch * 34, mfc="none", mec=VERMILLION, mew=1.7)
        for (query, key), value in np.ndenumerate(array) if values else ():
            if np.isfinite(value):
                ink = text_colour(image.cmap(image.norm(value)))
                ax.text(key, query, f"{value:.2f}", ha="center", va="center", color=ink, fontsize=size - 2)
    return finish(fig, title, description, caption)


def _cell_axes(ax: Any, queries: list[str], keys: list[str], size: float, turned: int) -> None:
    """Word labels on both axes, and thin light lines between the cells."""
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.set_xticks(range(len(keys)), keys, fontsize=size, rotation=turned)
    ax.set_yticks(range(len(queries)), queries, fontsize=size)
    if 0 < turned < 90:
        for label in ax.get_xticklabels():
            label.set(ha="right", va="center", rotation_mode="anchor")
    ax.set_xticks(np.arange(len(keys) - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(len(queries) - 1) + 0.5, minor=True)
    ax.grid(which="minor", color=CARD, linewidth=1.2)
    ax.tick_params(which="both", length=0, pad=5)
