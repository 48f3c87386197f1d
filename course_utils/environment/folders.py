"""Writing to, deleting and locking the folder of the environment."""

import contextlib
import hashlib
import shutil
import tempfile
import time
from pathlib import Path

from .state import ROOT, WINDOWS, Stop, is_empty, record_file, say


def writable(folder):
    """Try it: permission bits do not tell about read-only file systems, nor about Windows."""
    try:
        while not folder.exists():
            folder = folder.parent
        with tempfile.TemporaryFile(dir=str(folder)):
            return True
    except OSError:
        return False


def require_writable(venv):
    if writable(venv):
        return
    if WINDOWS:
        way_out = "  set COURSE_VENV=%USERPROFILE%\\course-venv\n  set COURSE_WORK=%USERPROFILE%\\course-work"
    else:
        way_out = "  export COURSE_VENV=~/course-venv COURSE_WORK=~/course-work"
    raise Stop(
        f"Cannot write to {venv if venv.exists() else venv.parent}: the course keeps its packages there.\n"
        "Either copy the course folder to a place of your own (Documents, say) and start there,\n"
        "or name two writable folders, for the packages and for your notebooks, and start again:\n" + way_out
    )


def remove(venv):
    """Delete an environment, but never a folder that may hold something else."""
    if is_empty(venv) or not (venv.exists() or venv.is_symlink()):
        return
    if venv != ROOT / ".venv" and not record_file(venv).is_file():
        raise Stop(
            f"COURSE_VENV names {venv}, which is neither empty nor an environment made by course.py.\n"
            "Nothing was deleted. Name another folder, or delete this one yourself."
        )
    try:
        if venv.is_symlink() or venv.is_file():
            venv.unlink()
        else:
            shutil.rmtree(str(venv))
    except OSError as error:
        raise Stop(
            f"Cannot delete the environment in {venv}: {error}\nClose JupyterLab and every program "
            "that uses it, or delete that folder yourself; then start again."
        ) from None


def lock_name(venv):
    return hashlib.sha256(str(venv).encode("utf-8")).hexdigest()[:16]


def try_lock(handle):
    """False while another process holds the lock; the system frees it when that process ends."""
    try:
        if WINDOWS:
            import msvcrt

            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        pass  # a file system without locks
    return True


@contextlib.contextmanager
def only_one(venv):
    """Two starts at once must not install into the same folder: the second waits for the first."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # no lock to be had: go on without
            handle = stack.enter_context((Path(tempfile.gettempdir()) / f"course-{lock_name(venv)}.lock").open("w"))
            if not try_lock(handle):
                say("Another start is preparing the environment; waiting for it.")
                while not try_lock(handle):
                    time.sleep(0.5)
        yield
