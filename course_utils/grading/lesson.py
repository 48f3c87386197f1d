"""What a lesson hands out: its cells, which of them are the student's, and what is graded with how many points.

Read from notebooks/, so that the grader needs nothing that students could not see.
"""

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from course_utils.folders import CourseError, course_root, shipped_notebooks
from course_utils.grading.model import ExerciseResult

EXERCISE, QUESTIONS, WRITTEN = "exercise", "questions", "written"


@dataclass(frozen=True)
class CourseCell:
    """One cell as it was handed out; grade_id is "" for a cell without nbgrader's metadata."""

    id: str
    kind: str
    source: str
    grade_id: str = ""
    solution: bool = False
    grade: bool = False
    locked: bool = False
    points: float = 0


@dataclass(frozen=True)
class Graded:
    """One line of grades.csv: an exercise by its name, "questions_02", or "written_02_W".

    cell: the grade id of the cell that carries the points.
    """

    name: str
    kind: str
    max_points: float
    cell: str


@dataclass(frozen=True)
class Lesson:
    """One notebook of the course."""

    notebook: str
    cells: tuple[CourseCell, ...]

    @property
    def number(self) -> str:
        """ "02" of "02_attention"."""
        return self.notebook.split("_")[0]

    @cached_property
    def by_grade_id(self) -> dict[str, CourseCell]:
        """The cells with nbgrader's metadata."""
        return {cell.grade_id: cell for cell in self.cells if cell.grade_id}

    @cached_property
    def by_id(self) -> dict[str, CourseCell]:
        """All cells by the id of the cell in the file."""
        return {cell.id: cell for cell in self.cells}

    @cached_property
    def exercises(self) -> tuple[str, ...]:
        """The names of all exercises, optional ones too: what students define."""
        return tuple(c.grade_id for c in self.cells if f"check_{c.grade_id}" in self.by_grade_id)

    @cached_property
    def graded(self) -> tuple[Graded, ...]:
        """What gets points, in the order of the notebook."""
        return tuple(_graded(cell) for cell in self.cells if cell.grade)

    def without_points(self, state: str, reason: str) -> tuple[ExerciseResult, ...]:
        """Every graded part in the same state, for the same reason, without a number."""
        return tuple(ExerciseResult(part.name, None, part.max_points, state, reason) for part in self.graded)

    @property
    def max_points(self) -> float:
        """The points of the whole lesson, written answers included."""
        return sum(part.max_points for part in self.graded)


def _graded(cell: CourseCell) -> Graded:
    name, kind = cell.grade_id, QUESTIONS
    if name.startswith("check_"):
        name, kind = name.removeprefix("check_"), EXERCISE
    elif cell.solution:
        kind = WRITTEN
    return Graded(name, kind, cell.points, cell.grade_id)


def source_of(cell: dict[str, Any]) -> str:
    """The text of a cell of a file, which is a string or a list of lines; with "\\n" line ends."""
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str):
        return ""
    # Half a surrogate pair is legal in JSON, and cannot be written anywhere.
    return source.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


@lru_cache
def lessons(root: Path | None = None) -> dict[str, Lesson]:
    """All lessons by the stem of their notebook, in the order of the course."""
    found = shipped_notebooks(root or course_root())
    if not found:
        raise CourseError("There are no notebooks to grade against: notebooks/ is empty. Run `course build`.")
    return {path.stem: _read(path) for path in found}


def lesson(notebook: str) -> Lesson:
    """One lesson by the stem of its notebook. KeyError if there is none."""
    return lessons()[notebook]


def find(name: str) -> str | None:
    """The stem of the lesson that somebody calls "02" or "02_attention"; None if there is none."""
    return next((stem for stem, found in lessons().items() if name in (stem, found.number)), None)


def _read(path: Path) -> Lesson:
    cells = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        cells.append(
            CourseCell(
                cell["id"],
                cell["cell_type"],
                source_of(cell),
                marks.get("grade_id", ""),
                bool(marks.get("solution")),
                bool(marks.get("grade")),
                bool(marks.get("locked")),
                float(marks.get("points", 0)),
            )
        )
    return Lesson(path.stem, tuple(cells))
