"""How long a check takes: the reference, every catalogued mistake, and a few pairs of them, with their diagnosis.

Seconds are those that this process spent computing, so that other work on the machine does not count. Before each
wrong answer everything that checks keep is thrown away: it is checked as the first one after a notebook was opened.
"""

import contextlib
import io
import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from course_utils.checks import EXERCISES, check
from course_utils.checks.bench import bench
from course_utils.checks.model import Exercise
from course_utils.plots import table

BUDGET = {"right, median": 0.030, "wrong, median": 0.300, "slowest": 1.5}
"""Seconds that a check may take on two cores: what a student does not notice, and what a class can wait for."""

PAIRS = 3  # of each exercise; the search for two mistakes at once is the longest


@dataclass
class Timing:
    """Seconds of the checks of one exercise; those of wrong answers with their names."""

    name: str
    right: list[float]
    wrong: list[tuple[float, str]]
    pairs: list[tuple[float, str]] = field(default_factory=list)


def seconds(answer: Callable[..., Any], name: str) -> float:
    """Seconds of computing that one check takes, its report as text included."""
    with contextlib.redirect_stdout(io.StringIO()):
        started = time.process_time()
        str(check(answer, name))
        return time.process_time() - started


def time_exercise(exercise: Exercise, repeats: int) -> Timing:
    """Times the reference `repeats` times after a first, unmeasured check, every mistake once, and some pairs."""
    seconds(exercise.reference, exercise.name)
    right = [seconds(exercise.reference, exercise.name) for _ in range(repeats)]
    wrong = [(_cold(answer, exercise.name), mistake.id) for (mistake,), answer in exercise.singles()]
    pairs = list(exercise.pairs())
    some = pairs[:: max(1, len(pairs) // PAIRS)][:PAIRS]
    both = [(_cold(exercise.pair(a, b), exercise.name), f"{a.id} + {b.id}") for a, b in some]
    return Timing(exercise.name, right, wrong, both)


def _cold(answer: Callable[..., Any], name: str) -> float:
    bench.cache_clear()
    return seconds(answer, name)


def summary(timings: Iterable[Timing]) -> dict[str, float]:
    """Median of all right and of all wrong answers, and the slowest check of all, in seconds."""
    timings = list(timings)
    right = [s for t in timings for s in t.right]
    wrong = [s for t in timings for s, _ in (*t.wrong, *t.pairs)]
    return {
        "right, median": statistics.median(right),
        "wrong, median": statistics.median(wrong),
        "slowest": max(right + wrong),
    }


def row(timing: Timing) -> tuple[str, float, int, float, float, str]:
    """What the table shows of an exercise, in milliseconds."""
    wrong = [*timing.wrong, *timing.pairs]
    worst, mistake = max(wrong)
    median = statistics.median(s for s, _ in wrong)
    return timing.name, 1e3 * statistics.median(timing.right), len(wrong), 1e3 * median, 1e3 * worst, mistake


def main(repeats: int = 5) -> int:
    """Print the table; 1 if a budget is exceeded."""
    os.environ["COURSE_REMEMBER"] = "0"
    torch.set_num_threads(1)
    timings = [time_exercise(exercise, repeats) for exercise in EXERCISES.values()]
    header = ("exercise", "right, ms", "mistakes", "wrong: median, ms", "slowest, ms", "which")
    caption = "Computing time of a check, report included, one thread; wrong answers with nothing kept from before"
    print(repr(table([row(t) for t in timings], header, caption=caption)))
    print()
    found = summary(timings)
    for name, value in found.items():
        verdict = "within" if value <= BUDGET[name] else "OVER"
        print(f"{name}: {1e3 * value:.0f} ms, {verdict} the budget of {1e3 * BUDGET[name]:.0f} ms (computing time)")
    return int(any(found[name] > BUDGET[name] for name in BUDGET))
