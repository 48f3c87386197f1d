"""Grading on a Dask cluster gives what grading here gives."""

import json

import pytest

from course_utils.folders import CourseError
from course_utils.grading.cluster import LARGEST, SMALLEST, grade_on_cluster, split
from course_utils.grading.model import Submission
from course_utils.grading.pool import grade_all
from grading.school import LESSON, raw, solved, stub, with_source

SECRET = b"a secret of a test"


def submissions():
    wrong = with_source(solved(), "decode_step", "def decode_step(y_emb, h, enc_out, enc_mask, p):\n    return h")
    books = [raw(solved()), raw(stub()), raw(wrong), b"{"]
    return [Submission(f"s{i}", LESSON, book, f"s{i}.ipynb") for i, book in enumerate(books * 2)]


def same(results):
    """The results as they are stored, by student; how long each took is nobody's business."""
    plain = json.loads(json.dumps([{**r.to_dict(), "seconds": 0} for r in results]))
    return sorted(plain, key=lambda r: r["student"])


@pytest.mark.slow
def test_two_workers_find_what_one_machine_finds():
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", host="127.0.0.1"
    ) as cluster:
        there = list(grade_on_cluster(cluster.scheduler_address, submissions(), secret=SECRET, timeout=10))
    here = list(grade_all(submissions(), 1, secret=SECRET, timeout=10))
    assert same(there) == same(here)


def test_where_nobody_answers_that_is_said():
    pytest.importorskip("distributed", reason="Dask is not installed")
    with pytest.raises(CourseError, match="no scheduler"):
        list(grade_on_cluster("tcp://127.0.0.1:9", submissions(), secret=SECRET, timeout=10))


@pytest.mark.parametrize("number, threads", [(1, 1), (5, 64), (300, 2), (300, 64), (5000, 8)])
def test_batches_hold_everybody_once_and_have_a_sensible_size(number, threads):
    everybody = [Submission(str(i), LESSON, b"", "") for i in range(number)]
    batches = split(everybody, threads)
    assert [s for batch in batches for s in batch] == everybody
    assert all(len(batch) <= LARGEST for batch in batches)
    assert all(len(batch) >= SMALLEST for batch in batches[:-1])
