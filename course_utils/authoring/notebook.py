"""A lesson as two notebooks: what students get, and the same solved.

The cells carry nbgrader's metadata, and nbgrader's own preprocessors make the student's form, so that an
instructor who works with nbgrader can use the notebooks as they are.
"""

import copy
import hashlib
import json
from collections import Counter
from dataclasses import dataclass

from .cells import source
from .exercises import TIERS, Exercise, Hints
from .lesson import Lesson, Part, Plain, QuestionTotal, Written
from .questions import Question

EXERCISE_POINTS = 10
QUESTION_POINTS = 2
WRITTEN_POINTS = 5
STUB = 'raise NotImplementedError("your code here: replace this line")'
TEXT_STUB = "Your answer here"

Lines = dict[str, tuple[int, list[int]]]  # cell id -> line of its "# %%", lines of its source


@dataclass
class Draft:
    """One cell of both notebooks. `lines` are the lines of the lesson that its solved source comes from."""

    id: str
    kind: str
    solved: str
    line: int
    lines: list[int]
    marked: str | None = None  # the form that nbgrader clears; None: the same as solved
    stub: str = STUB
    nbgrader: dict | None = None
    tags: tuple[str, ...] = ()


@dataclass
class Notebooks:
    """Both notebooks of a lesson; `lines` says where in the lesson its cells come from."""

    student: dict
    solved: dict
    lines: Lines


def make_notebooks(lesson: Lesson) -> Notebooks:
    """Make both notebooks of a lesson; the solved one is not executed here."""
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    drafts: list[Draft] = []
    for part in lesson.parts:
        drafts += _drafts(part, lesson)
    _name_plain_cells(drafts)

    cells = []
    for draft in drafts:
        new_cell = new_code_cell if draft.kind == "code" else new_markdown_cell
        cell = new_cell(draft.marked if draft.marked is not None else draft.solved, id=draft.id)
        if draft.nbgrader:
            cell.metadata["nbgrader"] = {"schema_version": 3, "task": False, **draft.nbgrader}
        if draft.tags:
            cell.metadata["tags"] = list(draft.tags)
        cells.append(cell)
    student = new_notebook(cells=cells, metadata=_metadata(lesson))
    student.nbformat, student.nbformat_minor = 4, 5
    student = _handed_out(student, drafts)

    # The metadata is the same in both: the checksums are those of the notebook that was handed out.
    solved = copy.deepcopy(student)
    solved.metadata["course"]["answers"] = _digest([question.entry() for question in lesson.questions])
    for cell, draft in zip(solved.cells, drafts, strict=True):
        cell.source = draft.solved
    return Notebooks(student, solved, {draft.id: (draft.line, draft.lines) for draft in drafts})


def _handed_out(notebook: dict, drafts: list[Draft]) -> dict:
    """The student's form, by nbgrader's preprocessors."""
    from nbgrader.preprocessors import (
        CheckCellMetadata,
        ClearHiddenTests,
        ClearOutput,
        ClearSolutions,
        ComputeChecksums,
        LockCells,
    )

    resources: dict = {"language": "python"}
    for i, draft in enumerate(drafts):
        # Cell by cell, since the answer cell of a question has a stub of its own.
        clear = ClearSolutions(code_stub={"python": draft.stub}, text_stub=TEXT_STUB)
        notebook.cells[i], _ = clear.preprocess_cell(notebook.cells[i], resources, i)
    for step in (ClearHiddenTests, ClearOutput, LockCells, ComputeChecksums, CheckCellMetadata):
        notebook, resources = step().preprocess(notebook, resources)
    return notebook


def _metadata(lesson: Lesson) -> dict:
    return {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "course": {"note": f"generated from {lesson.file}; edit that file and run course build"},
    }


