"""Reading and writing what the build generates."""

import copy
import json
from pathlib import Path

from course_utils.store import write_atomically

from .lesson import Lesson

QUESTIONS = "course_utils/checks/questions.json"


def write_if_changed(path: Path, text: str) -> bool:
    """Write `text`, "\\n" line ends, unless the file holds just that. A killed build leaves no half file."""
    data = text.encode("utf-8")
    if path.exists() and path.read_bytes() == data:
        return False
    write_atomically(path, data)
    return True


def read_notebook(path: Path) -> dict | None:
    """The notebook in `path`, or None when there is none that can be read."""
    import nbformat

    try:
        return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    except (OSError, ValueError, AttributeError, KeyError, TypeError, nbformat.ValidationError):
        return None


def without_outputs(notebook: dict) -> dict:
    """What is compared: everything but outputs and execution counts."""
    bare = copy.deepcopy(notebook)
    for cell in bare["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
    return bare


def runs_alike(old: dict, new: dict) -> bool:
    """Whether two notebooks without outputs differ in nothing that a kernel sees: their text may."""
    return old["metadata"] == new["metadata"] and _code(old) == _code(new)


def keep_outputs(old: dict, new: dict) -> None:
    """Put the outputs of `old` into `new`, which has the same code cells."""
    for before, after in zip(_code(old), _code(new), strict=True):
        after.update(outputs=before["outputs"], execution_count=before["execution_count"])


def _code(notebook: dict) -> list[dict]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def unexecuted(notebook: dict) -> str | None:
    """The id of the first code cell that has not run or has failed, or None."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and (
            cell["execution_count"] is None or any(out["output_type"] == "error" for out in cell["outputs"])
        ):
            return cell["id"]
    return None


def questions_text(lessons: list[Lesson]) -> str:
    """The text of questions.json: answers and explanations of all lessons."""
    entries = {question.id: question.entry() for lesson in lessons for question in lesson.questions}
    return json.dumps(entries, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
