"""course.py: what it understands, what it says, what it hands over to."""

import ast
import importlib.util
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from course_utils import cli

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def course():
    """course.py as a module."""
    spec = importlib.util.spec_from_file_location("course_launcher", ROOT / "course.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class FakeEnvironment:
    """Stands in for course_utils.environment and records how it was asked."""

    class Stop(Exception):
        pass

    def __init__(self, problem=None, ready=True):
        self.problem, self.ready, self.asked, self.checked = problem, ready, None, False

    def prepare(self, **how):
        self.asked = how
        if self.problem:
            raise self.problem
        return Path("/env/bin/python")

    def ready_python(self):
        return Path("/env/bin/python") if self.ready else None

    def doctor(self):
        self.checked = True
        return 1

    def venv_folder(self):
        return Path("/env")

    def child_environment(self, venv):
        return {"VIRTUAL_ENV": str(venv)}


@pytest.fixture
def run(course, monkeypatch):
    """Run course.py's main with a fake environment; returns (exit code, environment, command handed over)."""

    def start(*argv, problem=None, ready=True):
        environment, handed = FakeEnvironment(problem, ready), []
        monkeypatch.setattr(course, "load_environment", lambda: environment)
        monkeypatch.setattr(course, "hand_over", lambda command, env: handed.append(command) or 7)
        return course.main(list(argv)), environment, handed

    return start


def test_old_pythons_can_read_it():
    ast.parse((ROOT / "course.py").read_text(encoding="utf-8"), feature_version=(3, 6))


def test_uses_the_standard_library_only():
    files = [ROOT / "course.py", *(ROOT / "course_utils" / "environment").glob("*.py")]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            for name in names:
                assert name.split(".")[0] in sys.stdlib_module_names, f"{file.name} imports {name}"


@pytest.mark.parametrize("version", [(3, 6, 15), (3, 10, 13)])
def test_an_old_python_is_told_what_to_do(course, monkeypatch, version):
    monkeypatch.setattr(course.shutil, "which", lambda name: None)
    message = course.too_old(version)
    assert "3.11" in message and f"{version[0]}.{version[1]}" in message and "python.org" in message
    monkeypatch.setattr(course.shutil, "which", lambda name: f"/usr/bin/{name}" if name == "python3.12" else None)
    monkeypatch.setattr(course, "runs", lambda program: True)
    assert "python3.12 course.py lab" in course.too_old(version)
    assert "python3.12 course.py reset 01" in course.too_old(version, ["reset", "01"])


def test_a_newer_python_is_named_only_if_it_runs(course, monkeypatch, tmp_path):
    assert course.runs(sys.executable)
    assert not course.runs(str(tmp_path / "missing"))
    monkeypatch.setattr(course.shutil, "which", lambda name: str(tmp_path / name))
    monkeypatch.setattr(course, "runs", lambda program: program.endswith("3.11"))
    assert "Start with:  python3.11 course.py" in course.too_old((3, 9, 0))
    monkeypatch.setattr(course, "runs", lambda program: False)
    assert "python.org" in course.too_old((3, 9, 0), ["doctor"]) and "course.py doctor" in course.too_old(
        (3, 9), ["doctor"]
    )


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 14, 2), (4, 0, 0)])
def test_a_new_python_is_fine(course, version):
    assert course.too_old(version) is None


def test_knows_exactly_the_commands_of_the_package(course):
    assert set(course.COMMANDS) == {*cli.COMMANDS, "setup"}


def test_an_unknown_command_costs_no_installation(run, capsys):
    code, environment, handed = run("labb")
    assert (code, environment.asked, handed) == (2, None, [])
    assert "'labb'" in capsys.readouterr().err


@pytest.mark.parametrize(("typed", "meant"), [("labb", "lab"), ("tests", "test"), ("resett", "reset")])
def test_an_unknown_command_gets_the_nearest(course, typed, meant):
    assert f"Did you mean {meant}?" in course.complaint([typed])


def test_no_command_shows_what_there_is(course):
    message = course.complaint([])
    assert all(name in message for name in course.COMMANDS)


@pytest.mark.parametrize("command", ["test", "build", "site"])
def test_the_students_archive_installs_nothing_for_what_it_cannot_do(course, monkeypatch, tmp_path, command):
    assert course.complaint([command]) is None
    monkeypatch.setattr(course, "ROOT", tmp_path)
    assert "archive" in course.complaint([command])
    assert course.complaint(["lab"]) is None


