"""Building: every lesson is read and checked, then what changed is written, then what changed is run."""

from pathlib import Path

from .errors import BuildError, require_tools
from .files import (
    QUESTIONS,
    keep_outputs,
    questions_text,
    read_notebook,
    runs_alike,
    unexecuted,
    without_outputs,
    write_if_changed,
)
from .lesson import Lesson, read_lessons
from .notebook import Notebooks, make_notebooks, to_text
from .run import execute as run_notebook


def build_lessons(root: Path, names: list[str] | None, *, execute: bool, force: bool) -> list[Path]:
    """See `course_utils.authoring.build`."""
    require_tools()
    lessons, problems = read_lessons(root)
    if problems:
        raise BuildError(*problems)
    made = [(lesson, make_notebooks(lesson)) for lesson in select(lessons, names)]

    written: list[Path] = []
    # The answers come first: the solutions that are run below read them.
    if write_if_changed(root / QUESTIONS, questions_text(lessons)):
        written.append(root / QUESTIONS)
    for lesson, notebooks in made:
        path = root / "notebooks" / f"{lesson.name}.ipynb"
        if write_if_changed(path, to_text(notebooks.student)):
            written.append(path)
    failed: list[str] = []
    for lesson, notebooks in made:
        path = root / "solutions" / f"{lesson.name}.ipynb"
        try:
            if _write_solution(root, path, lesson, notebooks, execute=execute, force=force):
                written.append(path)
        except BuildError as error:
            failed += error.problems
    if failed:
        raise BuildError(*failed)
    return written


def _write_solution(
    root: Path, path: Path, lesson: Lesson, notebooks: Notebooks, *, execute: bool, force: bool
) -> bool:
    old, new = read_notebook(path), notebooks.solved
    same = old is not None and runs_alike(without_outputs(_without_widgets(old)), new)
    if execute and (force or not same or unexecuted(old)):
        path.parent.mkdir(parents=True, exist_ok=True)
        run_notebook(new, root, lesson.file, notebooks.lines)
    elif same:
        keep_outputs(old, new)
    return write_if_changed(path, to_text(new))


def _without_widgets(notebook: dict) -> dict:
    """A notebook that somebody ran in JupyterLab carries the state of its widgets, no new source."""
    notebook["metadata"].pop("widgets", None)
    return notebook


def select(lessons: list[Lesson], names: list[str] | None) -> list[Lesson]:
    """The lessons meant by `names` ("01", "01_recurrent", "lessons/01_recurrent.py"); None means all."""
    if names is None:
        return lessons
    chosen = []
    for name in names:
        stem = name.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".py").removesuffix(".ipynb")
        found = [lesson for lesson in lessons if stem in (lesson.name, lesson.number)]
        if not found:
            known = ", ".join(lesson.name for lesson in lessons)
            raise BuildError(f'no lesson "{name}"; the lessons are: {known}')
        chosen += [lesson for lesson in found if lesson not in chosen]
    return chosen
