"""The list of the class: a CSV file whose columns are documented in docs/instructors.md."""

import csv
import difflib
import io
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from course_utils.folders import CourseError
from course_utils.grading.platforms import Person

COLUMNS = {
    "student": ("student", "id", "student id", "username", "login"),
    "name": ("name", "full name", "student name"),
    "email": ("email", "email address", "e-mail"),
    "canvas": ("canvas", "canvas id"),
    "moodle": ("moodle", "moodle id", "moodle participant", "participant"),
    "gradescope": ("gradescope", "gradescope id", "sid"),
    "github": ("github", "github username"),
}


@dataclass
class Roster:
    """The students of a class by their id, in the order of the file."""

    people: dict[str, Person] = field(default_factory=dict)

    def match(self, person: Person) -> Person | None:
        """The student of the roster that a platform means, by ids or address, else by a name that only one has."""
        for key in ("canvas", "moodle", "gradescope", "github", "email"):
            value = getattr(person, key).casefold()
            hits = [p for p in self.people.values() if value and getattr(p, key).casefold() == value]
            if len(hits) == 1:
                return hits[0]
        if person.id in self.people:
            return self.people[person.id]
        wanted = {person.id.casefold(), person.gradescope.casefold()} - {""}
        for key in ("id", "email", "github"):
            hits = [p for p in self.people.values() if getattr(p, key).casefold() in wanted]
            if len(hits) == 1:
                return hits[0]
        # A name decides only where the platform gave no id that the roster could have had.
        names = {_words(person.name), _words(person.id)} - {""}
        hits = [p for p in self.people.values() if _words(p.name) in names]
        return hits[0] if len(hits) == 1 else None


def _words(name: str) -> str:
    """A name without order, case and punctuation: "Bell, Ann" is "ann bell"."""
    return " ".join(sorted("".join(c if c.isalnum() else " " for c in name.casefold()).split()))


def merged(mine: Person, theirs: Person) -> Person:
    """A person of the roster, with what only the platform knew."""
    return replace(mine, **{f.name: getattr(mine, f.name) or getattr(theirs, f.name) for f in fields(Person)})


def read_roster(path: Path) -> Roster:
    """Read the file. Raises CourseError, naming line and way out, for anything that cannot be meant."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CourseError(f"--roster {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise CourseError(f"--roster {path} is not in UTF-8. Save it as CSV UTF-8.") from None
    dialect = ";" if text.split("\n", 1)[0].count(";") > text.split("\n", 1)[0].count(",") else ","
    rows = list(csv.reader(io.StringIO(text), delimiter=dialect))
    if not rows:
        raise CourseError(f"--roster {path} is empty. It needs a header and a row for each student.")
    columns = _columns(path, rows[0])
    people: dict[str, Person] = {}
    for number, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        values = {key: row[i].strip() if i < len(row) else "" for key, i in columns.items()}
        student = values.pop("student")
        if not student:
            raise CourseError(f"--roster {path}, line {number}: the column student is empty.")
        if student in people:
            raise CourseError(f"--roster {path}, line {number}: the student {student!r} is there twice.")
        people[student] = Person(student, **values)
    _same_ids(path, people)
    return Roster(people)


def _columns(path: Path, header: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for i, cell in enumerate(header):
        title = " ".join(cell.replace("_", " ").split()).casefold()
        key = next((key for key, titles in COLUMNS.items() if title in titles), None)
        if key is not None and key not in found:
            found[key] = i
    if "student" not in found:
        near = difflib.get_close_matches("student", [cell.casefold() for cell in header], n=1)
        hint = f" Did you mean it by {near[0]!r}?" if near else ""
        raise CourseError(
            f"--roster {path} has no column student; its columns are {', '.join(header)}.{hint} "
            f"Known columns: {', '.join(COLUMNS)}."
        )
    return found


def _same_ids(path: Path, people: dict[str, Person]) -> None:
    for key in ("email", "canvas", "moodle", "gradescope", "github"):
        seen: dict[str, str] = {}
        for student, person in people.items():
            value = getattr(person, key).casefold()
            if value and value in seen:
                raise CourseError(
                    f"--roster {path}: {seen[value]!r} and {student!r} have the same {key} ({getattr(person, key)})."
                )
            seen[value] = student
