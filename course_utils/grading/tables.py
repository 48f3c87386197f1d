"""The CSV files: grades.csv, totals.csv, and the list of answers that a person has to mark."""

import csv
import io
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from course_utils.folders import CourseError
from course_utils.grading.lesson import find, lesson
from course_utils.grading.model import Result
from course_utils.grading.records import Mark, Records, waiting_answers
from course_utils.store import write_atomically

GRADES = ("student", "notebook", "exercise", "points", "max_points", "state", "reason")
TO_MARK = ("student", "notebook", "exercise", "points", "max_points", "comment", "answer")
FORMULA = ("=", "+", "-", "@", "\t")


def safe(text: str) -> str:
    """A text that no spreadsheet takes for a formula: an apostrophe before what begins like one."""
    text = "".join(c if c.isprintable() or c in "\n\t" else " " for c in text.replace("\r", "\n"))
    return f"'{text}" if text.lstrip(" \n").startswith(FORMULA) else text


def number(value: float | None) -> str:
    """A number with at most four decimals; nothing for no number."""
    if value is None or not math.isfinite(value):
        return ""
    return f"{value:.4f}".rstrip("0").rstrip(".")


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV: quoted where needed, texts safe, numbers as numbers, "\\n" line ends."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([safe(cell) if isinstance(cell, str) else number(cell) for cell in row])
    return out.getvalue()


def write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write rows as a CSV file in UTF-8, as a whole or not at all."""
    write_atomically(path, csv_text(header, rows).encode("utf-8", "replace"))


def grade_rows(results: Iterable[Result]) -> list[tuple[Any, ...]]:
    """The rows of grades.csv: points as earned, before the late policy, and no number where there is none."""
    return [
        (r.student, r.notebook, p.exercise, p.points, p.max_points, p.state, p.reason)
        for r in results
        for p in r.exercises
    ]


def total_table(records: Records) -> tuple[list[str], list[list[Any]]]:
    """Header and rows of totals.csv: a row for each student, points after the late policy."""
    header = ["student", "name", "email"]
    for notebook in records.notebooks:
        header += [notebook, f"{notebook}_max"]
    header += ["percent", "percent_so_far", "remarks"]
    rows = []
    for student in records.students:
        person = records.people.get(student)
        row: list[Any] = [student, person.name if person else "", person.email if person else ""]
        remarks = []
        for notebook in records.notebooks:
            total = records.totals.get((student, notebook))
            row += [total.points if total else None, lesson(notebook).max_points]
            remarks += _remarks(notebook, total)
        row += [records.percent(student), records.percent(student, complete=False), "; ".join(remarks)]
        rows.append(row)
    return header, rows


def _remarks(notebook: str, total: Any) -> list[str]:
    number = lesson(notebook).number
    if total is None:
        return [f"{number}: no file"]
    if total.points is None:
        return [f"{number}: {total.state}"]
    remarks = [f"{number}: open: {', '.join(total.waiting)}"] if total.waiting else []
    if total.days_late:
        remarks.append(f"{number}: {total.days_late} day(s) late, {100 * total.penalty:g} % off")
    return remarks


def write_tables(out: Path, records: Records) -> None:
    """Write grades.csv, totals.csv and to_mark.csv."""
    write_csv(out / "grades.csv", GRADES, grade_rows(records.everything))
    write_csv(out / "totals.csv", *total_table(records))
    waiting = waiting_answers(records.results)
    rows = [(r.student, r.notebook, p.exercise, "", p.max_points, "", text) for r, p, text in waiting]
    write_csv(out / "to_mark.csv", TO_MARK, rows)


def read_marks(path: Path) -> dict[tuple[str, str, str], Mark]:
    """Marks by hand, from marks.csv: to_mark.csv with its column points filled in; empty cells are not marked yet.

    Raises CourseError, naming the line, for points that are no number or more than there are.
    """
    if not path.exists():
        return {}
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CourseError(f"{path} cannot be read: {error}. Save it as CSV UTF-8.") from None
    if rows and (lacking := [key for key in TO_MARK[:4] if key not in rows[0]]):
        raise CourseError(f"{path} lacks the column {lacking[0]}; its columns are those of to_mark.csv.")
    marks = {}
    for line, row in enumerate(rows, 2):
        points = (row["points"] or "").strip().replace(",", ".")
        if not points:
            continue
        student, notebook = (row["student"] or "").removeprefix("'"), find((row["notebook"] or "").strip())
        part = next((p for p in lesson(notebook).graded if p.name == row["exercise"]), None) if notebook else None
        if part is None:
            raise CourseError(f"{path}, row {line}: there is no {row['exercise']!r} in the lesson {row['notebook']!r}.")
        try:
            value = float(points)
        except ValueError:
            value = math.nan
        if not 0 <= value <= part.max_points:
            raise CourseError(f"{path}, row {line}: points {points!r} is not a number from 0 to {part.max_points:g}.")
        marks[student, notebook, part.name] = Mark(value, (row.get("comment") or "").strip(), row.get("answer") or "")
    return marks
