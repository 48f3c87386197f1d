"""Submissions, results and classes for the tests of the grader, made from the course's own notebooks."""

import copy
import json
import zipfile
from functools import cache
from pathlib import Path

from course_utils.grading.lesson import lesson
from course_utils.grading.model import GRADED, NEEDS_REVIEW, ExerciseResult, Result

ROOT = Path(__file__).parents[2]
LESSON = "02_attention"
WORDS = "Attention lets the decoder look at every state of the encoder, so nothing has to fit into one vector."


@cache
def _notebook(place: str, name: str) -> str:
    return (ROOT / place / f"{name}.ipynb").read_text(encoding="utf-8")


def stub(name: str = LESSON) -> dict:
    """The notebook as it is handed out."""
    return json.loads(_notebook("notebooks", name))


def solved(name: str = LESSON, written: str = WORDS) -> dict:
    """A finished submission: the handed-out notebook with the right answers in it, and a written one."""
    right = {cell["id"]: cell["source"] for cell in json.loads(_notebook("solutions", name))["cells"]}
    book = stub(name)
    for cell in book["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("solution"):
            cell["source"] = written if cell["cell_type"] == "markdown" else right[cell["id"]]
    return book


def cell_of(book: dict, grade_id: str) -> dict:
    """The first cell with this grade id."""
    return next(c for c in book["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == grade_id)


def raw(book: dict) -> bytes:
    """The notebook as the bytes of a file."""
    return json.dumps(book).encode()


def code(source: str, **metadata: object) -> dict:
    """A code cell as JupyterLab writes it."""
    return {
        "cell_type": "code",
        "id": f"new-{abs(hash(source)) % 10**8}",
        "metadata": metadata,
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def with_source(book: dict, grade_id: str, source: str) -> dict:
    """A copy in which one cell says something else."""
    book = copy.deepcopy(book)
    cell_of(book, grade_id)["source"] = source
    return book


def archive(path: Path, files: dict[str, bytes | dict]) -> Path:
    """A .zip of these files."""
    with zipfile.ZipFile(path, "w") as packed:
        for name, data in files.items():
            packed.writestr(
                zipfile.ZipInfo(name, (2026, 11, 3, 20, 0, 0)), data if isinstance(data, bytes) else raw(data)
            )
    return path


def result(student: str = "ann", name: str = LESSON, share: float = 1.0, **more: object) -> Result:
    """A result as the grader makes it: every part with this share of its points, the written answer to be read."""
    parts = []
    for part in lesson(name).graded:
        if part.kind == "written":
            parts.append(ExerciseResult(part.name, None, part.max_points, NEEDS_REVIEW, "a person reads it"))
        else:
            parts.append(ExerciseResult(part.name, share * part.max_points, part.max_points, GRADED, "right"))
    fields = {"written": {f"written_{name[:2]}_W": WORDS}, "isolation": "bubblewrap", "digest": "d", **more}
    return Result(student, name, fields.pop("digest"), GRADED, tuple(fields.pop("exercises", parts)), **fields)
