"""What the results of a class say together: marks by hand put in, who is missing, and points after the late policy."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from course_utils.grading.lesson import WRITTEN, lesson, lessons
from course_utils.grading.model import GRADED, NEEDS_REVIEW, NOT_SUBMITTED, ExerciseResult, Result
from course_utils.grading.platforms import Person
from course_utils.grading.results import Stored
from course_utils.grading.settings import Settings


class Mark(NamedTuple):
    """Points that a person gave, and the answer that they are for ("": whatever it is)."""

    points: float
    comment: str = ""
    answer: str = ""

    def holds(self, text: str) -> bool:
        """Whether the answer is still the one that was marked; spaces and what a spreadsheet adds do not count."""
        return not self.answer.strip() or _bare(self.answer) == _bare(text)


NOT_THERE = "No file was handed in."


@dataclass(frozen=True)
class Total:
    """One student's lesson in one number, or why there is none.

    points: what is known, less what being late costs; None if nothing is known. max_points: of what is known.
    waiting: parts without a number (written answers to be read, failures), each as a name with its points.
    """

    student: str
    notebook: str
    state: str
    points: float | None
    max_points: float
    waiting: tuple[str, ...] = ()
    days_late: int = 0
    penalty: float = 0

    @property
    def complete(self) -> bool:
        """Whether a number for the whole lesson is known."""
        return self.points is not None and not self.waiting


@dataclass(frozen=True)
class Records:
    """All results of a class: as stored, who is who, ids of the roster, settings, and marks that a person gave."""

    stored: tuple[Stored, ...]
    people: dict[str, Person] = field(default_factory=dict)
    roster: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    marks: dict[tuple[str, str, str], Mark] = field(default_factory=dict)

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """The results with marks by hand in them, by student and lesson."""
        return tuple(_marked(stored.result, self.marks) for stored in self.stored)

    @cached_property
    def notebooks(self) -> tuple[str, ...]:
        """The lessons of which anybody handed in something, in the order of the course."""
        seen = {result.notebook for result in self.results}
        return tuple(stem for stem in lessons() if stem in seen)

    @cached_property
    def students(self) -> tuple[str, ...]:
        """Everybody who handed in something or is on the roster."""
        return tuple(sorted({result.student for result in self.results} | set(self.roster)))

    @cached_property
    def missing(self) -> tuple[tuple[str, str], ...]:
        """Students of the roster who handed in nothing for a lesson."""
        there = {(result.student, result.notebook) for result in self.results}
        pairs = ((student, notebook) for student in sorted(set(self.roster)) for notebook in self.notebooks)
        return tuple(pair for pair in pairs if pair not in there)

    @cached_property
    def everything(self) -> tuple[Result, ...]:
        """Results of all, those who are missing included, by student and lesson."""
        return tuple(
            sorted(
                (*self.results, *(missing_result(*pair) for pair in self.missing)),
                key=lambda r: (r.student, r.notebook),
            )
        )

    @cached_property
    def totals(self) -> dict[tuple[str, str], Total]:
        """A total for each student and lesson."""
        return {(r.student, r.notebook): self._total(r) for r in self.everything}

    def _total(self, result: Result) -> Total:
        known = [part for part in result.exercises if part.points is not None]
        waiting = tuple(f"{p.exercise} ({p.max_points:g})" for p in result.exercises if p.points is None)
        if result.state == NOT_SUBMITTED or not known:
            return Total(result.student, result.notebook, result.state, None, 0, waiting)
        days = self.settings.days_late(result.notebook, result.submitted, result.late)
        penalty = self.settings.penalty(days)
        points = sum(part.points for part in known) * (1 - penalty)
        return Total(
            result.student,
            result.notebook,
            result.state,
            round(points, 4),
            sum(part.max_points for part in known),
            waiting,
            days,
            penalty,
        )

    def percent(self, student: str, complete: bool = True) -> float | None:
        """A student's total over all lessons in percent, by the weights of the settings.

        complete: None unless every lesson has its number; else the total of what is known so far, if anything is.
        """
        parts = [self.totals[student, notebook] for notebook in self.notebooks if (student, notebook) in self.totals]
        if complete and (len(parts) < len(self.notebooks) or not all(part.complete for part in parts)):
            return None
        parts = [part for part in parts if part.points is not None and part.max_points]
        weights = self.settings.weights
        share = {p.notebook: weights.get(p.notebook, 0) if weights else lesson(p.notebook).max_points for p in parts}
        whole = sum(share.values())
        if not whole:
            return None
        return round(100 * sum(share[p.notebook] * (p.points or 0) / p.max_points for p in parts) / whole, 2)


def did_run(result: Result) -> bool:
    """Whether any of the student's code was run, so that it matters how it was kept apart."""
    return any(part.points is not None for part in result.exercises)


def missing_result(student: str, notebook: str) -> Result:
    """The result of somebody who handed in nothing: no number, since a platform would take 0 for a grade."""
    return whole(student, notebook, NOT_SUBMITTED, NOT_THERE)


def whole(student: str, notebook: str, state: str, reason: str, **more: object) -> Result:
    """A result in which every part is in the same state, for the same reason, without a number."""
    parts = lesson(notebook).without_points(state, reason)
    return Result(student, notebook, more.pop("digest", ""), state, parts, **more)


def waiting_answers(results: Iterable[Result]) -> list[tuple[Result, ExerciseResult, str]]:
    """Written answers that a person has to mark: the result, the part, and the text."""
    found = []
    for result in results:
        written = {part.name for part in lesson(result.notebook).graded if part.kind == WRITTEN}
        for part in result.exercises:
            if part.exercise in written and part.state == NEEDS_REVIEW and part.points is None:
                found.append((result, part, result.written.get(part.exercise, "")))
    return found


def _bare(text: str) -> str:
    return "".join(text.lstrip("'").split())[:1000]


def _marked(result: Result, marks: dict[tuple[str, str, str], Mark]) -> Result:
    """The result with the marks that a person gave; a mark replaces whatever was there, unless the answer changed."""
    parts = []
    for part in result.exercises:
        mark = marks.get((result.student, result.notebook, part.exercise))
        if mark is None or not mark.holds(result.written.get(part.exercise, "")):
            parts.append(part)
        else:
            reason = f"Marked by hand. {mark.comment}".strip()
            parts.append(replace(part, points=mark.points, state=GRADED, reason=reason))
    state = result.state
    if state == NEEDS_REVIEW and all(part.points is not None for part in parts):
        state = GRADED
    return replace(result, exercises=tuple(parts), state=state)
