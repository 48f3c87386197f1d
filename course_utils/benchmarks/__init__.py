"""Benchmarks: `course bench NAME` measures on this machine and prints a table. Nothing here is a test."""

from collections.abc import Callable


def _checks(options) -> int:
    from course_utils.benchmarks.checks import main

    return main(options.repeats)


BENCHMARKS: dict[str, tuple[str, Callable[..., int]]] = {
    "checks": ("how long the check of a right and of a wrong answer takes, for every exercise", _checks),
}
"""name: (what it measures, the function that runs it on the parsed arguments)."""
