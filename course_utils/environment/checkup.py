"""`course.py doctor` while there is no environment to run the whole of it in; installs nothing."""

import importlib.util
import platform
import shutil
import sys

from .folders import is_there, writable
from .state import OLDEST, ROOT, START, judge, read_record, venv_folder

LINUX = sys.platform == "linux"


def existing(folder):
    """The folder itself, or the nearest above it that is there."""
    while not folder.exists():
        folder = folder.parent
    return folder


def checks(venv):
    """(whether it is in order, what was found, what to do about it) for each check."""
    wanted = ".".join(map(str, OLDEST))
    found = f"Python {platform.python_version()}, {sys.executable}"
    yield sys.version_info[:2] >= OLDEST, found, f"install Python {wanted} or newer"
    if sys.maxsize < 2**32:
        yield False, "this Python has 32 bit, PyTorch needs 64", "install a 64-bit Python"
    if importlib.util.find_spec("ensurepip") is None:
        yield False, "this Python cannot make environments", "sudo apt install python3-venv"
    can = writable(venv)
    yield (
        can,
        f"the place for the packages, {venv}, can{'' if can else 'not'} be written",
        "copy the course to a folder of your own, or name one in COURSE_VENV",
    )
    free = shutil.disk_usage(str(existing(venv))).free / 1e9
    needed = 6 if LINUX and not read_record(venv).get("cpu_torch") else 2
    todo = f"about {needed} GB are needed" + (", with --cpu-torch only 2 GB" if needed > 2 else "")
    yield free > needed or judge(venv, None)[0] == "update", f"{free:.1f} GB of disk space are free", todo
    notebooks = len(list((ROOT / "notebooks").glob("*.ipynb")))
    yield notebooks > 0, f"{notebooks} notebooks in {ROOT / 'notebooks'}", "get the course again"
    reason = judge(venv, None)[1]
    there = f"there is an environment in {venv}, but it cannot be used as it is: {reason}"
    extra = "   (with --cpu-torch it takes PyTorch's small build)" if needed > 2 else ""
    yield False, there if is_there(venv) else f"there is no environment in {venv} yet", f"{START} setup{extra}"


def doctor():
    """Print a line for every check and what to do; returns 1, because without an environment nothing runs."""
    problems = 0
    for fine, found, todo in checks(venv_folder()):
        problems += not fine
        print(f"{'ok' if fine else 'PROBLEM':8}{found}" + ("" if fine else f"\n        -> {todo}"))
    print(f"\n{problems} problem{'s' * (problems != 1)} found. Once the environment is there, doctor looks at more.")
    return 1
