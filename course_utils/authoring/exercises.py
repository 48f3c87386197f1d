"""Exercises and their hints: how they are written in a lesson."""

import ast
import re
import textwrap
from dataclasses import dataclass, field

from .cells import Cell, Line, trimmed
from .errors import Problems
from .markers import MARKERS, Block

TIERS = 3
HINT = re.compile(r"(\d+)\. +(\S.*)")

OUTSIDE = (
    "the solution is not inside one function or method; the stub raises NotImplementedError and would do so"
    " when the cell runs. Put one block into each body, indented like the body"
)


@dataclass
class Exercise:
    """A function or class that students complete.

    marked   the cell up to the hidden tests, with its BEGIN/END SOLUTION comments
    solved   the same without these comments
    hidden   lines that run before the check where the solution is known, and never reach students
    """

    name: str
    line: int
    minutes: int
    difficulty: int
    optional: bool
    marked: list[Line]
    solved: list[Line]
    hidden: list[Line] = field(default_factory=list)
    secret: list[Line] = field(default_factory=list)


@dataclass
class Hints:
    """Three hints, each saying more than the one before, as markdown text."""

    exercise: str
    line: int
    tiers: list[str]


def read_exercise(cell: Cell, blocks: list[Block], problems: Problems) -> Exercise | None:
    """Read an exercise cell; None (and entries in `problems`) when it is not well formed."""
    before = len(problems.found)
    name = cell.metadata["exercise"]
    minutes, difficulty = cell.metadata.get("minutes"), cell.metadata.get("difficulty")
    optional = cell.metadata.get("optional", False)
    if not name.isidentifier():
        problems.add(cell.line, f'exercise="{name}": the name must be that of a function or class')
    if type(minutes) is not int or minutes < 1:
        problems.add(cell.line, f'exercise "{name}": minutes={minutes!r}; write the minutes it takes, minutes=5')
    if type(difficulty) is not int or not 1 <= difficulty <= 3:
        problems.add(cell.line, f'exercise "{name}": difficulty={difficulty!r}; write difficulty=1, 2 or 3')
    if type(optional) is not bool:
        problems.add(cell.line, f'exercise "{name}": optional={optional!r}; write optional=true or leave it out')

    solutions = [block for block in blocks if block.name == "SOLUTION"]
    hidden = [block for block in blocks if block.name == "HIDDEN TESTS"]
    end = hidden[0].first if hidden else len(cell.lines)
    if not solutions:
        problems.add(cell.line, f'exercise "{name}" has no "### BEGIN SOLUTION" ... "### END SOLUTION"')
    if len(hidden) > 1 or (hidden and any(line.text.strip() for line in cell.lines[hidden[0].last + 1 :])):
        problems.add(cell.lines[hidden[0].first].number, "hidden tests are one block at the end of the cell")
    if hidden and optional:
        problems.add(cell.lines[hidden[0].first].number, "an optional exercise is not graded: no hidden tests")
    if len(problems.found) > before:
        return None

    marked = list(cell.lines[:end])
    while marked and not marked[-1].text.strip():
        marked.pop()
    _check_code(cell, marked, solutions, problems)
    if len(problems.found) > before:
        return None
    secret = [line for block in blocks for line in cell.lines[block.first + 1 : block.last]]
    return Exercise(
        name,
        cell.line,
        minutes,
        difficulty,
        optional,
        marked,
        solved=[line for line in marked if line.text.strip() not in MARKERS],
        hidden=list(trimmed(cell.lines[hidden[0].first + 1 : hidden[0].last])) if hidden else [],
        secret=secret,
    )


def _check_code(cell: Cell, marked: list[Line], solutions: list[Block], problems: Problems) -> None:
    """The cell defines what it is named after, and every stub will stand inside a function."""
    name = cell.metadata["exercise"]
    try:
        tree = ast.parse("\n".join(line.text for line in marked))
    except SyntaxError as error:
        problems.add(marked[(error.lineno or 1) - 1].number, f"the solved cell is not Python: {error.msg}")
        return
    definitions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    if name not in definitions:
        found = ", ".join(definitions) or "nothing"
        problems.add(cell.line, f'exercise="{name}", but the cell defines {found}; the names must agree')
        return
    if not ast.get_docstring(definitions[name]):
        problems.add(
            cell.line,
            f'exercise "{name}" has no docstring; it stays in the stub and tells students the shapes',
        )
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for block in solutions:
        number = marked[block.first].number
        # ast counts lines from 1, so the lines inside the block are first + 2 ... last
        statements = [
            node.lineno
            for node in ast.walk(tree)
            if isinstance(node, ast.stmt) and block.first + 1 < node.lineno <= block.last
        ]
        if not statements:
            problems.add(number, "the solution is empty")
        elif not any(f.lineno <= block.first and max(statements) <= (f.end_lineno or 0) for f in functions):
            problems.add(number, OUTSIDE)
    _check_stub(marked, solutions, problems)


def _check_stub(marked: list[Line], solutions: list[Block], problems: Problems) -> None:
    """What students get must be Python too, and must run until a stub is called.

    A BEGIN comment with the wrong indentation breaks one or the other, since the stub is indented as it is.
    """
    texts, numbers, stubs = [], [], []
    for i, line in enumerate(marked):
        block = next((b for b in solutions if b.first <= i <= b.last), None)
        if block is None or i == block.first:
            indent = line.text[: len(line.text) - len(line.text.lstrip())]
            texts.append(line.text if block is None else f"{indent}raise NotImplementedError")
            numbers.append(line.number)
            if block is not None:
                stubs.append(len(texts))
    try:
        tree = ast.parse("\n".join(texts))
    except SyntaxError as error:
        number = numbers[min((error.lineno or 1) - 1, len(numbers) - 1)]
        problems.add(
            number,
            f'the student\'s cell is not Python ({error.msg}); indent "### BEGIN SOLUTION" like the body',
        )
        return
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for stub in stubs:
        if not any(f.lineno < stub <= (f.end_lineno or 0) for f in functions):
            problems.add(numbers[stub - 1], OUTSIDE)


def read_hints(cell: Cell, problems: Problems) -> Hints:
    """Read a numbered list of exactly three hints; lines that follow a hint belong to it."""
    tiers: list[list[str]] = []
    for line in cell.lines:
        found = HINT.fullmatch(line.text)
        if found and int(found[1]) == len(tiers) + 1:
            tiers.append([found[2]])
        elif tiers:
            tiers[-1].append(line.text)
        else:
            problems.add(line.number, 'hints are a numbered list; the first line begins with "1. "')
            break
    exercise = cell.metadata["hints"]
    if len(tiers) != TIERS:
        problems.add(
            cell.line,
            f'hints="{exercise}": found {len(tiers)} hints, write exactly {TIERS}: "1. ", "2. ", "3. "',
        )
    texts = ["\n".join([first, textwrap.dedent("\n".join(rest))]).strip() for first, *rest in tiers]
    return Hints(exercise, cell.line, texts)
