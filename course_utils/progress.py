"""What is done over all notebooks: `progress()` shows the exercises and the questions in two tables."""

import sys
import types
from typing import Any

from . import mode, parts, questions
from .plots import Table, table


class Progress:
    """Two tables, as text and as HTML."""

    def __init__(self, exercises: Table, asked: Table, folder: str):
        self.exercises, self.questions, self.folder = exercises, asked, folder

    def __repr__(self) -> str:
        return f"{self.exercises!r}\n\n{self.questions!r}\n\n{self.folder}"

    def _repr_html_(self) -> str:
        tables = self.exercises._repr_html_() + "<br>" + self.questions._repr_html_()
        return f"{tables}<p>{questions.inline_html(self.folder)}</p>"


def progress() -> Progress:
    """Every exercise with its state, and the points of the questions of every lesson.

    An exercise is passed if its check passed in this session, or if a part of it is remembered from before.
    """
    known, stored, seen = parts.exercises(), parts.stored_parts(), parts.session_results()
    rows = [
        (
            entry.notebook,
            name,
            "optional" if entry.optional else "needed",
            _state(stored.get(name), seen.get(name)),
        )
        for name, entry in known.items()
    ]
    needed = [row for row in rows if row[2] == "needed"]
    done = sum(row[3].startswith("passed") for row in needed)
    exercises = table(
        rows, ("notebook", "exercise", "kind", "state"), caption=f"Exercises: {done} of {len(needed)} passed"
    )
    folder = (
        f"Remembered on this computer only, in `{parts.data_folder()}`."
        if mode.remembering()
        else "Nothing is remembered in this run; the tables show this session."
    )
    return Progress(exercises, _question_table(), folder)


def _state(record: dict[str, Any] | None, seen: tuple[int, int, bool] | None) -> str:
    kept = ""
    if record is not None:
        kept = f"remembered {record.get('date', '')}".strip()
    if seen is not None and seen[2]:
        return f"passed, {kept}" if kept else "passed"
    if kept:
        return f"passed, {kept}" if seen is None else f"passed before, {kept}; now {seen[0]} of {seen[1]} points"
    return "not tried yet" if seen is None else f"{seen[0]} of {seen[1]} points"


def _question_table() -> Table:
    known = questions.load()
    rows = []
    for lesson in sorted({question.split(".")[0] for question in known}):
        asked = [question for question in known if question.split(".")[0] == lesson]
        given = [points for question in asked if (points := questions.last_points(question)) is not None]
        rows.append((lesson, len(asked), len(given), sum(given), questions.POINTS * len(asked)))
    return table(rows, ("lesson", "questions", "answered", "points", "of"), caption="Questions")


class _CallableModule(types.ModuleType):
    """`from course_utils import progress` may find this module, not the function; both can be called."""

    def __call__(self) -> Progress:
        return progress()


sys.modules[__name__].__class__ = _CallableModule
