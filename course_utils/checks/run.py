"""Runs an exercise's cases on an answer and makes the report; `check` is what a notebook calls."""

import difflib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from course_utils import parts
from course_utils.checks import limit
from course_utils.checks.answers import LocalAnswer, untouched
from course_utils.checks.bench import Bench, bench
from course_utils.checks.diagnose import advice, explain
from course_utils.checks.exercises import EXERCISES
from course_utils.checks.model import Exercise
from course_utils.checks.observe import CaseRun
from course_utils.checks.report import FAILED, NOT_DONE, PASSED, CaseResult, Finding, Report
from course_utils.checks.scalars import settled
from course_utils.checks.telling import in_words
from course_utils.checks.values import Answer, Outcome


def check(obj: Any, exercise: str | None = None, *, seed: int = 0) -> Report:
    """Check an answer and say what is right and what is not.

    obj: the student's function or class. The exercise is found by its name, or by that of the notebook's variable that
        holds it (`layer_norm = my_norm`), or named by `exercise`.
    seed: draws other inputs of the same kind.
    Never raises because of what a student wrote; raises ValueError where `exercise` names no exercise.
    """
    if exercise is not None and (not isinstance(exercise, str) or exercise not in EXERCISES):
        close = _near(exercise)
        way_out = _ask(close) if close else f"The exercises are: {', '.join(EXERCISES)}."
        raise ValueError(f"check(..., {exercise!r}): there is no exercise of that name. {way_out}")
    name = exercise if exercise is not None else _name_of(obj)
    if name not in EXERCISES:
        return _unusable(exercise or "check", obj, name)
    if isinstance(obj, str | Tensor | nn.Module) or not callable(obj):
        return _unusable(name, obj, name if isinstance(obj, str) else _name_of(obj))
    if isinstance(obj, type) != EXERCISES[name].is_class:
        return _unusable(name, obj, name if isinstance(obj, str) else _name_of(obj))
    report = run_exercise(EXERCISES[name], LocalAnswer(obj, limit.SECONDS), seed)
    parts.remember(obj, report)  # not in run_exercise: a grader remembers nothing
    return report


def run_exercise(exercise: Exercise, answer: Answer, seed: int = 0) -> Report:
    """Run every case of an exercise on an answer, wherever that answer lives."""
    with untouched():
        at = bench(exercise, seed)
        runs: list[CaseRun] = []
        for run in _runs(at, answer):
            if not runs and _is_stub(run.outcome):
                return Report(exercise.name, 0, exercise.max_points, False, NOT_DONE, optional=exercise.optional)
            if not runs and _missing(exercise, run.outcome):
                return _by_properties(exercise, answer, seed, _missing(exercise, run.outcome))
            runs.append(run)
        return _report(at, answer, runs)


def passes(exercise: Exercise, answer: Answer, seed: int = 0) -> bool:
    """Whether `run_exercise` would pass an answer; ends with the first case that fails, and asks for no reason."""
    with untouched():
        for number, run in enumerate(_runs(bench(exercise, seed), answer)):
            if not number and _missing(exercise, run.outcome):
                return passes(exercise.by_properties, answer, seed)
            if run.problem and run.case.points:
                return False
        return True


def _runs(at: Bench, answer: Answer) -> Iterator[CaseRun]:
    for number, case in enumerate(at.exercise.cases):
        outcome = settled(at.exercise.outputs, answer.call(at.calls[number]))
        yield CaseRun(case, outcome, at.problem(number, outcome))


def _missing(exercise: Exercise, outcome: Outcome) -> tuple[str, ...]:
    """The weights that a module does not hold, where properties can take the place of numbers."""
    return () if not exercise.properties or outcome.inside is None else outcome.inside.missing


def _by_properties(exercise: Exercise, answer: Answer, seed: int, missing: tuple[str, ...]) -> Report:
    """The report on a module into which no weights can be copied."""
    report = run_exercise(exercise.by_properties, answer, seed)
    names = in_words((f"`{name}`" for name in missing), "or")
    return replace(report, notes=(*report.notes, _OWN_WEIGHTS.format(names)))


_OWN_WEIGHTS = (
    "Your module does not hold {} (as in the statement), and offers no `copy_from(reference)`; so no weights could be "
    "copied into it, and only its properties were checked."
)


