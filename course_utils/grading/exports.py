"""Files that Canvas, Moodle and Gradescope import.

Points are those after the late policy. A student or lesson without a number gets an empty cell, never 0, and whoever
cannot be matched by an id of the platform is left out and named, rather than matched by a name.
"""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_utils.folders import CourseError
from course_utils.grading.lesson import QUESTIONS, WRITTEN, lesson
from course_utils.grading.names import folder_name, lesson_in
from course_utils.grading.records import Records, Total
from course_utils.grading.tables import number, write_csv
from course_utils.store import write_atomically

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS_POSSIBLE = "Points Possible"
MOODLE = ("Identifier", "Full name", "Email address", "Grade", "Feedback comments")
MOODLE_TITLES = {
    "identifier": ("identifier", "id", "identifikation", "identifiant", "identificador", "identificatore", "azonosító"),
    "grade": ("grade", "bewertung", "note", "calificación", "valutazione", "cijfer", "nota", "osztályzat"),
    "comments": ("feedback comments", "feedback als kommentar", "feedback par commentaires"),
}


def export(kind: str, out: Path, records: Records, templates: list[Path]) -> list[str]:
    """Write the files for one platform into out/exports; returns sentences for the person at the terminal."""
    return EXPORTS[kind](out / "exports", records, templates)


def grade_of(records: Records, total: Total | None) -> float | None:
    """The number that a platform gets for a lesson; None for none."""
    if total is None or not (total.complete or records.settings.incomplete):
        return None
    return total.points


def _canvas(folder: Path, records: Records, templates: list[Path]) -> list[str]:
    if len(templates) > 1:
        raise CourseError("--export canvas takes one --export-from: Canvas has one gradebook for all lessons.")
    notes: list[str] = []
    if templates:
        header, rows = _read(templates[0])
        if len(header) < len(CANVAS) or header[0].strip() != "Student" or header[1].strip() != "ID":
            raise CourseError(
                f"--export-from {templates[0]} is no gradebook of Canvas: its columns begin {header[:5]}."
            )
        first = next((i for i, title in enumerate(header) if re.search(r"\(\d+\)$", title)), len(header))
        fixed = [i for i in range(first) if header[i].strip() in (*CANVAS, "Root Account")]
        people = [[row[i] if i < len(row) else "" for i in fixed] for row in rows]
        titles = {stem: _canvas_title(stem, header, records, notes) for stem in records.notebooks}
        head = [header[i] for i in fixed]
        find = _canvas_student(head, records)
    else:
        head, people, find = list(CANVAS), [], lambda row: by_id.get(row[1])
        by_id = {p.canvas: s for s, p in records.people.items() if p.canvas}
        for student in records.students:
            person = records.people.get(student)
            if person is not None and person.canvas:
                people.append([person.name, person.canvas, "", "", ""])
            else:
                notes.append(
                    f"{student} has no Canvas id and is not in canvas.csv: add the column canvas to the roster."
                )
        titles = {stem: records.settings.canvas.get(stem, stem) for stem in records.notebooks}
        notes += [
            f"Canvas will make a new assignment {title!r}: it has no id. Give --export-from the gradebook that Canvas "
            "exports, or its title in [export.canvas] of the settings."
            for title in titles.values()
            if not re.search(r"\(\d+\)$", title)
        ]
    possible = [f"    {POINTS_POSSIBLE}", *[""] * (len(head) - 1), *(lesson(s).max_points for s in records.notebooks)]
    body, matched = [possible], set()
    for row in people:
        student = find(row) if row[0].strip() != POINTS_POSSIBLE else None
        if student is None:
            if row[0].strip() not in (POINTS_POSSIBLE, "") and "test" not in row[0].casefold():
                notes.append(f"{row[0]} of Canvas is nobody that was graded here; the row was left out.")
            continue
        matched.add(student)
        body.append([*row, *(grade_of(records, records.totals.get((student, s))) for s in records.notebooks)])
    if templates:
        notes += [f"{s} is not in Canvas's gradebook." for s in records.students if s not in matched]
    write_csv(folder / "canvas.csv", [*head, *titles.values()], body)
    return [f"wrote {folder / 'canvas.csv'}", *notes]


def _canvas_title(stem: str, header: list[str], records: Records, notes: list[str]) -> str:
    wanted = records.settings.canvas.get(stem)
    columns = [title for title in header if re.search(r"\(\d+\)$", title)]
    if wanted in columns:
        return wanted
    if wanted is not None:
        raise CourseError(f"[export.canvas] {stem}: there is no column {wanted!r}; Canvas has {', '.join(columns)}.")
    found = [title for title in columns if lesson_in(re.sub(r"\(\d+\)$", "", title)) == stem]
    if len(found) == 1:
        return found[0]
    notes.append(f"No single column of Canvas is for {stem}: Canvas will make a new assignment of that name.")
    return stem


