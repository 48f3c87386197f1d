"""Marks one submission, part by part in the order of the notebook: exercises, questions, written answers."""

import contextlib
from functools import lru_cache
from typing import Protocol

from course_utils.checks import EXERCISES
from course_utils.checks.model import Exercise
from course_utils.checks.report import NOT_DONE, Report
from course_utils.grading import choices, judge, rebuild
from course_utils.grading.lesson import EXERCISE, QUESTIONS, Graded, Lesson, lesson
from course_utils.grading.lesson_code import Binding, bindings, solution_order
from course_utils.grading.model import GRADED, NEEDS_REVIEW, ExerciseResult, Taken
from course_utils.grading.remote import Desk, Piece, RemoteAnswer, Told
from course_utils.grading.sandbox import Gone, Sandbox

UNWRITTEN = "Your answer here"
BEGINNING = 50  # characters of a cell's first line in a note
KINDS = {
    "class": "a class",
    "instance": "an instance of a module",
    "function": "a function",
    "value": "a value",
}


class Office(Protocol):
    """What a marking needs of the grader."""

    secret: bytes
    timeout: float

    @property
    def sandbox(self) -> Sandbox:
        """Where students' code runs."""

    def restart(self) -> None:
        """Give the sandbox up, after something went wrong that should not."""


def fault(exc: Exception) -> str:
    return f"The grader failed, which is not the student's fault: {type(exc).__name__}: {exc}"[:400]


@lru_cache
def _own_lines(notebook: str) -> tuple[dict[str, int], tuple[Binding, ...]]:
    """The order of a lesson's solution cells, and its lines that choose whose function is used."""
    form = lesson(notebook)
    return solution_order(form), tuple(bindings(form))


