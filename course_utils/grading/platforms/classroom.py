"""GitHub Classroom: a repository for each student, `{assignment}-{username}`, often in `{assignment}-submissions/`."""

from course_utils.grading.archives import Entry, Source
from course_utils.grading.platforms import Claim, Person, Reader


def reader(source: Source) -> Reader | None:
    """Reads entries if the folders are clones of one assignment."""
    if source.name.endswith("-submissions"):
        depth, prefix = 0, source.name.removesuffix("submissions")
    else:
        tops = {entry.path.parts[0] for entry in source.entries if len(entry.path.parts) > 2}
        holder = next((top for top in tops if top.endswith("-submissions")), None)
        if holder is not None:
            depth, prefix = 1, holder.removesuffix("submissions")
        else:
            depth, prefix = 0, _shared_prefix(source)
    if not prefix or not any(_student(entry, depth, prefix) for entry in source.entries):
        return None

    def claim(entry: Entry) -> Claim | str | None:
        student = _student(entry, depth, prefix)
        if student is None:
            return None
        changed = entry.changed.isoformat() if entry.changed else ""
        return Claim((Person(student, github=student),), entry.path.name, (changed, entry.path.name))

    return claim


def _shared_prefix(source: Source) -> str:
    """What the names of all cloned repositories begin with, up to a hyphen; "" if they are not clones."""
    clones = {entry.path.parts[0] for entry in source.entries if ".github" in entry.path.parts[1:2]}
    clones |= {parts[1] for origin, _ in source.left_out if (parts := origin.split("/"))[2:3] == [".git"]}
    if len(clones) < 2:
        return ""
    first, *others = sorted(clones)
    while first and not (first.endswith("-") and all(other.startswith(first) for other in others)):
        first = first[:-1]
    return first


def _student(entry: Entry, depth: int, prefix: str) -> str | None:
    parts = entry.path.parts
    if len(parts) < depth + 2 or not parts[depth].startswith(prefix):
        return None
    return parts[depth].removeprefix(prefix) or None
