"""Keeps results on disk, one JSON file for each student and lesson, so that a run that was killed goes on.

A file is written under another name and then renamed: it is there as a whole or not at all. A result counts as long as
the digest of its submission is the same; grading one student touches nobody else's file.
"""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from course_utils.grading.lesson import lesson
from course_utils.grading.model import NEEDS_REVIEW, Result, Submission
from course_utils.grading.names import folder_name
from course_utils.grading.platforms import Person
from course_utils.grading.roster import merged
from course_utils.store import write_atomically


@dataclass(frozen=True)
class Stored:
    """A result, and the student's code by cell, which the search for similar answers needs."""

    result: Result
    code: dict[str, str] = field(default_factory=dict)


class Store:
    """The folder `results/` of the output."""

    def __init__(self, out: Path) -> None:
        self.folder = out / "results"

    def path(self, student: str, notebook: str) -> Path:
        """Where the result of a student and lesson is kept."""
        return self.folder / folder_name(student) / f"{notebook}.json"

    def get(self, student: str, notebook: str) -> Stored | None:
        """What is known of a student and lesson; None if nothing is, or if the file is damaged."""
        return _load(self.path(student, notebook))

    def known(self, submission: Submission, digest: str) -> Stored | None:
        """The result of this very file, if it is kept and was not a failure of the grader."""
        stored = self.get(submission.student, submission.notebook)
        if stored is None or stored.result.digest != digest or failed(stored.result):
            return None
        result = replace(stored.result, late=submission.late, submitted=submission.submitted, origin=submission.origin)
        if result != stored.result:
            self.put(result, stored.code)
        return Stored(result, stored.code)

    def put(self, result: Result, code: dict[str, str]) -> None:
        """Keep a result in the place of an older one."""
        write_atomically(
            self.path(result.student, result.notebook),
            json.dumps({"result": result.to_dict(), "code": code}, indent=1).encode(),
        )

    def all(self) -> list[Stored]:
        """Everything that is kept, by student and lesson."""
        found = [_load(path) for path in self.folder.glob("*/*.json")]
        return sorted((s for s in found if s is not None), key=lambda s: (s.result.student, s.result.notebook))

    def people(self, more: dict[str, Person]) -> dict[str, Person]:
        """All students that this folder knows, after adding some; kept for exports that need a platform's ids."""
        file = self.folder / "people.json"
        try:
            known = {key: Person(**value) for key, value in json.loads(file.read_text(encoding="utf-8")).items()}
        except (OSError, ValueError, TypeError, AttributeError):
            known = {}
        for key, person in more.items():
            known[key] = merged(person, known[key]) if key in known else person
        known = dict(sorted(known.items()))
        if more:
            write_atomically(file, json.dumps({k: asdict(p) for k, p in known.items()}, indent=1).encode())
        return known


def failed(result: Result) -> bool:
    """Whether the grader failed at a submission; the next run tries again."""
    written = {part.name for part in lesson(result.notebook).graded if part.kind == "written"}
    return result.state == NEEDS_REVIEW and any(
        part.state == NEEDS_REVIEW and part.points is None and part.exercise not in written for part in result.exercises
    )


def _load(path: Path) -> Stored | None:
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        stored = Stored(Result.from_dict(data["result"]), dict(data["code"]))
        lesson(stored.result.notebook)
        return stored
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
