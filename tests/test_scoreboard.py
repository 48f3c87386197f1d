"""The scoreboard: what it shows, and which lines an earlier lesson leaves behind."""

import json

import numpy as np
import pytest
import torch

from course_utils import notebook, parts, scoreboard
from course_utils.evaluation import Scores
from course_utils.scoreboard import Line, Scoreboard
from course_utils.training import History

FALLING = [1, 0.9, 0.2, 0.05, 0, 0, 0, 0]
GOOD = [1, 1, 1, 1, 1, 1, 0.1, 0]
AUTHORS = {
    "lines": [
        {"name": "fixed context vector", "lesson": "01", "parameters": 148000, "steps": 1900,
         "exact_match": [FALLING, GOOD, [0.5] * 8], "token_accuracy": [[0.9] * 8] * 3},
        {"name": "additive attention", "lesson": "02", "parameters": 117000, "steps": 1900,
         "alignment": [1.0, 0.9], "exact_match": [GOOD, GOOD], "token_accuracy": [GOOD, GOOD]},
    ]
}  # fmt: skip


@pytest.fixture(autouse=True)
def course(monkeypatch, tmp_path):
    file = tmp_path / "reference.json"
    file.write_text(json.dumps(AUTHORS), encoding="utf-8")
    monkeypatch.setattr(scoreboard, "REFERENCE", file)
    monkeypatch.setattr(notebook, "_lesson", None)
    monkeypatch.setenv("COURSE_REMEMBER", "1")
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("COURSE_SMOKE", raising=False)
    return file


def line(name="fixed context vector", scores=FALLING, **other):
    return Line(name, scores, scores, parameters=148_000, steps=1_900, **other)


def names(board):
    return [one.name for one in board.lines]


def test_a_lesson_sees_the_lines_of_earlier_lessons_only():
    assert names(scoreboard.load("01")) == []
    assert names(scoreboard.load("02")) == ["fixed context vector"]
    assert names(scoreboard.load("06")) == ["fixed context vector", "additive attention"]
    assert names(scoreboard.load()) == ["fixed context vector", "additive attention"]


def test_the_lesson_is_the_one_that_setup_named(monkeypatch):
    monkeypatch.setattr(notebook, "_lesson", "02")
    assert names(scoreboard.load()) == ["fixed context vector"]


def test_the_authors_line_shows_median_and_range_and_how_many_seeds():
    shown = str(scoreboard.load("02"))
    assert "0.90 (0.50-1.00)" in shown
    assert "authors, 3 seeds" in shown


def test_an_own_line_takes_the_place_of_the_authors_in_a_later_lesson(monkeypatch):
    monkeypatch.setattr(notebook, "_lesson", "01")
    scoreboard.load().add(line(scores=GOOD))
    shown = str(scoreboard.load("02"))
    assert "your run, notebook 01" in shown
    assert "authors" not in shown


def test_adding_a_line_again_replaces_it_in_its_place():
    board = Scoreboard().add(line()).add(line("attention", GOOD)).add(line(scores=[0.33] * 8))
    assert names(board) == ["fixed context vector", "attention"]
    assert "0.33" in str(board)
    assert "0.20" not in str(board)


@pytest.mark.parametrize("switch", [("COURSE_SMOKE", "1"), ("COURSE_REMEMBER", "0")])
def test_nothing_is_kept_from_smoke_runs_or_where_nothing_is_remembered(monkeypatch, switch):
    monkeypatch.setenv(*switch)
    Scoreboard().add(line())
    assert not parts.data_folder().exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"lines": [{"name": "x"}]}', '{"lines": [3]}', '{"lines": 3}'])
def test_damaged_files_leave_the_board_usable(text, course):
    course.write_text(text, encoding="utf-8")
    parts.data_folder().mkdir()
    (parts.data_folder() / "scoreboard.json").write_text(text, encoding="utf-8")
    board = scoreboard.load("02")
    assert board.lines == []
    assert "empty" in str(board)
    board.add(line())
    assert names(scoreboard.load("07")) == ["fixed context vector"]


def test_a_course_without_reference_lines_has_an_empty_board(course):
    course.unlink()
    assert "empty" in scoreboard.load()._repr_html_()


def test_tensors_and_arrays_are_kept_as_plain_numbers():
    scores = torch.tensor(FALLING, dtype=torch.float64)
    Scoreboard().add(line(scores=scores, seconds=np.float32(3), alignment=torch.tensor([0.5, 1.0])))
    assert line(scores=np.array([FALLING, GOOD])).exact_match == [FALLING, GOOD]
    assert scoreboard.load("09").lines[0].exact_match == [FALLING]


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        ([1, 2, 3], "8 numbers"),
        ([0.5] * 7 + [1.2], "from 0 to 1"),
        ([], "8 numbers"),
        ([float("nan")] * 8, "0 to 1"),
    ],
)
def test_scores_that_do_not_fit_are_a_clear_error(scores, says):
    with pytest.raises(ValueError, match=says):
        line(scores=scores)


def test_lengths_beyond_training_are_marked_and_text_is_stable():
    board = Scoreboard().add(line(seconds=47.9, alignment=0.98765))
    assert str(board) == str(Scoreboard().add(line(seconds=47.9, alignment=0.98765)))
    assert "lengths seen in training" in str(board)
    assert "beyond training" in str(board)
    assert "0.99" in str(board)
    html = board._repr_html_()
    assert 'scope="colgroup" colspan="6"' in html
    assert 'scope="colgroup" colspan="2"' in html


def test_a_line_is_made_from_scores_and_history():
    scores = Scores(
        {n: 1.0 / n for n in range(1, 9)}, dict.fromkeys(range(1, 9), 0.5), dict.fromkeys(range(1, 9), 0.25)
    )
    made = scoreboard.line("m", scores, 7, History(losses=[1.0, 2.0], seconds=3.0))
    assert made.exact_match == [[1.0 / n for n in range(1, 9)]]
    assert (made.parameters, made.steps, made.seconds, made.alignment) == (7, 2, 3.0, 0.25)
    without = scoreboard.line("m", Scores(scores.exact_match, scores.token_accuracy, None), 7, History())
    assert without.alignment is None
