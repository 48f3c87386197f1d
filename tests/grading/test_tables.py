"""The CSV files: exact columns, no number where there is none, nothing that a spreadsheet would run."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.folders import CourseError
from course_utils.grading.lesson import lesson
from course_utils.grading.model import NEEDS_REVIEW, NOT_SUBMITTED, UNREADABLE
from course_utils.grading.records import Mark, Records, whole
from course_utils.grading.results import Stored
from course_utils.grading.settings import Settings, read_settings
from course_utils.grading.tables import FORMULA, csv_text, grade_rows, read_marks, safe, total_table, write_tables
from grading.school import LESSON, WORDS, result

OTHER = "01_rnn_bottleneck"


def records(*results, **more):
    return Records(tuple(Stored(r) for r in results), **more)


def rows(path):
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def totals(found):
    header, body = total_table(found)
    return {row[0]: dict(zip(header, row, strict=True)) for row in body}


def test_grades_have_the_promised_columns_and_a_row_for_each_part(tmp_path):
    write_tables(tmp_path, records(result("ann")))
    first = (tmp_path / "grades.csv").read_bytes().split(b"\n")[0]
    assert first == b"student,notebook,exercise,points,max_points,state,reason"
    assert [row["exercise"] for row in rows(tmp_path / "grades.csv")] == [p.name for p in lesson(LESSON).graded]


@pytest.mark.parametrize("state", [NEEDS_REVIEW, UNREADABLE])
def test_where_there_is_no_number_there_is_none(tmp_path, state):
    write_tables(tmp_path, records(whole("ann", LESSON, state, "why")))
    assert {row["points"] for row in rows(tmp_path / "grades.csv")} == {""}
    (total,) = rows(tmp_path / "totals.csv")
    assert total[LESSON] == total["percent"] == total["percent_so_far"] == ""


def test_who_handed_in_nothing_is_not_submitted_and_has_no_points(tmp_path):
    write_tables(tmp_path, records(result("ann"), roster=("ann", "bo")))
    mine = [row for row in rows(tmp_path / "grades.csv") if row["student"] == "bo"]
    assert {(row["state"], row["points"]) for row in mine} == {(NOT_SUBMITTED, "")}
    assert rows(tmp_path / "totals.csv")[1][LESSON] == ""


def test_the_same_results_give_the_same_bytes_in_whatever_order_they_came(tmp_path):
    found = [result("ann"), result("bo", share=0.5), result("ann", OTHER)]
    write_tables(tmp_path / "a", records(*found))
    write_tables(tmp_path / "b", records(*reversed(found)))
    for name in ("grades.csv", "totals.csv", "to_mark.csv"):
        assert sorted((tmp_path / "a" / name).read_bytes().split(b"\n")) == sorted(
            (tmp_path / "b" / name).read_bytes().split(b"\n")
        )
    assert (tmp_path / "a" / "totals.csv").read_bytes() == (tmp_path / "b" / "totals.csv").read_bytes()


@given(st.text(max_size=30))
def test_no_text_begins_like_a_formula_and_every_text_comes_back(text):
    line = next(csv.reader(io.StringIO(csv_text(("a", "b"), [(text, 1)]).split("\n", 1)[1], newline="")), ["", "1"])
    assert line[1] == "1"
    assert not line[0].lstrip(" \n").startswith(FORMULA)


@pytest.mark.parametrize(
    "name", ['O\'Neil, Jr. "Bo"', "=HYPERLINK(1)", "+1", "-1", "@x", "\t=1", "\r=1", " =1", "a\nb"]
)
def test_names_that_broke_other_graders(name):
    line = next(csv.reader(io.StringIO(csv_text(("a", "b"), [(name, -1.5)]).split("\n", 1)[1], newline="")))
    assert line == [safe(name), "-1.5"]


def test_weights_make_one_number_of_the_lessons():
    found = records(
        result("ann", OTHER, 1.0, exercises=()), result("bo", OTHER), settings=Settings(weights={OTHER: 1, LESSON: 3})
    )
    assert totals(found)["ann"]["percent_so_far"] is None
    half, all_of_it = result("ann", OTHER, 0.5), result("ann", LESSON, 1.0)
    found = records(half, all_of_it, settings=Settings(weights={OTHER: 1, LESSON: 3}))
    assert totals(found)["ann"]["percent_so_far"] == pytest.approx(100 * (0.5 + 3) / 4)
    assert totals(found)["ann"]["percent"] is None, "written answers are open"


def test_a_late_file_loses_what_the_settings_say_and_no_more(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        '[deadlines]\n"02" = 2026-11-03T23:59:00+01:00\n[late]\nper_day = 30\nat_most = 50\ngrace_minutes = 10\n',
        encoding="utf-8",
    )
    settings = read_settings(path)
    assert settings.days_late(LESSON, "2026-11-04T00:08:00+01:00") == 0
    assert settings.days_late(LESSON, "2026-11-04T00:10:00+01:00") == 1
    assert settings.days_late(LESSON, "", marked=True) == 1
    shares = []
    for days in (1, 2, 9):
        late = result("ann", submitted=f"2026-11-{3 + days:02d}T12:00:00+01:00")
        shares.append(records(late, settings=settings).totals["ann", LESSON].points / 50)
    assert shares == pytest.approx([0.7, 0.5, 0.5])
    assert grade_rows([late])[0][3] == 10, "grades.csv says what was earned"


@pytest.mark.parametrize(
    "text, word",
    [
        ("[weight]\n", "weights"),
        ('[weights]\n"99" = 1\n', "99"),
        ('[weights]\n"02" = 1\n"02_attention" = 2\n', "twice"),
        ('[weights]\n"02" = "much"\n', "much"),
        ('[weights]\n"02" = 0\n', "all weights"),
        ("[late]\nper_day = 110\n", "from 0 to 100"),
        ("[late]\nper_days = 10\n", "per_day"),
        ('[deadlines]\n"02" = "tomorrow"\n', "tomorrow"),
        ("weights = 3\n", "table"),
        ("[late\n", "TOML"),
    ],
)
def test_settings_that_cannot_be_meant_are_named(tmp_path, text, word):
    path = tmp_path / "s.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CourseError, match=word):
        read_settings(path)


def test_answers_are_marked_in_a_copy_of_to_mark(tmp_path):
    write_tables(tmp_path, records(result("ann"), result("-bo")))
    text = (tmp_path / "to_mark.csv").read_text(encoding="utf-8")
    (tmp_path / "marks.csv").write_text(
        text.replace("written_02_W,,5,,", "written_02_W,4,5,good,"), encoding="utf-8-sig"
    )
    marks = read_marks(tmp_path / "marks.csv")
    found = records(result("ann"), result("-bo"), marks=marks)
    assert totals(found)["ann"]["percent"] == totals(found)["-bo"]["percent"] == round(100 * 54 / 55, 2)
    assert [p.reason for r in found.results for p in r.exercises if p.exercise == "written_02_W"] == [
        "Marked by hand. good"
    ] * 2


def test_a_mark_is_for_the_answer_that_was_read():
    mark = {("ann", LESSON, "written_02_W"): Mark(4, "", WORDS)}
    new = result("ann", written={"written_02_W": "Something else."})
    assert totals(records(result("ann"), marks=mark))["ann"]["percent"] is not None
    assert totals(records(new, marks=mark))["ann"]["percent"] is None


@pytest.mark.parametrize("points", ["6", "-1", "many", "nan"])
def test_marks_that_cannot_be_meant_are_named(tmp_path, points):
    (tmp_path / "marks.csv").write_text(
        f"student,notebook,exercise,points\nann,02,written_02_W,{points}\n", encoding="utf-8"
    )
    with pytest.raises(CourseError, match="row 2"):
        read_marks(tmp_path / "marks.csv")
