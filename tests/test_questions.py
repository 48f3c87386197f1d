"""Questions: what counts as an answer, what is told, and how points add up."""

import json
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from course_utils import parts, questions
from course_utils.questions import Prediction, answer, inline_html, question_points, to_number

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
    "03.2": {"kind": "number", "text": "?", "right": 1234567.5, "tolerance": 0.5, "explain": "Many."},
    "03.3": {"kind": "number", "text": "?", "right": 38416, "tolerance": 0.5, "explain": "A product."},
    "03.4": {"kind": "number", "text": "?", "right": 1.25, "tolerance": 0.01, "explain": "A ratio."},
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
    assert question_points("03").max_points == 8
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
    "given",
    ["38,416", "38 416", "38_416", "38.416", "38'416", "38\u202f416", "38\u2019416", "38416", "38,416.0", "38.416,2",
     "3.8416e4", "+38,416", 38416, 38_416],
)  # fmt: skip
def test_thousands_may_be_set_apart(given):
    assert answer("03.3", given).correct


@pytest.mark.parametrize("given", ["1,234,567", "1.234.568", "1 234 567,5", "1'234'567.5", "1_234_567"])
def test_several_groups_are_thousands(given):
    assert answer("03.2", given).correct


@pytest.mark.parametrize("given", ["1,250", "1.250", "1,25", "1.25", "5/4"])
def test_three_decimals_are_still_decimals(given):
    assert answer("03.4", given).correct


def test_a_damaged_answer_is_passed_over_and_said(monkeypatch, capsys):
    monkeypatch.setenv("COURSE_REMEMBER", "1")
    answer("02.1", "a")
    file = questions._record_file("02.1")
    file.write_text("[" * 50_000, encoding="utf-8")
    monkeypatch.setattr(questions, "_given", {})
    assert questions.last_points("02.1") is None
    assert str(file) in capsys.readouterr().out
    answer("02.1", "a")
    monkeypatch.setattr(questions, "_given", {})
    assert questions.last_points("02.1") == 2


def test_a_number_with_two_readings_that_is_wrong_says_how_it_was_read():
    said = str(answer("03.3", "38,417"))
    assert "38.417" in said and "38417" in said and "write one of them" in said
    assert "neither" not in str(answer("03.3", "38417"))


@pytest.mark.parametrize("given", ["38,41", "3,8416", "0,416", "38,4160", "38,416,1", "38 41", "38,416 416", "-38,416"])
def test_groups_of_other_sizes_are_no_thousands(given):
    assert not answer("03.3", given).correct


def test_a_comma_without_quotes_is_said():
    result = answer("03.3", 38, 416)
    assert not result.answered
    assert "(38, 416) is not" in str(result) and "write 1200, not 1,200" in str(result)


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


def test_a_prediction_gives_nothing_away_before_it_is_marked():
    none = Prediction(["it grows", "it falls"], None, "b", "Because of the sum.")
    assert (none.answered, none.correct, none.points) == (False, False, 0)
    shown, folded = none._repr_html_().split("<details>")
    for text in (str(none), shown):
        assert "run this cell again" in text
        assert "it falls" not in text and "Because" not in text
    assert folded == "<summary>What comes out</summary>b) it falls. Because of the sum.</details></div>"


def test_a_prediction_is_compared_with_what_is_right():
    right, wrong = (Prediction(["it grows", "it falls"], said, "b", "Because of the sum.") for said in "ba")
    assert right.correct and str(right) == "Prediction. Right. You said b) it falls. Because of the sum."
    assert wrong.answered and not wrong.correct
    assert (
        str(wrong) == "Prediction. It comes out otherwise. You said a) it grows. It is b) it falls. Because of the sum."
    )
    assert "b) it falls" in wrong._repr_html_()


@pytest.mark.parametrize("right", ["c", "", "ab"])
def test_what_is_right_is_one_of_the_choices(right):
    with pytest.raises(ValueError, match="must be one of a, b"):
        Prediction(["it grows", "it falls"], None, right, "why")
