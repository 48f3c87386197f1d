"""What the build writes and what it runs again. No kernel is started here."""

import json
import random

import nbformat
import pytest
from fixtures.lessons.tools import (
    CELL,
    LESSON,
    QUESTIONS,
    SAMPLE,
    SOLVED,
    STUDENT,
    fake_run,
    load,
    make_course,
    tree,
    write,
)
from nbgrader.preprocessors import CheckCellMetadata
from nbgrader.utils import determine_grade

from course_utils.authoring import BuildError, build, check, pipeline
from course_utils.authoring.lesson import read_lesson
from course_utils.authoring.notebook import make_notebooks, to_text
from course_utils.authoring.run import require_full_points


@pytest.fixture
def root(tmp_path, monkeypatch):
    return make_course(tmp_path, monkeypatch)


def cells(tmp_path, text, form="student"):
    made = make_notebooks(read_lesson(write(tmp_path, text), LESSON))
    return getattr(made, form)["cells"]


def chunks(text):
    """The lesson as (preamble, cells)."""
    first, *rest = text.split(f"\n{CELL}")
    return first, rest


def joined(first, rest):
    return "".join([first, *(f"\n{CELL}{chunk}" for chunk in rest)])


def test_a_second_build_writes_nothing(root):
    before = tree(root)
    assert build(root) == []
    assert tree(root) == before


