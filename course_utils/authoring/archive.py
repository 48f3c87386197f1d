"""The archive that students get."""

import zipfile
from pathlib import Path

from course_utils.folders import START

from .errors import BuildError
from .freshness import find_problems

TOP = "attention-course"
FILES = ("README.md", "LICENSE", "CONTRIBUTING.md", "requirements.txt", "pyproject.toml", "course.py")
FOLDERS = ("notebooks", "course_utils", "docs")
OPTIONAL = {"docs"}
LEFT_OUT = ("course_utils/authoring", "course_utils/grading", "course_utils/site")
TIMESTAMP = (2020, 1, 1, 0, 0, 0)  # any fixed one: the same tree gives the same archive
UNIX = 3


def release_files(root: Path) -> list[str]:
    """The paths below `root`, with forward slashes, of everything that students get."""
    missing = [name for name in FILES if not (root / name).is_file()]
    missing += [f"{name}/" for name in FOLDERS if name not in OPTIONAL and not (root / name).is_dir()]
    if missing:
        raise BuildError(f"cannot make the release: {', '.join(missing)} missing in {root}")
    found = list(FILES)
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            name = path.relative_to(root).as_posix()
            if path.is_file() and not _left_out(name):
                found.append(name)
    return sorted(found)


def _left_out(name: str) -> bool:
    parts = name.split("/")
    return (
        any(name.startswith(f"{folder}/") for folder in LEFT_OUT)
        or any(part == "__pycache__" or part.startswith(".") for part in parts)
        or name.endswith((".pyc", ".partial"))
        or (parts[0] == "notebooks" and not name.endswith(".ipynb"))
    )


def write_release(root: Path, file: Path) -> Path:
    """See `course_utils.authoring.release`."""
    if file.suffix != ".zip":
        raise BuildError(f'release file "{file}": the archive is a .zip; give it a name that ends in .zip')
    problems = find_problems(root)
    if problems:
        raise BuildError(*problems, f"no release: solve these first, then run: {START} build --check")
    names = release_files(root)
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(file.name + ".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            info = zipfile.ZipInfo(f"{TOP}/{name}", TIMESTAMP)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = UNIX
            info.external_attr = (0o755 if name == "course.py" else 0o644) << 16
            archive.writestr(info, (root / name).read_bytes())
    partial.replace(file)
    return file
