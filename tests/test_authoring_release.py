"""The archive that students get."""

import subprocess
import sys
import zipfile

import pytest
from fixtures.lessons.tools import STUDENT, make_course

from course_utils.authoring import BuildError, release


@pytest.fixture
def course(tmp_path, monkeypatch):
    root = make_course(tmp_path, monkeypatch)
    for name in ("README.md", "LICENSE", "CONTRIBUTING.md", "requirements.txt", "pyproject.toml", "course.py"):
        (root / name).write_text(f"# {name}\n", encoding="utf-8")
    for name in (
        "__init__",
        "attention",
        "authoring/__init__",
        "grading/run",
        "checks/__init__",
        "__pycache__/x",
    ):
        path = root / "course_utils" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("VALUE = 1\n", encoding="utf-8")
    (root / "course_utils" / "old.pyc").write_bytes(b"x")
    for name in (
        "docs/students.md",
        "tests/test_x.py",
        "notebooks/.ipynb_checkpoints/a.ipynb",
        ".git/config",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x", encoding="utf-8")
    return root


def test_the_release_holds_what_students_get(course, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    file = release(course, out / "course.zip")
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        archive.extractall(out)
    assert names == sorted(names)
    assert {name.split("/", 1)[0] for name in names} == {"attention-course"}
    assert {name.split("/", 1)[1] for name in names} == {
        "README.md", "LICENSE", "CONTRIBUTING.md", "requirements.txt", "pyproject.toml", "course.py",
        "notebooks/01_sample.ipynb", "docs/students.md",
        "course_utils/__init__.py", "course_utils/attention.py", "course_utils/checks/__init__.py",
        "course_utils/checks/questions.json",
    }  # fmt: skip
    subprocess.run([sys.executable, "-c", "import course_utils.attention"], cwd=out / "attention-course", check=True)


def test_the_same_tree_gives_the_same_archive(course, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    first = release(course, out / "a.zip").read_bytes()
    (course / "README.md").touch()
    assert release(course, out / "b.zip").read_bytes() == first


def test_no_release_of_a_stale_course(course, tmp_path):
    (course / STUDENT).unlink()
    with pytest.raises(BuildError, match="missing"):
        release(course, tmp_path / "course.zip")
    assert not (tmp_path / "course.zip").exists()


def test_no_release_without_what_it_must_hold(course, tmp_path):
    (course / "LICENSE").unlink()
    with pytest.raises(BuildError, match="LICENSE"):
        release(course, tmp_path / "course.zip")
    with pytest.raises(BuildError, match=r"\.zip"):
        release(course, tmp_path / "course.tar")
