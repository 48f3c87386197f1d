"""`course grade` as a whole: files, resuming, exit codes, what it says; with the real grader where that matters."""

import csv
import io
import os
import signal
import subprocess
import sys
import time

import pytest

from course_utils.cli import main, make_parser
from course_utils.grading import pool
from course_utils.grading.executor import digest_of
from course_utils.grading.model import NEEDS_REVIEW, NOT_SUBMITTED
from course_utils.grading.progress import Progress
from course_utils.grading.records import whole
from grading.school import LESSON, archive, result, solved, stub, with_source

FILE = f"{LESSON}.ipynb"
ENDLESS = "def decode_step(*a):\n    while True: pass"
ANN, BO, CY = (f"{name}_assignsubmission_file_/{FILE}" for name in ("Ann Bell_12", "Bo Cole_13", "Cy Drew_14"))


@pytest.fixture
def graded(monkeypatch):
    """A grader that runs nothing: half of the points to everybody; the students that it was asked about."""
    asked = []

    def grade_all(submissions, jobs=None, *, secret, timeout=10.0, isolation="auto"):
        for s in submissions:
            asked.append(s.student)
            if s.student.startswith("Interrupt"):
                raise KeyboardInterrupt
            if s.student.startswith("Lost"):
                yield whole(s.student, s.notebook, NEEDS_REVIEW, "it died", digest=digest_of(s, secret))
            else:
                yield result(s.student, share=0.5, digest=digest_of(s, secret), origin=s.origin, late=s.late)

    monkeypatch.setattr(pool, "grade_all", grade_all)
    return asked


def grade(tmp_path, *arguments):
    return main(["grade", *map(str, arguments), "--out", str(tmp_path / "out")])


def grades(tmp_path):
    return list(csv.DictReader(io.StringIO((tmp_path / "out" / "grades.csv").read_text(encoding="utf-8"))))


def test_one_command_makes_everything(tmp_path, graded, capsys):
    packed = archive(tmp_path / "m.zip", {ANN: solved(), BO: stub(), CY: b"{", "__MACOSX/x": b"x"})
    (tmp_path / "roster.csv").write_text("student,moodle id\nann,12\nbo,13\ncy,14\ndee,15\n", encoding="utf-8")
    options = ("--roster", tmp_path / "roster.csv", "--export", "moodle", "--export", "canvas")
    assert grade(tmp_path, packed, *options) == 0
    out = tmp_path / "out"
    made = {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()}
    assert {"grades.csv", "totals.csv", "to_mark.csv", "report.html", "exports/canvas.csv"} <= made
    assert {f"feedback/{s}/{LESSON}.html" for s in ("ann", "bo", "cy")} <= made
    assert {row["student"] for row in grades(tmp_path) if row["state"] == NOT_SUBMITTED} == {"dee"}
    said = capsys.readouterr().out
    assert "read as Moodle" in said and "isolation: bubblewrap" in said and "not 0" in said


def test_what_is_done_is_kept_and_a_late_file_touches_nobody_else(tmp_path, graded):
    packed = archive(tmp_path / "m.zip", {ANN: solved(), BO: stub()})
    grade(tmp_path, packed)
    before = (tmp_path / "out" / "grades.csv").read_bytes()
    graded.clear()
    grade(tmp_path, packed)
    assert graded == []
    assert (tmp_path / "out" / "grades.csv").read_bytes() == before
    late = archive(tmp_path / "late.zip", {CY: solved()})
    grade(tmp_path, late)
    assert graded == ["Cy Drew_14"]
    rows = (tmp_path / "out" / "grades.csv").read_bytes().splitlines()
    assert set(before.splitlines()) <= set(rows)


def test_a_changed_file_is_graded_again(tmp_path, graded):
    grade(tmp_path, archive(tmp_path / "m.zip", {ANN: solved(), BO: stub()}))
    graded.clear()
    grade(tmp_path, archive(tmp_path / "m.zip", {ANN: solved(), BO: with_source(stub(), "decode_step", "x = 1")}))
    assert graded == ["Bo Cole_13"]


