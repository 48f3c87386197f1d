"""Finds the misconception whose own wrong result an answer reproduces, or says what was observed.

A misconception is a program: it runs on the inputs on which the answer failed. What reproduces the answer's
numbers, NaN, gradients, written arguments and errors is its explanation. Two mistakes at once are tried next,
then one mistake for each failing case. What nothing reproduces is described.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from course_utils.checks.answers import LocalAnswer
from course_utils.checks.compare import (
    Problem,
    as_tuple,
    first_problem,
    loose_positions,
    repeats,
    same_error,
    same_form,
    same_gradients,
    same_values,
)
from course_utils.checks.model import Case, Exercise, Misconception
from course_utils.checks.observe import CaseRun, observed
from course_utils.checks.report import Finding
from course_utils.checks.scalars import settled
from course_utils.checks.values import Answer, Call, Outcome, Raised

MAX_FINDINGS = 4
MAX_TIED = 2
Explanation = tuple[Misconception, ...]


@dataclass
class Bench:
    """The calls of an exercise for one seed, with the reference's outcomes; candidates are run once and kept."""

    exercise: Exercise
    calls: list[Call]
    wanted: list[Outcome]
    kept: dict[tuple[int, int, bool], Outcome] = field(default_factory=dict)
    singles: list[tuple[Explanation, Callable[..., Any]]] | None = None

    def candidates(self) -> list[tuple[Explanation, Callable[..., Any]]]:
        """Every misconception in every variant."""
        if self.singles is None:
            self.singles = list(self.exercise.singles())
        return self.singles

    def outcome(self, number: int, case: int, forward_only: bool) -> Outcome:
        """What candidate `number` does in a case."""
        key = (number, case, forward_only)
        if key not in self.kept:
            self.kept[key] = _run(self.candidates()[number][1], self, case, forward_only)
        return self.kept[key]


@lru_cache(maxsize=64)
def bench(exercise: Exercise, seed: int) -> Bench:
    """The calls and the reference's outcomes; the same for the same seed."""
    calls = [case.call(1000 * seed + number) for number, case in enumerate(exercise.cases)]
    answer = LocalAnswer(exercise.reference)
    return Bench(exercise, calls, [settled(exercise.outputs, answer.call(call)) for call in calls])


def explain(at: Bench, answer: Answer, runs: list[CaseRun]) -> list[Finding]:
    """The findings for an answer that failed some case with points."""
    failing = [i for i, run in enumerate(runs) if run.problem and run.case.points]
    whole = _whole_explanations(at, runs, failing)
    if whole:
        first = runs[failing[0]].case
        tied = [_named(m, first) for m in _unique(m for e in whole for m in e)]
        # Two misconceptions that behave alike in every case: the answer cannot say which one it is.
        return tied[: MAX_TIED if len(whole[0]) == 1 else MAX_FINDINGS]
    named = _partial_explanations(at, runs, failing)
    findings = [_named(m, runs[cases[0]].case) for m, cases in named]
    seen = set()
    for number in failing:
        problem = runs[number].problem
        if any(number in cases for _, cases in named) or (problem.kind, problem.output) in seen:
            continue
        seen.add((problem.kind, problem.output))
        findings.append(observed(at.exercise, answer, at.calls[number], runs[number], at.wanted[number]))
    return findings[:MAX_FINDINGS]


def advice(at: Bench, runs: list[CaseRun]) -> list[str]:
    """Notes from the advisory cases, for an answer that passed all the others."""
    return [run.case.note for run in runs if run.problem and not run.case.points and run.case.note]


def _named(misconception: Misconception, case: Case) -> Finding:
    message = misconception.says
    if misconception.convention:
        message = f"{message} In this course: {misconception.convention}"
    return Finding(message, misconception.id, misconception.hints, case.name)


def _unique(items: Iterable[Misconception]) -> list[Misconception]:
    return list({m.id: m for m in items}.values())


def _run(function: Callable[..., Any], at: Bench, case: int, forward_only: bool) -> Outcome:
    call = at.calls[case]
    outcome = LocalAnswer(function).call(call.forward_only() if forward_only else call)
    return settled(at.exercise.outputs, outcome)


def _whole_explanations(at: Bench, runs: list[CaseRun], failing: list[int]) -> list[Explanation]:
    """Explanations that reproduce the answer in every case with points; the closest ones."""
    found: list[tuple[float, Explanation]] = []
    for number, (explanation, _) in enumerate(at.candidates()):
        run = partial(at.outcome, number)
        if _reproduces(at, runs, failing, run):
            found.append((_distance(at, runs, run), explanation))
    if not found:
        possible = _possible_pair(at, runs, failing[0])
        for explanation, function in at.exercise.pairs():
            run = partial(_run, function, at)
            if possible(*explanation) and _reproduces(at, runs, failing, run):
                found.append((_distance(at, runs, run), explanation))
        found = sorted(found, key=lambda f: f[0])[:1]
    if not found:
        return []
    best = min(distance for distance, _ in found)
    # In the order of the catalogue: what is equally close differs by rounding only.
    return [e for distance, e in found if distance <= 10 * best + 1e-14]


Run = Callable[[int, bool], Outcome]


def _possible_pair(at: Bench, runs: list[CaseRun], case: int) -> Callable[[Misconception, Misconception], bool]:
    """Whether two misconceptions together are worth a run: of those that change nothing in a case, most are not."""
    changes: dict[str, bool] = {}
    alike: dict[str, bool] = {}
    for number, ((misconception, *_), _) in enumerate(at.candidates()):
        if misconception.id not in changes:  # pairs are made of the first variants
            changes[misconception.id] = _problem(at, case, at.outcome(number, case, False)) is not None
            alike[misconception.id] = _likeness(at, runs[case], case, partial(at.outcome, number)) > 0

    def possible(a: Misconception, b: Misconception) -> bool:
        if changes[a.id] and changes[b.id]:
            return True
        return (changes[a.id] and alike[a.id]) or (changes[b.id] and alike[b.id])

    return possible


