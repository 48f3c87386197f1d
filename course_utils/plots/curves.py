"""Measured numbers: curves and bars."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .descriptions import describe_bars, describe_lines
from .figure import Figure, canvas, finish, wrap_label
from .style import CARD, COLOURS, DASHES, HATCHES, INK, MARKERS, MUTED, course_style
from .tables import format_value
from .values import same, to_array


def lines(
    x: Sequence[float],
    ys: Mapping[str, Sequence[float]],
    xlabel: str,
    ylabel: str,
    title: str,
    *,
    logx: bool = False,
    logy: bool = False,
    band: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None,
    hline: float | tuple[float, str] | None = None,
    ylim: tuple[float, float] | None = None,
    description: str | None = None,
    caption: str | None = None,
) -> Figure:
    """Curves over the same x. None or NaN leaves a gap, as does a value that a logarithmic axis cannot show.

    band: for a name of `ys`, the lowest and highest values around it. hline: a level, or (level, its name).
    """
    if not ys:
        raise ValueError("lines: ys is empty; it maps a name to one value for each x")
    if unknown := [name for name in band or {} if name not in ys]:
        raise ValueError(f"lines: band names {unknown}, but ys has {list(ys)}")
    xs = to_array("x", x)
    data = {name: to_array(f"ys[{name!r}]", y) for name, y in ys.items()}
    bands = {name: [to_array(f"band[{name!r}]", edge) for edge in edges] for name, edges in (band or {}).items()}
    for name, values in data.items():
        for part in (values, *bands.get(name, ())):
            same("lines", f"ys[{name!r}] has values", part.size, "x has", xs.size)
    if description is None:
        description = describe_lines(xs, data, (xlabel, ylabel, title), logx, logy, hline)

    fig, ax = canvas(7.2, 4.2)
    with course_style():
        drawable = (xs > 0) if logx else np.ones(xs.size, dtype=bool)
        for i, (name, values) in enumerate(data.items()):
            shown = np.where(drawable & ((values > 0) | (not logy)), values, np.nan)
            look = {"color": COLOURS[i % 7], "marker": MARKERS[i % 7], "linestyle": DASHES[i % 7]}
            rim = {"markeredgecolor": CARD, "markeredgewidth": 0.8, "markevery": max(1, xs.size // 12)}
            ax.plot(xs, shown, label=name, zorder=3, **look, **rim)
            if name in bands:
                ax.fill_between(xs, *bands[name], color=look["color"], alpha=0.16, linewidth=0)
        _level(ax.axhline, hline)
        ax.set(
            xlabel=xlabel,
            ylabel=ylabel,
            xscale="log" if logx else "linear",
            yscale="log" if logy else "linear",
        )
        numbers = np.concatenate(list(data.values()))
        numbers = numbers[np.isfinite(numbers)]
        if ylim is None and not logy and numbers.size and numbers.min() >= 0 and 0.5 <= numbers.max() <= 1:
            ylim = (-0.03, 1.05)  # shares are easier to compare on the whole scale
        if ylim is not None:
            ax.set_ylim(*ylim)
        if not logx and 1 < xs.size <= 16 and np.all(xs == np.round(xs)) and np.ptp(xs) < 2 * xs.size:
            ax.set_xticks(xs)
        _legend(fig, ax)
    return finish(fig, title, description, caption, fit_ylabel=True)


def bars(
    labels: Sequence[str],
    values: Sequence[float] | Mapping[str, Sequence[float]],
    xlabel: str,
    title: str,
    *,
    low_high: tuple[Sequence[float], Sequence[float]] | None = None,
    vline: float | tuple[float, str] | None = None,
    description: str | None = None,
    caption: str | None = None,
    digits: int = 3,
) -> Figure:
    """Horizontal bars, one for each label (or one for each label and series); each ends in its number.

    low_high: the lowest and highest value of each bar, for one series only.
    vline: a level, or (level, its name).
    """
    series = dict(values) if isinstance(values, Mapping) else {"": values}
    data = {name: to_array(f"values {name}".strip(), v) for name, v in series.items()}
    for name, numbers in data.items():
        same("bars", f"values {name} has".replace("  ", " "), numbers.size, "labels has", len(labels))
    if low_high is not None and len(data) > 1:
        raise ValueError(f"bars: low_high needs one series, but values has {len(data)}")
    extremes = None if low_high is None else [to_array("low_high", part) for part in low_high]
    for part in extremes or ():
        same("bars", "low_high has", part.size, "labels has", len(labels))
    if description is None:
        description = describe_bars(labels, data, (xlabel, title), vline, digits)

    thickness = 0.8 / len(data)
    beside = [wrap_label(str(label)) for label in labels]
    most = max((label.count("\n") + 1 for label in beside), default=1)
    row = max(0.34 * len(data) + 0.1, 0.19 * most + 0.12)  # inches a label
    fig, ax = canvas(7.2, max(1.3 + row * len(labels), 2.2))
    with course_style():
        rows = np.arange(len(labels))
        for i, (name, numbers) in enumerate(data.items()):
            at = rows + (i - (len(data) - 1) / 2) * thickness
            look = {
                "color": COLOURS[i % 7],
                "hatch": HATCHES[i % 7],
                "edgecolor": CARD,
                "label": name or None,
            }
            ax.barh(at, np.nan_to_num(numbers), height=thickness * 0.86, **look)
            if extremes:
                ax.hlines(at, *extremes, color=INK, linewidth=1.6)
                ax.plot(extremes, [at, at], "|", color=INK, ms=8, mew=1.6)
            ends = np.nan_to_num(np.fmax(numbers, extremes[1]) if extremes else numbers)
            for y, value, end in zip(at, numbers, ends, strict=True):
                where = {"xytext": (6, 0), "textcoords": "offset points", "va": "center", "fontsize": 10}
                ax.annotate(format_value(float(value), digits), (max(float(end), 0.0), y), **where)
        _level(ax.axvline, vline)
        ax.set_yticks(rows, beside)
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.margins(x=0.12)
        ax.set_xlabel(xlabel)
        _legend(fig, ax)
    return finish(fig, title, description, caption)


def _level(draw: Any, level: float | tuple[float, str] | None) -> None:
    """A dashed line at a level, named in the legend."""
    if level is not None:
        value, name = level if isinstance(level, tuple) else (level, None)
        draw(float(value), color=MUTED, linewidth=1.4, linestyle=(0, (2, 2)), label=name)


def _legend(fig: Any, ax: Any) -> None:
    """A legend below the axes, where it covers nothing; none for a single curve without a level."""
    handles, names = ax.get_legend_handles_labels()
    if len(names) > 1:
        columns = 3 if max(map(len, names)) <= 20 else 2
        fig.legend(handles, names, loc="outside lower left", ncols=columns, handlelength=3.2, columnspacing=1.8)
