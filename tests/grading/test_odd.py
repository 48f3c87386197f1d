"""Odd and careless submissions: what an instructor or a student reads about them is true and can be read."""

import io
import time
import zipfile

import pytest

from course_utils.grading import archives, intake, judge, page
from course_utils.grading.executor import Grader
from course_utils.grading.intake import IGNORED, OLDER, UNKNOWN, collect
from course_utils.grading.model import Submission
from course_utils.grading.notebook_file import MAX_BYTES
from course_utils.grading.rebuild import take
from course_utils.grading.remote import Told
from grading.school import LESSON, code, raw, solved, with_source

NAME = "additive_attention"
FILE = f"{LESSON}.ipynb"


def archive(path, *names, data=None):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in names:
            packed.writestr(name, raw(solved()) if data is None else data)
    return path


def owners(found):
    return {submission.student for submission in found.submissions}


@pytest.fixture(scope="module")
def grader():
    with Grader(b"a secret", 10.0) as grader:
        yield grader


def reason(grader, source):
    book = with_source(solved(), NAME, source)
    result = grader.grade(Submission("ann", LESSON, raw(book), FILE))
    (part,) = (part for part in result.exercises if part.exercise == NAME)
    assert part.points == 0
    return part.reason


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (f"def {NAME}(query, keys):\n    x = (1\n    return x", "SyntaxError"),
        (f"nowhere + 1\ndef {NAME}(query, keys):\n    return 1", "NameError"),
        (f"import os\nos._exit(0)\ndef {NAME}(query, keys):\n    return 1", "ended the Python process"),
    ],
)
def test_a_cell_that_stops_is_not_called_missing(grader, source, said):
    told = reason(grader, source)
    assert said in told and "in your notebook" not in told
    assert "ipython-input" not in told


def test_a_cell_that_was_emptied_or_defines_another_name_is_called_missing(grader):
    assert f"no {NAME} in your notebook" in reason(grader, f"def {NAME}s(query, keys):\n    return 1")


def test_a_long_reason_shows_that_it_was_cut(grader):
    told = reason(grader, f"def {NAME}(*_):\n    raise ValueError('A' * 1000)")
    assert len(told) <= judge.LONGEST and told.endswith("…")


def test_a_cell_that_is_too_long_is_not_called_deleted():
    found = take(raw(with_source(solved(), NAME, "#" * 2_000_000)), LESSON)
    assert any("left out" in note for note in found.notes)
    assert not any("deleted" in note for note in found.notes)


def test_long_words_do_not_make_a_page_wider():
    assert "p,li{overflow-wrap:anywhere}" in page.page("title", "body")


@pytest.mark.parametrize("around", ["", "submissions/", "term/submissions/"])
def test_folders_around_those_of_the_students_are_no_student(tmp_path, around):
    packed = archive(tmp_path / "class.zip", *(f"{around}{who}/{FILE}" for who in ("ann", "bo", "cy")))
    assert owners(collect([packed])) == {"ann", "bo", "cy"}


def test_one_student_with_a_folder_for_each_lesson_stays_one(tmp_path):
    lessons = [f"ann/{number}/{number}_x.ipynb" for number in ("01", "02")]
    assert owners(collect([archive(tmp_path / "ann.zip", *lessons)])) <= {"ann"}


def test_a_colon_in_a_name_does_not_lead_out_of_the_archive(tmp_path):
    packed = archive(tmp_path / "m.zip", f"Dr: Ann_12_assignsubmission_file_/{FILE}", f"C:/evil_13/{FILE}")
    found = collect([packed])
    assert len(found.submissions) == 1
    assert any("leads out" in line.why for line in found.lines if "C:" in line.origin)


def test_a_file_that_is_too_large_is_not_called_damaged(tmp_path):
    packed = archive(tmp_path / "class.zip", f"ann/{FILE}", data=b" " * (MAX_BYTES + 1))
    (refused,) = collect([packed]).refused
    assert "larger than" in refused.reason and "damaged" not in refused.reason


