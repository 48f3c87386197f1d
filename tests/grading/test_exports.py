"""Files for the platforms: matched by ids only, empty where there is no number."""

import csv
import io
import json

import pytest

from course_utils.folders import CourseError
from course_utils.grading.exports import export
from course_utils.grading.model import UNREADABLE
from course_utils.grading.platforms import Person
from course_utils.grading.records import Mark, Records, whole
from course_utils.grading.results import Stored
from course_utils.grading.settings import Settings
from grading.school import LESSON, result

PEOPLE = {
    "ann": Person("ann", "Ann Bell", "ann@example.org", canvas="111", moodle="12"),
    "bo": Person("bo", "=Bo, Jr.", "bo@example.org", canvas="112", moodle="13"),
    "cy": Person("cy", "Cy"),
}
MARKS = {("ann", LESSON, "written_02_W"): Mark(4)}
CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Essay (900),Lesson 02 Attention (901),Final Score
    Points Possible,,,,,10,55,(read only)
"Bell, Ann",111,,ann,A,7,,70
"Jr., Bo",112,,,A,8,,80
"Drew, Cy",113,,CY,A,9,,90
"Other, Somebody",199,,x,A,1,,1
"""
MOODLE = """\
ID,Vollständiger Name,Status,Bewertung,Bestwertung
Teilnehmer/in12,Ann Bell,Zur Bewertung abgegeben,,55
Teilnehmer/in13,Bo,Zur Bewertung abgegeben,,55
Teilnehmer/in99,Wer,Keine Abgabe,,55
"""


def records(*found, **more):
    found = found or (result("ann"), whole("bo", LESSON, UNREADABLE, "why"), result("cy"))
    return Records(tuple(Stored(r) for r in found), people=PEOPLE, marks=MARKS, **more)


def rows(path):
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))


def template(tmp_path, text):
    path = tmp_path / "02 attention export.csv"
    path.write_text(text, encoding="utf-8-sig")
    return path


def test_canvas_gets_its_columns_and_no_number_that_is_not_known(tmp_path):
    notes = export("canvas", tmp_path, records(), [])
    found = rows(tmp_path / "exports" / "canvas.csv")
    assert found[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", LESSON]
    assert found[1][0].strip() == "Points Possible" and found[1][-1] == "55"
    assert [row[1:2] + row[-1:] for row in found[2:]] == [["111", "54"], ["112", ""]]
    assert found[3][0].startswith("'=")
    assert any(note.startswith("cy has no Canvas id") for note in notes)
    assert any("new assignment" in note for note in notes)


def test_canvas_own_file_gives_rows_and_the_column_with_its_id(tmp_path):
    notes = export("canvas", tmp_path, records(), [template(tmp_path, CANVAS)])
    found = rows(tmp_path / "exports" / "canvas.csv")
    assert found[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Lesson 02 Attention (901)"]
    assert {row[1]: row[-1] for row in found[2:]} == {"111": "54", "112": "", "113": ""}
    assert any("Other, Somebody" in note for note in notes)


def test_a_column_that_is_not_there_is_an_error(tmp_path):
    settings = Settings(canvas={LESSON: "Lesson (5)"})
    with pytest.raises(CourseError, match="Lesson 02 Attention"):
        export("canvas", tmp_path, records(settings=settings), [template(tmp_path, CANVAS)])


def test_points_so_far_only_if_the_settings_say_so(tmp_path):
    export("canvas", tmp_path, records(result("bo"), settings=Settings(incomplete=True)), [])
    assert rows(tmp_path / "exports" / "canvas.csv")[2][-1] == "50"


def test_moodle_without_and_with_its_worksheet(tmp_path):
    export("moodle", tmp_path, records(), [])
    found = rows(tmp_path / "exports" / f"moodle_{LESSON}.csv")
    assert found[0][0] == "Identifier"
    assert {row[0]: row[3] for row in found[1:]} == {"Participant 12": "54", "Participant 13": ""}
    notes = export("moodle", tmp_path, records(), [template(tmp_path, MOODLE)])
    found = rows(tmp_path / "exports" / f"moodle_{LESSON}.csv")
    assert found[0] == MOODLE.split("\n", maxsplit=1)[0].split(",")
    assert [row[3] for row in found[1:]] == ["54", "", ""]
    assert any("Teilnehmer/in99" in note for note in notes)


def test_a_worksheet_in_a_language_that_is_not_known_asks_for_its_columns(tmp_path):
    strange = template(tmp_path, MOODLE.replace("Bewertung,", "Pisteet,"))
    with pytest.raises(CourseError, match=r"export\.moodle"):
        export("moodle", tmp_path, records(), [strange])
    export("moodle", tmp_path, records(settings=Settings(moodle={"grade": "Pisteet"})), [strange])
    assert rows(tmp_path / "exports" / f"moodle_{LESSON}.csv")[1][3] == "54"


def test_gradescope_gets_a_score_only_where_there_is_one(tmp_path):
    export("gradescope", tmp_path, records(), [])
    files = {p.parts[-3]: json.loads(p.read_text()) for p in tmp_path.rglob("results.json")}
    assert set(files) == {"ann", "bo", "cy"}
    assert sum(test["score"] for test in files["ann"]["tests"]) == 54
    assert all("score" not in test for test in files["bo"]["tests"])
    assert "score" not in files["cy"]
    assert all(test["max_score"] > 0 and test["visibility"] == "visible" for test in files["ann"]["tests"])
