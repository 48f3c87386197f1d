"""Feedback pages: everything escaped, no hidden case, small, one for each student on every system."""

import re
from html.parser import HTMLParser

import pytest

from course_utils.grading.feedback import MAX_BYTES, feedback_page, feedback_path, write_feedback
from course_utils.grading.model import GRADED, UNREADABLE, ExerciseResult
from course_utils.grading.records import Mark, Records, whole
from course_utils.grading.results import Stored
from course_utils.grading.settings import Settings
from grading.school import LESSON, result

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&`x`<b>"
REPORT = {
    "exercise": "decode_step",
    "state": "not right yet",
    "points": 3,
    "max_points": 10,
    "passed": False,
    "optional": False,
    "cases": ({"name": "no padding", "shows": "weights follow the formula", "points": 3, "max_points": 3},),
    "findings": (
        {
            "message": "The weights `w` sum to 2.",
            "misconception": None,
            "hints": ("One?", "Two.", "three()"),
            "case": "",
        },
    ),
    "notes": (),
}


class Tags(HTMLParser):
    """The tags of a page, and what stands in their attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs


def page(found, **more):
    records = Records((Stored(found),), **more)
    return feedback_page(records.results[0], records.totals[found.student, found.notebook])


def parts(**changes):
    return (ExerciseResult("decode_step", 3.0, 10.0, GRADED, "so", {**REPORT, **changes}),)


def test_a_page_says_points_what_was_observed_and_hints():
    text = page(result(exercises=parts()))
    for words in ("3 of 10 points", "no padding", "The weights <code>w</code> sum to 2.", "Hint 3", "three()"):
        assert words in text


def test_nothing_of_a_student_becomes_part_of_the_page():
    evil = parts(
        findings=({"message": EVIL, "misconception": EVIL, "hints": (EVIL,) * 3, "case": EVIL},),
        notes=(EVIL,),
        cases=({"name": EVIL, "shows": EVIL, "points": 0, "max_points": 1},),
        state=EVIL,
    )
    question = {"question": EVIL, "answered": True, "right": False, "points": 0, "max_points": 2, "message": EVIL}
    questions = {"questions": [question]}
    found = result(
        EVIL,
        exercises=(*evil, ExerciseResult("questions_02", 0.0, 20.0, GRADED, EVIL, questions), *result().exercises[3:4]),
        notes=(EVIL,),
        written={"written_02_W": EVIL},
    )
    seen = Tags(page(found))
    assert not {"script", "img", "b", "iframe", "link"} & set(seen.tags)
    assert not [name for name, _ in seen.attributes if name.startswith("on")]


def test_a_page_loads_and_runs_nothing():
    text = page(result(exercises=parts()))
    assert "default-src 'none'" in text
    assert not re.search(r'(src|href)="https?:|url\(|@import', text)


def test_a_page_stays_small_whatever_was_printed():
    long = "x" * 300_000
    finding = {"message": long, "misconception": None, "hints": (long,) * 3, "case": ""}
    one = {**REPORT, "findings": (finding,) * 50, "notes": (long,) * 50}
    many = tuple(ExerciseResult(f"e{i}", 0.0, 10.0, GRADED, long, one) for i in range(40))
    text = page(result(long, exercises=many, notes=(long,) * 500, written={"written_02_W": long}))
    assert len(text.encode()) <= MAX_BYTES
    assert Tags(text).tags.count("html") == 1


def test_who_cannot_be_graded_gets_the_reason_and_no_points():
    text = page(whole("ann", LESSON, UNREADABLE, "The file is empty (0 bytes)."))
    assert "The file is empty (0 bytes)." in text
    assert not re.search(r"\b0 of \d+ points", text)


def test_what_being_late_costs_is_said():
    text = page(result(late=True), settings=Settings(per_day=20))
    assert "1 day late" in text and "20 %" in text


def test_a_mark_by_hand_is_shown_with_its_comment():
    text = page(result(), marks={("ann", LESSON, "written_02_W"): Mark(4, "Think of gradients.")})
    assert "4 of 5 points" in text and "Think of gradients." in text


@pytest.mark.parametrize("student", ["Ann", "../../etc", "a/b", "CON", "x" * 400, "Zoé <b>"])
def test_a_page_lies_inside_the_folder_of_results(tmp_path, student):
    found = result(student)
    assert write_feedback(tmp_path, Records((Stored(found),))) == 1
    path = feedback_path(tmp_path, student, LESSON)
    assert path.resolve().is_relative_to(tmp_path.resolve() / "feedback")
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
