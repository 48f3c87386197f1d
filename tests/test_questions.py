"""Questions: what counts as an answer, what is told, and how points add up."""

import json
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from course_utils import parts, questions
from course_utils.questions import answer, inline_html, question_points, to_number

BANK = {
    "02.1": {
        "kind": "choice",
        "text": "Which axis?",
        "choices": {"a": "keys", "b": "queries", "c": "both"},
        "right": "a",
        "explain": {"a": "Rows sum to 1.", "b": "Not `dim=-2`: $a<b$ & <b>more</b>.", "c": "One axis only."},
    },
    "02.10": {"kind": "number", "text": "?", "right": -2.5, "tolerance": 0.1, "explain": "Because."},
    "02.4": {"kind": "number", "text": "?", "right": 0.125, "tolerance": 0.001, "explain": "One in eight."},
    "03.1": {"kind": "number", "text": "?", "right": 3, "tolerance": 0, "explain": "Three."},
}


@pytest.fixture(autouse=True)
def bank(monkeypatch, tmp_path):
    file = tmp_path / "questions.json"
    file.write_text(json.dumps(BANK), encoding="utf-8")
    monkeypatch.setattr(questions, "QUESTIONS", file)
    monkeypatch.setattr(questions, "_given", {})
    monkeypatch.setenv("COURSE_REMEMBER", "0")
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "data"))
    return file


@pytest.mark.parametrize("given", ["a", "A", "a)", "(a)", " A. ", "a) "])
def test_the_right_choice_in_any_spelling(given):
    result = answer("02.1", given)
    assert (result.correct, result.answered, result.points, result.max_points) == (True, True, 2, 2)
    assert "Right." in str(result)
    assert "Rows sum to 1." in str(result)


def test_a_wrong_choice_explains_itself_and_keeps_the_right_one_to_itself():
    result = answer("02.1", "c")
    assert (result.correct, result.answered, result.points, result.max_points) == (False, True, 0, 2)
    assert "One axis only." in str(result)
    assert "Rows sum to 1." not in str(result) + result._repr_html_()


@pytest.mark.parametrize("given", [None, "", "  "])
@pytest.mark.parametrize("question", ["02.1", "02.4"])
def test_no_answer_yet(question, given):
    result = answer(question, given)
    assert (result.correct, result.answered, result.points, result.max_points) == (False, False, 0, 2)
    assert "Not answered yet" in str(result)


@pytest.mark.parametrize("given", ["d", "ab", 1, ["a"], torch.tensor(1), True, "right", object(), "x" * 500])
def test_what_is_no_choice_names_the_choices(given):
    result = answer("02.1", given)
    assert not result.answered
    assert '"a", "b", "c"' in str(result)
    assert len(str(result)) < 200


RIGHT = [
    0.125,
    "0.125",
    "0,125",
    " 1/8 ",
    Fraction(1, 8),
    torch.tensor(0.125),
    torch.tensor([0.125]),
    np.float32(0.125),
]


@pytest.mark.parametrize("given", [*RIGHT, 0.1259, 0.1241, 0.126, 0.124])
def test_numbers_within_the_tolerance_are_right(given):
    assert answer("02.4", given).points == 2


@pytest.mark.parametrize("given", [0.1262, 0, -0.125, "1e9", float("inf"), 125])
def test_numbers_outside_the_tolerance_are_wrong_and_the_number_stays_hidden(given):
    result = answer("02.4", given)
    assert (result.answered, result.points) == (True, 0)
    assert "0.125 " not in str(result).replace(str(given), "")
    assert "One in eight" not in str(result)


@pytest.mark.parametrize(
    "given", [float("nan"), "nan", "b", "1,5,0", "1/0", True, 1j, [1, 2], torch.ones(2), {}, 10**999]
)
def test_what_is_no_number_is_said(given):
    result = answer("02.4", given)
    assert not result.answered
    assert "one number" in str(result)


def test_negative_numbers_and_copied_minus_signs():
    assert answer("02.10", -2.41).correct
    assert answer("02.10", "\u22122,6").correct


def test_a_question_with_zero_tolerance_takes_the_exact_number():
    assert answer("03.1", 3).correct
    assert not answer("03.1", 3.0001).correct


@pytest.mark.parametrize("question", ["02.2", "2.1", "", None, 2.4])
def test_an_unknown_question_names_near_ones(question):
    result = answer(question, "a")
    assert (result.points, result.max_points, result.answered) == (0, 0, False)
    assert "02." in str(result)
    assert str(question) not in questions._given


def test_a_course_that_was_not_built_says_so(bank):
    bank.unlink()
    assert "course build" in str(answer("02.1", "a"))
    assert question_points("02").max_points == 0
    assert "no questions" in str(question_points("02"))


class Collector(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def test_html_is_escaped_and_keeps_code_and_mathematics():
    html = answer("02.1", "b")._repr_html_()
    page = Collector()
    page.feed(html)
    assert "b" not in page.tags
    assert "code" in page.tags
    assert "$a<b$" in page.text
    assert "<b>more</b>" in page.text
    assert "Not right yet." in page.text  # the verdict is in words, not only in a colour


def test_what_a_student_types_cannot_become_html():
    html = answer("02.1", "<script>alert(1)</script>")._repr_html_()
    assert "<script" not in html


def test_inline_markdown_leaves_code_and_mathematics_alone():
    assert inline_html("**a** `**b** <c>` $**d**$") == "<strong>a</strong> <code>**b** &lt;c&gt;</code> $**d**$"
    assert inline_html("5$ and `open") == "5$ and `open"


def test_points_add_up_over_the_last_answers_of_a_lesson():
    assert question_points("02").points == 0
    answer("02.1", "b")
    answer("02.1", "a")
    answer("02.4", 0.125)
    answer("02.10", 7)
    answer("03.1", 3)
    total = question_points("02")
    assert (total.points, total.max_points) == (4, 6)
    assert question_points(2).points == 4
    assert repr(total.points) == "4"
    shown = str(total)
    assert shown.index("02.1 ") < shown.index("02.4") < shown.index("02.10")
    assert "<table" in total._repr_html_()


def test_taking_an_answer_back_takes_its_points():
    answer("02.1", "a")
    answer("02.1", None)
    assert question_points("02").points == 0


def test_answers_are_kept_for_the_overview_only_where_remembering(monkeypatch):
    answer("02.1", "a")
    assert not parts.data_folder().exists()
    monkeypatch.setenv("COURSE_REMEMBER", "1")
    answer("02.1", "a")
    monkeypatch.setattr(questions, "_given", {})
    assert questions.last_points("02.1") == 2
    assert questions.last_points("02.4") is None
    assert question_points("02").points == 0  # grading looks at this session alone


def test_to_number_takes_one_decimal_comma():
    assert to_number("3,14") == pytest.approx(3.14)
    assert to_number("1,234.5") is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("for *any* weights", "for <em>any</em> weights"),
        ("**strong** and *two words*", "<strong>strong</strong> and <em>two words</em>"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("`a * b * c` and $a*b*c$", "<code>a * b * c</code> and $a*b*c$"),
    ],
)
def test_emphasis_is_shown_and_products_are_not_taken_for_it(text, shown):
    assert questions.inline_html(text) == shown


def test_a_written_question_is_left_to_a_person():
    assert "read by a person" in str(questions.answer("01.W", "my text"))
