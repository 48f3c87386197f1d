"""The nbgrader gradebook: filled through its API, marks given in formgrader come back and are never overwritten."""

import contextlib
import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from course_utils.folders import CourseError
from course_utils.grading.gradebook import fill
from course_utils.grading.lesson import lesson
from course_utils.grading.model import UNREADABLE
from course_utils.grading.names import folder_name
from course_utils.grading.platforms import Person
from course_utils.grading.records import Records, whole
from course_utils.grading.results import Stored
from grading.school import LESSON, WORDS, result

api = pytest.importorskip("nbgrader.api")

CODE = {"decode_step": "def decode_step():\n    pass"}


def records(*found):
    return Records(
        tuple(Stored(r, CODE) for r in found), people={"Ann B": Person("Ann B", "Ann Bell", "a@example.org")}
    )


def free_port():
    with contextlib.closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def postgres_programs():
    """The folder of PostgreSQL's programs, or None."""
    places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin")), Path(shutil.which("initdb") or "/none/initdb").parent]
    return next((place for place in reversed(places) if (place / "initdb").exists()), None)


@pytest.fixture(scope="module")
def postgres():
    """A server of our own, where the machine has PostgreSQL and its driver."""
    pytest.importorskip("psycopg", reason="psycopg, the driver of PostgreSQL, is not installed")
    programs, port = postgres_programs(), free_port()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # The server refuses to run as root.
        other = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
        if other:
            shutil.chown(folder, "nobody")
        command = [programs / "initdb", "-D", f"{folder}/data", "-U", "course", "-A", "trust", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, cwd=folder, **other)
        options = ["-p", str(port), "-k", folder, "-c", "listen_addresses=127.0.0.1", "-F"]
        with open(f"{folder}/log", "wb") as log:  # noqa: PTH123
            server = subprocess.Popen(
                [programs / "postgres", "-D", f"{folder}/data", *options], stdout=log, stderr=log, cwd=folder, **other
            )
        try:
            _wait_for(server, port)
            yield f"postgresql+psycopg://course@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)


def _wait_for(server, port):
    import psycopg

    while server.poll() is None:
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(f"postgresql://course@127.0.0.1:{port}/postgres", connect_timeout=2).close()
            return
        time.sleep(0.1)
    pytest.fail(f"the server ended with {server.returncode}")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'gradebook.db'}"
    return request.getfixturevalue("postgres")


def grades(url, student, notebook=LESSON):
    with api.Gradebook(url) as book:
        return {
            g.name: (g.auto_score, g.max_score, bool(g.needs_manual_grade), g.manual_score)
            for g in book.find_submission_notebook(notebook, notebook, folder_name(student)).grades
        }


def mark(url, student, score):
    with api.Gradebook(url) as book:
        grade = book.find_grade("written_02_W", LESSON, LESSON, folder_name(student))
        grade.manual_score, grade.needs_manual_grade = score, False
        book.db.commit()


def test_the_gradebook_says_what_the_grader_found(url, tmp_path):
    fill(url, records(result("Ann B"), whole("bo", LESSON, UNREADABLE, "why")), tmp_path)
    found = grades(url, "Ann B")
    assert found.keys() == {part.cell for part in lesson(LESSON).graded}
    assert found["check_decode_step"] == (10, 10, False, None)
    assert found["written_02_W"] == (None, 5, True, None)
    assert {(auto, by_hand) for auto, _, by_hand, _ in grades(url, "bo").values()} == {(None, True)}
    with api.Gradebook(url) as book:
        assert book.find_student(folder_name("Ann B")).last_name == "Bell"
        assert book.find_assignment(LESSON).max_score == lesson(LESSON).max_points


def test_a_mark_from_formgrader_comes_back_and_stays(url, tmp_path):
    mine = records(result("Ann B"))
    fill(url, mine, tmp_path)
    mark(url, "Ann B", 3.5)
    for _ in range(2):
        found, notes = fill(url, mine, tmp_path)
        assert found.totals["Ann B", LESSON].points == 53.5
        assert "1 marks" in notes[0]
        assert grades(url, "Ann B")["written_02_W"] == (None, 5, False, 3.5)


def test_an_answer_that_changed_has_to_be_marked_again(tmp_path):
    url = f"sqlite:///{tmp_path / 'gradebook.db'}"
    fill(url, records(result("Ann B")), tmp_path)
    mark(url, "Ann B", 3.5)
    changed = records(result("Ann B", written={"written_02_W": "Something else."}))
    found, _ = fill(url, changed, tmp_path)
    assert found.totals["Ann B", LESSON].waiting
    assert grades(url, "Ann B")["written_02_W"] == (None, 5, True, None)


def test_formgrader_finds_the_notebook_with_the_students_text_and_code(tmp_path):
    fill(f"sqlite:///{tmp_path / 'gradebook.db'}", records(result("Ann B")), tmp_path)
    path = tmp_path / "autograded" / folder_name("Ann B") / LESSON / f"{LESSON}.ipynb"
    sources = [cell["source"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    assert CODE["decode_step"] in sources and WORDS in sources


def test_an_address_that_is_none_is_an_error_without_its_password(tmp_path):
    with pytest.raises(CourseError, match="no address"):
        fill("gradebook", records(result("Ann B")), tmp_path)
    secret = f"postgresql+psycopg://{getpass.getuser()}:hunter2@127.0.0.1:{free_port()}/x"
    with pytest.raises(CourseError) as error:
        fill(secret, records(result("Ann B")), tmp_path)
    assert "hunter2" not in str(error.value)


def test_formgrader_lists_the_submission_as_one_to_be_marked(tmp_path):
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    url = f"sqlite:///{tmp_path / 'gradebook.db'}"
    fill(url, records(result("Ann B")), tmp_path)
    config = Config()
    config.CourseDirectory.root, config.CourseDirectory.db_url = str(tmp_path), url
    school = NbGraderAPI(config=config)
    (assignment,) = school.get_assignments()
    assert assignment["name"] == LESSON
    (found,) = school.get_notebook_submissions(LESSON, LESSON)
    assert found["needs_manual_grade"]
    assert (found["score"], found["max_score"]) == (50, lesson(LESSON).max_points)