def test_stopping_keeps_what_is_done_and_says_how_to_go_on(tmp_path, graded, capsys):
    names = {f"{n}_assignsubmission_file_/{FILE}": solved() for n in ("Ann_1", "Interrupt_2")}
    assert grade(tmp_path, archive(tmp_path / "m.zip", names)) == 130
    assert "same command again" in capsys.readouterr().err
    graded.clear()
    grade(tmp_path, archive(tmp_path / "m.zip", {f"Ann_1_assignsubmission_file_/{FILE}": solved()}))
    assert graded == []


def test_a_failure_of_the_grader_is_said_and_tried_again(tmp_path, graded, capsys):
    packed = archive(tmp_path / "m.zip", {f"Lost_1_assignsubmission_file_/{FILE}": solved()})
    assert grade(tmp_path, packed) == 3
    assert {row["points"] for row in grades(tmp_path)} == {""}
    assert "tries them again" in capsys.readouterr().out
    grade(tmp_path, packed)
    assert graded == ["Lost_1", "Lost_1"]


def test_results_inside_the_graded_folder_are_not_graded(tmp_path, graded):
    (tmp_path / "class" / "ann").mkdir(parents=True)
    archive(tmp_path / "class" / "ann" / "hw.zip", {FILE: solved()})
    for _ in range(2):
        main(
            [
                "grade",
                str(tmp_path / "class"),
                "--out",
                str(tmp_path / "class" / "graded"),
                "--gradebook",
                "sqlite:///" + str(tmp_path / "class" / "graded" / "gradebook.db"),
            ]
        )
    assert graded == ["ann"]


@pytest.mark.parametrize(
    "options, word",
    [
        (("--jobs", "0"), "--jobs 0"),
        (("--timeout", "-1"), "--timeout"),
        (("--roster", "nothing.csv"), "nothing.csv"),
        (("--settings", "nothing.toml"), "nothing.toml"),
        (("--secret", "nothing.key"), "nothing.key"),
    ],
)
def test_arguments_that_cannot_be_meant_are_said(tmp_path, graded, capsys, options, word):
    assert grade(tmp_path, archive(tmp_path / "m.zip", {ANN: solved()}), *options) == 1
    assert word in capsys.readouterr().err
    assert graded == []


def test_in_the_students_archive_the_other_commands_work_without_the_grader(monkeypatch):
    monkeypatch.setitem(sys.modules, "course_utils.grading.command", None)
    assert make_parser().parse_args(["doctor"]).command == "doctor"


def test_a_path_that_is_not_there_is_said(tmp_path, graded, capsys):
    assert grade(tmp_path, tmp_path / "nothing.zip") == 1
    assert "does not exist" in capsys.readouterr().err


def test_the_estimate_comes_from_the_speed_and_not_from_the_start():
    shown = io.StringIO()
    bar = Progress(100, shown)
    bar.started -= 1000  # starting took long
    for _ in range(10):
        bar.step()
    assert "min" not in bar.left(time.monotonic())


@pytest.mark.slow
def test_killed_in_the_middle_and_run_again_gives_the_same_bytes(tmp_path):
    wrong = with_source(solved(), "decode_step", "def decode_step(y_emb, h, enc_out, enc_mask, p):\n    return h")
    books = [solved(), stub(), wrong, with_source(solved(), "decode_step", "1 +"), solved(), wrong]
    packed = archive(tmp_path / "m.zip", {f"S{i}_{i}_assignsubmission_file_/{FILE}": b for i, b in enumerate(books)})
    (tmp_path / "secret").write_text("a secret of a test")

    def start(out):
        command = [sys.executable, "-m", "course_utils.cli", "grade", packed, "--out", tmp_path / out, "--jobs", "1"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen([*map(str, command), "--secret", str(tmp_path / "secret")], env=environment)

    assert start("whole").wait() == 0
    killed = start("killed")
    while killed.poll() is None and len(list((tmp_path / "killed" / "results").glob("*/*.json"))) < 2:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "killed" / "grades.csv").exists()
    assert start("killed").wait() == 0
    for name in ("grades.csv", "totals.csv", "to_mark.csv"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    rows = list(csv.DictReader(io.StringIO((tmp_path / "whole" / "grades.csv").read_text())))
    points = {(row["student"], row["exercise"]): row["points"] for row in rows}
    assert points["S0_0", "decode_step"] == "10" and points["S1_1", "decode_step"] == "0"
    assert points["S3_3", "additive_attention"] == "10" and points["S3_3", "decode_step"] == "0"