def test_help_prepares_nothing(run, capsys):
    code, environment, _ = run("--help")
    assert code == 0 and environment.asked is None
    assert "--cpu-torch" in capsys.readouterr().out


def test_arguments_and_exit_code_are_forwarded(run):
    code, _, handed = run("lab", "--no-browser", "--port=8889")
    assert code == 7
    assert handed[0][-3:] == ["lab", "--no-browser", "--port=8889"] and "course_utils.cli" in handed[0]


@pytest.mark.parametrize(
    "argv", [("--cpu-torch", "lab", "-x"), ("lab", "--cpu-torch", "-x"), ("lab", "-x", "--cpu-torch")]
)
def test_cpu_torch_is_understood_anywhere_and_not_forwarded(run, argv):
    _, environment, handed = run(*argv)
    assert environment.asked["cpu_torch"] is True
    assert handed[0][-2:] == ["lab", "-x"]


@pytest.mark.parametrize(
    ("words", "extra"), [(["lab"], None), (["test"], "test"), (["build"], "author"), (["reset", "01"], None)]
)
def test_a_command_gets_the_extra_it_needs(run, words, extra):
    assert run(*words)[1].asked["extra"] == extra


@pytest.mark.parametrize("command", ["lab", "test", "build", "doctor", "reset", "setup"])
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_about_a_command_installs_nothing(run, capsys, command, flag):
    code, environment, handed = run(command, flag, ready=False)
    assert (code, environment.asked, handed) == (0, None, [])
    assert "usage:" in capsys.readouterr().out


def test_help_about_a_command_comes_from_the_command_if_it_can(run):
    code, environment, handed = run("build", "--help")
    assert (code, environment.asked, handed[0][-2:]) == (7, None, ["build", "--help"])


@pytest.mark.parametrize(
    ("words", "told"),
    [(["reset"], "reset 01"), (["build", "--release"], "course.zip"), (["doctor", "--fast"], "'--fast'")],
)
def test_a_wrong_argument_costs_no_installation(run, capsys, words, told):
    code, environment, handed = run(*words, ready=False)
    assert (code, environment.asked, handed) == (2, None, [])
    assert told in capsys.readouterr().err


def test_doctor_never_installs(run):
    code, environment, handed = run("doctor", "--cpu-torch", ready=False)
    assert (code, environment.asked, environment.checked, handed) == (1, None, True, [])
    code, environment, handed = run("doctor")
    assert (code, environment.asked, environment.checked, handed[0][-1]) == (7, None, False, "doctor")


def test_setup_stops_after_the_environment(run):
    code, environment, handed = run("setup", "--rebuild")
    assert (code, handed, environment.asked["rebuild"]) == (0, [], True)
    assert run("setup", "--foo")[0] == 2


def test_rebuild_belongs_to_setup_only(run):
    _, environment, handed = run("test", "--rebuild")
    assert environment.asked["rebuild"] is False and handed[0][-1] == "--rebuild"


def test_a_problem_is_a_message_and_not_a_traceback(run, capsys):
    code, _, handed = run("lab", problem=FakeEnvironment.Stop("no network: do this"))
    assert (code, handed) == (1, [])
    assert "no network: do this" in capsys.readouterr().err


def test_ctrl_c_ends_quietly(run, capsys):
    code, _, _ = run("lab", problem=KeyboardInterrupt())
    assert code == 130
    assert "Traceback" not in capsys.readouterr().err


def test_on_windows_it_waits_for_the_child_and_leaves_ctrl_c_to_it(course, monkeypatch):
    handlers = []
    monkeypatch.setattr(course, "WINDOWS", True)
    monkeypatch.setattr(course.signal, "signal", lambda number, handler: handlers.append((number, handler)))
    code = course.hand_over([sys.executable, "-c", "raise SystemExit(5)"], None)
    assert code == 5
    assert handlers[0][0] == signal.SIGINT and callable(handlers[0][1])


def test_an_incomplete_copy_is_named(course, monkeypatch, tmp_path):
    monkeypatch.setattr(course, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="not complete"):
        course.load_environment()


def test_started_as_a_program_from_another_folder(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "course.py"), "docter"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "Did you mean doctor?" in done.stderr
    assert list(tmp_path.iterdir()) == []
