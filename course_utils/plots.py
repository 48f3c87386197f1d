"""Static figures and tables, always with a description in words.

A figure is shown as a picture on a light card, so that it reads the same on a dark page; its description is
the alt text of the picture and its plain-text form. Nothing here touches pyplot: no figure stays open, no
setting changes. Colours are those of Okabe and Ito 2008, "Color universal design"; lines also differ by
marker and dash, and a heatmap only grows darker, so it survives being printed in grey.
"""

import base64
import html
import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

INK, MUTED, GRID, CARD = "#22262b", "#5a6068", "#e3e5e8", "#fcfcfb"
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)
COLOURS = (BLUE, VERMILLION, GREEN, INK, PURPLE, ORANGE, SKY)  # those that stand out most come first
MARKERS = "os^Dv*P"
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo")
DASHES = ("-", "--", "-.", (0, (5, 1, 1, 1)), (0, (3, 2)), (0, (1, 1)), (0, (8, 2)))
DPI = 150  # drawn finer than shown, for screens with small pixels
STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture everywhere
    "font.size": 11,
    "axes.titlesize": 12.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.edgecolor": "#a9adb3",
    "axes.labelcolor": INK,
    "axes.labelpad": 7,
    "axes.facecolor": CARD,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "figure.facecolor": CARD,
    "savefig.facecolor": CARD,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "lines.markersize": 6,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
}
HTML_STYLE = {
    "card": f"display:inline-block;box-sizing:border-box;max-width:100%;margin:0.5em 0;padding:12px;"
    f"background:{CARD};color:{INK};border:1px solid #d9dbde;border-radius:8px",
    "caption": f"margin:6px 4px 0;color:{INK};font-size:0.95em;max-width:46em",
    "heading": f"caption-side:top;text-align:left;font-weight:600;padding:2px 10px 8px;color:{INK}",
    "table": f"border-collapse:collapse;background:{CARD};color:{INK};margin:0;font-size:0.93em",
    "cell": f"padding:4px 8px;border-bottom:1px solid {GRID};background:{CARD};color:{INK}",
}


