"""The course as a student's process sees it: the reference of what is graded is nowhere in it."""

import ast

import pytest

from course_utils.checks import EXERCISES, run_exercise
from course_utils.grading import trees
from course_utils.grading.lesson import lesson, lessons
from course_utils.grading.lesson_code import bindings, imports
from course_utils.grading.marking import pieces as pieces_of
from course_utils.grading.model import Taken
from course_utils.grading.remote import Desk, Piece, RemoteAnswer, Told
from course_utils.grading.sandbox import Sandbox

NOTEBOOKS = {name: stem for stem, found in lessons().items() for name in found.exercises}


def test_every_exercise_belongs_to_a_lesson():
    assert NOTEBOOKS.keys() == EXERCISES.keys()


@pytest.mark.parametrize("name", EXERCISES)
def test_the_reference_is_taken_out_of_its_module(name, tmp_path):
    exercise = EXERCISES[name]
    trees.write_course_tree(tmp_path, [exercise])
    module, attribute = trees.place_of(exercise)
    tree = ast.parse(tmp_path.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8"))
    (node,) = (node for node in tree.body if getattr(node, "name", "") == attribute)
    assert "refuse" in ast.unparse(node) and len(ast.unparse(node)) < 300
    files = {path.name for path in tmp_path.rglob("*")}
    assert not files & {"questions.json", "exercises.py", "run.py", "executor.py", "trees.py", "experiments"}


def test_a_name_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="nothing"):
        trees.without("x = 1", "nothing")


@pytest.mark.parametrize("stem", lessons())
def test_the_lines_that_choose_a_function_are_found(stem):
    found = lesson(stem)
    taken = Taken(stem, tuple((c.grade_id, c.source) for c in found.cells if c.solution and c.kind == "code"))
    pieces = pieces_of(found, taken)
    assert [p.source for p in pieces if p.place < 0] == [line.source for line in bindings(found)]
    assert all(ast.parse(statement) for statement in imports(found))
    assert any("use" in statement for statement in imports(found))


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox() as sandbox:
        yield sandbox


def every_name(folder):
    """Every function and class of the library in a tree, as "module.name"."""
    for path in sorted((folder / "course_utils").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield f"course_utils.{path.stem}", node.name


@pytest.mark.slow
@pytest.mark.parametrize("name", EXERCISES)
def test_nothing_in_the_tree_is_a_right_answer(name, tmp_path, sandbox):
    """A student may call whatever is there; none of it is the solution under another name."""
    exercise = EXERCISES[name]
    trees.write_course_tree(tmp_path, [exercise])
    names = [(module, found) for module, found in every_name(tmp_path)]
    source = "\n".join(f"from {module} import {found} as c{i}" for i, (module, found) in enumerate(names))
    pieces = [Piece("imports", source, 0)]
    with Desk(sandbox, NOTEBOOKS[name], pieces, told := Told(), 20.0, name) as desk:
        desk.run(1, [])
        for i, found in enumerate(names):
            kind = desk.ask({"op": "find", "name": f"c{i}"})[0]["kind"]
            assert kind != "missing", told.notes
            if (kind == "class") == exercise.is_class:
                # A right answer earns everything; the first case is enough to see that this is none.
                report = run_exercise(exercise, RemoteAnswer(desk, f"c{i}"))
                assert not report.passed, found
