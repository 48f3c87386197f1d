"""The course's own Python environment: look at it, make it, repair it.

Standard library only, and nothing else of course_utils: course.py runs this package before anything
is installed. The environment is a folder (.venv, or the one COURSE_VENV names) with a small record
in it, course-environment.json, that says what was installed from which state of the course.
"""

import platform
import time

from .checkup import doctor
from .folders import old_folder, only_one, require_writable, set_aside
from .packages import create, install, install_cpu_torch, link_by_path, pinned_torch
from .state import (
    Stop,
    child_environment,
    judge,
    points_here,
    read_record,
    say,
    venv_folder,
    venv_python,
    write_record,
)

__all__ = ["Stop", "child_environment", "doctor", "prepare", "ready_python", "venv_folder"]


def ready_python():
    """The environment's Python if it can be used at once, else None; installs nothing."""
    venv = venv_folder()
    return venv_python(venv) if judge(venv, None)[0] == "ready" else None


def update(venv, extras, cpu_torch, may_go_on):
    before = read_record(venv) or {"adopted": True}
    write_record(venv, before)
    try:
        install(venv, extras, cpu_torch)
    except Stop as stop:
        write_record(venv, dict(before, cpu_torch=cpu_torch))  # pip ended in good order: the old state still holds
        if not may_go_on or before.get("state") != "ready":
            raise
        if not points_here(venv):
            link_by_path(venv)
        say(f"\n{stop}\nGoing on with the packages that are there; the next start tries again.")


def prepare(extra=None, cpu_torch=False, rebuild=False, may_go_on=False):
    """Bring the environment into order and return its Python.

    extra: what the command needs beyond requirements.txt, an extra of pyproject.toml.
    may_go_on: if an update fails in an environment that worked before, say so and use it as it is.
    Raises Stop with a message for the reader if there is something to do first.
    """
    venv = venv_folder()
    if judge(venv, extra)[0] == "ready" and not rebuild:
        if cpu_torch:
            install_cpu_torch(venv, True, pinned_torch())
        return venv_python(venv)
    require_writable(venv)
    with only_one(venv):
        action, reason = judge(venv, extra)  # again: another start may have done the work meanwhile
        if rebuild:
            action, reason = "rebuild", "as you asked"
        record = read_record(venv) or read_record(old_folder(venv))
        extras = {*record.get("extras", []), *([extra] if extra else [])}
        cpu_torch = cpu_torch or (bool(record.get("cpu_torch")) and not rebuild)
        began = time.monotonic()
        if action == "rebuild":
            say(f"Preparing an environment for the course in {venv}: {reason}.")
            with set_aside(venv, cpu_torch):
                say(f"[1/3] Making it with Python {platform.python_version()}.")
                create(venv, extras, cpu_torch)
                install(venv, extras, cpu_torch)
        elif action == "update":
            say(f"Updating the course's environment in {venv}: {reason}.")
            update(venv, extras, cpu_torch, may_go_on)
        if action != "ready":
            say(f"The environment took {time.monotonic() - began:.0f} s.")
    return venv_python(venv)
