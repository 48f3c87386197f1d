"""Three whole sets of right answers pass every check, alone in a cell, and go on to later notebooks."""

import ast
import linecache

import pytest
from fixtures.right_sets import COMMON, SETS

from course_utils import part_source
from course_utils.checks import EXERCISES, check

ANSWERS = [pytest.param(text, name, id=f"{style}-{name}") for style, s in SETS.items() for name, text in s.items()]
each_answer = pytest.mark.parametrize("text, name", ANSWERS)


def run(text, name):
    """Execute a cell in an empty notebook and return what it defines."""
    where = f"<cell of {name}>"
    linecache.cache[where] = (len(text), None, text.splitlines(keepends=True), where)
    notebook = {"__name__": "student_notebook"}
    exec(compile(text, where, "exec"), notebook)
    return notebook[name]


@pytest.mark.parametrize("style", SETS)
def test_a_set_answers_every_exercise_and_nothing_else(style):
    assert set(SETS[style]) == set(EXERCISES)


def test_the_sets_differ_where_they_do_not_share_an_answer():
    for name in set(EXERCISES) - set(COMMON):
        assert len({answers[name] for answers in SETS.values()}) == len(SETS), name


@each_answer
def test_a_cell_defines_its_exercise_alone(text, name):
    *imports, answer = ast.parse(text).body
    assert all(isinstance(node, ast.Import | ast.ImportFrom) for node in imports)
    assert answer.name == name
    brought = {alias.asname or alias.name for node in imports for alias in node.names}
    assert brought == set(part_source.global_names(text[text.index(f"{_keyword(answer)} {name}") :])) - {name}


def _keyword(node):
    return "class" if isinstance(node, ast.ClassDef) else "def"


@each_answer
def test_every_answer_passes_its_check(text, name):
    report = check(run(text, name), name)
    assert report.passed, str(report)
    assert report.points == report.max_points
    assert not report.notes, str(report)


@each_answer
def test_an_answer_is_remembered_and_runs_on_its_own(text, name):
    kept = part_source.collect(run(text, name))
    assert check(part_source.load(name, kept), name).passed
