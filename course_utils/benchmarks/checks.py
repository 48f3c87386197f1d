"""How long a check takes: the reference, and every catalogued mistake with its diagnosis."""

import contextlib
import io
import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from course_utils.checks import EXERCISES, check
from course_utils.checks.model import Exercise
from course_utils.plots import table

BUDGET = {"right, median": 0.030, "wrong, median": 0.300, "slowest": 1.5}
"""Seconds that a check may take on two cores: what a student does not notice, and what a class can wait for."""


@dataclass
class Timing:
    """Seconds of the checks of one exercise."""

    name: str
    right: list[float]
    wrong: list[tuple[float, str]]


def seconds(answer: Callable[..., Any], name: str) -> float:
    """Wall-clock seconds of one check, its report as text included."""
    started = time.perf_counter()
    str(check(answer, name))
    return time.perf_counter() - started


def time_exercise(exercise: Exercise, repeats: int) -> Timing:
    """Times the reference `repeats` times after a first, unmeasured check, and every catalogued mistake once."""
    seconds(exercise.reference, exercise.name)
    right = [seconds(exercise.reference, exercise.name) for _ in range(repeats)]
    wrong = []
    for (mistake,), answer in exercise.singles():
        with contextlib.redirect_stdout(io.StringIO()):
            wrong.append((seconds(answer, exercise.name), mistake.id))
    return Timing(exercise.name, right, wrong)


def summary(timings: Iterable[Timing]) -> dict[str, float]:
    """Median of all right and of all wrong answers, and the slowest check of all, in seconds."""
    timings = list(timings)
    right = [s for t in timings for s in t.right]
    wrong = [s for t in timings for s, _ in t.wrong]
    return {
        "right, median": statistics.median(right),
        "wrong, median": statistics.median(wrong),
        "slowest": max(right + wrong),
    }


def main(repeats: int = 5) -> int:
    """Print the table; 1 if a budget is exceeded."""
    os.environ["COURSE_REMEMBER"] = "0"
    torch.set_num_threads(1)
    timings = [time_exercise(exercise, repeats) for exercise in EXERCISES.values()]
    rows = []
    for t in timings:
        worst, mistake = max(t.wrong)
        median = statistics.median(s for s, _ in t.wrong)
        rows.append((t.name, 1e3 * statistics.median(t.right), len(t.wrong), 1e3 * median, 1e3 * worst, mistake))
    header = ("exercise", "right, ms", "mistakes", "wrong: median, ms", "slowest, ms", "which")
    print(repr(table(rows, header, caption="Time of a check, report included, one thread")))
    print()
    found = summary(timings)
    for name, value in found.items():
        verdict = "within" if value <= BUDGET[name] else "OVER"
        print(f"{name}: {1e3 * value:.0f} ms, {verdict} the budget of {1e3 * BUDGET[name]:.0f} ms")
    return int(any(found[name] > BUDGET[name] for name in BUDGET))
