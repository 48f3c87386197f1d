"""How alike the outcomes of an answer and of a wrong answer of the catalogue are, in a case where the answer failed."""

from typing import Any

import torch
from torch import Tensor

from course_utils.checks.bench import Bench, Run
from course_utils.checks.compare import (
    as_tuple,
    loose_positions,
    repeats,
    same_error,
    same_form,
    same_gradients,
    same_values,
)
from course_utils.checks.observe import CaseRun
from course_utils.checks.values import Outcome, Raised


def likeness(at: Bench, student: CaseRun, number: int, run: Run) -> int:
    """How alike a wrong outcome and a candidate's are.

    3: the same values, or an error with the same message; 2: the same message but for sizes; 1: an error of the
    same type; 0: something else.
    """
    got, other = student.outcome, run(number, student.case.compare is None)
    if _misfits(got) != _misfits(other):
        return 0  # no weights were copied into one of the two, so its numbers say nothing about the other
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


def _misfits(outcome: Outcome) -> set[str]:
    return set() if outcome.inside is None else set(outcome.inside.misfits)


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


def distance(runs: list[CaseRun], run: Run) -> float:
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


def form(outcome: Outcome) -> tuple[Any, ...]:
    """What an outcome is, apart from its numbers: the type of an error, or the shapes of the results."""
    if outcome.error is not None:
        return ("error", outcome.error.kind)
    return tuple(tuple(v.shape) if isinstance(v, Tensor) else type(v).__name__ for v in as_tuple(outcome.value))


def change(outcome: Outcome, wanted: Outcome) -> Tensor:
    """By how much the numbers of a result of the right form are off, in one row."""
    pairs = zip(as_tuple(outcome.value), as_tuple(wanted.value), strict=True)
    gaps = [(a.double() - b.double()).flatten() for a, b in pairs if isinstance(a, Tensor)]
    return torch.cat([torch.zeros(1, dtype=torch.float64), *gaps]).nan_to_num(1e9, 1e9, -1e9)
