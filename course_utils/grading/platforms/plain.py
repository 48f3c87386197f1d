"""Files of no platform: one folder for each student, or the student's name in the name of the file."""

import re

from course_utils.grading.archives import ARCHIVES, Entry, Source, is_archive
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

    around, whole = _around(source), _archives_of_one(source)

    def claim(entry: Entry) -> Claim | str | None:
        changed = entry.changed.isoformat() if entry.changed else ""
        attempt = (changed, entry.path.name)
        if entry.path.parts[0] in whole:
            return Claim((Person(whole[entry.path.parts[0]]),), entry.path.name, attempt)
        if not _is_loose(entry):
            return Claim((Person(_folder(entry, around)),), entry.path.name, attempt)
        if student := _in_name(entry.path.name):
            return Claim((Person(student),), entry.path.name, attempt)
        if entry.path.suffix.lower() == ".ipynb" and (alone.get(lesson_in(entry.path.name), 0) > 1 or not source.owner):
            return UNKNOWN
        return Claim((Person(source.owner),), entry.path.name, attempt)

    return claim


def _is_loose(entry: Entry) -> bool:
    return len(entry.path.parts) == 1 or (len(entry.path.parts) == 2 and is_archive(entry.path.parts[0]))


def _inside(entry: Entry) -> tuple[str, tuple[str, ...]]:
    """The archive among others that an entry lies in ("" for none), and the folders around it there."""
    first, *rest = entry.path.parts
    if is_archive(first) and len(rest) > 1:
        return first, tuple(rest[:-1])  # such an archive holds the folders of the students
    return "", entry.path.parts[:-1]


def _around(source: Source) -> dict[str, int]:
    """For each archive: how many folders, one in the other, lie around those of the students.

    `class/ann/…` and `class/bob/…` hold the same lesson twice, so `class` is no student; with `ann/01/…` and
    `ann/02/…`, each lesson once, `ann` is.
    """
    places: dict[str, list[tuple[str | None, tuple[str, ...]]]] = {}
    for entry in source.entries:
        if entry.path.suffix.lower() == ".ipynb" and not _is_loose(entry):
            archive, folders = _inside(entry)
            places.setdefault(archive, []).append((lesson_in(entry.path.name), folders))
    return {archive: _shared(found) for archive, found in places.items()}


def _archives_of_one(source: Source) -> dict[str, str]:
    """Of several archives side by side, those that hold one folder at most, and whose they are: `ann.zip` is ann's.

    An archive with a student's name in the name of a file, or with students' folders around each other, is of a class.
    """
    folders: dict[str, set[str]] = {}
    for entry in source.entries:
        first, *rest = entry.path.parts
        if is_archive(first) and rest and entry.path.suffix.lower() == ".ipynb":
            named = len(rest) == 1 and _in_name(rest[0])
            folders.setdefault(first, set()).update((rest[0], "") if named else rest[:-1][:1] or ("",))
    around = _around(source)
    one = [name for name, found in folders.items() if len(found) == 1 and not around.get(name)]
    return {name: _stem(name) for name in one} if len(folders) > 1 else {}


def _stem(archive: str) -> str:
    end = max((end for end in ARCHIVES if archive.lower().endswith(end)), key=len)
    return archive[: -len(end)]


def _shared(found: list[tuple[str | None, tuple[str, ...]]]) -> int:
    depth = 0
    while len({folders[: depth + 1] for _, folders in found}) == 1 and all(len(f) > depth + 1 for _, f in found):
        below = {(name, folders[depth + 1]) for name, folders in found}
        if len(below) > len({name for name, _ in below}):  # a lesson stands in two folders
            return depth + 1
        depth += 1
    return 0


def _folder(entry: Entry, around: dict[str, int]) -> str:
    archive, folders = _inside(entry)
    return folders[min(around.get(archive, 0), len(folders) - 1)]


def _in_name(file: str) -> str:
    """What the name of a file says besides the lesson: "ann" of "ann_02_attention (1).ipynb"."""
    stem = re.sub(r"\.ipynb$", "", file, flags=re.IGNORECASE)
    stem = re.sub(r"\s*\(\d+\)$|-\d$|[\s_-]+(copy|kopie|final)\d*$", "", stem, flags=re.IGNORECASE)
    for name in sorted(lessons(), key=len, reverse=True):
        spelt = r"[\s_-]*".join(re.escape(word) for word in name.split("_"))
        if found := re.search(spelt, stem, flags=re.IGNORECASE):
            return (stem[: found.start()] + " " + stem[found.end() :]).strip(" _-.")
    return ""
