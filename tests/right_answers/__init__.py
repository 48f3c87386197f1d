"""Right answers in many styles; every one must pass with full points and no finding."""

from collections.abc import Callable
from typing import NamedTuple


class RightAnswer(NamedTuple):
    exercise: str
    function: Callable


ALL: list[RightAnswer] = []


def right(exercise: str):
    """Collect a right answer of an exercise."""

    def collect(function: Callable) -> Callable:
        ALL.append(RightAnswer(exercise, function))
        return function

    return collect


from right_answers import (  # noqa: E402, F401
    attention,
    blocks,
    layers,
    masking,
    models,
    modules,
    self_attention,
    sequences,
    vision,
)
