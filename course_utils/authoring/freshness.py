"""Is everything generated what the lessons say? Nothing is run here."""

from pathlib import Path

from .errors import BuildError, require_tools
from .files import QUESTIONS, questions_text, read_notebook, unexecuted, without_outputs
from .leaks import find_leaks
from .lesson import Lesson, read_lessons
from .notebook import make_notebooks, to_text


def find_problems(root: Path) -> list[str]:
    """See `course_utils.authoring.check`."""
    require_tools()
    lessons, problems = read_lessons(root)
    broken = bool(problems)
    for lesson in lessons:
        try:
            problems += check_lesson(root, lesson)
        except BuildError as error:
            problems += error.problems
    if not broken:
        path = root / QUESTIONS
        if not path.exists():
            problems.append(f"{QUESTIONS}: missing; run: course build")
        elif path.read_text(encoding="utf-8") != questions_text(lessons):
            problems.append(f"{QUESTIONS}: differs from the questions in lessons/; edit those and run: course build")
    return problems + _orphans(root)


def check_lesson(root: Path, lesson: Lesson) -> list[str]:
    """The problems of both notebooks of one lesson."""
    remedy = f"edit {lesson.file}, never the notebook, and run: course build {lesson.number}"
    made = make_notebooks(lesson)
    problems = []

    file = f"notebooks/{lesson.name}.ipynb"
    student = read_notebook(root / file)
    if student is None:
        problems.append(_missing(root, file, lesson))
    else:
        problems += [f"{file}: {leak}; {remedy}" for leak in find_leaks(lesson, student)]
        if without_outputs(student) != made.student:
            problems.append(f"{file}: {difference(student, made.student)}; {remedy}")
        elif not problems and (root / file).read_text(encoding="utf-8") != to_text(made.student):
            problems.append(f"{file}: the file was saved by something else than the build; {remedy}")

    file = f"solutions/{lesson.name}.ipynb"
    solved = read_notebook(root / file)
    if solved is None:
        problems.append(_missing(root, file, lesson))
        return problems
    if "widgets" in solved["metadata"]:
        problems.append(f"{file}: metadata.widgets holds the state of a run; {remedy}")
        del solved["metadata"]["widgets"]
    if without_outputs(solved) != made.solved:
        problems.append(f"{file}: {difference(solved, made.solved)}; {remedy}")
    cell = unexecuted(solved)
    if cell:
        problems.append(f"{file}: cell {cell} has not run or has failed; run: course build {lesson.number}")
    return problems


def _missing(root: Path, file: str, lesson: Lesson) -> str:
    what = "is not a notebook that can be read" if (root / file).exists() else "missing"
    return f"{file}: {what}; it is made from {lesson.file}, run: course build {lesson.number}"


def difference(old: dict, new: dict) -> str:
    """Where a notebook first differs from what the lesson gives."""
    for i, (before, after) in enumerate(zip(old["cells"], new["cells"], strict=False), 1):
        bare = {"outputs": [], "execution_count": None} if after["cell_type"] == "code" else {}
        if {**before, **bare} != after:
            return f"stale from cell {i} on (in the lesson: {after['id']})"
    if len(old["cells"]) != len(new["cells"]):
        return f"stale: {len(old['cells'])} cells instead of {len(new['cells'])}"
    return "stale: the metadata of the notebook differs"


def _orphans(root: Path) -> list[str]:
    """Notebooks that no lesson makes."""
    names = {path.stem for path in (root / "lessons").glob("*.py")}
    return [
        f"{folder}/{path.name}: there is no lessons/{path.stem}.py; delete the notebook or restore the lesson"
        for folder in ("notebooks", "solutions")
        for path in sorted((root / folder).glob("*.ipynb"))
        if path.stem not in names
    ]
