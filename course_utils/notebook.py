"""The first call of every notebook: is the environment right, and the same start for everybody."""

import random
import sys
from importlib import import_module
from pathlib import Path

from . import mode

OLDEST = (3, 11)
SEED = 0

_lesson: str | None = None


class SetupError(RuntimeError):
    """Something has to be done before the notebook can run; the message says what."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows instead of a traceback, which would only hide the message."""
        return [str(self)]


def setup(lesson: str | int) -> None:
    """Prepare a notebook: one thread, fixed seeds, the style of figures; prints one line.

    One thread makes reruns identical, and the small models here gain little from more. May be called again at
    any time. Raises SetupError, with what to do, if Python is too old, torch is missing, or COURSE_DEVICE names a
    device that is not there.
    """
    global _lesson  # noqa: PLW0603  (one notebook, one kernel, one lesson)
    number = str(lesson).strip()
    if not number.isdecimal():
        raise ValueError(f'setup: lesson is the number of the notebook, as in setup("01"); got {lesson!r}')
    if sys.version_info < OLDEST:
        version = ".".join(map(str, sys.version_info[:3]))
        raise SetupError(f"The course needs Python 3.11 or newer; this kernel runs {version}. {_way_out()}")
    try:
        torch, numpy, matplotlib = map(import_module, ("torch", "numpy", "matplotlib"))
    except ImportError as error:
        raise SetupError(
            f"{error.name or error} cannot be imported by this kernel, {sys.executable}. {_way_out()}"
        ) from None
    try:
        import_module("course_utils.device").choose_device()
    except ValueError as error:  # better here than at the first training
        raise SetupError(
            f"{error}. Set COURSE_DEVICE to one of these, or take it out of the environment (the course then chooses "
            "by itself), and start JupyterLab again."
        ) from None
    _lesson = f"{int(number):02d}"
    torch.set_num_threads(1)
    # A softmax that has decided leaves numbers below 1e-38, and arithmetic with those is ten times slower.
    torch.set_flush_denormal(True)
    random.seed(SEED)
    numpy.random.seed(SEED)
    torch.manual_seed(SEED)
    matplotlib.rcParams.update(import_module("course_utils.plots").STYLE)

    notes = [f"Lesson {_lesson}. PyTorch {torch.__version__.split('+')[0]}, one thread."]
    if mode.smoke():
        notes.append("Smoke mode: little data, a few steps of training, no claim is judged.")
    if mode.strict():
        notes.append("Strict mode: a claim that does not hold stops the notebook.")
    if warning := _other_kernel():
        notes.append(warning)
    print(" ".join(notes))


def current_lesson() -> str | None:
    """The number that `setup` was given, two digits; None before that."""
    return _lesson


def _way_out() -> str:
    return (
        "Close this notebook and start the course in a terminal with `python3 course.py lab` (Windows: "
        "`py -3 course.py lab`). In an editor, choose the Python of the course's .venv folder as the kernel."
    )


def _other_kernel() -> str:
    """A warning if the course has an environment of its own and this kernel is another; else nothing.

    A strict run is a build or a test, which chooses its Python on purpose.
    """
    if mode.strict():
        return ""
    try:
        own = import_module("course_utils.environment").venv_folder()
        differs = (own / "pyvenv.cfg").is_file() and Path(sys.prefix).resolve() != own.resolve()
    except (ImportError, AttributeError, OSError):
        return ""
    if not differs:
        return ""
    return f"Note: this kernel is {sys.executable}, not the Python of the course's own {own}. {_way_out()}"
