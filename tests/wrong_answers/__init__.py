"""Wrong answers, written the way students write them and independently of the catalogue's own code.

A function marked `@wrong("exercise", "misconception")` must be rejected and named; with None it must be rejected.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from course_utils.checks import Report, check


class WrongAnswer(NamedTuple):
    exercise: str
    misconception: str | None
    function: Callable

    def report(self, seed: int = 0) -> Report:
        """What its check says; several tests look at the same report."""
        return _report(self.function, self.exercise, seed)


@cache
def _report(function: Callable, exercise: str, seed: int) -> Report:
    return check(function, exercise, seed=seed)


ALL: list[WrongAnswer] = []


def wrong(exercise: str, misconception: str | None = None):
    """Collect a wrong answer of an exercise, with the misconception that it shows."""

    def collect(function: Callable) -> Callable:
        ALL.append(WrongAnswer(exercise, misconception, function))
        return function

    return collect


from wrong_answers import (  # noqa: E402, F401
    attention,
    blocks,
    decoding,
    dot_product,
    layers,
    masking,
    models,
    modules,
    patches,
    rates,
    readers,
    recurrent,
    self_attention,
    training,
    vision,
)