class Figure:
    """A finished picture with its description in words (`str(figure)`) and a caption."""

    def __init__(self, png: bytes, width: int, title: str, description: str, caption: str | None = None):
        self.png, self.width, self.title = png, width, title
        self.description, self.caption = description, caption

    def __repr__(self) -> str:
        return self.description

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.png).decode("ascii")
        caption = self.caption or self.title
        return (
            f'<figure aria-label="{html.escape(self.title)}" style="{HTML_STYLE["card"]}">'
            f'<img alt="{html.escape(self.description)}" width="{self.width}" '
            f'style="max-width:100%;height:auto;display:block" src="data:image/png;base64,{data}">'
            f'<figcaption style="{HTML_STYLE["caption"]}">{html.escape(caption)}</figcaption></figure>'
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": self.description}

    def save(self, path: str | Path) -> None:
        """Write the picture as a PNG file."""
        Path(path).write_bytes(self.png)


class Table:
    """Rows and columns, as an HTML table and as aligned text. Made by `table`."""

    def __init__(
        self,
        cells: list[list[str]],
        header: list[str],
        caption: str | None,
        right: list[bool],
        groups: Sequence[tuple[str, int]] | None = None,
    ):
        self.cells, self.header, self.caption, self.right, self.groups = cells, header, caption, right, groups

    def __repr__(self) -> str:
        lines = [self.header, *([text.replace("\n", " ") for text in row] for row in self.cells)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]
        text = [
            "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, self.right, strict=True))
            for line in lines
        ]
        text.insert(1, "  ".join("-" * w for w in widths))
        if self.groups:
            starts, first = [], 0
            for name, n in self.groups:
                span = sum(widths[first : first + n]) + 2 * (n - 1)
                starts.append(name.center(span) if name else " " * span)
                first += n
            text.insert(0, "  ".join(starts))
        if self.caption:
            text.insert(0, self.caption)
        return "\n".join(line.rstrip() for line in text)

    def _repr_html_(self) -> str:
        aligns = ["right" if right else "left" for right in self.right]
        label = html.escape(self.caption or "table")
        # Focusable, so that a wide table can be scrolled with the keyboard.
        style = f"{HTML_STYLE['card']};overflow-x:auto"
        out = [f'<div tabindex="0" role="group" aria-label="{label}" style="{style}">']
        out.append(f'<table style="{HTML_STYLE["table"]}">')
        if self.caption:
            out.append(f'<caption style="{HTML_STYLE["heading"]}">{html.escape(self.caption)}</caption>')
        out.append("<thead>")
        if self.groups:
            groups = [_cell("th", name, "center", "colgroup", n) for name, n in self.groups]
            out.append(f"<tr>{''.join(groups)}</tr>")
        heads = [_cell("th", text, align, "col") for text, align in zip(self.header, aligns, strict=True)]
        out.append(f"<tr>{''.join(heads)}</tr></thead><tbody>")
        for row in self.cells:
            cells = [_cell("td", text, align) for text, align in zip(row[1:], aligns[1:], strict=True)]
            out.append(f"<tr>{_cell('th', row[0], aligns[0], 'row')}{''.join(cells)}</tr>")
        return "".join([*out, "</tbody></table></div>"])


def _cell(tag: str, text: str, align: str, scope: str = "", span: int = 1) -> str:
    if not text:  # an empty header cell is a fault for a screen reader, an empty data cell is not
        tag, scope = "td", ""
    extra = (f' scope="{scope}"' if scope else "") + (f' colspan="{span}"' if span > 1 else "")
    style = f"{HTML_STYLE['cell']};text-align:{align};font-weight:{600 if tag == 'th' else 400}"
    style += ";white-space:pre" if "\n" in text else ""
    return f'<{tag}{extra} style="{style}">{html.escape(text)}</{tag}>'


def table(
    rows: Sequence[Sequence[Any]],
    header: Sequence[str],
    caption: str | None = None,
    digits: int = 3,
    groups: Sequence[tuple[str, int]] | None = None,
) -> Table:
    """A table. Numbers get `digits` significant digits; None becomes a dash.

    groups: a line above the header, as (text, number of columns) pairs that add up to all columns.
    """
    header = [str(h) for h in header]
    for i, row in enumerate(rows):
        if len(row) != len(header):
            raise ValueError(f"table: rows[{i}] has {len(row)} cells, but header has {len(header)}: {header}")
    if groups and sum(n for _, n in groups) != len(header):
        raise ValueError(f"table: groups span {sum(n for _, n in groups)} columns, but header has {len(header)}")
    cells = [[format_value(value, digits) for value in row] for row in rows]
    plain = [[_scalar(value) for value in row] for row in rows]
    columns = list(zip(*plain, strict=True)) or [()] * len(header)
    right = [bool(column) and all(v is None or _is_number(v) for v in column) for column in columns]
    return Table(cells, header, caption, right, groups)


def format_value(value: Any, digits: int = 3) -> str:
    """One value as text: numbers with `digits` significant digits, None as a dash, the rest as it is."""
    value = _scalar(value)
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}" if abs(value) >= 10_000 else str(int(value))
    return _format_float(float(value), digits) if _is_number(value) else str(value)


