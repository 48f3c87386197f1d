"""The one settings file of a class (TOML): weights of the lessons, deadlines, what a late file costs.

[weights]                   # of the lessons in the total; without this table all points count alike
"01" = 1
"02" = 2

[deadlines]                 # with a time zone, or in the time of the computer that grades
"02" = 2026-11-03T23:59:00+01:00

[late]
per_day = 10                # percent of the earned points for each day that has begun
at_most = 50                # percent
grace_minutes = 15          # how much later than the deadline is not late

[export]
incomplete = true           # points so far, where written answers are not marked yet; else the cell stays empty

[export.canvas]             # the titles of the columns in Canvas, with their ids
"02" = "Lesson 2 (12345)"

[export.moodle]             # the titles of the columns, where Moodle speaks another language
grade = "Bewertung"
"""

import difflib
import math
import tomllib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from course_utils.folders import CourseError
from course_utils.grading.lesson import find, lessons

KEYS = {
    "": ("weights", "deadlines", "late", "export"),
    "late": ("per_day", "at_most", "grace_minutes"),
    "export": ("incomplete", "canvas", "moodle"),
    "export.moodle": ("identifier", "grade", "comments"),
}


@dataclass(frozen=True)
class Settings:
    """What the file says; without a file, late files cost nothing and all points count alike. Percent are 0 to 100."""

    weights: dict[str, float] = field(default_factory=dict)
    deadlines: dict[str, datetime] = field(default_factory=dict)
    per_day: float = 0
    at_most: float = 100
    grace_minutes: float = 0
    incomplete: bool = False
    canvas: dict[str, str] = field(default_factory=dict)
    moodle: dict[str, str] = field(default_factory=dict)

    def days_late(self, notebook: str, submitted: str, marked: bool = False) -> int:
        """Days after the deadline, each begun day as a whole one.

        marked: the platform says that the file is late. Where no time is known, that is one day.
        """
        deadline, time = self.deadlines.get(notebook), _time(submitted)
        if deadline is None or time is None:
            return int(marked)
        over = time - deadline - timedelta(minutes=self.grace_minutes)
        return max(0, math.ceil(over / timedelta(days=1)))

    def penalty(self, days: int) -> float:
        """The share of the points that a file loses, from 0 to 1."""
        return min(self.per_day * days, self.at_most) / 100


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone()  # a time without a zone is that of this computer
    except (ValueError, OverflowError, OSError):
        return None


def read_settings(path: Path | None) -> Settings:
    """Read the file. Raises CourseError, naming the key and the way out, for anything that is not understood."""
    if path is None:
        return Settings()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CourseError(f"--settings {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"--settings {path} is not valid TOML: {error}.") from None
    read = _Reader(path, data)
    late, export = read.table("late"), read.table("export")
    read.known("export.moodle", export.get("moodle", {}))
    settings = Settings(
        weights={stem: read.number(f"weights.{key}", value) for key, stem, value in read.by_lesson("weights")},
        deadlines={stem: read.time(f"deadlines.{key}", value) for key, stem, value in read.by_lesson("deadlines")},
        per_day=read.number("late.per_day", late.get("per_day", 0), 100),
        at_most=read.number("late.at_most", late.get("at_most", 100), 100),
        grace_minutes=read.number("late.grace_minutes", late.get("grace_minutes", 0)),
        incomplete=read.yes_or_no("export.incomplete", export.get("incomplete", False)),
        canvas={stem: str(value) for _, stem, value in read.by_lesson("export", "canvas")},
        moodle={key: str(value) for key, value in export.get("moodle", {}).items()},
    )
    if settings.weights and not any(settings.weights.values()):
        raise CourseError(f"--settings {path}: all weights are 0.")
    return settings


class _Reader:
    """Looks up values and complains with the name of the file."""

    def __init__(self, path: Path, data: dict[str, Any]) -> None:
        self.path, self.data = path, data
        self.known("", data)

    def fail(self, message: str) -> CourseError:
        return CourseError(f"--settings {self.path}: {message}")

    def known(self, table: str, values: Any) -> None:
        if not isinstance(values, dict):
            raise self.fail(f"[{table}] is a table, not {values!r}.")
        for key in values:
            if key not in KEYS[table]:
                near = difflib.get_close_matches(key, KEYS[table], n=1, cutoff=0.5)
                hint = f" Did you mean {near[0]}?" if near else ""
                raise self.fail(
                    f"{f'[{table}] ' if table else ''}{key!r} is unknown.{hint} Known: {', '.join(KEYS[table])}."
                )

    def table(self, name: str) -> dict[str, Any]:
        values = self.data.get(name, {})
        self.known(name, values)
        return values

    def by_lesson(self, *names: str) -> list[tuple[str, str, Any]]:
        """(key, stem of the lesson, value) of a table whose keys are lessons."""
        values: Any = self.data
        for name in names:
            values = values.get(name, {})
        if not isinstance(values, dict):
            raise self.fail(f"[{'.'.join(names)}] is a table, not {values!r}.")
        found, seen = [], set()
        for key, value in values.items():
            stem = find(key)
            if stem is None:
                raise self.fail(
                    f"[{'.'.join(names)}] there is no lesson {key!r}; the lessons are {', '.join(lessons())}."
                )
            if stem in seen:
                raise self.fail(f"[{'.'.join(names)}] lesson {stem} is there twice.")
            seen.add(stem)
            found.append((key, stem, value))
        return found

    def number(self, name: str, value: Any, most: float = math.inf) -> float:
        good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most
        if not good or not math.isfinite(value):
            limit = f" from 0 to {most:g}" if most < math.inf else " from 0 on"
            raise self.fail(f"{name} = {value!r} is not a number{limit}.")
        return float(value)

    def yes_or_no(self, name: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self.fail(f"{name} = {value!r}: write true or false, without quotes.")
        return value

    def time(self, name: str, value: Any) -> datetime:
        if not isinstance(value, datetime):
            raise self.fail(f"{name} = {value!r} is not a time such as 2026-11-03T23:59:00 (without quotes).")
        return value.astimezone()