def _canvas_student(head: list[str], records: Records) -> Callable[[list[str]], str | None]:
    """Finds a student by the ids in a row of Canvas: its own, else the login or SIS id."""
    by_id = {p.canvas: s for s, p in records.people.items() if p.canvas}
    by_login = {s.casefold(): s for s in records.students}
    by_login |= {p.email.casefold(): s for s, p in records.people.items() if p.email}
    places = [i for i, title in enumerate(head) if title.strip() in ("SIS User ID", "SIS Login ID")]

    def find(row: list[str]) -> str | None:
        if (student := by_id.get(row[1].strip())) is not None:
            return student
        logins = (row[i].strip().casefold() for i in places)
        return next((by_login[login] for login in logins if login in by_login), None)

    return find


def _moodle(folder: Path, records: Records, templates: list[Path]) -> list[str]:
    notes: list[str] = []
    given = {stem: path for path in templates if (stem := _moodle_lesson(path, records)) is not None}
    for stem in records.notebooks:
        path = folder / f"moodle_{stem}.csv"
        if stem in given:
            header, rows = _read(given[stem])
            places = {key: _moodle_column(key, header, records, given[stem]) for key in ("identifier", "grade")}
        else:
            header, places = list(MOODLE), {"identifier": 0, "grade": 3}
            rows = [
                [f"Participant {person.moodle}", person.name, person.email, "", ""]
                for student in records.students
                if (person := records.people.get(student)) is not None and person.moodle
            ]
            without = [s for s in records.students if not (s in records.people and records.people[s].moodle)]
            notes += [f"{s} has no Moodle participant number and is not in {path.name}." for s in without]
        by_id = {p.moodle: s for s, p in records.people.items() if p.moodle}
        body = []
        for given_row in rows:
            row = [*given_row, *[""] * (len(header) - len(given_row))]
            participant = re.search(r"(\d+)\s*$", row[places["identifier"]])
            student = by_id.get(participant[1]) if participant else None
            if student is None:
                notes.append(
                    f"{row[places['identifier']]} of the worksheet is nobody that was graded; the row is unchanged."
                )
            elif (grade := grade_of(records, records.totals.get((student, stem)))) is not None:
                row[places["grade"]] = number(grade)
            body.append(row)
        write_csv(path, header, body)
        notes.insert(0, f"wrote {path} (out of {lesson(stem).max_points:g} points: the assignment's maximum grade)")
    return notes


def _moodle_lesson(path: Path, records: Records) -> str | None:
    stem = records.notebooks[0] if len(records.notebooks) == 1 else lesson_in(path.name)
    if stem is None:
        raise CourseError(f"--export-from {path.name}: which lesson is it? Put its number or name into the file name.")
    return stem


def _moodle_column(key: str, header: list[str], records: Records, path: Path) -> int:
    wanted = records.settings.moodle.get(key)
    titles = (wanted.casefold(),) if wanted else MOODLE_TITLES[key]
    found = [i for i, title in enumerate(header) if title.strip().casefold() in titles]
    if len(found) != 1:
        raise CourseError(
            f"--export-from {path}: which column is the {key}? Its columns are {', '.join(header)}. Name it in the "
            f'settings: [export.moodle] {key} = "..."'
        )
    return found[0]


def _gradescope(folder: Path, records: Records, templates: list[Path]) -> list[str]:
    """One results.json for each submission, as an autograder of Gradescope leaves it."""
    for result in records.results:
        kinds = {part.name: part.kind for part in lesson(result.notebook).graded}
        total = records.totals[result.student, result.notebook]
        tests: list[dict[str, Any]] = []
        for part in result.exercises:
            if not part.max_points:
                continue
            name = {QUESTIONS: "Questions", WRITTEN: "In your own words"}.get(
                kinds.get(part.exercise, ""), part.exercise
            )
            test: dict[str, Any] = {"name": name, "max_score": part.max_points, "visibility": "visible"}
            if part.points is not None:
                test["score"] = part.points
                test["status"] = "passed" if part.points >= part.max_points else "failed"
            findings = (part.report or {}).get("findings") or ()
            test["output"] = "\n\n".join([part.reason, *(f["message"] for f in findings)])[:20_000]
            tests.append(test)
        data: dict[str, Any] = {
            "tests": tests,
            "stdout_visibility": "hidden",
            "output": "\n".join(result.notes)[:20_000],
        }
        if total.penalty and total.points is not None:
            data["score"] = total.points
        path = folder / "gradescope" / folder_name(result.student) / result.notebook / "results.json"
        write_atomically(path, json.dumps(data, indent=1).encode())
    return [
        f"wrote {len(records.results)} results.json below {folder / 'gradescope'}",
        "Gradescope imports no list of grades into an assignment with an autograder: each results.json is what the "
        "autograder leaves in /autograder/results/results.json (see docs/instructors.md).",
    ]


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CourseError(f"--export-from {path} cannot be read: {error}.") from None
    if not rows:
        raise CourseError(f"--export-from {path} is empty.")
    return rows[0], [row for row in rows[1:] if any(row)]


EXPORTS: dict[str, Callable[[Path, Records, list[Path]], list[str]]] = {
    "canvas": _canvas,
    "moodle": _moodle,
    "gradescope": _gradescope,
}
