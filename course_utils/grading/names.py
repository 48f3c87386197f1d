"""Which lesson a file is, by its name and by the cells in it; and names that are safe as folders everywhere."""

import hashlib
import re
from collections import Counter

from course_utils.grading.lesson import lessons

GRADE_ID = re.compile(rb'"grade_id"\s*:\s*"(\w+)"')
RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{i}" for port in ("com", "lpt") for i in range(10))}


def lesson_in(file: str) -> str | None:
    """The lesson that the name of a file says: its number and name, or its name; None if it says none."""
    words = re.sub(r"[\W_]+", "_", re.sub(r"\.ipynb$", "", file, flags=re.IGNORECASE).lower())
    stems = sorted(lessons(), key=len, reverse=True)
    for stem in stems:
        if stem in words:
            return stem
    # "self_attention" before "attention", which it contains.
    for stem in sorted(stems, key=lambda s: len(s.split("_", 1)[1]), reverse=True):
        if stem.split("_", 1)[1] in words:
            return stem
    numbers = set(re.findall(r"(?<!\d)\d{2}(?!\d)", words))
    named = [stem for stem in stems if stem.split("_")[0] in numbers]
    return named[0] if len(named) == 1 else None


def lesson_of(raw: bytes) -> str | None:
    """The lesson whose cells a file holds, by nbgrader's grade ids; works for damaged files too."""
    found = {name.decode("ascii", "replace") for name in GRADE_ID.findall(raw)}
    counts = Counter({stem: len(found & lesson.by_grade_id.keys()) for stem, lesson in lessons().items()})
    stem, count = counts.most_common(1)[0]
    return stem if count else None


def identify(file: str, raw: bytes) -> tuple[str | None, str]:
    """The lesson of a file, and a sentence where its name and its cells disagree or one of them says nothing.

    The cells decide: students rename files more often than they fill the wrong one.
    """
    by_name, by_cells = lesson_in(file), lesson_of(raw)
    if by_cells is not None and by_name is not None and by_name != by_cells:
        return by_cells, f"its name says {by_name}, its cells are those of {by_cells}"
    if by_cells is not None:
        return by_cells, "" if by_name else f"known as {by_cells} by its cells"
    return by_name, ""


def folder_name(student: str) -> str:
    """A folder name for a student that every system takes, unique for each student and the same in every run.

    Small letters, digits, dots and hyphens stay; anything else is replaced, and a few characters of a hash keep
    the names apart ("Ann" and "ann" are one folder on Windows and macOS).
    """
    safe = re.sub(r"[^a-z0-9._-]+", "_", student.lower()).strip("._-")[:60] or "student"
    if safe.split(".")[0] in RESERVED:
        safe = f"student-{safe}"
    if safe == student:
        return safe
    return f"{safe}-{hashlib.sha256(student.encode('utf-8', 'replace')).hexdigest()[:10]}"
