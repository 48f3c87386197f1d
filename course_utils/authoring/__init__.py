"""From the text of a lesson to the two notebooks made from it.

    lessons/NN_name.py  ->  notebooks/NN_name.ipynb   what students get: stubs, no outputs
                            solutions/NN_name.ipynb   solved and executed, outputs kept
    all lessons         ->  course_utils/checks/questions.json

Importing this package is cheap: the tools that read, write and run notebooks are imported when they are
needed.
"""

from pathlib import Path

from .errors import BuildError

__all__ = ["BuildError", "build", "check", "release"]


def build(root: str | Path, names: list[str] | None = None, execute: bool = True, force: bool = False) -> list[Path]:
    """Make the notebooks of the lessons in `root`/lessons and return the files that were written.

    root     the folder that holds lessons/, notebooks/ and solutions/
    names    lessons to build ("01", "01_recurrent" or "lessons/01_recurrent.py"); None: all of them
    execute  run a solution whose source changed or that has no outputs; False writes it without outputs
    force    run the chosen solutions even where nothing changed

    Every lesson is checked before anything is written. Raises `BuildError`, naming file and line, when a
    lesson is not well formed or a solution does not run; the solution that was there before stays as it is.
    """
    from .pipeline import build_lessons

    return build_lessons(Path(root), names, execute=execute, force=force)


def check(root: str | Path) -> list[str]:
    """Compare everything generated with the lessons, run nothing, and return the problems (none: all fresh).

    Each problem names the file, the lesson to edit and the command to run. Raises `BuildError` only when a
    tool is not installed.
    """
    from .freshness import find_problems

    return find_problems(Path(root))


def release(root: str | Path, file: str | Path) -> Path:
    """Write the archive that students get to `file` (a .zip) and return its path.

    The same tree gives the same archive, byte for byte. Raises `BuildError` when `check` finds a problem or
    when a file that belongs into the archive is missing.
    """
    from .archive import write_release

    return write_release(Path(root), Path(file))
