"""What `check` notices: anything stale, and anything that students must not see."""

import json
import shutil

import nbformat
import pytest
from fixtures.lessons.tools import LESSON, QUESTIONS, SAMPLE, SOLVED, STUDENT, load, make_course, save, write

from course_utils.authoring import build, check
from course_utils.authoring.leaks import find_leaks
from course_utils.authoring.lesson import read_lesson
from course_utils.authoring.notebook import make_notebooks


@pytest.fixture
def root(tmp_path, monkeypatch):
    return make_course(tmp_path, monkeypatch)


def edit_cell(file, cell_id, **changes):
    def edit(root):
        notebook = load(root, file)
        next(cell for cell in notebook.cells if cell.id == cell_id).update(changes)
        save(root, file, notebook)

    return edit


def edit_metadata(file, key, value):
    def edit(root):
        notebook = load(root, file)
        notebook.metadata[key] = value
        save(root, file, notebook)

    return edit


def drop_cell(root):
    notebook = load(root, STUDENT)
    notebook.cells.pop()
    save(root, STUDENT, notebook)


ERROR = nbformat.v4.new_output("error", ename="E", evalue="e", traceback=[])
STREAM = nbformat.v4.new_output("stream", text="5")


def replace_lesson(old, new):
    return lambda root: write(root, SAMPLE.replace(old, new))


def overwrite(file, text):
    return lambda root: (root / file).write_text(text, encoding="utf-8")


def remove(file):
    return lambda root: (root / file).unlink()


def copy_to(file, other):
    return lambda root: shutil.copy(root / file, root / other)


def save_compactly(root):
    overwrite(STUDENT, json.dumps(load(root, STUDENT)))(root)


# what happens, and the words that one of the problems must have
STALE = {
    "lesson edited": (replace_lesson("Sums", "Totals"), [STUDENT, LESSON]),
    "explanation edited": (replace_lesson("the name says", "its name says"), [QUESTIONS, "lessons/"]),
    "solution line edited": (replace_lesson("return total", "return +total"), [SOLVED, "exercise-add"]),
    "notebook edited": (edit_cell(STUDENT, "about-add", source="x"), [STUDENT, LESSON, "about-add"]),
    "notebook saved by an editor": (save_compactly, [STUDENT]),
    "cell dropped": (drop_cell, [STUDENT, LESSON]),
    "cell metadata": (edit_cell(STUDENT, "check-add", metadata={}), [STUDENT, "check-add"]),
    "output in a notebook": (edit_cell(STUDENT, "check-add", outputs=[STREAM]), [STUDENT, "outputs"]),
    "notebook metadata": (edit_metadata(STUDENT, "jupytext", {}), [STUDENT, LESSON]),
    "solution edited": (edit_cell(SOLVED, "exercise-add", source="x"), [SOLVED, LESSON, "exercise-add"]),
    "solution not run": (edit_cell(SOLVED, "check-add", execution_count=None), [SOLVED, "check-add"]),
    "solution with an error": (edit_cell(SOLVED, "check-add", outputs=[ERROR]), [SOLVED, "check-add"]),
    "widget state": (edit_metadata(SOLVED, "widgets", {"state": {}}), [SOLVED, "metadata.widgets"]),
    "notebook missing": (remove(STUDENT), [STUDENT, "missing", LESSON]),
    "solution missing": (remove(SOLVED), [SOLVED, "missing", LESSON]),
    "solution unreadable": (overwrite(SOLVED, "{"), [SOLVED, "read"]),
    "solution that is no notebook": (overwrite(SOLVED, "[]"), [SOLVED, "read"]),
    "solution without cells": (overwrite(SOLVED, "{}"), [SOLVED]),
    "notebook with a merge conflict": (overwrite(STUDENT, "<<<<<<< ours"), [STUDENT, "read"]),
    "questions missing": (remove(QUESTIONS), [QUESTIONS, "missing"]),
    "questions edited": (overwrite(QUESTIONS, "{}"), [QUESTIONS]),
}
NOT_BUILT = {
    "orphaned notebook": (copy_to(STUDENT, "notebooks/09_a.ipynb"), ["notebooks/09_a", "lessons/09_a.py"]),
    "orphaned solution": (copy_to(SOLVED, "solutions/09_a.ipynb"), ["solutions/09_a", "lessons/09_a.py"]),
    "broken lesson": (replace_lesson("minutes=5", "minute=5"), [f"{LESSON}:", "minutes"]),
    "no lesson": (remove(LESSON), ["lessons/", "NN_name.py"]),
}


@pytest.mark.parametrize("case", [*STALE, *NOT_BUILT])
def test_check_notices(root, case):
    assert check(root) == []
    change, words = (STALE | NOT_BUILT)[case]
    change(root)
    problems = check(root)
    assert [problem for problem in problems if all(word in problem for word in words)], problems


@pytest.mark.parametrize("case", STALE)
def test_the_command_it_names_helps(root, case):
    STALE[case][0](root)
    assert all("course build" in problem for problem in check(root))
    build(root)
    assert check(root) == []


def test_outputs_of_solutions_are_not_compared(root):
    edit_cell(SOLVED, "check-add", outputs=[STREAM], execution_count=77)(root)
    assert check(root) == []


# Leaks

SECRETS = [
    "total = a + b  # plain addition",
    "self.number_of_calls = 0",
    "return add(a, a) if callable(add) else 2 * a",
    "assert add(-17, 4) == -13",
    "Multiplying is what another function does.",
    'answer("01.2", 0.125)',
    "Two points for counting in two orders, three for saying why the order is free.",
]


def test_no_secret_stands_in_the_notebook(root):
    lesson = read_lesson(root / LESSON, LESSON)
    student = (root / STUDENT).read_text(encoding="utf-8")
    assert find_leaks(lesson, load(root, STUDENT)) == []
    for secret in SECRETS:
        assert json.dumps(secret)[1:-1] not in student


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("place", ["code", "indented", "metadata", "notebook metadata"])
def test_a_planted_leak_is_found(root, secret, place):
    lesson, notebook = read_lesson(root / LESSON, LESSON), load(root, STUDENT)
    if place == "metadata":
        notebook.cells[0].metadata["note"] = secret
    elif place == "notebook metadata":
        notebook.metadata["note"] = {"list": [secret]}
    else:
        notebook.cells[1].source += "\n" + ("        " if place == "indented" else "") + secret
    found = find_leaks(lesson, notebook)
    assert len(found) == 1
    assert secret in found[0]
    save(root, STUDENT, notebook)
    assert any(secret in problem and LESSON in problem for problem in check(root))


def test_the_solved_notebook_is_full_of_leaks(root):
    lesson = read_lesson(root / LESSON, LESSON)
    found = "\n".join(find_leaks(lesson, load(root, SOLVED)))
    for what in (
        "solution of add",
        "solution of Counter",
        "question 01.1",
        "marking guide of 01.W",
        "outputs",
    ):
        assert what in found


def test_what_the_lesson_shows_is_no_leak(tmp_path):
    """The third hint may quote the solution."""
    text = SAMPLE.replace("# 3. `total = a + b`.", "# 3. `total = a + b  # plain addition`, then `return total`.")
    lesson = read_lesson(write(tmp_path, text), LESSON)
    assert find_leaks(lesson, make_notebooks(lesson).student) == []
