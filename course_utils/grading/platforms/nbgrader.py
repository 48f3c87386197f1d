"""nbgrader: `submitted/{student}/{assignment}/FILE`, with the time in `timestamp.txt`."""

from datetime import datetime
from pathlib import PurePosixPath
from zoneinfo import ZoneInfo

from course_utils.grading.archives import Entry, Source
from course_utils.grading.model import Unreadable
from course_utils.grading.platforms import Claim, Person, Reader

OTHERS = ("source", "release", "autograded", "feedback")


def reader(source: Source) -> Reader | None:
    """Reads entries if there is a folder `submitted` in the layout of nbgrader."""
    if not any(_place(source, entry.path) for entry in source.entries):
        return None
    times = {
        entry.path.parent: _time(entry)
        for entry in source.entries
        if entry.path.name == "timestamp.txt" and _place(source, entry.path)
    }

    def claim(entry: Entry) -> Claim | str | None:
        place = _place(source, entry.path)
        if place is None:
            folder = entry.path.parts[0]
            return f"in nbgrader's folder {folder}/, not in submitted/" if folder in OTHERS else None
        if entry.path.name == "timestamp.txt":
            return "the time of submission"
        student, folder = place
        time = times.get(folder, "")
        changed = entry.changed.isoformat() if entry.changed else ""
        return Claim((Person(student),), entry.path.name, (time, changed, entry.path.name), submitted=time)

    return claim


def _place(source: Source, path: PurePosixPath) -> tuple[str, PurePosixPath] | None:
    """The student and the folder of the assignment, if a path has the form submitted/STUDENT/ASSIGNMENT/FILE."""
    parts = path.parts
    if source.name == "submitted" and "submitted" not in parts:
        start = 0
    elif "submitted" in parts:
        start = parts.index("submitted") + 1
    else:
        return None
    return (parts[start], PurePosixPath(*parts[: start + 2])) if len(parts) >= start + 3 else None


def _time(entry: Entry) -> str:
    """ "2026-02-02 15:58:23.948203 America/Los_Angeles" as ISO; "" where it is not understood."""
    try:
        day, clock, *zone = entry.read().decode("utf-8", "replace").split()
        time = datetime.fromisoformat(f"{day} {clock}")
        return (time.replace(tzinfo=ZoneInfo(zone[0])) if zone else time).isoformat()
    except (ValueError, Unreadable, OSError, KeyError):  # ZoneInfo raises a KeyError
        return ""
