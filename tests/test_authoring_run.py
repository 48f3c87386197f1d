"""The build with real kernels, and nbgrader's own autograder on what it made. Few tests: kernels are slow."""

import pytest
from fixtures.lessons.tools import CELL, SOLVED, STUDENT, fake_run, load, make_course, tree, write
from fixtures.school import autograde

from course_utils.authoring import BuildError, build, check, pipeline

SETTINGS = f"""
{CELL}
import os
from pathlib import Path
from IPython.display import display

print([os.environ.get(f"COURSE_{{name}}") for name in ("STRICT", "REMEMBER", "SMOKE")], Path.cwd().name)
display({{"application/vnd.jupyter.widget-view+json": {{"model_id": "1"}}, "text/plain": "static"}}, raw=True)
"""
FAILING = f"""
{CELL}
class check:
    points = 0

    def __init__(self, part):
        pass

{CELL} exercise="divide" minutes=1 difficulty=1
def divide(a, b):
    \"\"\"A quotient.\"\"\"
    ### BEGIN SOLUTION
    a = float(a)
    ### END SOLUTION
    ### BEGIN SOLUTION
    return a / b
    ### END SOLUTION


{CELL} [markdown] hints="divide"
# 1. a
# 2. b
# 3. c

{CELL}
value = 0
divide(1, value)
print("not reached")
"""


def test_a_solution_is_run_and_its_outputs_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_SMOKE", "1")
    monkeypatch.setenv("COURSE_STRICT", "0")
    write(tmp_path, SETTINGS)
    build(tmp_path)
    assert check(tmp_path) == []
    notebook = load(tmp_path, SOLVED)
    printed, shown = notebook.cells[0].outputs
    assert printed.text == "['1', '0', None] solutions\n"
    assert set(shown.data) == {"text/plain"}, "a live view without its state shows an error"
    assert set(notebook.metadata) == {"course", "kernelspec", "language_info"}
    assert [cell.get("execution_count") for cell in load(tmp_path, STUDENT).cells] == [None]

    monkeypatch.setattr(pipeline, "run_notebook", lambda *_: pytest.fail("run again"))
    assert build(tmp_path) == []


def test_a_failing_solution_is_located_and_leaves_the_old_one(tmp_path, monkeypatch):
    write(tmp_path, SETTINGS)
    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "run_notebook", fake_run)
        build(tmp_path)
    old = tree(tmp_path)[SOLVED]
    write(tmp_path, FAILING)
    with pytest.raises(BuildError) as caught:
        build(tmp_path)
    message = str(caught.value)
    line = FAILING.split("\n").index("divide(1, value)") + 1
    assert message.startswith(f"lessons/01_sample.py:{line}: ")
    assert "ZeroDivisionError" in message.splitlines()[0]
    assert "> divide(1, value)" in message
    assert "return a / b" in message
    assert "\x1b" not in message
    assert tree(tmp_path)[SOLVED] == old


@pytest.fixture
def gradebook(tmp_path, monkeypatch):
    """The notebooks of the sample, handed out and graded by nbgrader itself: {student: {cell: points}}."""
    root = tmp_path / "course"
    root.mkdir()
    make_course(root, monkeypatch)
    stub = load(root, STUDENT)
    grades, handed_out = autograde(tmp_path / "school", "01_sample", stub, load(root, SOLVED), monkeypatch)
    assert handed_out == [cell.source for cell in stub.cells]
    return grades


def test_nbgrader_gives_the_stub_nothing_and_the_solution_everything(gradebook):
    assert gradebook["stub"] == {
        "check_add": (0, 10, False),
        "check_Counter": (0, 10, False),
        "questions_01": (0, 4, False),
        "written_01_W": (0, 5, False),
    }
    assert gradebook["done"] == {
        "check_add": (10, 10, False),
        "check_Counter": (10, 10, False),
        "questions_01": (4, 4, False),
        "written_01_W": (None, 5, True),
    }
