"""The cell after a widget compares a prediction: it runs again once one is marked, often after all the rest."""

import ast
import builtins
from pathlib import Path

import pytest

from course_utils.authoring.cells import read_cells, source
from course_utils.authoring.errors import Problems

LESSONS = sorted((Path(__file__).parents[2] / "lessons").glob("*.py"))
INNER = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.FunctionDef)


def _trees(lesson: Path) -> list[ast.Module]:
    cells = read_cells(lesson.read_text(encoding="utf-8"), Problems(lesson.name))
    return [ast.parse(source(cell.lines)) for cell in cells if cell.kind == "code"]


def _bound(tree: ast.AST) -> set[str]:
    """The names that a cell gives a value, those of its functions and comprehensions left out."""
    names = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        if not isinstance(node, INNER):
            names |= _bound(node)
    return names


def _read(tree: ast.AST) -> set[str]:
    """The names that a cell needs from elsewhere, in its comprehensions and functions as well."""
    nodes = list(ast.walk(tree))
    inner = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    inner |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    return {n.id for n in nodes if isinstance(n, ast.Name)} - inner - set(dir(builtins))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_what_a_comparison_needs_has_no_other_value_later(lesson):
    trees = _trees(lesson)
    changed = {}
    for i, tree in enumerate(trees):
        if ".compare(" in ast.unparse(tree):
            later = set().union(*map(_bound, trees[i + 1 :]))
            changed[ast.unparse(tree)[:60]] = sorted(_read(tree) & later)
    assert changed, "every lesson has a widget with a prediction"
    assert not any(changed.values()), changed