def _format_float(number: float, digits: int) -> str:
    if math.isnan(number):
        return "not a number"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    if number == 0:
        return "0"
    scientific = f"{number:.{max(digits - 1, 0)}e}"
    exponent = int(scientific.split("e")[1])  # of the rounded number: 9.996 becomes 10.0, not 10.00
    if not -4 <= exponent < 9:
        return scientific
    decimals = max(digits - 1 - exponent, 0)
    return f"{number:,.{decimals}f}" if exponent >= 4 else f"{number:.{decimals}f}"


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
    array = _array("weights", weights)
    if array.ndim != 2:
        shape = tuple(array.shape)
        raise ValueError(f"heatmap: weights must be (queries, keys), got shape {shape}; pick one sentence and head")
    n_q, n_k = array.shape
    _same("heatmap", "weights has rows", n_q, "queries has labels", len(queries))
    _same("heatmap", "weights has columns", n_k, "keys has labels", len(keys))
    if n_q == 0 or n_k == 0:
        raise ValueError(f"heatmap: weights has shape {(n_q, n_k)}; there is nothing to draw")
    queries, keys = [str(q) for q in queries], [str(k) for k in keys]
    links = None if gold is None else _links("heatmap", "gold", gold, n_q, n_k)
    if description is None:
        description = _describe_heatmap(array, queries, keys, title, links, value_label)
    if links and caption is None:
        caption = f"{title}. Open squares: the gold alignment."

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
    fig, ax = _canvas(width, height, "compressed")
    with _style():
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
    return _finish(fig, title, description, caption)


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
    xs = _array("x", x)
    data = {name: _array(f"ys[{name!r}]", y) for name, y in ys.items()}
    bands = {name: [_array(f"band[{name!r}]", edge) for edge in edges] for name, edges in (band or {}).items()}
    for name, values in data.items():
        for part in (values, *bands.get(name, ())):
            _same("lines", f"ys[{name!r}] has values", part.size, "x has", xs.size)
    if description is None:
        description = _describe_lines(xs, data, (xlabel, ylabel, title), logx, logy, hline)

    fig, ax = _canvas(7.2, 4.2)
    with _style():
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
    return _finish(fig, title, description, caption)


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
    data = {name: _array(f"values {name}".strip(), v) for name, v in series.items()}
    for name, numbers in data.items():
        _same("bars", f"values {name} has".replace("  ", " "), numbers.size, "labels has", len(labels))
    if low_high is not None and len(data) > 1:
        raise ValueError(f"bars: low_high needs one series, but values has {len(data)}")
    extremes = None if low_high is None else [_array("low_high", part) for part in low_high]
    for part in extremes or ():
        _same("bars", "low_high has", part.size, "labels has", len(labels))
    if description is None:
        parts = [f"Bars. {title}. {xlabel}:"]
        for name, numbers in data.items():
            items = "; ".join(
                f"{label} {format_value(float(v), digits)}" for label, v in zip(labels, numbers, strict=True)
            )
            parts.append(f"{name}: {items}." if name else f"{items}.")
        parts += _describe_level(vline)
        description = " ".join(parts)

    thickness = 0.8 / len(data)
    fig, ax = _canvas(7.2, max(1.3 + 0.34 * len(labels) * len(data) + 0.1 * len(labels), 2.2))
    with _style():
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
        ax.set_yticks(rows, [str(label) for label in labels])
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.margins(x=0.12)
        ax.set_xlabel(xlabel)
        _legend(fig, ax)
    return _finish(fig, title, description, caption)


def sentence_pair(
    source: Sequence[str],
    target: Sequence[str],
    alignment: Sequence[int | None],
    title: str,
    *,
    source_label: str = "source",
    target_label: str = "target",
    description: str | None = None,
    caption: str | None = None,
) -> Figure:
    """Two sentences and the gold alignment.

    alignment: for each target word the index of the source word it says, or None.
    Short sentences stand in two rows, long ones in two columns, so that no word has to be turned.
    """
    if not source or not target:
        raise ValueError("sentence_pair: source and target must have at least one word")
    links = _links("sentence_pair", "alignment", alignment, len(target), len(source)) or []
    if description is None:
        said = [
            f"{_name(target, t)} says {_name(source, s)}" if s is not None else f"{_name(target, t)} has no counterpart"
            for t, s in enumerate(links)
        ]
        order = [s for s in links if s is not None]
        crossing = sum(a > b for i, a in enumerate(order) for b in order[i + 1 :])
        description = (
            f"{title}. {source_label}: {' '.join(source)}. {target_label}: {' '.join(target)}. "
            f"Alignment: {'; '.join(said)}. Pairs of links that cross: {crossing}."
        )

    rows = _word_rows(source, target)
    if rows is not None:
        (top, bottom), span = rows
        fig, ax = _canvas(span + 1.6, 2.4)
        places = [[(x, 1.0) for x in top], [(x, 0.0) for x in bottom]]
        labels, sides, inset = [(-0.3, 1.0), (-0.3, 0.0)], ("center", "center"), (0.0, 0.13)
        limits = {"xlim": (-1.1, span + 0.1), "ylim": (-0.2, 1.2)}
    else:
        tallest, longest = max(len(source), len(target)), max(map(len, source)) + max(map(len, target))
        fig, ax = _canvas(3.0 + 0.1 * longest, 0.27 * tallest + 1.2)
        lower = [(tallest - len(words)) / 2 for words in (source, target)]
        places = [[(x, lower[x] + i) for i in range(len(words))] for x, words in enumerate((source, target))]
        labels, sides, inset = [(0, -1.5), (1, -1.5)], ("right", "left"), (0.06, 0.0)
        limits = {"xlim": (-0.75, 1.75), "ylim": (tallest - 0.5, -2)}
    with _style():
        ax.axis("off")
        ax.set(**limits)
        for words, at, label, label_at, side in zip(
            (source, target), places, (source_label, target_label), labels, sides, strict=True
        ):
            for word, spot in zip(words, at, strict=True):
                ax.text(*spot, word, ha=side, va="center", fontsize=12 if rows else 10.5)
            label_side = "right" if rows else side
            ax.text(*label_at, label, ha=label_side, va="center", color=MUTED, fontsize=10, style="italic")
        pairs = [(s, t) for t, s in enumerate(links) if s is not None]
        for i, (s, t) in enumerate(pairs):
            (x0, y0), (x1, y1) = places[0][s], places[1][t]
            dx, dy = inset
            ends = [x0 + dx, x1 - dx], [y0 - dy, y1 + dy]
            ax.plot(*ends, color=COLOURS[i % 4], linewidth=1.8, solid_capstyle="round")
    return _finish(fig, title, description, caption)


