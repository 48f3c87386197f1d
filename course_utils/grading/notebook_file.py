"""A submitted file as a list of cells, whatever is wrong with it; raises Unreadable with a reason in words."""

import json
import re
from dataclasses import dataclass
from typing import Any

from course_utils.grading.lesson import source_of
from course_utils.grading.model import Unreadable

MAX_BYTES = 80_000_000
MAX_CELLS = 5000
MAX_SOURCE = 1_000_000  # characters of one cell
CONFLICT = re.compile(r"^(<{7}|>{7})( |$)", re.MULTILINE)
BEGINNINGS = {
    b"%PDF": "a PDF",
    b"PK\x03\x04": "an archive or an office document",
    b"\x1f\x8b": "a compressed archive",
    b"<!DOCTYPE": "a web page",
    b"<!doctype": "a web page",
    b"<html": "a web page",
    b"\x89PNG": "a picture",
    b"version https://git-lfs": "only a pointer to a file (Git LFS)",
}


@dataclass(frozen=True)
class FileCell:
    """One cell of a submission: its type, id, nbgrader's grade id ("" if lost), and text."""

    kind: str
    id: str
    grade_id: str
    source: str


def read_cells(raw: bytes) -> tuple[list[FileCell], list[str]]:
    """The cells of a submitted file, and notes on what was odd about it. Raises Unreadable."""
    notes: list[str] = []
    data = _parse(_text(raw, notes))
    if not isinstance(data, dict):
        raise Unreadable("The file is JSON, but not a notebook: it holds no cells.")
    cells = data.get("cells")
    if not isinstance(cells, list) and isinstance(data.get("worksheets"), list):
        sheets = [sheet for sheet in data["worksheets"] if isinstance(sheet, dict)]
        cells = [cell for sheet in sheets for cell in sheet.get("cells") or [] if isinstance(sheet.get("cells"), list)]
        notes.append("The notebook has the old format 3; its cells were read all the same.")
    if not isinstance(cells, list):
        raise Unreadable("The file is JSON, but not a notebook: it has no list of cells.")
    if len(cells) > MAX_CELLS:
        raise Unreadable(f"The notebook has {len(cells):,} cells; at most {MAX_CELLS:,} are read.")
    found = [_cell(cell) for cell in cells if isinstance(cell, dict)]
    if not any(cell.source.strip() for cell in found):
        raise Unreadable("The notebook has no cells with anything in them.")
    notes += _kernel_note(data.get("metadata"))
    return found, notes


def _text(raw: bytes, notes: list[str]) -> str:
    if len(raw) > MAX_BYTES:
        raise Unreadable(
            f"The file is larger than {MAX_BYTES // 10**6} MB, because of its outputs. "
            "Clear them (Edit > Clear Outputs of All Cells), save, and submit again."
        )
    start = raw[:200].lstrip()
    if not raw.strip(b" \t\r\n\0"):
        raise Unreadable(f"The file is empty ({len(raw)} bytes).")
    for beginning, what in BEGINNINGS.items():
        if start.startswith(beginning):
            raise Unreadable(f"The file is {what}, not a notebook (.ipynb).")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        notes.append("The file is in UTF-16 instead of UTF-8; it was read all the same.")
        return raw.decode("utf-16", "replace")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        notes.append("The file is not in UTF-8; characters beyond English letters may have been lost.")
        return raw.decode("cp1252", "replace")


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise Unreadable("The file is not a notebook: it is nested too deeply to be read.") from None
    except json.JSONDecodeError as error:
        if (conflict := CONFLICT.search(text)) is not None:
            line = text.count("\n", 0, conflict.start()) + 1
            raise Unreadable(
                f"The file holds the marks of an unfinished merge (line {line}: {conflict[0].strip()}), and is no "
                "notebook until the conflict is resolved."
            ) from None
        if error.pos >= len(text.rstrip()) - 1 or error.msg.startswith("Unterminated string"):
            raise Unreadable(
                f"The file ends in the middle (line {error.lineno}): it was not saved or uploaded completely."
            ) from None
        raise Unreadable(f"The file is not valid JSON, as a notebook is (line {error.lineno}: {error.msg}).") from None
    except (ValueError, MemoryError) as error:  # such as a number of thousands of digits
        raise Unreadable(f"The file could not be read as a notebook: {str(error)[:100]}.") from None


def _cell(cell: dict[str, Any]) -> FileCell:
    metadata = cell.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = marks.get("grade_id") if isinstance(marks, dict) else None
    kind, own = cell.get("cell_type"), cell.get("id")
    return FileCell(
        kind if isinstance(kind, str) else "raw",
        own if isinstance(own, str) else "",
        grade_id if isinstance(grade_id, str) else "",
        source_of(cell),
    )


def _kernel_note(metadata: Any) -> list[str]:
    kernel = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    name = kernel.get("name") if isinstance(kernel, dict) else None
    if not isinstance(name, str) or name.startswith("python"):
        return []
    return [f"The notebook names the kernel {name[:40]!r}; it was graded with Python 3."]
