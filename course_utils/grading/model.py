"""The plain data that passes between the parts of the grader; no part reaches into another."""

from dataclasses import asdict, dataclass, field
from typing import Any

GRADED, NEEDS_REVIEW, UNREADABLE, NOT_SUBMITTED = "graded", "needs review", "unreadable", "not submitted"
SECONDS = 10.0  # that a cell, or a call of an answer, may take unless the instructor says otherwise
STATES = (GRADED, NEEDS_REVIEW, UNREADABLE, NOT_SUBMITTED)


class Unreadable(Exception):
    """A file from which nothing can be taken; the message says why, in words for the student."""


@dataclass(frozen=True)
class Submission:
    """One file of one student.

    student: a stable id: that of the roster, else what the platform calls the student.
    notebook: the stem of the lesson, "02_attention".
    raw: the file as it was submitted.
    origin: where it came from, for people ("moodle.zip/Ann Bell_12_assignsubmission_file_/02.ipynb").
    submitted: ISO time if known. late: marked so by the platform, or by the deadline of the settings.
    """

    student: str
    notebook: str
    raw: bytes
    origin: str
    submitted: str = ""
    late: bool = False


@dataclass(frozen=True)
class Taken:
    """What of a submission is the student's.

    cells: (grade_id of a solution cell, or None for a cell the student added; source), in the order to run them.
    written: the text of each written answer by question id.
    notes: what was odd and what was done about it, for the student and the instructor.
    """

    notebook: str
    cells: tuple[tuple[str | None, str], ...]
    written: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExerciseResult:
    """The points of one graded part: an exercise ("rnn_step"), the questions, or a written answer ("written_01_W").

    points: None where there is no number: a person has to look, or the grader failed.
    report: `Report.to_dict()` of the check, or the rows of the table of questions. No hidden case is in it.
    misconceptions: ids, in the order of the findings.
    """

    exercise: str
    points: float | None
    max_points: float
    state: str
    reason: str
    report: dict[str, Any] | None = None
    misconceptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """The result of one submission.

    state: "unreadable"; "needs review" where the grader failed somewhere or did not understand; else "graded". A
        written answer, which a person reads anyway, changes nothing here: its own state is "needs review".
    digest: of the file, the grader's own version and the secret: equal digests have equal results.
    isolation: how the student's code was kept apart: "bubblewrap" or "none".
    """

    student: str
    notebook: str
    digest: str
    state: str
    exercises: tuple[ExerciseResult, ...] = ()
    notes: tuple[str, ...] = ()
    isolation: str = "none"
    seconds: float = 0.0
    written: dict[str, str] = field(default_factory=dict)
    late: bool = False
    submitted: str = ""
    origin: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The result as plain lists, dicts, strings and numbers, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> "Result":
        """The result that `to_dict` described. TypeError or KeyError for anything else."""
        exercises = tuple(
            ExerciseResult(**{**e, "misconceptions": tuple(e["misconceptions"])}) for e in stored["exercises"]
        )
        return cls(**{**stored, "exercises": exercises, "notes": tuple(stored["notes"])})
