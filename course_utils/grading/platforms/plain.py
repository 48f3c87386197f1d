"""Files of no platform: one folder for each student, or the student's name in the name of the file."""

import re

from course_utils.grading.archives import Entry, Source, is_archive
from course_utils.grading.lesson import lessons
from course_utils.grading.names import lesson_in
from course_utils.grading.platforms import Claim, Person, Reader

UNKNOWN = (
    "no student can be told from the name: put the files of each student into a folder of their own, "
    "or name the file after the student, such as ann_02_attention.ipynb"
)


def reader(source: Source) -> Reader:
    """Reads entries by their folder, else by their name, else (one file a lesson) by the folder that was named."""
    alone: dict[str | None, int] = {}
    for entry in source.entries:
        if _is_loose(entry) and not _in_name(entry.path.name):
            name = lesson_in(entry.path.name)
            alone[name] = alone.get(name, 0) + 1

    def claim(entry: Entry) -> Claim | str | None:
        changed = entry.changed.isoformat() if entry.changed else ""
        attempt = (changed, entry.path.name)
        if not _is_loose(entry):
            return Claim((Person(_folder(entry)),), entry.path.name, attempt)
        if student := _in_name(entry.path.name):
            return Claim((Person(student),), entry.path.name, attempt)
        if entry.path.suffix.lower() == ".ipynb" and (alone.get(lesson_in(entry.path.name), 0) > 1 or not source.owner):
            return UNKNOWN
        return Claim((Person(source.owner),), entry.path.name, attempt)

    return claim


def _is_loose(entry: Entry) -> bool:
    return len(entry.path.parts) == 1 or (len(entry.path.parts) == 2 and is_archive(entry.path.parts[0]))


def _folder(entry: Entry) -> str:
    first, *rest = entry.path.parts
    # An archive that lies among others holds the folders of the students.
    return rest[0] if is_archive(first) and len(rest) > 1 else first


def _in_name(file: str) -> str:
    """What the name of a file says besides the lesson: "ann" of "ann_02_attention (1).ipynb"."""
    stem = re.sub(r"\.ipynb$", "", file, flags=re.IGNORECASE)
    stem = re.sub(r"\s*\(\d+\)$|-\d$|[\s_-]+(copy|kopie|final)\d*$", "", stem, flags=re.IGNORECASE)
    for name in sorted(lessons(), key=len, reverse=True):
        spelt = r"[\s_-]*".join(re.escape(word) for word in name.split("_"))
        if found := re.search(spelt, stem, flags=re.IGNORECASE):
            return (stem[: found.start()] + " " + stem[found.end() :]).strip(" _-.")
    return ""
