"""Takes from a submission what is the student's: solution cells, added cells, written answers.

Everything else, checks above all, comes from the course. A cell is recognised by nbgrader's grade id, by its own id,
by its text, or by what it defines; so a notebook that lost its metadata is graded like any other.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

from course_utils.grading import source_code
from course_utils.grading.lesson import CourseCell, Lesson, lesson
from course_utils.grading.model import Taken, Unreadable
from course_utils.grading.notebook_file import MAX_SOURCE, FileCell, read_cells

DEFINES = re.compile(r"^(?:async\s+)?(?:def|class)\s+(\w+)", re.MULTILINE)
ANSWERS = re.compile(r"""^\s*(?:\w+\s*=\s*)?answer\(\s*["'](\d+)\.(\w+)["']""", re.MULTILINE)
SHOWN = 6  # names listed in one note
PARTS = 4  # of a split cell, at most


@dataclass
class _Piece:
    """A cell to run: grade id of the solution cell it stands for, or None."""

    grade_id: str | None
    source: str
    place: int


@dataclass
class _Reading:
    """What has been found so far."""

    form: Lesson
    pieces: list[_Piece] = field(default_factory=list)
    written: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    marked: int = 0  # cells of this lesson that carry a grade id, or are known by what they define
    plain: int = 0  # other cells of this lesson; every lesson shares a few
    by_name: list[str] = field(default_factory=list)
    changed_locked: list[str] = field(default_factory=list)
    in_locked: list[_Piece] = field(default_factory=list)
    question: str | None = None  # the written answer that unknown text belongs to here


def take(raw: bytes, notebook: str) -> Taken:
    """What of a submitted file is the student's, for the lesson `notebook` ("02_attention").

    Raises Unreadable where nothing can be taken. Never runs anything.
    """
    form = lesson(notebook)
    cells, notes = read_cells(raw)
    reading = _Reading(form, notes=notes)
    texts = {plain(cell.source): cell for cell in form.cells if plain(cell.source)}
    for place, cell in enumerate(cells):
        if len(cell.source) > MAX_SOURCE:
            reading.notes.append(f"Cell {place + 1} has {len(cell.source):,} characters; it was left out.")
            reading.seen[cell.grade_id] += 1  # it is not missing
            continue
        _place(reading, cell, place, _course_cell(form, texts, cell))
    if not reading.marked and reading.plain < len(form.cells) / 4:
        raise Unreadable(_foreign(form, cells))
    _from_locked(reading)
    pieces = _joined(_without_stubs(reading), reading.notes)
    _note_order(reading, pieces)
    _note_missing(reading)
    written = {name: "\n\n".join(texts) for name, texts in reading.written.items()}
    return Taken(
        notebook,
        tuple((piece.grade_id, piece.source) for piece in pieces),
        written,
        tuple(dict.fromkeys(reading.notes)),
    )


def plain(source: str) -> str:
    """A text without what an editor may change by itself: spaces at line ends, blank lines around it."""
    return "\n".join(line.rstrip() for line in source.split("\n")).strip()


def _course_cell(form: Lesson, texts: dict[str, CourseCell], cell: FileCell) -> CourseCell | None:
    """The cell of the course that this one is, whatever became of it."""
    text = plain(cell.source)
    if (found := form.by_grade_id.get(cell.grade_id)) is not None:
        return found
    if text in texts:  # before the id: a copied cell may have got the id of another
        return texts[text]
    return form.by_id.get(cell.id)


def _place(reading: _Reading, cell: FileCell, place: int, known: CourseCell | None) -> None:
    """Put one cell where it belongs."""
    text = plain(cell.source)
    if not text:
        if known is not None and known.solution and known.kind == cell.kind == "code":
            reading.seen[known.grade_id] += 1
            reading.notes.append(f"The cell of `{known.grade_id}` is empty.")
        return
    if known is not None:
        reading.marked += bool(known.grade_id)
        reading.plain += not known.grade_id
        reading.seen[known.grade_id or known.id] += 1
    if known is None:
        _unknown(reading, cell, place)
    elif known.solution and known.kind == "markdown":
        reading.question = known.grade_id
        _add_written(reading, known.grade_id, text, stub=plain(known.source))
    elif known.solution:
        reading.question = None
        _solution(reading, cell, place, known)
    elif known.grade_id:
        written = known.grade_id.removesuffix("_question")
        reading.question = written if known.kind == "markdown" else None
        if text != plain(known.source):
            reading.changed_locked.append(known.grade_id)
            names = _defined(reading.form, cell.source)
            reading.in_locked += [_Piece(name, cell.source, place) for name in names]
    else:
        reading.question = None
        if cell.kind == "code" and text != plain(known.source):
            _edited(reading, cell, place, known)


def _solution(reading: _Reading, cell: FileCell, place: int, known: CourseCell) -> None:
    grade_id = known.grade_id
    names = _defined(reading.form, cell.source)
    if names and grade_id not in names and not re.search(rf"^\s*{grade_id}\s*=", cell.source, re.MULTILINE):
        reading.notes.append(f"The cell marked `{grade_id}` defines `{names[0]}`; it was taken as that.")
        reading.seen[grade_id] -= 1
        grade_id = names[0]
        reading.seen[grade_id] += 1
    if cell.kind != "code":
        if not source_code.parses(cell.source):
            reading.notes.append(f"The cell of `{grade_id}` was turned into text, and what it says is not Python.")
            return
        reading.notes.append(f"The cell of `{grade_id}` was turned into text; it was taken as code.")
    reading.pieces.append(_Piece(grade_id, cell.source, place))


def _unknown(reading: _Reading, cell: FileCell, place: int) -> None:
    """A cell that the course does not have: known by what it defines or answers, or the student's own."""
    names = _defined(reading.form, cell.source)
    if not names:
        questions = (f"answer_{number}_{rest}" for number, rest in ANSWERS.findall(cell.source))
        names = [grade_id for grade_id in questions if grade_id in reading.form.by_grade_id]
    if cell.kind == "code":
        if names:
            reading.marked += 1
            reading.by_name += names
            reading.seen.update(names)
        reading.pieces.append(_Piece(names[0] if names else None, cell.source, place))
    elif names and source_code.parses(cell.source):
        reading.marked += 1
        reading.seen.update(names)
        reading.notes.append(f"The cell of `{names[0]}` was turned into text; it was taken as code.")
        reading.pieces.append(_Piece(names[0], cell.source, place))
    elif reading.question is not None:
        _add_written(reading, reading.question, plain(cell.source), stub="")


def _edited(reading: _Reading, cell: FileCell, place: int, known: CourseCell) -> None:
    """A cell of the course that the student changed: experiments are not run, what is defined there is kept."""
    names = _defined(reading.form, cell.source)
    if names:
        reading.by_name += names
        reading.seen.update(names)
        reading.pieces.append(_Piece(names[0], cell.source, place))
        return
    added = source_code.added_definitions(cell.source, known.source)
    if added:
        reading.notes.append(
            f"A cell of the course (number {place + 1}) was changed: imports, definitions and constants that were "
            "added there were taken, experiments are not run."
        )
        reading.pieces.append(_Piece(None, added, place))


def _add_written(reading: _Reading, grade_id: str, text: str, stub: str) -> None:
    if text != stub:
        reading.written.setdefault(grade_id, []).append(text)


def _defined(form: Lesson, source: str) -> list[str]:
    """The exercises that a cell defines at its top level."""
    return [name for name in dict.fromkeys(DEFINES.findall(source)) if name in form.exercises]


def _from_locked(reading: _Reading) -> None:
    """An answer written into the check cell below it counts, where its own cell was left as it was."""
    for piece in reading.in_locked:
        stub = plain(reading.form.by_grade_id[piece.grade_id or ""].source)
        own = [p for p in reading.pieces if p.grade_id == piece.grade_id and plain(p.source) != stub]
        if not own:
            reading.notes.append(
                f"`{piece.grade_id}` was defined in a locked cell; the definition was taken from there."
            )
            reading.pieces.append(piece)
            reading.seen[piece.grade_id or ""] += 1
    reading.pieces.sort(key=lambda piece: piece.place)


def _without_stubs(reading: _Reading) -> list[_Piece]:
    """Several copies of a cell: untouched ones would undo the others, so they go; the rest run in order."""
    by_id: dict[str, list[_Piece]] = {}
    for piece in reading.pieces:
        if piece.grade_id is not None:
            by_id.setdefault(piece.grade_id, []).append(piece)
    dropped: list[int] = []
    for grade_id, copies in by_id.items():
        if len(copies) == 1:
            continue
        stub = plain(reading.form.by_grade_id[grade_id].source)
        untouched = [piece for piece in copies if plain(piece.source) == stub]
        done = [piece for piece in copies if plain(piece.source) != stub]
        dropped += [id(piece) for piece in (untouched if done else untouched[1:])]
        what = "all were run in order, as in your own kernel, so the last one counts"
        if untouched and len(done) < 2:
            what = "the untouched copy was left out" if done else "all copies are untouched"
        reading.notes.append(f"The cell of `{grade_id}` is there {len(copies)} times: {what}.")
    return [piece for piece in reading.pieces if id(piece) not in dropped]


def _joined(pieces: list[_Piece], notes: list[str]) -> list[_Piece]:
    """A cell that was split in the middle of a function is put together again, if only that makes it Python."""
    joined: list[_Piece] = []
    i = 0
    while i < len(pieces):
        whole, count = _whole(pieces[i : i + PARTS])
        if count > 1:
            notes.append(f"The cell of `{whole.grade_id}` was split; its {count} parts were put together again.")
        joined.append(whole)
        i += count
    return joined


def _whole(parts: list[_Piece]) -> tuple[_Piece, int]:
    """The first part, together with as many of the following ones as it takes to be Python, and their number."""
    first = parts[0]
    if first.grade_id is None:
        return first, 1
    for count in range(2, len(parts) + 1):
        if parts[count - 1].grade_id not in (None, first.grade_id):
            break
        if all(source_code.parses(part.source) for part in parts[:count]):
            continue
        source = "\n".join(part.source for part in parts[:count])
        if source_code.parses(source):
            return _Piece(first.grade_id, source, first.place), count
    return first, 1


def _note_order(reading: _Reading, pieces: list[_Piece]) -> None:
    order = list(reading.form.by_grade_id)
    places = [order.index(piece.grade_id) for piece in pieces if piece.grade_id is not None]
    if places != sorted(places):
        reading.notes.append("Cells stand in another order than in the course; they were run as they stand.")


def _note_missing(reading: _Reading) -> None:
    form, seen = reading.form, reading.seen
    if reading.by_name:
        names = [name for name in dict.fromkeys(reading.by_name) if not name.startswith("answer_")]
        found = f": {_names(names)}" if names else ""
        reading.notes.append(f"Cells that had lost their marks were recognised by what they define or answer{found}.")
    for cell in form.cells:
        if cell.solution and cell.kind == "code" and not seen[cell.grade_id] and cell.grade_id in form.exercises:
            reading.notes.append(
                f"There is no cell for `{cell.grade_id}`: it was deleted, or renamed beyond recognition."
            )
    missing = [cell.grade_id for cell in form.cells if cell.locked and not seen[cell.grade_id]]
    if missing:
        reading.notes.append(f"Locked cells were missing; the course's own were used: {_names(missing)}.")
    if reading.changed_locked:
        changed = _names(list(dict.fromkeys(reading.changed_locked)))
        reading.notes.append(f"Locked cells were changed; the course's own were used: {changed}.")


def _names(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(f"`{name}`" for name in names[:SHOWN]) + more


def _foreign(form: Lesson, cells: list[FileCell]) -> str:
    from course_utils.grading.lesson import lessons

    ids = {cell.grade_id for cell in cells} - {""}
    for other in lessons().values():
        if other is not form and len(ids & other.by_grade_id.keys()) > 1:
            return f"The file is a notebook, but that of lesson {other.notebook}, not of {form.notebook}."
    return f"The file is a notebook, but no cell of lesson {form.notebook} is in it."
