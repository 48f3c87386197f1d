"""Benchmarks: `course bench NAME` measures on this machine and prints a table. Nothing here is a test."""

from collections.abc import Callable


def _checks(options) -> int:
    from course_utils.benchmarks.checks import main

    return main(options.repeats)


def _widgets(options) -> int:
    from course_utils.benchmarks.widgets import main

    return main(options.repeats)


def _grading(options) -> int:
    from course_utils.benchmarks.grading import main

    return main()


BENCHMARKS: dict[str, tuple[str, Callable[..., int]]] = {
    "checks": ("how long the check of a right and of a wrong answer takes, for every exercise", _checks),
    "widgets": ("how fast attention is shown in JupyterLab, by the course's viewer and by others", _widgets),
    "grading": ("how fast a class is graded, by the course and by nbgrader (some minutes)", _grading),
}
"""name: (what it measures, the function that runs it on the parsed arguments)."""
