"""Tables as HTML and as aligned text, and how a value is written."""

import html
import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

from .style import HTML_STYLE
from .values import is_number, scalar


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
    plain = [[scalar(value) for value in row] for row in rows]
    columns = list(zip(*plain, strict=True)) or [()] * len(header)
    right = [bool(column) and all(v is None or is_number(v) for v in column) for column in columns]
    return Table(cells, header, caption, right, groups)


def format_value(value: Any, digits: int = 3) -> str:
    """One value as text: numbers with `digits` significant digits, None as a dash, the rest as it is."""
    value = scalar(value)
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}" if abs(value) >= 10_000 else str(int(value))
    return _format_float(float(value), digits) if is_number(value) else str(value)


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