def test_the_same_lesson_gives_the_same_bytes(root, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    write(other, SAMPLE)
    (other / LESSON).write_bytes((root / LESSON).read_bytes().replace(b"\n", b"\r\n"))
    build(other)
    mine, theirs = tree(root), tree(other)
    assert set(mine) == set(theirs) == {LESSON, STUDENT, SOLVED, QUESTIONS}
    for file in (STUDENT, SOLVED, QUESTIONS):
        assert mine[file] == theirs[file]
        assert b"\r" not in mine[file]
        assert mine[file].endswith(b"}\n")


@pytest.mark.parametrize("form", ["student", "solved"])
def test_a_changed_cell_changes_that_cell_alone(tmp_path, form):
    """Whichever line of visible text is changed, exactly one cell of the notebook differs."""
    original = cells(tmp_path, SAMPLE, form)
    edits = ["# Sums:", "CASES =", "the sum of two".capitalize(), "**Question 01.1**", "Which operator adds?",
             'print("between', "Twice a number", "Why is addition"]  # fmt: skip
    for old in edits:
        assert SAMPLE.count(old) == 1, old
        changed = cells(tmp_path, SAMPLE.replace(old, old.replace(old[-3:], "zzz", 1)), form)
        different = [i for i, (a, b) in enumerate(zip(original, changed, strict=True)) if a != b]
        # The checksum of the docstring's cell belongs to that cell, too.
        assert len(different) == 1, (old, different)


def test_inserting_or_moving_cells_changes_no_other(tmp_path):
    first, rest = chunks(SAMPLE)
    original = cells(tmp_path, SAMPLE)
    generator = random.Random(0)
    plain = [i for i, chunk in enumerate(rest) if '="' not in chunk.split("\n")[0] or "tags" in chunk[:8]]
    for _ in range(10):
        at = generator.randrange(len(rest) + 1)
        added = [*rest[:at], "\nnew = 1\n", *rest[at:]]
        notebook = cells(tmp_path, joined(first, added))
        assert [cell for cell in notebook if cell["source"] != "new = 1"] == original
        moved = list(rest)
        moved.insert(generator.randrange(len(rest)), moved.pop(generator.choice(plain)))
        by_id = {cell["id"]: cell for cell in cells(tmp_path, joined(first, moved))}
        assert by_id == {cell["id"]: cell for cell in original}


def test_equal_cells_get_ids_of_their_own(tmp_path):
    first, rest = chunks(SAMPLE)
    ids = [cell["id"] for cell in cells(tmp_path, joined(first, [*rest[:2], "\nx = 1\n", "\nx = 1\n", *rest[2:]]))]
    assert len(set(ids)) == len(ids)


def test_both_notebooks_have_the_same_cells(root):
    student, solved = load(root, STUDENT), load(root, SOLVED)
    nbformat.validate(student)
    nbformat.validate(solved)
    assert [cell.id for cell in student.cells] == [cell.id for cell in solved.cells]
    assert [cell.metadata for cell in student.cells] == [cell.metadata for cell in solved.cells]
    assert "jupytext" not in student.metadata
    assert LESSON in student.metadata.course.note
    for notebook in (student, solved):
        CheckCellMetadata().preprocess(notebook, {})
        assert not any("### " in cell.source for cell in notebook.cells)


def test_the_stub_keeps_signature_and_docstring_and_raises(root):
    source = {cell.id: cell.source for cell in load(root, STUDENT).cells}
    scope = {}
    exec(source["exercise-add"], scope)
    assert scope["add"].__doc__ == "The sum of two numbers."
    with pytest.raises(NotImplementedError, match="your code here"):
        scope["add"](1, 2)
    exec(source["exercise-Counter"], scope)
    assert scope["Counter"].count.__doc__
    with pytest.raises(NotImplementedError):
        scope["Counter"]()
    assert source["check-add"] == "report = check(add)\ndisplay(report)\nreport.points"
    assert source["answer-01-1"] == 'answer("01.1", None)'
    assert source["hints-add"].count("<details>") == source["hints-add"].count("</details>") == 3
    assert "difficulty 1 of 3" in source["about-add"]


def test_the_solution_is_the_lesson_without_markers(root):
    source = {cell.id: cell.source for cell in load(root, SOLVED).cells}
    scope = {}
    exec(source["exercise-add"], scope)
    assert scope["add"](2, 3) == 5
    assert source["answer-01-1"] == 'answer("01.1", "b")'
    assert source["answer-01-2"] == 'answer("01.2", 0.125)'
    assert "assert add(-17, 4) == -13" in source["check-add"]
    assert source["check-add"].endswith("report.points")
    assert "three for saying why" in source["written-01-W-answer"]


def test_points(root):
    graded = {
        cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.points
        for cell in load(root, STUDENT).cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }
    assert graded == {"check_add": 10, "check_Counter": 10, "written_01_W": 5, "questions_01": 4}


def test_a_written_answer_is_graded_by_hand_unless_untouched(root):
    cell = next(cell for cell in load(root, STUDENT).cells if cell.id == "written-01-W-answer")
    assert determine_grade(cell) == (0, 5)
    cell.source = "Because."
    assert determine_grade(cell) == (None, 5)


def test_questions_hold_what_answer_needs(root):
    entries = json.loads((root / QUESTIONS).read_text(encoding="utf-8"))
    assert entries["01.1"]["right"] == "b"
    assert set(entries["01.1"]["explain"]) == set(entries["01.1"]["choices"]) == {"a", "b"}
    assert entries["01.1"]["choices"]["b"] == "it adds two numbers"
    assert (entries["01.2"]["right"], entries["01.2"]["tolerance"]) == (0.125, 0.001)
    assert "one eighth" in entries["01.2"]["text"]


@pytest.mark.parametrize("cell_id", ["check-add", "check-double", "questions-01"])
@pytest.mark.parametrize("why", ["fewer points", "a warning"])
def test_a_solution_must_earn_every_point(tmp_path, cell_id, why):
    lesson = read_lesson(write(tmp_path, SAMPLE), LESSON)
    made = make_notebooks(lesson)
    for cell in made.solved.cells:
        if cell.id.startswith(("check-", "questions-")):
            points = str(cell.metadata.nbgrader.get("points", 10.0))
            cell.outputs = [nbformat.v4.new_output("execute_result", data={"text/plain": points})]
    require_full_points(made.solved, LESSON, made.lines)

    cell = next(cell for cell in made.solved.cells if cell.id == cell_id)
    if why == "a warning":
        cell.outputs.insert(0, nbformat.v4.new_output("stream", name="stderr", text="careful\n"))
    else:
        cell.outputs[0].data["text/plain"] = "3.5"
    with pytest.raises(BuildError, match=rf"^{LESSON}:\d+: the solution earns (0|3\.5) of (10|4) points"):
        require_full_points(made.solved, LESSON, made.lines)


# What runs again


def refuse(*_):
    raise AssertionError("the solution was run")


@pytest.mark.parametrize(
    ("old", "new", "runs"),
    [
        ("1. Which operator adds?", "1. Which one adds?", False),  # text that no kernel sees
        ("return total", "return a + b", True),
        ("Multiplying is what", "To multiply is what", True),  # an explanation that an output shows
        ("# A lesson with", "# Some lesson with", False),  # a note to the maintainer
    ],
)
def test_a_solution_runs_again_only_when_it_changed(root, monkeypatch, old, new, runs):
    outputs = [cell.get("outputs") for cell in load(root, SOLVED).cells]
    write(root, SAMPLE.replace(old, new))
    monkeypatch.setattr(pipeline, "run_notebook", refuse)
    if runs:
        with pytest.raises(AssertionError, match="was run"):
            build(root)
    else:
        build(root)
        assert check(root) == []
        assert [cell.get("outputs") for cell in load(root, SOLVED).cells] == outputs


def test_only_the_lessons_asked_for_are_run(root, monkeypatch):
    ran = []
    monkeypatch.setattr(
        pipeline, "run_notebook", lambda nb, r, file, lines: ran.append(file) or fake_run(nb, r, file, lines)
    )
    write(root, f"{CELL}\nx = 2\n", "02_other")
    assert [path.name for path in build(root, ["02"])] == ["02_other.ipynb"] * 2
    build(root, ["lessons/01_sample.py"], force=True)
    assert ran == ["lessons/02_other.py", LESSON]
    with pytest.raises(BuildError, match="01_sample, 02_other"):
        build(root, ["03"])


def test_without_running_the_solution_has_no_outputs(root):
    write(root, SAMPLE.replace('print("between the exercises")', 'print("between two exercises")'))
    assert root / SOLVED in build(root, execute=False)
    assert [problem for problem in check(root) if "has not run" in problem and "course build 01" in problem]
    assert root / SOLVED in build(root)
    assert check(root) == []


def test_nothing_is_written_when_any_lesson_is_wrong(root):
    before = tree(root)
    write(root, SAMPLE.replace("Sums", "Totals"))
    write(root, f'{CELL} exercis="x"\nx = 2\n', "02_other")
    with pytest.raises(BuildError, match=r"lessons/02_other\.py:1: .*exercis"):
        build(root)
    assert {file: tree(root)[file] for file in before if file != LESSON} == {
        file: data for file, data in before.items() if file != LESSON
    }


def test_text_of_a_notebook_is_stable(tmp_path):
    """Reading a generated file and writing it again changes nothing."""
    made = make_notebooks(read_lesson(write(tmp_path, SAMPLE), LESSON))
    text = to_text(made.student)
    assert to_text(nbformat.reads(text, as_version=4)) == text
