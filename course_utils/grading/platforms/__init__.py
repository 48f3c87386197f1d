"""How learning platforms name what students hand in: one file a platform.

Each module has `reader(source)`, which returns a function from an entry to a Claim, to a sentence that says why the
entry belongs to nobody, or to None for an entry it knows nothing about; or None if the source is not its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course_utils.grading.archives import Entry, Source


@dataclass(frozen=True)
class Person:
    """A student as a platform calls them; ids of other platforms are empty. `id` is stable on its platform."""

    id: str
    name: str = ""
    email: str = ""
    canvas: str = ""
    moodle: str = ""
    gradescope: str = ""
    github: str = ""


@dataclass(frozen=True)
class Claim:
    """An entry that belongs to somebody (to several in a group).

    file: the name the student gave it. attempt: compares; the largest is the newest. submitted: ISO time if known.
    """

    people: tuple[Person, ...]
    file: str
    attempt: tuple[Any, ...] = ()
    late: bool = False
    submitted: str = ""


Reader = Callable[[Entry], "Claim | str | None"]


def recognise(source: Source) -> tuple[str, Reader]:
    """The name of the platform that a source comes from, and the function that reads its entries."""
    from course_utils.grading.platforms import canvas, classroom, gradescope, moodle, nbgrader, plain

    for name, module in {
        "Gradescope": gradescope,
        "Moodle": moodle,
        "nbgrader": nbgrader,
        "Canvas": canvas,
        "GitHub Classroom": classroom,
    }.items():
        if (reader := module.reader(source)) is not None:
            return name, reader
    return "plain files", plain.reader(source)