def _digest(value: object) -> str:
    """Changes when an answer or its explanation does, so that the outputs that show it are made again."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _nbgrader(grade_id: str, *, grade=False, solution=False, locked=False, points: int | None = None) -> dict:
    metadata = {"grade_id": grade_id, "grade": grade, "solution": solution, "locked": locked}
    return metadata if points is None else {**metadata, "points": points}


def _drafts(part: Part, lesson: Lesson) -> list[Draft]:
    """The cells that one part of the lesson becomes."""
    if isinstance(part, Plain):
        lines = [line.number for line in part.lines]
        return [Draft("", part.kind, source(part.lines), part.line, lines, tags=part.tags)]
    if isinstance(part, Exercise):
        return _exercise(part)
    if isinstance(part, Hints):
        text = "\n\n".join(
            f"<details>\n<summary>Hint {i} of {TIERS}</summary>\n\n{tier}\n\n</details>"
            for i, tier in enumerate(part.tiers, 1)
        )
        return [Draft(f"hints-{part.exercise}", "markdown", text, part.line, [])]
    if isinstance(part, Question):
        return _question(part)
    if isinstance(part, Written):
        return _written(part)
    assert isinstance(part, QuestionTotal)
    text = f'score = question_points("{lesson.number}")\ndisplay(score)\nscore.points'
    points = QUESTION_POINTS * len(lesson.questions)
    grade = _nbgrader(f"questions_{lesson.number}", grade=True, locked=True, points=points)
    return [Draft(f"questions-{lesson.number}", "code", text, part.line, [], nbgrader=grade)]


def _exercise(exercise: Exercise) -> list[Draft]:
    name = exercise.name
    dots = "●" * exercise.difficulty + "○" * (3 - exercise.difficulty)
    about = (
        f"**{'Optional exercise' if exercise.optional else 'Exercise'} `{name}`**:"
        f" difficulty {exercise.difficulty} of 3 ({dots}), about {exercise.minutes} minutes, "
        + ("does not count towards your points." if exercise.optional else f"{EXERCISE_POINTS} points.")
    )
    check = f"report = check({name})\ndisplay(report)\nreport.points"
    hidden = source(exercise.hidden)
    marked = f"### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS\n{check}" if hidden else None
    if exercise.optional:
        grade = _nbgrader(f"check_{name}", locked=True)
    else:
        grade = _nbgrader(f"check_{name}", grade=True, locked=True, points=EXERCISE_POINTS)
    return [
        Draft(f"about-{name}", "markdown", about, exercise.line, []),
        Draft(
            f"exercise-{name}",
            "code",
            source(exercise.solved),
            exercise.line,
            [line.number for line in exercise.solved],
            marked=source(exercise.marked),
            nbgrader=_nbgrader(name, solution=True),
        ),
        Draft(
            f"check-{name}",
            "code",
            f"{hidden}\n{check}" if hidden else check,
            exercise.line,
            [line.number for line in exercise.hidden],
            marked=marked,
            nbgrader=grade,
        ),
    ]


def _question(question: Question) -> list[Draft]:
    plain = question.id.replace(".", "-")
    return [
        Draft(f"question-{plain}", "markdown", source(question.prompt), question.line, []),
        Draft(
            f"answer-{plain}",
            "code",
            question.call(question.right),
            question.line,
            [],
            stub=question.call(None),
            nbgrader=_nbgrader(f"answer_{plain.replace('-', '_')}", solution=True),
        ),
    ]


def _written(written: Written) -> list[Draft]:
    plain = written.id.replace(".", "-")
    grade_id = f"written_{plain.replace('-', '_')}"
    return [
        Draft(
            f"written-{plain}",
            "markdown",
            source(written.prompt),
            written.line,
            [],
            nbgrader=_nbgrader(f"{grade_id}_question", locked=True),
        ),
        Draft(
            f"written-{plain}-answer",
            "markdown",
            f"**Marking guide**\n\n{source(written.guide)}",
            written.line,
            [],
            nbgrader=_nbgrader(grade_id, grade=True, solution=True, points=WRITTEN_POINTS),
        ),
    ]


def _name_plain_cells(drafts: list[Draft]) -> None:
    """Give ordinary cells an id made from what they say: moving or inserting cells changes no other id."""
    seen: Counter[str] = Counter()
    for draft in drafts:
        if not draft.id:
            text = json.dumps([draft.kind, draft.solved, draft.tags])
            name = f"{draft.kind}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
            seen[name] += 1
            draft.id = name if seen[name] == 1 else f"{name}-{seen[name]}"


def to_text(notebook: dict) -> str:
    """The notebook as the text of its file: the same on every system."""
    import nbformat

    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"