def _word_rows(source: Sequence[str], target: Sequence[str]) -> tuple[list[list[float]], float] | None:
    """The middle of each word and the width of the longer sentence, in inches; None if too long."""
    gap, rows = 0.28, []
    for words in (source, target):
        widths = np.array([max(len(word), 1) * 0.11 + 0.06 for word in words])
        starts = np.concatenate([[0.0], np.cumsum(widths + gap)])
        rows.append((starts[:-1] + widths / 2, starts[-1] - gap))
    span = max(width for _, width in rows)
    if span > 7.6:
        return None
    return [[float(x + (span - width) / 2) for x in middles] for middles, width in rows], float(span)


def text_colour(background: Sequence[float]) -> str:
    """Black or white, whichever stands out more on this (red, green, blue) in 0..1; always at least 4.5."""
    black, white = "#000000", "#ffffff"
    return max(black, white, key=lambda ink: contrast(_rgb(ink), background))


def contrast(a: Sequence[float], b: Sequence[float]) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2, "contrast ratio"); 4.5 is enough for text."""

    def luminance(colour: Sequence[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _rgb(colour: str) -> tuple[float, float, float]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))  # type: ignore[return-value]


def _style():
    import matplotlib as mpl

    return mpl.rc_context(STYLE)


def _canvas(width: float, height: float, layout: str = "constrained") -> tuple[Any, Any]:
    """A figure of this size in inches with one axes; pyplot knows nothing about it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with _style():
        fig = Canvas(figsize=(width, height), layout=layout)
        FigureCanvasAgg(fig)
        fig.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
        return fig, fig.add_subplot()


def _finish(fig: Any, title: str, description: str, caption: str | None) -> Figure:
    from PIL import Image

    drawn, small = io.BytesIO(), io.BytesIO()
    with _style():
        wrapped = textwrap.wrap(title, max(int(fig.get_figwidth() * 9), 20))
        fig.suptitle("\n".join(wrapped), x=0.02, ha="left", fontsize=12.5, fontweight="bold", color=INK)
        fig.savefig(drawn, format="png", dpi=DPI)
    picture = Image.open(drawn).convert("RGB")
    # 256 colours make the file three times smaller; this way of choosing them keeps every colour of a map.
    picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return Figure(small.getvalue(), round(picture.width * 96 / DPI), title, description, caption)