class Marking:
    """The marking of one submission, part by part in the order of the notebook."""

    def __init__(self, grader: Office, form: Lesson, taken: Taken, told: Told) -> None:
        self._grader, self._form, self._taken, self._told = grader, form, taken, told
        self._pieces = pieces(form, taken)
        self._failed: list[str] = []
        self._desk: Desk | None = None  # the process in which cells run and answers are called, as in a kernel

    def results(self) -> list[ExerciseResult]:
        """One result for each graded part."""
        try:
            return [self._result(part) for part in self._form.graded]
        finally:
            self._leave()

    def _leave(self) -> None:
        if self._desk is not None:
            self._desk.end()
            self._desk = None

    def _result(self, part: Graded) -> ExerciseResult:
        try:
            if part.kind == EXERCISE:
                return self._exercise(part)
            return self._questions(part) if part.kind == QUESTIONS else self._written(part)
        except Exception as exc:  # a fault of the grader is no reason to give a student no points
            self._leave()
            self._grader.restart()
            return ExerciseResult(part.name, None, part.max_points, NEEDS_REVIEW, fault(exc))

    def _written(self, part: Graded) -> ExerciseResult:
        text = self._taken.written.get(part.name, "").strip()
        if text in ("", UNWRITTEN):
            return ExerciseResult(part.name, 0, part.max_points, GRADED, "not done yet")
        return ExerciseResult(part.name, None, part.max_points, NEEDS_REVIEW, "a written answer is read by a person")

    # Exercises

    def _exercise(self, part: Graded) -> ExerciseResult:
        exercise = EXERCISES[part.name]
        if self._untouched(part.name):
            report = judge.nothing(exercise, "not done yet", NOT_DONE)
        else:
            report = self._report(exercise)
        if not report.passed:
            self._failed.append(part.name)
        return judge.result_of(report, part.max_points / exercise.max_points)

    def _untouched(self, name: str) -> bool:
        """Whether the cell is as it was handed out, and no other cell speaks of its name."""
        stub = rebuild.plain(self._form.by_grade_id[name].source)
        own = [source for grade_id, source in self._taken.cells if grade_id == name]
        others = (source for grade_id, source in self._taken.cells if grade_id != name)
        return len(own) == 1 and rebuild.plain(own[0]) == stub and not any(name in source for source in others)

    def _report(self, exercise: Exercise) -> Report:
        """The report of the process in which all exercises are called; of another one where that may not do justice."""
        if self._desk is None:
            self._desk = self._new_desk()
        end = self._end(exercise.name)
        report, incomplete = self._try(self._desk, exercise, end)
        if not report.passed and self._desk.refused - {exercise.name}:
            # It called the reference of another exercise of this lesson: in the notebook that is there.
            with self._new_desk(exercise.name) as desk:
                report, incomplete = self._try(desk, exercise, end)
        if incomplete and end < len(self._pieces):
            # Not there yet when the check would run; it may stand further down, as in a kernel where all has run.
            with self._new_desk() as desk:
                later, _ = self._try(desk, exercise, len(self._pieces))
            report = later if later.points > report.points else report
        return report

    def _new_desk(self, exercise: str | None = None) -> Desk:
        grader = self._grader
        return Desk(grader.sandbox, self._form.notebook, self._pieces, self._told, grader.timeout, exercise)

    def _end(self, name: str) -> int:
        """How many cells have run when the check of an exercise runs: all before the next cell of the course's own."""
        places = [i for i, piece in enumerate(self._pieces) if piece.grade_id == name]
        if not places:
            return len(self._pieces)
        others = enumerate(self._pieces[places[-1] + 1 :], places[-1] + 1)
        after = (i for i, piece in others if piece.grade_id is not None or piece.place < 0)
        return next(after, len(self._pieces))

    def _try(self, desk: Desk, exercise: Exercise, end: int) -> tuple[Report, bool]:
        """The report after the first `end` cells, and whether something is missing that later cells may define."""
        desk.run(end, self._failed)
        try:
            found, _ = desk.ask({"op": "find", "name": exercise.name})
        except Gone as exc:
            return judge.nothing(exercise, f"Your notebook {exc}."), False
        kind = found.get("kind")
        if kind not in KINDS:
            return judge.nothing(exercise, self._why_missing(exercise.name)), True
        if kind not in (("class",) if exercise.is_class else ("function",)):
            wanted = "a class" if exercise.is_class else "a function"
            return judge.nothing(exercise, f"{exercise.name} has to be {wanted}; here it is {KINDS[kind]}."), False
        shown, hidden = RemoteAnswer(desk, exercise.name), RemoteAnswer(desk, exercise.name)
        report = judge.judge(exercise, shown, hidden, self._grader.secret)
        undefined = any("NameError" in finding.message for finding in report.findings)
        return report, report.state == NOT_DONE or undefined

    def _why_missing(self, name: str) -> str:
        """Why nothing has this name: its cell did not run to its end, or there is none."""
        places = [piece.place for piece in self._pieces if piece.grade_id == name]
        ended = [self._told.ended[place] for place in places if place in self._told.ended]
        if ended:
            return f"The cell of {name} {ended[-1]}, so there is no {name} to be graded."
        return f"There is no {name} in your notebook."

    # Questions

    def _questions(self, part: Graded) -> ExerciseResult:
        given: list[choices.Choice] = []
        for place, (_, source) in enumerate(self._taken.cells):
            found = choices.written_choices(source)
            given += self._computed(place) if found is None else found
        judged = choices.judge(self._form.number, given)
        rows = [
            {
                "question": a.question,
                "answered": a.answered,
                "right": a.correct if a.answered else None,
                "points": a.points,
                "max_points": a.max_points,
                "message": a.message,
            }
            for a in judged
        ]
        answered, right = sum(a.answered for a in judged), sum(a.correct for a in judged)
        reason = f"{right} of {len(judged)} right" if answered else "not done yet"
        if 0 < answered < len(judged):
            reason += f", {len(judged) - answered} not answered"
        points = sum(a.points for a in judged)
        return ExerciseResult(part.name, points, part.max_points, GRADED, reason, {"questions": rows})

    def _computed(self, place: int) -> list[choices.Choice]:
        """The answers of a cell that computes them, from the process in which it ran."""
        if place not in self._told.choices and place not in self._told.lost:
            if self._desk is None:
                self._desk = self._new_desk()
            self._desk.run(len(self._pieces), self._failed)
            with contextlib.suppress(Gone):
                self._desk.ready()
        return self._told.choices.get(place, [])


def pieces(form: Lesson, taken: Taken) -> list[Piece]:
    """The cells to run, and between them the lesson's own lines that say whose function is used.

    Cells that only answer questions need not run: what they say is read.
    """
    order, lines = _own_lines(form.notebook)
    waiting = [Piece("", line.source, -1 - number) for number, line in enumerate(lines)]
    found: list[Piece] = []
    for place, (grade_id, source) in enumerate(taken.cells):
        while grade_id in order and waiting and lines[-len(waiting)].after <= order[grade_id]:
            found.append(waiting.pop(0))
        if choices.written_choices(source) or not source.strip():
            continue
        name = f"`{grade_id}`" if grade_id else f"that you added and that begins with `{_beginning(source)}`"
        found.append(Piece(name, source, place, grade_id))
    return found + waiting


def _beginning(source: str) -> str:
    """The first line of a cell, as students find it: numbers of cells are shown nowhere."""
    line = source.strip().split("\n")[0].replace("`", "'")
    return line if len(line) <= BEGINNING else f"{line[:BEGINNING].rstrip()} …"
