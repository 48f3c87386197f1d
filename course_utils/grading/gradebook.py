"""Fills a gradebook of nbgrader through its own API, so that formgrader can be used to mark written answers.

What is filled: assignments, notebooks, cells with their points, students, submissions, automatic scores; and, in
autograded/, each notebook put together from the course's cells and the student's. What is not: outputs, since the
notebooks were not executed as a whole. Scores that a person gave in formgrader are read back, never overwritten.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from course_utils.folders import CourseError, course_root
from course_utils.grading.lesson import WRITTEN, Lesson, lesson, source_of
from course_utils.grading.model import Result
from course_utils.grading.names import folder_name
from course_utils.grading.records import Mark, Records
from course_utils.grading.results import Stored
from course_utils.store import write_atomically

EPOCH = datetime(2000, 1, 1)  # nbgrader keeps times without a zone


def fill(url: str, records: Records, out: Path) -> tuple[Records, list[str]]:
    """Fill the gradebook at `url`; returns the records with the marks that were given in formgrader.

    Raises CourseError where nbgrader or the database's driver is not installed, or the database does not answer.
    """
    with _open(url) as book:
        for notebook in records.notebooks:
            _assignment(book, lesson(notebook))
        for student in records.students:
            _student(book, records, student)
        # Marks first: an answer that has changed since it was marked has to be marked again.
        marks = _marks(book, records, out)
        for stored in records.stored:
            _submission(book, stored.result, marks)
        book.db.commit()
    for notebook in records.notebooks:  # formgrader lists what is in source/
        path = out / "source" / notebook / f"{notebook}.ipynb"
        if not path.exists():
            write_atomically(path, _handed_out(notebook).read_bytes())
    for stored in records.stored:
        _autograded(out, stored)
    records = replace(records, marks={**marks, **records.marks})
    note = f"filled the gradebook {_without_password(url)}; {len(marks)} marks given in formgrader were taken from it"
    return records, [note]


@contextmanager
def _open(url: str) -> Iterator[Any]:
    try:
        from nbgrader.api import Gradebook
    except ImportError:
        raise CourseError('--gradebook needs nbgrader: pip install "attention-course[author]".') from None
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

    if url.startswith("sqlite:///"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
    path = os.environ.get("PATH", "")
    # A new database is stamped by the program alembic, which lies beside this Python.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), path])
    try:
        with Gradebook(url) as book:
            yield book
    except ArgumentError:
        raise CourseError(
            f"--gradebook {_without_password(url)} is no address of a database. "
            "Write sqlite:///gradebook.db or postgresql+psycopg://user:password@host/name."
        ) from None
    except ImportError as error:
        raise CourseError(
            f'--gradebook: the driver of the database is missing ({error}): pip install "psycopg[binary]".'
        ) from None
    except SQLAlchemyError as error:
        raise CourseError(f"--gradebook {_without_password(url)}: {str(error).splitlines()[0]}") from None
    finally:
        os.environ["PATH"] = path


def _assignment(book: Any, form: Lesson) -> None:
    book.update_or_create_assignment(form.notebook)
    book.update_or_create_notebook(form.notebook, form.notebook)
    for cell in form.cells:
        if not cell.grade_id:
            continue
        where = (cell.grade_id, form.notebook, form.notebook)
        if cell.grade:
            book.update_or_create_grade_cell(*where, max_score=cell.points, cell_type=cell.kind)
        if cell.solution:
            book.update_or_create_solution_cell(*where)
        book.update_or_create_source_cell(*where, source=cell.source, cell_type=cell.kind, locked=cell.locked)


def _student(book: Any, records: Records, student: str) -> None:
    person = records.people.get(student)
    first, _, last = (person.name if person else "").rpartition(" ")
    # The id is the name of a folder in autograded/, so it is the safe form of the student's.
    book.update_or_create_student(
        folder_name(student),
        first_name=first or None,
        last_name=last or student,
        email=(person.email if person else "") or None,
    )


def _submission(book: Any, result: Result, marks: dict[tuple[str, str, str], Mark]) -> None:
    student, notebook = folder_name(result.student), result.notebook
    book.update_or_create_submission(notebook, student, timestamp=_time(result.submitted))
    cells = {part.name: part for part in lesson(notebook).graded}
    for part in result.exercises:
        graded = cells.get(part.exercise)
        if graded is None:  # an optional exercise has no cell with points
            continue
        grade = book.find_grade(graded.cell, notebook, notebook, student)
        grade.auto_score = part.points
        marked = (result.student, notebook, part.exercise) in marks
        if not marked:
            grade.manual_score = None
        # Whatever has no number needs a person; an empty written answer has 0 and needs nobody.
        grade.needs_manual_grade = part.points is None and not marked


def _marks(book: Any, records: Records, out: Path) -> dict[tuple[str, str, str], Mark]:
    """The scores that a person gave in formgrader to the answers as they are now."""
    from nbgrader.api import MissingEntry

    marks = {}
    for stored in records.stored:
        result, before = stored.result, _shown_before(out, stored.result)
        for part in lesson(result.notebook).graded:
            try:
                where = (part.cell, result.notebook, result.notebook, folder_name(result.student))
                grade = book.find_grade(*where)
            except MissingEntry:
                continue
            text = result.written.get(part.name)
            changed = part.kind == WRITTEN and before is not None and before.get(part.cell) != text and text is not None
            if grade.manual_score is not None and not changed:
                comment = next((c.comment for c in grade.notebook.comments if c.name == part.cell), None)
                marks[result.student, result.notebook, part.name] = Mark(float(grade.manual_score), comment or "")
    return marks


def _shown_before(out: Path, result: Result) -> dict[str, str] | None:
    """The cells by grade id as formgrader showed them until now; None if there was nothing."""
    try:
        cells = json.loads(_autograded_path(out, result).read_text(encoding="utf-8"))["cells"]
        return {cell["metadata"].get("nbgrader", {}).get("grade_id", ""): source_of(cell) for cell in cells}
    except (OSError, ValueError, KeyError):
        return None


def _autograded_path(out: Path, result: Result) -> Path:
    return out / "autograded" / folder_name(result.student) / result.notebook / f"{result.notebook}.ipynb"


def _autograded(out: Path, stored: Stored) -> None:
    """The notebook that formgrader shows: the course's cells, with the student's code and text in their places."""
    result = stored.result
    book = json.loads(_handed_out(result.notebook).read_text(encoding="utf-8"))
    for cell in book["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
        text = stored.code.get(name, result.written.get(name))
        if text is not None:
            cell["source"] = text
    write_atomically(_autograded_path(out, result), (json.dumps(book, indent=1) + "\n").encode())


def _handed_out(notebook: str) -> Path:
    return course_root() / "notebooks" / f"{notebook}.ipynb"


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return EPOCH
    return time.astimezone().replace(tzinfo=None) if time.tzinfo else time


def _without_password(url: str) -> str:
    head, at, tail = url.rpartition("@")
    return f"{head.split('://', 1)[0]}://…@{tail}" if at else url
