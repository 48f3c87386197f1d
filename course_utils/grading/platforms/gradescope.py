"""Gradescope: `assignment_{id}_export/submission_{id}/FILE`, and submission_metadata.yml, which says whose they are."""

import re
from pathlib import PurePosixPath
from typing import Any

from course_utils.grading.archives import Entry, Source
from course_utils.grading.model import Unreadable
from course_utils.grading.platforms import Claim, Person, Reader

FOLDER = re.compile(r"submission_\d+")


def reader(source: Source) -> Reader | None:
    """Reads entries if the list of submitters is there."""
    lists = [entry for entry in source.entries if entry.path.name == "submission_metadata.yml"]
    if not lists:
        return None
    owners: dict[PurePosixPath, Claim | str] = {}
    missing = "is not in submission_metadata.yml"
    for entry in lists:
        listed = _owners(entry)
        if listed is None:
            missing = "has no owner, because submission_metadata.yml cannot be read"
        owners |= listed or {}

    def claim(entry: Entry) -> Claim | str | None:
        if entry.path.name == "submission_metadata.yml":
            return "Gradescope's list of submitters"
        for parent in entry.path.parents:
            if FOLDER.fullmatch(parent.name):
                owner = owners.get(parent, f"{parent.name} {missing}")
                if isinstance(owner, str):
                    return owner
                return Claim(owner.people, entry.path.name, owner.attempt, submitted=owner.submitted)
        return None

    return claim


def _owners(entry: Entry) -> dict[PurePosixPath, Claim | str] | None:
    """Whose folder each is; None if the list cannot be read."""
    import yaml  # comes with JupyterLab

    try:
        listed = yaml.safe_load(entry.read().decode("utf-8", "replace"))
    except (yaml.YAMLError, Unreadable, RecursionError, ValueError):
        return None
    owners: dict[PurePosixPath, Claim | str] = {}
    for folder, about in listed.items() if isinstance(listed, dict) else ():
        if not isinstance(about, dict):
            continue
        people = tuple(_person(one) for one in about.get(":submitters") or [] if isinstance(one, dict))
        time = about.get(":created_at", "")
        time = time.isoformat() if hasattr(time, "isoformat") else str(time)
        place = entry.path.parent / str(folder)
        known = people and all(person.id for person in people)
        owners[place] = Claim(people, "", (time,), submitted=time) if known else f"{folder} has no submitters"
    return owners


def _person(about: dict[str, Any]) -> Person:
    name, sid, email = (str(about.get(key) or "") for key in (":name", ":sid", ":email"))
    return Person(sid or email or name, name=name, email=email, gradescope=sid)
