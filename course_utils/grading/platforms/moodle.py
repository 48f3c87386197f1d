"""Moodle: `First Last_{participant}_assignsubmission_file_/NAME`, or the same in one name, without folders."""

import re

from course_utils.grading.archives import Entry, Source
from course_utils.grading.platforms import Claim, Person, Reader

FOLDER = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_(?P<kind>file|onlinetext)_?(?P<file>.*)", re.DOTALL)


def reader(source: Source) -> Reader | None:
    """Reads entries if there are any that Moodle has named."""
    if not any(FOLDER.fullmatch(part) for entry in source.entries for part in entry.path.parts):
        return None
    return _claim


def _claim(entry: Entry) -> Claim | str | None:
    found = next((m for part in entry.path.parts if (m := FOLDER.fullmatch(part))), None)
    if found is None:
        return None
    if found["kind"] == "onlinetext":
        return "text that was typed into Moodle, not a file"
    flat = found["file"] if FOLDER.fullmatch(entry.path.name) else ""
    person = Person(f"{found['name']}_{found['id']}", name=found["name"], moodle=found["id"])
    time = entry.changed.isoformat() if entry.changed and entry.changed.year > 1980 else ""
    return Claim((person,), flat or entry.path.name, (time, entry.path.name), submitted=time)
