"""Grades a submission: rebuilds the notebook, runs the student's code in the sandbox, judges what comes back.

The checks run here; the student's code never does.
"""

import hashlib
import sys
import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from course_utils.grading import rebuild
from course_utils.grading.lesson import Lesson, lesson
from course_utils.grading.marking import Marking, fault
from course_utils.grading.model import (
    GRADED,
    NEEDS_REVIEW,
    SECONDS,
    UNREADABLE,
    ExerciseResult,
    Result,
    Submission,
    Unreadable,
)
from course_utils.grading.remote import WHOLE, Told
from course_utils.grading.sandbox import AUTO, Sandbox


class Grader:
    """Grades one submission after another, in one sandbox. A context manager.

    secret: draws the hidden inputs. timeout: seconds for a cell, and for a call of an answer.
    isolation: "auto", "bubblewrap" or "none"; CourseError if bubblewrap is asked for and does not work.
    """

    def __init__(self, secret: bytes, timeout: float = SECONDS, isolation: str = AUTO) -> None:
        self.secret, self.timeout, self.whole = secret, timeout, WHOLE * timeout
        self._wanted = isolation
        self._sandbox: Sandbox | None = None

    def __enter__(self) -> "Grader":
        return self

    def __exit__(self, *_: Any) -> None:
        self._close()

    def restart(self) -> None:
        """End the sandbox; the next submission gets a new one."""
        self._close()

    def _close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox, started when it is first used."""
        if self._sandbox is None:
            self._sandbox = Sandbox(self._wanted)
        return self._sandbox

    @property
    def isolation(self) -> str:
        """How students' code is kept apart: "bubblewrap" or "none"."""
        return self.sandbox.isolation

    def grade(self, submission: Submission) -> Result:
        """The result; never raises because of what was submitted."""
        sys.audit("course.grade", submission.student)
        started = time.monotonic()
        base = Result(
            submission.student,
            submission.notebook,
            digest_of(submission, self.secret),
            GRADED,
            isolation=self.isolation,
            late=submission.late,
            submitted=submission.submitted,
            origin=submission.origin,
        )
        form = lesson(submission.notebook)
        try:
            taken = rebuild.take(submission.raw, submission.notebook)
        except Unreadable as exc:
            parts = form.without_points(UNREADABLE, str(exc))
            return replace(base, state=UNREADABLE, exercises=parts, notes=(str(exc),), seconds=_since(started))
        except Exception as exc:
            return replace(base, **_failed(form, exc), seconds=_since(started))
        told = Told(notes=list(taken.notes), seconds=self.whole)
        try:
            parts = Marking(self, form, taken, told).results()
        except Exception as exc:
            self.restart()
            return replace(base, **_failed(form, exc), written=dict(taken.written), seconds=_since(started))
        return replace(
            base,
            state=NEEDS_REVIEW if any(_failed_here(part) for part in parts) else GRADED,
            exercises=tuple(parts),
            notes=tuple(dict.fromkeys(told.notes)),
            written=dict(taken.written),
            seconds=_since(started),
        )


def digest_of(submission: Submission, secret: bytes) -> str:
    """Equal for equal files, graded by the same version of the course with the same secret."""
    whole = hashlib.sha256()
    for part in (submission.notebook.encode(), submission.raw, version().encode(), hashlib.sha256(secret).digest()):
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


@lru_cache
def version() -> str:
    """A fingerprint of the course: its package and its notebooks."""
    from course_utils.folders import course_root, shipped_notebooks

    whole = hashlib.sha256()
    for path in [*sorted(Path(__file__).parents[1].rglob("*.py")), *shipped_notebooks(course_root())]:
        whole.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def _since(started: float) -> float:
    return round(time.monotonic() - started, 3)


def _failed(form: Lesson, exc: Exception) -> dict[str, Any]:
    """The fields of a result where the grader itself failed: no number, somebody has to look."""
    reason = fault(exc)
    return {"state": NEEDS_REVIEW, "exercises": form.without_points(NEEDS_REVIEW, reason), "notes": (reason,)}


def _failed_here(part: ExerciseResult) -> bool:
    return part.points is None and not part.exercise.startswith("written_")
