"""The text of a lesson as a list of cells whose lines know where they stand in the file.

jupytext reads the percent format (metadata, comments of markdown cells, magics). It does not say on which
line a cell begins, so the cell lines are located here and matched with its cells one by one.
"""

import re
from dataclasses import dataclass
from typing import Literal

from .errors import Problems

CELL_LINE = re.compile(r"\s*#\s*%%")
EXACT_CELL_LINE = re.compile(r"# %%(?: \[markdown\])?(?: [\w.\"].*)?\s*$")


@dataclass(frozen=True)
class Line:
    """One line of a cell: its number in the lesson (from 1) and its text in the notebook."""

    number: int
    text: str


@dataclass(frozen=True)
class Cell:
    """A cell as written: `line` is the number of its `# %%` line."""

    kind: Literal["code", "markdown"]
    line: int
    metadata: dict
    lines: tuple[Line, ...]


def source(lines: tuple[Line, ...] | list[Line]) -> str:
    """The text of some lines, without blank lines around it."""
    return "\n".join(line.text for line in lines).strip("\n")


def trimmed(lines: list[Line] | tuple[Line, ...]) -> tuple[Line, ...]:
    """The lines without blank ones at either end."""
    filled = [i for i, line in enumerate(lines) if line.text.strip()]
    return tuple(lines[filled[0] : filled[-1] + 1]) if filled else ()


def read_cells(text: str, problems: Problems) -> list[Cell]:
    """Split a lesson into cells. Adds to `problems` what is not the percent format as lessons use it.

    Comments before the first cell are notes to the maintainer and belong to no cell.
    """
    import jupytext

    rows = text.splitlines()
    starts = [i for i, row in enumerate(rows) if CELL_LINE.match(row)]
    if not starts:
        problems.add(1, 'no cell found; a cell begins with a line "# %%" or "# %% [markdown]"')
        return []
    for i, row in enumerate(rows[: starts[0]], 1):
        if row.strip() and not row.startswith("#"):
            problems.add(i, 'code before the first cell; put it below a "# %%" line')
    for i in starts:
        if not EXACT_CELL_LINE.match(rows[i]):
            problems.add(
                i + 1,
                f'cell line "{rows[i].strip()}": write "# %%" or "# %% [markdown]", then key="value" pairs',
            )

    body = "\n".join(rows[starts[0] :]) + "\n"
    read = jupytext.reads(body, fmt="py:percent").cells
    cells = []
    for cell, start, end in zip(read, starts, [*starts[1:], len(rows)], strict=False):
        texts = cell.source.split("\n")
        if len(texts) > max(end - start - 1, 1):
            problems.add(end + 1, 'a "# %%" line inside a string or an open bracket; a cell cannot begin there')
            return cells
        if cell.cell_type == "markdown":
            for i in range(start + 1, end):
                if rows[i].strip() and not rows[i].startswith("#"):
                    problems.add(i + 1, 'every line of a markdown cell begins with "# "')
        lines = trimmed([Line(start + 2 + i, line.rstrip()) for i, line in enumerate(texts)])
        cells.append(Cell(cell.cell_type, start + 1, dict(cell.metadata), lines))
    if len(read) != len(starts):
        problems.add(1, f'found {len(starts)} "# %%" lines but {len(read)} cells; is one inside a string?')
    return cells
