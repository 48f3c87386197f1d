"""Where the course and the student's own notebooks are."""

import os
from pathlib import Path

from course_utils.environment.state import START

__all__ = ["START", "CourseError", "course_root", "shipped_notebooks", "work_folder"]


class CourseError(Exception):
    """Something the reader has to do first; the message says what."""


def course_root() -> Path:
    """The folder that holds lessons/ and notebooks/.

    That is the folder this package lies in. If the package was copied into an environment instead
    (`pip install .`), it is the working directory or the nearest of its parents that is the course.
    """
    package, here = Path(__file__).resolve().parents[1], Path.cwd()
    for folder in (package, here, *here.parents):
        if (folder / "notebooks").is_dir() and (folder / "course_utils").is_dir():
            return folder
    raise CourseError(
        f"The course's folder was not found: neither {package} nor {here} has notebooks/ and course_utils/.\n"
        "Change into the folder of the course and start again."
    )


def work_folder(root: Path) -> Path:
    """The folder of the student's own copies: work/, or the one that COURSE_WORK names."""
    given = os.environ.get("COURSE_WORK", "").strip()
    return Path(given).expanduser().absolute() if given else root / "work"


def shipped_notebooks(root: Path) -> list[Path]:
    """The notebooks as they are handed out, in the order of the course."""
    return sorted((root / "notebooks").glob("*.ipynb"))
