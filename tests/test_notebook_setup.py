"""The first call of a notebook, the names a notebook imports, and the overview of what is done."""

import importlib
import random
import subprocess
import sys
import types

import numpy as np
import pytest
import torch

import course_utils
from course_utils import notebook, parts, plots, questions
from course_utils.notebook import SetupError, current_lesson, setup


@pytest.fixture(autouse=True)
def quiet_run(monkeypatch, tmp_path):
    import matplotlib as mpl

    for switch in ("COURSE_SMOKE", "COURSE_STRICT", "COURSE_DEVICE"):
        monkeypatch.delenv(switch, raising=False)
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    monkeypatch.setenv("COURSE_REMEMBER", "0")
    monkeypatch.setenv("COURSE_VENV", str(tmp_path / "no-environment"))
    monkeypatch.setattr(notebook, "_lesson", None)
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    with mpl.rc_context():
        yield
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)  # other tests draw the smallest of numbers
    torch.set_rng_state(state)


def draws():
    return random.random(), float(np.random.rand()), float(torch.rand(()))


def test_setup_prints_one_line_and_returns_nothing(capsys):
    assert setup("01") is None
    version = torch.__version__.split("+")[0]
    assert capsys.readouterr().out == f"Lesson 01. PyTorch {version}, one thread.\n"
    assert current_lesson() == "01"
    assert torch.get_num_threads() == 1


def test_setup_may_be_called_again_and_starts_the_same():
    setup("01")
    first = draws()
    setup(1)
    assert draws() == first
    assert current_lesson() == "01"


def test_setup_says_how_the_run_was_asked_to_behave(monkeypatch, capsys):
    monkeypatch.setenv("COURSE_SMOKE", "1")
    monkeypatch.setenv("COURSE_STRICT", "1")
    setup("02")
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    assert "Smoke mode" in line
    assert "Strict mode" in line


@pytest.mark.parametrize("lesson", ["one", "", None, "-1", 1.5])
def test_a_lesson_is_a_number(lesson):
    with pytest.raises(ValueError, match='setup\\("01"\\)'):
        setup(lesson)


def test_an_old_python_is_named_with_the_way_out(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 1, "final", 0))
    with pytest.raises(SetupError, match=r"3\.11 or newer; this kernel runs 3\.9\.1.*course\.py lab"):
        setup("01")


def test_missing_torch_is_named_with_the_way_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SetupError, match=r"torch cannot be imported by this kernel.*course\.py lab") as caught:
        setup("01")
    assert caught.value._render_traceback_() == [str(caught.value)]  # a notebook shows the message alone


@pytest.mark.parametrize("given", ["gpu", "cuda"])
def test_a_device_that_is_not_there_is_said_before_anything_trains(given, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setenv("COURSE_DEVICE", given)
    with pytest.raises(SetupError, match=rf"COURSE_DEVICE: .*'{given}'.*this machine has cpu\. Set COURSE_DEVICE"):
        setup("01")
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    setup("01")


def test_another_kernel_than_the_courses_own_is_noted(monkeypatch, tmp_path, capsys):
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("COURSE_VENV", str(own))
    setup("01")
    assert "Note:" not in capsys.readouterr().out  # no environment there: nothing can be told
    (own / "pyvenv.cfg").write_text("", encoding="utf-8")
    setup("01")
    assert f"Note: this kernel is {sys.executable}, not the Python of the course's own" in capsys.readouterr().out
    monkeypatch.setattr(sys, "prefix", str(own))
    setup("01")
    assert "Note:" not in capsys.readouterr().out


def test_importing_the_course_loads_neither_torch_nor_matplotlib():
    code = "import sys, course_utils as c; dir(c); print(sorted({'torch', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["answer", "claim", "progress", "question_points", "setup", "use"])
def test_a_notebook_can_import_every_name(name):
    assert callable(getattr(course_utils, name))
    assert name in dir(course_utils)


def test_an_unknown_name_is_an_ordinary_error():
    with pytest.raises(AttributeError, match="no attribute 'chekc'"):
        course_utils.chekc  # noqa: B018


class TestProgress:
    @pytest.fixture(autouse=True)
    def course(self, monkeypatch):
        fake = types.ModuleType("course_utils.checks")
        entry = types.SimpleNamespace
        fake.EXERCISES = {
            "rnn_step": entry(name="rnn_step", notebook="01", optional=False),
            "gru_step": entry(name="gru_step", notebook="01", optional=True),
            "decode_step": entry(name="decode_step", notebook="02", optional=False),
        }
        monkeypatch.setitem(sys.modules, "course_utils.checks", fake)
        bank = {f"0{lesson}.{n}": {"kind": "number", "right": 1, "tolerance": 0, "explain": "."}
                for lesson in (1, 2) for n in (1, 2)}  # fmt: skip
        monkeypatch.setattr(questions, "load", lambda: bank)
        monkeypatch.setattr(parts, "_seen", {})
        monkeypatch.setattr(questions, "_given", {})

    def test_an_untouched_course(self):
        shown = str(course_utils.progress())
        assert "0 of 2 passed" in shown
        assert shown.count("not tried yet") == 3
        assert "optional" in shown

    def test_this_session_and_what_is_remembered(self, monkeypatch):
        monkeypatch.setenv("COURSE_REMEMBER", "1")
        parts.write_json(parts.data_folder() / "parts" / "rnn_step.json", {"date": "2026-01-02"})
        parts._seen["decode_step"] = (4, 10, False)
        questions.answer("02.1", 1)
        questions.answer("02.2", 3)
        shown = course_utils.progress()
        assert "1 of 2 passed" in str(shown)
        assert "passed, remembered 2026-01-02" in str(shown)
        assert "4 of 10 points" in str(shown)
        assert shown.questions.cells == [["01", "2", "0", "0", "4"], ["02", "2", "2", "2", "4"]]
        assert shown._repr_html_().count("<table") == 2

    def test_the_module_of_the_same_name_does_not_get_in_the_way(self):
        module = importlib.import_module("course_utils.progress")
        assert isinstance(module(), type(course_utils.progress()))


def test_plots_need_no_setup():
    assert plots.table([(1, 2)], ("a", "b"))
