"""Canvas: `{sortable name}[_LATE]_{user id}_{attachment id}_{file name}`, or `anon_…`; a resubmission ends in `-1`."""

import re

from course_utils.grading.archives import Entry, Source
from course_utils.grading.platforms import Claim, Person, Reader

NAMED = re.compile(r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<user>\d+)_(?P<attachment>\d+)_(?P<file>.+)", re.DOTALL)
ANONYMOUS = re.compile(r"anon_(?P<late>LATE_)?(?P<user>[A-Za-z0-9]+)_(?P<attachment>\d+)_(?P<file>.+)", re.DOTALL)
AGAIN = re.compile(r"-(\d{1,3})(?=\.\w+$)")


def _match(name: str) -> re.Match[str] | None:
    return ANONYMOUS.fullmatch(name) or NAMED.fullmatch(name)


def reader(source: Source) -> Reader | None:
    """Reads entries if most notebooks have names that Canvas has made."""
    parts = [entry.path.parts for entry in source.entries if entry.path.suffix.lower() == ".ipynb"]
    named = sum(any(_match(part) for part in each) for each in parts)
    return _claim if named > len(parts) / 2 else None


def _claim(entry: Entry) -> Claim | str | None:
    place, found = next(((i, m) for i, part in enumerate(entry.path.parts) if (m := _match(part))), (0, None))
    if found is None:
        return None
    # What a student packed into an archive keeps its own name.
    file = found["file"] if place == len(entry.path.parts) - 1 else entry.path.name
    again = AGAIN.search(found["file"])
    number = int(again[1]) if again else 0
    if "name" in found.re.groupindex:
        person = Person(f"{found['name']}_{found['user']}", name=found["name"], canvas=found["user"])
    else:
        person = Person(f"anon_{found['user']}", name="anonymous")
    return Claim(
        (person,), AGAIN.sub("", file), (int(found["attachment"]), number, file), late=found["late"] is not None
    )
