"""The commands of `course`: student's copies, doctor, and the bookkeeping of the test suite."""

import json
import os
import sys
from pathlib import Path

import pytest

from course_utils import authoring, cli, doctor, folders, lab, suite
from course_utils.folders import CourseError


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A course with two notebooks; the student's copies go to its folder work/."""
    root = tmp_path / "course"
    (root / "notebooks").mkdir(parents=True)
    (root / "course_utils").mkdir()
    (root / "lessons").mkdir()
    for name in ("01_first", "02_second"):
        (root / "notebooks" / f"{name}.ipynb").write_text(f"{name} as shipped\n", encoding="utf-8")
    for module in (cli, lab, doctor):
        monkeypatch.setattr(module, "course_root", lambda: root)
    return root


@pytest.fixture
def work(root):
    return root / "work"


def files(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.ipynb"))}


def ship_update(root: Path, name: str = "01_first.ipynb") -> None:
    (root / "notebooks" / name).write_text("the new version\n", encoding="utf-8")


# ---------------------------------------------------------------- the student's copies


def test_every_notebook_is_copied_once(root, work):
    assert len(lab.copy_new(root, work)) == 2
    assert files(work) == files(root / "notebooks")
    assert lab.copy_new(root, work) == []


def test_a_students_copy_is_never_touched(root, work):
    lab.copy_new(root, work)
    (work / "01_first.ipynb").write_text("my answers", encoding="utf-8")
    ship_update(root)
    told = lab.copy_new(root, work)
    assert files(work)["01_first.ipynb"] == "my answers"
    assert len(told) == 1 and "01_first.ipynb" in told[0] and f"{folders.START} reset 01" in told[0]


def test_an_untouched_copy_is_not_replaced_either(root, work):
    lab.copy_new(root, work)
    ship_update(root)
    lab.copy_new(root, work)
    assert files(work)["01_first.ipynb"] == "01_first as shipped\n"


def test_an_update_is_told_at_every_start_until_the_reset(root, work):
    lab.copy_new(root, work)
    ship_update(root)
    assert lab.copy_new(root, work) and lab.copy_new(root, work)
    lab.reset(["01"])
    assert lab.copy_new(root, work) == []


def test_a_new_lesson_arrives(root, work):
    lab.copy_new(root, work)
    (root / "notebooks" / "03_third.ipynb").write_text("third")
    assert [line.split()[-1] for line in lab.copy_new(root, work)] == ["03_third.ipynb"]


def test_line_endings_are_no_new_version(root, work):
    lab.copy_new(root, work)
    shipped = root / "notebooks" / "01_first.ipynb"
    shipped.write_bytes(shipped.read_bytes().replace(b"\n", b"\r\n"))
    assert lab.copy_new(root, work) == []


@pytest.mark.parametrize("damage", ["{half", "[]", "[" * 50_000, '{"01_first.ipynb": [1]}', "null"])
def test_a_damaged_memory_costs_no_work(root, work, damage):
    lab.copy_new(root, work)
    (work / "01_first.ipynb").write_text("my answers", encoding="utf-8")
    (work / ".course.json").write_text(damage)
    (told,) = lab.copy_new(root, work)
    assert f"{work / '.course.json'} is damaged and is made anew" in told
    assert files(work)["01_first.ipynb"] == "my answers"
    assert lab.copy_new(root, work) == []


def test_course_work_names_another_folder(root, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_WORK", str(tmp_path / "mine"))
    assert folders.work_folder(root) == tmp_path / "mine"
    monkeypatch.setenv("COURSE_WORK", "")
    assert folders.work_folder(root) == root / "work"


def test_a_folder_that_cannot_be_written_has_a_way_out(root, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CourseError, match="COURSE_WORK"):
        lab.copy_new(root, tmp_path / "file")


def test_a_course_without_notebooks_says_so(root, work):
    for notebook in (root / "notebooks").iterdir():
        notebook.unlink()
    with pytest.raises(CourseError, match="no notebooks"):
        lab.copy_new(root, work)


# ---------------------------------------------------------------- reset


def test_reset_gives_the_shipped_version_and_keeps_the_students(root, work, capsys):
    lab.copy_new(root, work)
    (work / "01_first.ipynb").write_text("my answers", encoding="utf-8")
    ship_update(root)
    assert lab.reset(["01"]) == 0
    now = files(work)
    kept = [name for name in now if name.startswith("01_first.kept-")]
    assert len(kept) == 1 and now[kept[0]] == "my answers"
    assert now["01_first.ipynb"] == "the new version\n" and now["02_second.ipynb"] == "02_second as shipped\n"
    assert kept[0] in capsys.readouterr().out


def test_resets_in_the_same_second_keep_everything(root, work):
    for answer in ("one", "two", "three"):
        lab.copy_new(root, work)
        (work / "01_first.ipynb").write_text(answer, encoding="utf-8")
        lab.reset(["01"])
    kept = {text for name, text in files(work).items() if ".kept-" in name}
    assert kept == {"one", "two", "three"}


def test_reset_of_a_pristine_copy_changes_nothing(root, work):
    lab.copy_new(root, work)
    before = files(work)
    lab.reset(["01", "02"])
    assert files(work) == before


def test_reset_of_a_missing_copy_makes_it(root, work):
    lab.reset(["02"])
    assert list(files(work)) == ["02_second.ipynb"]


@pytest.mark.parametrize("name", ["1", "01", "01_first", "01_first.ipynb", "work/01_first.ipynb"])
def test_a_notebook_has_many_names(root, name):
    assert lab.find_notebook(root, name).stem == "01_first"


def test_a_wrong_name_changes_nothing_and_names_the_nearest(root, work, capsys):
    lab.copy_new(root, work)
    (work / "01_first.ipynb").write_text("my answers", encoding="utf-8")
    before = files(work)
    assert cli.main(["reset", "01", "02_secnod"]) == 1
    assert "Did you mean 02_second?" in capsys.readouterr().err
    assert files(work) == before


# ---------------------------------------------------------------- JupyterLab


@pytest.mark.skipif(os.name == "nt", reason="on Windows JupyterLab is a child process")
def test_lab_hands_over_to_jupyterlab_in_the_students_folder(root, work, monkeypatch):
    calls = []

    def take_over(path, command, env):
        calls.append((command, env))
        raise SystemExit  # the real one does not come back either

    monkeypatch.chdir(root)
    monkeypatch.setattr(os, "execve", take_over)
    with pytest.raises(SystemExit):
        cli.main(["lab", "--no-browser", "--port=8889"])
    command, env = calls[0]
    assert command[0] == sys.executable and command[-2:] == ["--no-browser", "--port=8889"]
    assert f"--ServerApp.root_dir={work}" in command and Path.cwd() == work
    assert env["JUPYTER_PREFER_ENV_PATH"] == "1"


def test_jupyterlab_asks_nothing_of_the_network(monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/of/the/reader")
    ours, theirs = lab.jupyter_environment()["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    assert theirs == "/of/the/reader"
    overrides = json.loads((Path(ours) / "labconfig" / "default_setting_overrides.json").read_text())
    assert overrides["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"
    assert "--LabApp.news_url=None" in lab.jupyter_command(Path("work"), [])


def test_the_readers_own_arguments_win(monkeypatch):
    command = lab.jupyter_command(Path("work"), ["--ServerApp.root_dir=/mine"])
    assert command[-1] == "--ServerApp.root_dir=/mine"


# ---------------------------------------------------------------- the command line


@pytest.mark.parametrize(("typed", "meant"), [("docter", "doctor"), ("biuld", "build")])
def test_an_unknown_command_gets_the_nearest(typed, meant, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["course", typed])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2 and f"Did you mean {meant}?" in capsys.readouterr().err


def test_an_argument_that_no_command_knows_is_named(capsys):
    with pytest.raises(SystemExit):
        cli.main(["doctor", "--fats"])
    assert "--fats" in capsys.readouterr().err


def test_outside_the_course_it_says_where_to_go(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "__file__", str(tmp_path / "site" / "course_utils" / "folders.py"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CourseError, match="Change into the folder of the course"):
        folders.course_root()


def test_build_passes_its_arguments_on(root, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(authoring, "build", lambda *args, **how: asked.append((args, how)) or [Path("made.ipynb")])
    assert cli.main(["build", "01", "--force", "--no-execute"]) == 0
    assert asked == [((root, ["01"]), {"execute": False, "force": True})]
    assert "made.ipynb" in capsys.readouterr().out


@pytest.mark.parametrize(("problems", "code"), [([], 0), (["notebooks/01_first.ipynb is stale"], 1)])
def test_build_check_fails_on_problems(root, monkeypatch, capsys, problems, code):
    monkeypatch.setattr(authoring, "check", lambda root: problems)
    assert cli.main(["build", "--check"]) == code
    assert all(problem in capsys.readouterr().out for problem in problems)


@pytest.mark.parametrize("command", ["build", "test"])
def test_the_students_archive_has_nothing_to_build(root, capsys, command):
    (root / "lessons").rmdir()
    assert cli.main([command]) == 1
    assert "archive" in capsys.readouterr().err


def test_a_build_error_is_a_message(root, monkeypatch, capsys):
    def fail(*args, **how):
        raise authoring.BuildError("lessons/01_first.py:7: a marker is not closed")

    monkeypatch.setattr(authoring, "build", fail)
    assert cli.main(["build"]) == 1
    assert "01_first.py:7" in capsys.readouterr().err


# ---------------------------------------------------------------- doctor


def test_doctor_has_an_exit_code_and_says_what_to_do(root, monkeypatch, capsys):
    fine, broken = (doctor.OK, "all well", ""), (doctor.PROBLEM, "something is wrong", "do this")
    monkeypatch.setattr(doctor, "CHECKS", [lambda root: iter([fine])])
    assert doctor.doctor() == 0
    monkeypatch.setattr(doctor, "CHECKS", [lambda root: iter([fine, broken])])
    assert doctor.doctor() == 1
    out = capsys.readouterr().out
    assert "something is wrong" in out and "-> do this" in out and "1 problem found." in out


def test_a_check_that_fails_itself_is_a_problem(root):
    def check_nothing(root):
        raise RuntimeError("no idea")
        yield

    assert doctor.examine(check_nothing, root)[0][0] == doctor.PROBLEM


def test_doctor_sees_missing_and_other_versions(root):
    (root / "requirements.txt").write_text("numpy==0.0.1  # old\nno-such-package-here==1.0\n")
    lines = list(doctor.check_packages(root))
    assert [(level, "no-such-package-here" in text) for level, text, _ in lines] == [
        (doctor.PROBLEM, True),
        (doctor.NOTE, False),
    ]


def test_doctor_sees_another_copy_of_the_package(root):
    assert next(doctor.check_package_path(root))[0] == doctor.PROBLEM


def test_doctor_finds_the_kernel_of_this_python(root):
    assert next(doctor.check_kernel(root))[0] == doctor.OK


def test_doctor_sees_an_update(root, work):
    lab.copy_new(root, work)
    ship_update(root)
    notes = [text for level, text, _ in doctor.check_notebooks(root) if level == doctor.NOTE]
    assert len(notes) == 1 and "01_first" in notes[0]


def test_doctor_sees_the_switches(root, monkeypatch):
    assert list(doctor.check_switches(root)) == []
    monkeypatch.setenv("COURSE_SMOKE", "1")
    assert "COURSE_SMOKE" in next(doctor.check_switches(root))[1]


# ---------------------------------------------------------------- the suite


REPORT = '<testsuites><testsuite errors="1" failures="2" skipped="3" tests="10" time="1"/></testsuites>'


def test_counts_come_from_the_report(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT)
    assert suite.read_counts(tmp_path / "report.xml") == (4, 3, 3)


def test_the_last_line_is_the_total():
    results = [suite.Result("a", passed=2), suite.Result("b", passed=1, failed=1, skipped=4)]
    lines = suite.summary(results, fast=True).splitlines()
    assert lines[-1] == "3 passed, 1 failed, 4 skipped"
    assert any("FAILED: b" in line for line in lines) and any("NOT RUN" in line for line in lines)
    assert "NOT RUN" not in suite.summary(results, fast=False)


@pytest.mark.parametrize(
    ("code", "report", "failed"),
    [(0, REPORT.replace("1", "0", 1).replace('"2"', '"0"'), 0), (2, None, 1), (5, None, 1), (3, REPORT, 3)],
)
def test_a_run_that_breaks_off_is_a_failure(tmp_path, monkeypatch, code, report, failed):
    def call(command, **how):
        target = next(word for word in command if word.startswith("--junitxml=")).split("=", 1)[1]
        if report:
            Path(target).write_text(report)
        return code

    monkeypatch.setattr(suite.subprocess, "call", call)
    assert suite.run_pytest("x", tmp_path, [], {}).failed == failed


def test_a_clean_report_with_a_bad_code_is_a_failure(tmp_path, monkeypatch):
    def call(command, **how):
        target = next(word for word in command if word.startswith("--junitxml=")).split("=", 1)[1]
        Path(target).write_text('<testsuites><testsuite errors="0" failures="0" skipped="0" tests="3"/></testsuites>')
        return 3

    monkeypatch.setattr(suite.subprocess, "call", call)
    result = suite.run_pytest("x", tmp_path, [], {})
    assert (result.passed, result.failed) == (3, 1)


def test_claims_are_judged_in_solutions_and_structure_in_notebooks(tmp_path):
    solved, student = suite.suite_environment(tmp_path), suite.suite_environment(tmp_path, smoke=True)
    assert (solved["COURSE_SMOKE"], solved["COURSE_STRICT"]) == ("0", "1")
    assert (student["COURSE_SMOKE"], student["OMP_NUM_THREADS"], student["COURSE_REMEMBER"]) == (
        "1",
        "1",
        "0",
    )


@pytest.mark.parametrize(("arguments", "default"), [(["-k", "masks"], True), (["tests/test_x.py::test_y"], False)])
def test_arguments_choose_tests(tmp_path, monkeypatch, arguments, default):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").touch()
    asked = []
    monkeypatch.setattr(suite, "run_pytest", lambda name, root, chosen, env: asked.append(chosen))
    suite.run_units(tmp_path, True, arguments, {})
    assert asked == [["--fast", *arguments, *(["tests"] if default else [])]]


def test_every_stage_runs_whatever_becomes_of_the_others(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(suite, "run_freshness", lambda root: suite.Result("fresh", failed=1))
    monkeypatch.setattr(suite, "run_ruff", lambda root, *words: suite.Result("ruff", passed=1))
    monkeypatch.setattr(suite, "run_units", lambda *args: suite.Result("pytest", passed=5))
    monkeypatch.setattr(suite, "run_notebooks", lambda root, folder, env: suite.Result(folder, passed=7))
    assert suite.run_suite(tmp_path, fast=False, arguments=[]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "21 passed, 1 failed, 0 skipped"
    assert suite.run_suite(tmp_path, fast=True, arguments=[]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "7 passed, 1 failed, 0 skipped"


def test_missing_tools_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(suite.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CourseError, match="hypothesis"):
        suite.run_suite(tmp_path, fast=True, arguments=[])
