"""Wrong answers, written the way students write them and independently of the catalogue's own code.

A function marked `@wrong("exercise", "misconception")` must be rejected and named; with None it must be rejected.
"""

from collections.abc import Callable
from typing import NamedTuple


class WrongAnswer(NamedTuple):
    exercise: str
    misconception: str | None
    function: Callable


ALL: list[WrongAnswer] = []


def wrong(exercise: str, misconception: str | None = None):
    """Collect a wrong answer of an exercise, with the misconception that it shows."""

    def collect(function: Callable) -> Callable:
        ALL.append(WrongAnswer(exercise, misconception, function))
        return function

    return collect


from wrong_answers import attention, decoding, dot_product, recurrent  # noqa: E402, F401
