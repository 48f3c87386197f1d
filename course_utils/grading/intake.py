"""From the paths of the command to submissions: every entry is mapped to a student and a lesson, or explained."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_utils.folders import CourseError
from course_utils.grading.archives import ARCHIVES, NEVER_READ, Source, read_source
from course_utils.grading.model import Submission, Unreadable
from course_utils.grading.names import identify
from course_utils.grading.platforms import Claim, Person, recognise
from course_utils.grading.roster import Roster, merged

SHOWN = 4  # paths of one platform that are named
TAKEN, OLDER, IGNORED, UNKNOWN = "taken", "older attempt", "left out", "not understood"


@dataclass(frozen=True)
class Line:
    """What became of one entry: TAKEN, OLDER, IGNORED or UNKNOWN, and why."""

    origin: str
    what: str
    why: str = ""


@dataclass(frozen=True)
class Refused:
    """A file whose student and lesson are known, and which cannot even be read."""

    student: str
    notebook: str
    origin: str
    reason: str


@dataclass
class Collected:
    """Everything that was handed in. strangers: ids of students who are not on the roster."""

    submissions: list[Submission] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    people: dict[str, Person] = field(default_factory=dict)
    strangers: list[str] = field(default_factory=list)
    platforms: list[str] = field(default_factory=list)


@dataclass
class _Candidate:
    """One file for one student and lesson; raw is None where it could not be read, or where it is not the newest."""

    student: str
    notebook: str
    claim: Claim
    origin: str
    raw: bytes | None
    order: int
    why: str

    @property
    def age(self) -> tuple[Any, ...]:
        """Compares; the largest is the newest."""
        return self.order, self.claim.attempt, self.origin


def collect(paths: Iterable[Path], roster: Roster | None = None, leave_out: Path | None = None) -> Collected:
    """Read all paths. Raises CourseError for a path that does not exist; anything inside is explained instead.

    leave_out: the folder of results, which may lie in one of the paths.
    """
    collected, candidates = Collected(), []
    read: dict[str, list[str]] = {}
    for order, path in enumerate(paths):
        if not path.exists():
            raise CourseError(f"{path} does not exist. Give a notebook, a folder or an archive.")
        source = read_source(path, leave_out)
        collected.lines += [_left_out(origin, why) for origin, why in source.left_out]
        platform, found = _candidates(source, order, roster, collected)
        read.setdefault(platform, []).append(source.name)
        candidates += found
    _choose(candidates, collected)
    collected.platforms = [f"{_listed(names)}: read as {platform}" for platform, names in read.items()]
    collected.strangers = sorted(set(collected.strangers))
    collected.lines.sort(key=lambda line: (line.what, line.origin))
    return collected


def _left_out(origin: str, why: str) -> Line:
    """A notebook or a whole archive that could not be read is somebody's work, and no matter of course."""
    work = origin.lower().endswith((".ipynb", *ARCHIVES)) and why not in NEVER_READ
    return Line(origin, UNKNOWN if work else IGNORED, why)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _candidates(
    source: Source, order: int, roster: Roster | None, collected: Collected
) -> tuple[str, list[_Candidate]]:
    """The platform that a source comes from, and its notebooks."""
    platform, read = recognise(source)
    found: list[_Candidate] = []
    newest: dict[tuple[str, str], _Candidate] = {}
    for entry in source.entries:
        claim = read(entry)
        if isinstance(claim, str):
            notebook = entry.path.suffix.lower() == ".ipynb"
            collected.lines.append(Line(entry.origin, UNKNOWN if notebook else IGNORED, claim))
            continue
        if entry.path.suffix.lower() != ".ipynb":
            collected.lines.append(Line(entry.origin, IGNORED, "not a notebook"))
            continue
        if claim is None:
            collected.lines.append(Line(entry.origin, UNKNOWN, f"not in a place where {platform} puts submissions"))
            continue
        raw, why = None, ""
        try:
            raw = entry.read()
        except Unreadable as error:
            why = str(error)
        notebook, remark = identify(claim.file, raw or b"")
        if notebook is None:
            collected.lines.append(
                Line(entry.origin, UNKNOWN, why or "no lesson of this course: neither its name nor its cells say which")
            )
            continue
        for person in claim.people:
            student = _student(person, roster, collected)
            candidate = _Candidate(student, notebook, claim, entry.origin, raw, order, why or remark)
            _forget_older(newest, candidate)
            found.append(candidate)
    return platform, found


def _forget_older(newest: dict[tuple[str, str], _Candidate], candidate: _Candidate) -> None:
    """Keep the bytes of one file for each student and lesson: an archive may hold any number of them."""
    known = newest.get((candidate.student, candidate.notebook))
    if known is not None and known.age > candidate.age:
        candidate.raw = None
        return
    if known is not None:
        known.raw = None
    newest[candidate.student, candidate.notebook] = candidate


def _student(person: Person, roster: Roster | None, collected: Collected) -> str:
    """The id of a student, as the roster has it if there is one."""
    match = roster.match(person) if roster is not None else None
    if roster is not None and match is None:
        collected.strangers.append(person.id)
    known = merged(match, person) if match is not None else person
    before = collected.people.get(known.id)
    collected.people[known.id] = merged(before, known) if before is not None else known
    return known.id


def _choose(candidates: list[_Candidate], collected: Collected) -> None:
    """The newest file for each student and lesson; a path named later on the command counts as newer."""
    groups: dict[tuple[str, str], list[_Candidate]] = {}
    for candidate in candidates:
        groups.setdefault((candidate.student, candidate.notebook), []).append(candidate)
    for (student, notebook), files in sorted(groups.items()):
        *older, newest = sorted(files, key=lambda c: c.age)
        for candidate in older:
            collected.lines.append(
                Line(candidate.origin, OLDER, f"{student} handed in {notebook} again: {newest.origin} counts")
            )
        collected.lines.append(
            Line(newest.origin, TAKEN, "; ".join(x for x in (f"{student}, {notebook}", newest.why) if x))
        )
        if newest.raw is None:
            collected.refused.append(Refused(student, notebook, newest.origin, newest.why))
            continue
        claim = newest.claim
        collected.submissions.append(
            Submission(student, notebook, newest.raw, newest.origin, claim.submitted, claim.late)
        )