def test_gradescopes_list_that_cannot_be_read_is_named(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        made.writestr("a_export/submission_metadata.yml", "submission_11: !!python/object/apply:os.getcwd []")
        made.writestr(f"a_export/submission_11/{FILE}", raw(solved()))
    (tmp_path / "g.zip").write_bytes(packed.getvalue())
    found = collect([tmp_path / "g.zip"])
    (line,) = (line for line in found.lines if line.what == UNKNOWN)
    assert not found.submissions and "cannot be read" in line.why


def test_many_large_files_in_one_archive_do_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_UNPACKED", 3_500_000)
    inner = archive(tmp_path / "inner.zip", *(f"{number}/{FILE}" for number in range(9)), data=b" " * 10**6)
    with zipfile.ZipFile(tmp_path / "moodle.zip", "w") as packed:
        packed.writestr("Eve_40_assignsubmission_file_/my.zip", inner.read_bytes())
    found = collect([tmp_path / "moodle.zip"])
    assert len([line for line in found.lines if line.what == OLDER]) == 2
    assert any("unpacks to more" in line.why for line in found.lines)


def test_only_the_newest_of_a_students_files_is_kept(tmp_path):
    packed = archive(tmp_path / "class.zip", *(f"ann/{number}/{FILE}" for number in range(3)), "bo/x.ipynb")
    source = archives.read_source(packed)
    _, candidates = intake._candidates(source, 0, None, intake.Collected())
    kept = [candidate for candidate in candidates if candidate.raw is not None]
    assert len(candidates) == 4
    assert {candidate.student for candidate in kept} == {"ann", "bo"} and len(kept) == 2
    (anns,) = (candidate for candidate in kept if candidate.student == "ann")
    assert anns.age == max(candidate.age for candidate in candidates if candidate.student == "ann")


def test_a_note_on_an_added_cell_quotes_its_beginning(grader):
    book = solved()
    book["cells"].insert(2, code("nowhere + `1`" + "x" * 500))
    result = grader.grade(Submission("ann", LESSON, raw(book), FILE))
    (note,) = result.notes
    assert "`nowhere + '1'xxx" in note and len(note) < 250


def test_an_empty_cell_is_called_empty():
    notes = take(raw(with_source(solved(), NAME, " ")), LESSON).notes
    assert notes == (f"The cell of `{NAME}` is empty.",)


def test_work_that_could_not_be_read_is_not_left_out_quietly(tmp_path):
    whole = archive(tmp_path / "class.zip", f"ann/{FILE}", "ann/.ipynb_checkpoints/x.ipynb").read_bytes()
    (tmp_path / "half.zip").write_bytes(whole[: len(whole) // 2])
    found = collect([tmp_path / "class.zip", tmp_path / "half.zip"])
    fates = {line.origin: line.what for line in found.lines}
    assert fates["half.zip"] == UNKNOWN
    assert IGNORED in fates.values()


def test_many_paths_are_not_listed_one_by_one(tmp_path):
    paths = [archive(tmp_path / f"{number}.zip", f"ann{number}/{FILE}") for number in range(9)]
    (said,) = collect(paths).platforms
    assert "0.zip" in said and "5 more" in said


@pytest.mark.parametrize("inside", ["", "lab/"])
def test_an_archive_for_each_student_is_that_students(tmp_path, inside):
    (tmp_path / "class").mkdir()
    for who in ("ann", "bo"):
        archive(tmp_path / "class" / f"{who}.zip", f"{inside}{FILE}")
    assert owners(collect([tmp_path / "class"])) == {"ann", "bo"}


def test_archives_of_several_students_side_by_side_hold_their_folders(tmp_path):
    (tmp_path / "both").mkdir()
    archive(tmp_path / "both" / "monday.zip", f"ann/{FILE}", f"bo/{FILE}")
    archive(tmp_path / "both" / "friday.zip", f"week/cy/{FILE}", f"week/dee/{FILE}")
    assert owners(collect([tmp_path / "both"])) == {"ann", "bo", "cy", "dee"}


@pytest.mark.parametrize(
    "line",
    ['    torch.set_default_device("meta")', "    raise KeyboardInterrupt"],
    ids=["another default device", "an interrupt of its own"],
)
def test_a_call_that_disturbs_the_check_is_an_error_of_the_answer(grader, line):
    said = reason(grader, f"def {NAME}(query, keys, W_q, W_k, v, mask=None):\n{line}\n    return query, keys")
    assert "ended the Python process" not in said and "exit status" not in said


def test_a_whole_notebook_has_a_limited_time():
    """Every call is within its own limit, and together they would take minutes."""
    slow = f"import time\ndef {NAME}(query, keys, W_q, W_k, v, mask=None):\n    time.sleep(1.5)\n    return query, keys"
    told = Told(seconds=0.05)
    assert not told.used_up()
    time.sleep(0.06)
    assert told.used_up()
    book = with_source(solved(), NAME, slow)
    with Grader(b"a secret", 2.0) as quick:
        quick.whole = 1.0
        result = quick.grade(Submission("ann", LESSON, raw(book), FILE))
    assert result.state == "graded"
    assert any("seconds that a whole notebook may take" in part.reason for part in result.exercises)
