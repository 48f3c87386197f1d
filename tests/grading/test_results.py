"""Results on disk: whole or not at all, one file a student and lesson, nobody else's is touched."""

import json

from course_utils.grading.model import NEEDS_REVIEW, ExerciseResult, Submission
from course_utils.grading.records import whole
from course_utils.grading.results import Store, failed
from grading.school import LESSON, result


def submission(student="ann", **more):
    return Submission(student, LESSON, b"{}", "a.zip/ann", **more)


def test_a_result_comes_back_as_it_was(tmp_path):
    kept = Store(tmp_path)
    kept.put(result("ann"), {"decode_step": "x = 1"})
    stored = kept.get("ann", LESSON)
    assert stored.result == result("ann")
    assert stored.code == {"decode_step": "x = 1"}


def test_a_result_holds_for_the_same_file_only(tmp_path):
    kept = Store(tmp_path)
    kept.put(result("ann", digest="one"), {})
    assert kept.known(submission(), "one") is not None
    assert kept.known(submission(), "two") is None
    assert kept.known(submission("bo"), "one") is None


def test_what_only_the_platform_says_follows_without_grading_again(tmp_path):
    kept = Store(tmp_path)
    kept.put(result("ann", digest="one"), {})
    kept.known(submission(late=True, submitted="2026-11-03T20:00:00"), "one")
    assert kept.get("ann", LESSON).result.late
    assert kept.get("ann", LESSON).result.submitted == "2026-11-03T20:00:00"


def test_a_failure_of_the_grader_is_tried_again_a_written_answer_is_not(tmp_path):
    kept = Store(tmp_path)
    kept.put(whole("ann", LESSON, NEEDS_REVIEW, "the grader failed", digest="one"), {})
    assert kept.known(submission(), "one") is None
    assert not failed(result("ann"))


def test_one_student_touches_nobody_else(tmp_path):
    kept = Store(tmp_path)
    for student in ("ann", "Ann", "bo"):
        kept.put(result(student), {})
    before = {path: path.read_bytes() for path in kept.folder.rglob("*.json")}
    kept.put(result("bo", share=0.5), {})
    after = {path: path.read_bytes() for path in kept.folder.rglob("*.json")}
    assert {path for path in after if before.get(path) != after[path]} == {kept.path("bo", LESSON)}
    assert [s.result.student for s in kept.all()] == ["Ann", "ann", "bo"]


def test_a_damaged_or_half_written_file_is_as_good_as_none(tmp_path):
    kept = Store(tmp_path)
    kept.put(result("ann"), {})
    kept.put(result("bo"), {})
    kept.path("ann", LESSON).write_text(kept.path("ann", LESSON).read_text()[:100])
    (kept.path("bo", LESSON).parent / f"{LESSON}.json.77.partial").write_text("{")
    assert kept.get("ann", LESSON) is None
    assert [s.result.student for s in kept.all()] == ["bo"]


def test_what_is_stored_is_plain_json_that_says_whose_it_is(tmp_path):
    kept = Store(tmp_path)
    kept.put(result("ann", exercises=(ExerciseResult("decode_step", 3.0, 10.0, "graded", "so"),)), {})
    data = json.loads(kept.path("ann", LESSON).read_text())
    assert data["result"]["student"] == "ann"
    assert data["result"]["exercises"][0]["points"] == 3.0