def _report(at: Bench, answer: Answer, runs: list[CaseRun]) -> Report:
    # An answer that raises an error at everything has not refused the impossible.
    something = any(r.problem is None and r.case.points and not r.case.must_raise for r in runs)
    results = tuple(
        CaseResult(r.case.name, r.case.shows, 0 if r.problem or not something else r.case.points, r.case.points)
        for r in runs
        if r.case.points
    )
    passed = all(r.problem is None or not r.case.points for r in runs)
    return Report(
        exercise=at.exercise.name,
        points=sum(r.points for r in results),
        max_points=at.exercise.max_points,
        passed=passed,
        state=PASSED if passed else FAILED,
        findings=() if passed else tuple(explain(at, answer, runs)),
        notes=tuple(advice(at, runs)) if passed else (),
        cases=results,
        optional=at.exercise.optional,
    )


def _is_stub(outcome: Outcome) -> bool:
    """An untouched exercise raises NotImplementedError itself; torch raises it too, from inside.

    Where the answer calls another exercise that is not done yet, it is that one which is the stub.
    """
    error = outcome.error
    return error is not None and error.kind == "NotImplementedError" and error.by_student and not error.within


def _name_of(obj: Any) -> str:
    if isinstance(obj, str):
        return obj
    try:
        meant = parts.name_of(obj)
        name = meant if meant in EXERCISES else obj.__name__
    except Exception:
        return ""
    return name if isinstance(name, str) else ""


def _near(name: Any) -> list[str]:
    return difflib.get_close_matches(str(name), EXERCISES, n=3, cutoff=0.6)


def _ask(close: list[str]) -> str:
    return f"Did you mean {in_words(map(repr, close), 'or')}?"


def _unusable(exercise: str, obj: Any, name: str) -> Report:
    """A report on something that cannot be checked: it says what to pass instead."""
    known, shown = exercise in EXERCISES, name[:60]
    if isinstance(obj, str):
        message = f"You passed a text. Pass the function itself, without quotes: check({shown})."
    elif isinstance(obj, nn.Module | type) and known and not EXERCISES[exercise].is_class:
        made = "a class" if isinstance(obj, type) else "an instance of a class"
        message = f"You passed {made}; this exercise asks for a function. Define it with `def {exercise}(...):`."
    elif isinstance(obj, nn.Module):
        kind = type(obj).__name__[:60]
        message = f"You passed an instance. Pass the class itself, without parentheses after its name: check({kind})."
    elif callable(obj) and known and EXERCISES[exercise].is_class:
        message = f"This exercise asks for a class. Define it with `class {exercise}(nn.Module):`."
    elif obj is None:
        what = "class" if known and EXERCISES[exercise].is_class else "function"
        message = (
            f"You passed None, perhaps the result of a call. Pass the {what} itself, without parentheses after it."
        )
    elif callable(obj):
        message = _nameless(name)
    else:
        message = (
            f"You passed a value (of type {type(obj).__name__}), perhaps the result of a call. Pass the function "
            "itself, without parentheses after its name: check(rnn_step), not check(rnn_step(x, h, ...))."
        )
    maximum = EXERCISES[exercise].max_points if known else 10
    return Report(exercise, 0, maximum, False, FAILED, (Finding(message, None, _PASSING_HINTS),))


def _nameless(name: str) -> str:
    """What is said of a function that bears the name of no exercise."""
    if name in ("", "<lambda>"):
        what = "A lambda" if name else "This object"
        return f'{what} has no name that says which exercise it answers. Say it: check(..., "rnn_step").'
    shown, close = name[:60], _near(name)
    question = f"{_ask(close)} " if close else ""
    return (
        f"The name `{shown}` is no exercise's. The name after `def` or `class` counts. {question}"
        f'Rename it, or say which exercise it answers: check({shown}, "{close[0] if close else "rnn_step"}").'
    )


_PASSING_HINTS = (
    "What stands between the parentheses of `check(...)`?",
    "The name after `def` is the name of the exercise, letter for letter.",
    "def rnn_step(x, h, W_xh, W_hh, b): ... and then check(rnn_step)",
)
