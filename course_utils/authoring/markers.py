"""The markers of a lesson: metadata on the cell line, BEGIN/END comments around what students do not see.

Everything here is strict on purpose. nbgrader looks for "BEGIN SOLUTION" and passes over "BEGIN SOLUTON" in
silence, and then the solution is handed out.
"""

import difflib
import re
from dataclasses import dataclass

from .cells import Cell, Line
from .errors import Problems

# Where each pair of BEGIN/END comments belongs.
BLOCKS = {"SOLUTION": "exercise", "HIDDEN TESTS": "exercise", "ANSWER": "question", "GUIDE": "written"}
MARKERS = {f"### {edge} {block}": (edge, block) for block in BLOCKS for edge in ("BEGIN", "END")}

# The kind of cell that each role is written in.
ROLES = {
    "exercise": "code",
    "hints": "markdown",
    "question": "markdown",
    "written": "markdown",
    "questions": "code",
}
EXERCISE_KEYS = ("minutes", "difficulty", "optional")
KEYS = (*ROLES, *EXERCISE_KEYS, "tags")

EDGE_WORDS = ("BEGIN", "END")
BLOCK_WORDS = ("SOLUTION", "HIDDEN", "ANSWER", "GUIDE")
IN_CAPITALS = re.compile(rf"\b({'|'.join(EDGE_WORDS)})[\s_-]*({'|'.join(BLOCK_WORDS)})")
COMMENT = re.compile(r"(#+)(.*)")


@dataclass(frozen=True)
class Block:
    """A BEGIN/END pair: the marker lines are `first` and `last` (indices into the lines of the cell)."""

    name: str
    first: int
    last: int


def _close(word: str, known: tuple[str, ...]) -> bool:
    return bool(difflib.get_close_matches(word, known, n=1, cutoff=0.7))


def meant_marker(text: str, kind: str) -> str | None:
    """The marker that a line seems to be meant as without being exactly it, or None for an ordinary line."""
    if text.strip() in MARKERS:
        return None
    found = COMMENT.match(text.strip()) if kind == "markdown" else COMMENT.search(text)
    hashes, comment = found.groups() if found else ("", text if kind == "markdown" else "")
    words = re.sub(r"[^A-Za-z]+", " ", comment).split()
    upper = [word.upper() for word in words]
    named = set(upper) & {*EDGE_WORDS, *BLOCK_WORDS}
    alike = (
        # nbgrader finds its markers anywhere, in a string as well
        bool(IN_CAPITALS.search(text))
        # "## BEGN SOLUTON": a short comment of two misspelt words
        or (bool(found) and 2 <= len(upper) <= 3 and _close(upper[0], EDGE_WORDS) and _close(upper[1], BLOCK_WORDS))
        # "### SOLUTION": in code nothing else is written with three hashes; in markdown that is a heading,
        # and only one that begins with such a word, or is all capitals, can be a marker gone wrong
        or (len(hashes) >= 3 and bool(named) and (kind == "code" or upper[0] in named or words == upper))
    )
    if not alike:
        return None
    plain = {marker.removeprefix("### "): marker for marker in MARKERS}
    return plain[difflib.get_close_matches(" ".join(upper), plain, n=1, cutoff=0.0)[0]]


def read_role(cell: Cell, problems: Problems) -> str | None:
    """What a cell is ("exercise", "hints", ...; None: an ordinary cell), by the metadata on its line."""
    metadata = {key: value for key, value in cell.metadata.items() if key != "lines_to_next_cell"}
    for wrong in ("incorrectly_encoded_metadata", "title", "region_name", "cell_marker"):
        if wrong in metadata:
            text = metadata.pop(wrong)
            problems.add(cell.line, f'cannot read "{text}" on the cell line; write key="value" pairs, nothing else')
    for key in metadata:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.5)
            hint = f'did you mean "{near[0]}"?' if near else f"known keys: {', '.join(KEYS)}"
            problems.add(cell.line, f'unknown metadata key "{key}"; {hint}')
    tags = metadata.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        problems.add(cell.line, f'tags={tags!r}: write a list of strings, tags=["slow"]')

    roles = [role for role in ROLES if role in metadata]
    if len(roles) > 1:
        problems.add(cell.line, f"a cell is either {' or '.join(roles)}; split it into one cell each")
    role = roles[0] if roles else None
    if role and not isinstance(metadata[role], str):
        problems.add(
            cell.line,
            f'{role}={metadata[role]!r}: write {role}="..." with one text, pairs separated by spaces',
        )
        return None
    if role and cell.kind != ROLES[role]:
        problems.add(cell.line, f"{role}= belongs on a {ROLES[role]} cell, this is a cell of kind {cell.kind}")
        return None
    extra = [key for key in EXERCISE_KEYS if key in metadata]
    if extra and role != "exercise":
        problems.add(cell.line, f"{', '.join(extra)} without exercise=; only an exercise has these keys")
    return role


def read_blocks(cell: Cell, role: str | None, problems: Problems) -> list[Block]:
    """The BEGIN/END blocks of a cell. Adds every line that is misspelt, unbalanced or in the wrong place."""
    blocks: list[Block] = []
    opened: tuple[str, int] | None = None
    for i, line in enumerate(cell.lines):
        meant = meant_marker(line.text, cell.kind)
        if meant:
            problems.add(
                line.number,
                f'"{line.text.strip()}" looks like a marker but is not one; write exactly "{meant}",'
                " or word the line differently",
            )
        edge, name = MARKERS.get(line.text.strip(), (None, None))
        if edge is None:
            continue
        if BLOCKS[name] != role:
            problems.add(line.number, f'"{line.text.strip()}" belongs in a cell marked {BLOCKS[name]}="..."')
        if edge == "BEGIN":
            if opened:
                problems.add(
                    line.number,
                    f'"### BEGIN {name}" before "### END {opened[0]}" of line'
                    f" {cell.lines[opened[1]].number}; blocks cannot be nested",
                )
            opened = (name, i)
        elif not opened:
            problems.add(line.number, f'"### END {name}" without "### BEGIN {name}" above it in the cell')
        elif opened[0] != name:
            problems.add(line.number, f'"### END {name}" closes "### BEGIN {opened[0]}"; write "### END {opened[0]}"')
            opened = None
        else:
            blocks.append(Block(name, opened[1], i))
            opened = None
    if opened:
        number = cell.lines[opened[1]].number
        problems.add(number, f'"### BEGIN {opened[0]}" is never closed; add "### END {opened[0]}" to the cell')
    return blocks


def one_block(cell: Cell, blocks: list[Block], name: str, problems: Problems) -> tuple[list[Line], list[Line]]:
    """Split a cell with exactly one block that ends it into (lines before, lines inside)."""
    if len(blocks) != 1:
        problems.add(cell.line, f'expected one block "### BEGIN {name}" ... "### END {name}", found {len(blocks)}')
        return list(cell.lines), []
    first, last = blocks[0].first, blocks[0].last
    for line in cell.lines[last + 1 :]:
        if line.text.strip():
            problems.add(
                line.number,
                f'text after "### END {name}"; move it before the block or into a cell of its own',
            )
    return list(cell.lines[:first]), list(cell.lines[first + 1 : last])
