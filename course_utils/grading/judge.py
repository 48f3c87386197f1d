"""The points of one exercise, from the inputs that the notebook shows and from others of the same kind."""

import hashlib
import hmac
import json
from dataclasses import replace

from course_utils.checks.answers import untouched
from course_utils.checks.bench import bench
from course_utils.checks.model import Exercise
from course_utils.checks.report import FAILED, NOT_DONE, CaseResult, Finding, Report
from course_utils.checks.run import run_exercise
from course_utils.checks.scalars import settled
from course_utils.checks.values import Answer
from course_utils.grading.model import GRADED, ExerciseResult

SHOWN = 0  # the seed of the inputs in the notebook
NOT_SHOWN = (
    "It is right for the inputs of the notebook, but not for other inputs of the same kind, which are not shown. "
    "Does your code rely on these sizes or numbers?"
)
ALSO = " Some of it fails only for other inputs of the same kind, which are not shown."
LONGEST = 300


def hidden_seed(secret: bytes, exercise: str) -> int:
    """The seed of the inputs that are not shown: the same for everybody, and for every run with the same secret."""
    digest = hmac.new(secret, f"hidden inputs of {exercise}".encode(), hashlib.sha256).digest()
    return 1 + int.from_bytes(digest[:5], "big")


def judge(exercise: Exercise, answer: Answer, again: Answer, secret: bytes) -> Report:
    """The report of the shown inputs, with the points that hold for the hidden ones as well.

    again: the same answer, for the second run.
    """
    report = run_exercise(exercise, answer, SHOWN)
    if not report.points:
        return report
    earned = {case.name: case.points for case in report.cases if case.points}
    failed = _failing(exercise, again, hidden_seed(secret, exercise.name), set(earned))
    if not failed:
        return report
    cases = tuple(replace(case, points=0) if case.name in failed else case for case in report.cases)
    findings = report.findings if not report.passed else (Finding(NOT_SHOWN),)
    if not report.passed:
        findings = (*findings, Finding(ALSO.strip()))
    points = sum(case.points for case in cases)
    return replace(report, points=points, passed=False, state=FAILED, cases=cases, findings=findings, notes=())


def _failing(exercise: Exercise, answer: Answer, seed: int, asked: set[str]) -> set[str]:
    """Which of these cases the answer fails with other inputs. Nothing is diagnosed: nothing of it is shown."""
    failed = set()
    with untouched():
        if not asked <= {case.name for case in exercise.cases}:
            exercise = exercise.by_properties  # the shown inputs were checked so, too
        at = bench(exercise, seed)
        for number, case in enumerate(exercise.cases):
            if case.name in asked and at.problem(number, settled(exercise.outputs, answer.call(at.calls[number]))):
                failed.add(case.name)
    return failed


def result_of(report: Report, scale: float) -> ExerciseResult:
    """A report as a result; scale: the points of the notebook's cell over those of the check."""
    if report.state == NOT_DONE:
        reason = "not done yet"
    elif report.passed:
        reason = "right"
    else:
        reason = report.findings[0].message if report.findings else "not right yet"
        if len(reason) > LONGEST:
            reason = reason[: LONGEST - 2].rstrip() + " …"
    return ExerciseResult(
        report.exercise,
        report.points * scale,
        report.max_points * scale,
        GRADED,
        reason,
        json.loads(json.dumps(report.to_dict())),  # lists, as they are once it has been stored
        tuple(dict.fromkeys(f.misconception for f in report.findings if f.misconception)),
    )


def nothing(exercise: Exercise, reason: str, state: str = FAILED) -> Report:
    """The report on an answer that cannot be called."""
    cases = tuple(CaseResult(c.name, c.shows, 0, c.points) for c in exercise.cases if c.points)
    findings = () if state == NOT_DONE else (Finding(reason),)
    return Report(exercise.name, 0, exercise.max_points, False, state, findings, cases=cases)