def _scalar(value: Any) -> Any:
    """The Python value of a tensor or array of one element; anything else as it is."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return value.item()
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _array(name: str, values: Any) -> np.ndarray:
    """Any tensor, array or list of numbers as float64; None becomes NaN."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().double()
    try:
        return np.asarray([_scalar(v) for v in values] if isinstance(values, (list, tuple)) else values, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold numbers in a regular shape, got {type(values).__name__}: {error}") from None


def _same(where: str, first: str, a: int, second: str, b: int) -> None:
    if a != b:
        raise ValueError(f"{where}: {first}: {a}, but {second}: {b}; they must be equal")


def _links(where: str, name: str, links: Sequence[int | None] | None, n: int, n_to: int) -> list[int | None] | None:
    if links is None:
        return None
    links = [_scalar(link) for link in links]
    _same(where, f"{name} has entries", len(links), "there are queries or target words", n)
    for i, link in enumerate(links):
        if link is not None and not (isinstance(link, Integral) and 0 <= link < n_to):
            raise ValueError(f"{where}: {name}[{i}] is {link!r}; it must be None or an index from 0 to {n_to - 1}")
    return links


def _name(words: Sequence[str], i: int) -> str:
    """A word in quotes, with its place (from 1) where the same word occurs more than once."""
    return f"'{words[i]}'" + (f" (word {i + 1})" if list(words).count(words[i]) > 1 else "")


def _describe_heatmap(
    array: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str],
    title: str,
    gold: list[int | None] | None,
    what: str,
) -> str:
    n_q, n_k = array.shape
    parts = [f"Heatmap. {title}. {n_q} queries in rows, {n_k} keys in columns."]
    filled = np.where(np.isfinite(array), array, -np.inf)
    best = filled.argmax(axis=1)
    top = filled.max(axis=1)
    if n_q <= 12:
        reads = [
            f"{_name(queries, q)} → {_name(keys, int(best[q]))} {top[q]:.2f}"
            if np.isfinite(top[q])
            else f"{_name(queries, q)} → no number"
            for q in range(n_q)
        ]
        parts.append(f"Largest {what} of each query: {'; '.join(reads)}.")
    elif np.isfinite(top).all():
        parts.append(f"Largest {what} of a query: from {top.min():.2f} to {top.max():.2f}.")
    if gold is not None and (judged := [q for q, key in enumerate(gold) if key is not None]):
        hits = sum(int(best[q]) == gold[q] for q in judged)
        parts.append(f"The largest is on the gold key for {hits} of {len(judged)} queries.")
    if missing := int((~np.isfinite(array)).sum()):
        parts.append(f"{missing} entries are not finite numbers.")
    return " ".join(parts)


def _describe_lines(
    xs: np.ndarray,
    data: Mapping[str, np.ndarray],
    texts: tuple[str, str, str],
    logx: bool,
    logy: bool,
    hline: float | tuple[float, str] | None,
) -> str:
    xlabel, ylabel, title = texts
    scale = {
        (True, True): ", both axes logarithmic",
        (True, False): ", x logarithmic",
        (False, True): ", y logarithmic",
    }
    parts = [f"Line plot. {title}. {ylabel} against {xlabel}{scale.get((logx, logy), '')}."]
    hidden = 0
    for name, values in data.items():
        ok = np.flatnonzero(np.isfinite(values))
        if not ok.size:
            parts.append(f"{name}: no values.")
            continue
        at = {
            "from": ok[0],
            "to": ok[-1],
            "lowest": ok[values[ok].argmin()],
            "highest": ok[values[ok].argmax()],
        }
        said = {
            word: f"{word} {format_value(float(values[i]))} at {xs[i]:.6g}"
            for word, i in at.items()
            if word in ("from", "to") or i not in (ok[0], ok[-1])
        }
        ends = f"{said.pop('from')} {said.pop('to')}"
        parts.append(f"{name}: {'; '.join([ends, *said.values()])}.")
        hidden += int(((values[ok] <= 0) & logy | (xs[ok] <= 0) & logx).sum())
    if hidden:
        parts.append(f"Not drawn, because a logarithmic axis has no zero: {hidden} of the values.")
    return " ".join(parts + _describe_level(hline))


def _describe_level(level: float | tuple[float, str] | None) -> list[str]:
    if level is None:
        return []
    value, name = level if isinstance(level, tuple) else (level, "")
    return [f"Dashed line{f', {name},' if name else ''} at {format_value(float(value))}."]
