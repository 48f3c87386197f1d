"""What of a lesson's own code runs while it is graded: imports, and the lines that choose whose function is used."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from course_utils.grading.lesson import Lesson
from course_utils.grading.source_code import parse


@dataclass(frozen=True)
class Binding:
    """A line like `waves = use(sinusoidal_positions)`; after: how many solution cells stand before it."""

    after: int
    source: str


def imports(lesson: Lesson) -> list[str]:
    """Every import statement of the lesson's own cells, in order."""
    found = [ast.unparse(node) for tree in _own(lesson) for node in _imports(tree.body)]
    return list(dict.fromkeys(found))


def bindings(lesson: Lesson) -> list[Binding]:
    """The lines that bind a name to what `use` gives. Where a student's function is missing, it is the reference."""
    found, before = [], 0
    for cell in lesson.cells:
        if cell.kind != "code":
            continue
        if cell.solution:
            before += 1
        elif not cell.grade and (tree := parse(cell.source)) is not None:
            found += [Binding(before, _forgiving(node)) for node in tree.body if _is_binding(node)]
    return found


def solution_order(lesson: Lesson) -> dict[str, int]:
    """The place of each solution cell among those of the lesson, by grade id."""
    names = [cell.grade_id for cell in lesson.cells if cell.kind == "code" and cell.solution]
    return {name: place for place, name in enumerate(names)}


def _own(lesson: Lesson) -> Iterator[ast.Module]:
    for cell in lesson.cells:
        if cell.kind == "code" and not cell.solution and (tree := parse(cell.source)) is not None:
            yield tree


def _imports(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.Try):  # the first cell says in words what is wrong if the course is not there
            yield from _imports(node.body)


def _is_use(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return all(map(_is_use, node.elts))
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "use"


def _is_binding(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and _is_use(node.value)


def _forgiving(node: ast.Assign) -> str:
    by_name = ast.parse(ast.unparse(node)).body[0]
    for call in ast.walk(by_name):
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Name):
            call.args[0] = ast.Constant(call.args[0].id)
    return f"try:\n    {ast.unparse(node)}\nexcept NameError:\n    {ast.unparse(by_name)}"
