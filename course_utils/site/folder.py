"""The folder of the pages: only what an earlier run wrote is ever replaced or removed."""

from pathlib import Path

from course_utils.authoring.files import write_if_changed
from course_utils.folders import CourseError

LIST = ".course-site"  # the names of all files of a site, one a line; its presence says that the folder is one


def require_own(out: Path) -> None:
    """Raise CourseError if `out` is a file, or a folder with something in it that is not a site."""
    if out.exists() and not out.is_dir():
        raise CourseError(f"--out {out} is a file; name a folder, new or empty.")
    if out.is_dir() and not (out / LIST).is_file() and any(out.iterdir()):
        raise CourseError(
            f"--out {out} is not empty and was not made by `course site` (it has no {LIST}): nothing was written.\n"
            "Name a new or an empty folder."
        )


def earlier_files(out: Path) -> list[str]:
    """The names that the list of an earlier run holds; a name that leads out of the folder is no name of ours."""
    try:
        names = (out / LIST).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [name for name in names if name and "/" not in name and "\\" not in name and name not in (".", "..")]


def write_folder(out: Path, files: dict[str, str]) -> list[Path]:
    """Write `files` (name: text) into `out` and remove what an earlier run wrote and this one does not."""
    require_own(out)
    old = earlier_files(out)
    # Both, until it is done: a run that is interrupted leaves nothing behind that the next would not know.
    write_if_changed(out / LIST, _lines({*old, *files}))
    for name, text in files.items():
        write_if_changed(out / name, text)
    for name in set(old) - set(files):
        (out / name).unlink(missing_ok=True)
    write_if_changed(out / LIST, _lines(files))
    return [out / name for name in files]


def _lines(names) -> str:
    return "".join(f"{name}\n" for name in sorted(names))
