"""The calls of an exercise with the reference's outcomes, and what wrong answers of the catalogue do in them."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from course_utils.checks.answers import LocalAnswer
from course_utils.checks.compare import Problem, first_problem
from course_utils.checks.model import Exercise, Misconception
from course_utils.checks.scalars import settled
from course_utils.checks.values import Call, Outcome

Run = Callable[[int, bool], Outcome]
"""What a wrong answer does in a case: its number, and whether the result alone is asked for."""


@dataclass
class Candidate:
    """A misconception in one of its variants, as a function; `first` is the usual variant."""

    misconception: Misconception
    function: Callable[..., Any]
    first: bool


@dataclass
class Bench:
    """The calls of an exercise for one seed, with the reference's outcomes; candidates are run once and kept.

    seconds: how long the reference took in each case; where the order does not matter, cheap cases come first.
    """

    exercise: Exercise
    seed: int
    calls: list[Call]
    wanted: list[Outcome]
    seconds: list[float]
    kept: dict[tuple[int, int, bool], Outcome] = field(default_factory=dict)
    known: list[Candidate] | None = None

    def candidates(self) -> list[Candidate]:
        """Every misconception in every variant."""
        if self.known is None:
            seen: set[str] = set()
            self.known = []
            for (misconception,), function in self.exercise.singles():
                self.known.append(Candidate(misconception, function, misconception.id not in seen))
                seen.add(misconception.id)
        return self.known

    def outcome(self, number: int, case: int, forward_only: bool) -> Outcome:
        """What candidate `number` does in a case."""
        for key in ((number, case, False), (number, case, forward_only)):  # the whole outcome holds the result, too
            if key in self.kept:
                return self.kept[key]
        self.kept[number, case, forward_only] = found = self.run(self.candidates()[number].function, case, forward_only)
        return found

    def run(self, function: Callable[..., Any], case: int, forward_only: bool) -> Outcome:
        """What a function or class of the course does in a case."""
        call = self.calls[case].forward_only() if forward_only else self.calls[case]
        return settled(self.exercise.outputs, LocalAnswer(function).call(call))

    def problem(self, case: int, outcome: Outcome) -> Problem | None:
        """What is wrong with an outcome."""
        return first_problem(
            self.exercise.cases[case], self.calls[case], self.exercise.outputs, outcome, self.wanted[case]
        )


@lru_cache(maxsize=64)
def bench(exercise: Exercise, seed: int) -> Bench:
    """The calls and the reference's outcomes; the same for the same seed."""
    calls = [case.call(1000 * seed + number) for number, case in enumerate(exercise.cases)]
    answer = LocalAnswer(exercise.reference)
    wanted, seconds = [], []
    for call in calls:
        started = time.perf_counter()
        wanted.append(settled(exercise.outputs, answer.call(call)))
        seconds.append(time.perf_counter() - started)
    return Bench(exercise, seed, calls, wanted, seconds)