def _reproduces(at: Bench, runs: list[CaseRun], failing: list[int], run: Run) -> bool:
    exact = False
    for number in failing:
        likeness = _likeness(at, runs[number], number, run)
        if not likeness:
            return False
        exact = exact or likeness > 1
    if not exact:
        return False
    for number, student in enumerate(runs):
        if student.problem is None and student.case.points and _problem(at, number, run(number, False)) is not None:
            return False
    return True


def _likeness(at: Bench, student: CaseRun, number: int, run: Run) -> int:
    """How alike a wrong outcome and a candidate's are.

    3: the same values, or an error with the same message; 2: the same message but for sizes; 1: an error of the
    same type; 0: something else.
    """
    got, other = student.outcome, run(number, student.case.compare is None)
    if student.case.must_raise and got.error is None and other.error is None:
        return 2
    if got.error is not None or other.error is not None:
        return _alike_errors(got.error, other.error)
    if student.case.compare is not None:
        same = _same_result(at, number, got, other)
    else:
        loose = loose_positions(student.case, at.calls[number], len(at.exercise.outputs))
        same = _same_but_loose(got.value, other.value, loose, student.case.tolerance)
    if same and student.case.keeps_inputs:
        same = got.changed == other.changed
    if same and student.case.compare is None and (student.case.gradients_of or student.case.repeat):
        full = run(number, False)
        same = same_gradients(got, full) and repeats(got) == repeats(full)
    return 3 if same else 0


def _alike_errors(a: Raised | None, b: Raised | None) -> int:
    if a is None or b is None or a.kind != b.kind:
        return 0
    if a.message == b.message:
        return 3
    return 2 if same_error(a, b) else 1


def _same_result(at: Bench, number: int, a: Outcome, b: Outcome) -> bool:
    """The same by the case's own comparison; where that does not apply, the same values."""
    first, second = as_tuple(a.value), as_tuple(b.value)
    count = len(at.exercise.outputs)
    if not len(first) == len(second) == count or not all(map(same_form, first, second)):
        return same_values(a.value, b.value)
    return not at.exercise.cases[number].compare(at.calls[number], a, b)


def _same_but_loose(a: Any, b: Any, loose: tuple[Tensor | None, ...], tolerance: float | None) -> bool:
    """Same values; at loose positions only whether the numbers are finite."""
    if all(free is None for free in loose):
        return same_values(a, b, tolerance)
    first, second = as_tuple(a), as_tuple(b)
    if len(first) != len(second):
        return False
    # Not strict: where an answer returns too much or too little, what it shares with the right one is compared.
    return same_values(
        tuple(_soften(x, f) for x, f in zip(first, loose, strict=False)),
        tuple(_soften(x, f) for x, f in zip(second, loose, strict=False)),
        tolerance,
    )


def _soften(value: Any, free: Tensor | None) -> Any:
    if free is None or not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    try:
        return value.masked_fill(free & value.isfinite(), 0.0)
    except RuntimeError:  # a result of another shape
        return value


def _problem(at: Bench, number: int, outcome: Outcome) -> Problem | None:
    return first_problem(at.exercise.cases[number], at.calls[number], at.exercise.outputs, outcome, at.wanted[number])


def _distance(at: Bench, runs: list[CaseRun], run: Run) -> float:
    """How far a candidate is from the answer in double precision, where tiny differences still tell."""
    worst = 0.0
    for number, student in enumerate(runs):
        if student.outcome.error is not None:
            continue
        pairs = zip(as_tuple(student.outcome.value), as_tuple(run(number, True).value), strict=False)
        for a, b in pairs:
            if isinstance(a, Tensor) and isinstance(b, Tensor) and a.dtype == b.dtype == torch.float64:
                if a.shape != b.shape:
                    return 1.0
                gap = (a - b).abs() / (1 + b.abs())
                worst = max(worst, float(gap.nan_to_num(0.0, 0.0, 0.0).max()))
    return worst


def _partial_explanations(at: Bench, runs: list[CaseRun], failing: list[int]) -> list[tuple[Misconception, list[int]]]:
    """Misconceptions that reproduce a part of the failing cases, or show their symptom; each with its cases.

    At least half of the failing cases must be reproduced: in a single extreme case many mistakes look alike.
    """
    matches: list[tuple[tuple[int, int, int], list[int], Misconception]] = []
    for candidate, (explanation, _) in enumerate(at.candidates()):
        alike = {n: _likeness(at, runs[n], n, partial(at.outcome, candidate)) for n in failing}
        cases = [n for n in failing if alike[n] > 1]
        if 2 * len(cases) >= len(failing):
            also_right = sum(
                _problem(at, n, at.outcome(candidate, n, False)) is None for n in range(len(runs)) if n not in alike
            )
            matches.append(((len(cases), sum(alike.values()), also_right), cases, explanation[0]))
    found: list[tuple[Misconception, list[int]]] = []
    left = set(failing)
    for _, cases, misconception in sorted(matches, key=lambda match: match[0], reverse=True):
        if left & set(cases) and all(m.id != misconception.id for m, _ in found):
            found.append((misconception, cases))
            left -= set(cases)
    for misconception in at.exercise.misconceptions:
        if misconception.symptom:
            cases = [n for n in sorted(left) if misconception.symptom(runs[n].outcome, at.wanted[n])]
            if cases and all(m.id != misconception.id for m, _ in found):
                found.append((misconception, cases))
                left -= set(cases)
    return found
