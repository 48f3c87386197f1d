"""Writing to, deleting and locking the folder of the environment."""

import contextlib
import hashlib
import shutil
import tempfile
import time
from pathlib import Path

from .state import (
    ROOT,
    WINDOWS,
    Stop,
    is_empty,
    probe,
    read_record,
    record_file,
    say,
    served_course,
    write_record,
)


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
    facts = probe(venv)
    served = served_course(facts)
    if facts is None and read_record(venv).get("state") == "ready":
        raise Stop(
            f"The environment in {venv} is complete, but its Python does not run for you.\n"
            "Whoever made it has to make it with a Python that everybody may read and run.\n"
            f"Or name two folders of your own and start again:\n{way_out}"
        )
    if served not in (None, ROOT):
        raise Stop(
            f"The environment in {venv} serves another copy of the course, the one in\n{served}, "
            f"and cannot be changed from here (no permission to write).\n"
            f"Either start the course in that folder, or name two folders of your own and start again:\n{way_out}"
        )
    raise Stop(
        f"Cannot write to {venv if venv.exists() else venv.parent}: the course keeps its packages there.\n"
        "Either copy the course folder to a place of your own (Documents, say) and start there,\n"
        "or name two writable folders, for the packages and for your notebooks, and start again:\n" + way_out
    )


def is_there(venv):
    return venv.is_symlink() or (venv.exists() and not is_empty(venv))


def require_ours(venv):
    """Never delete or rename a folder that may hold something else."""
    made_here = record_file(venv).is_file() and not read_record(venv).get("adopted")
    if is_there(venv) and venv != ROOT / ".venv" and not made_here:
        raise Stop(
            f"{venv} is neither empty nor an environment made by course.py. Nothing was deleted.\n"
            "Name another folder in COURSE_VENV, or delete this one yourself."
        )


def in_use(venv, error):
    return Stop(
        f"Cannot delete or rename the environment in {venv}: {error}\nClose JupyterLab and every program "
        "that uses it, or delete that folder yourself; then start again."
    )


def remove(venv):
    """Delete an environment if it is there."""
    require_ours(venv)
    try:
        if venv.is_symlink() or venv.is_file():
            venv.unlink()
        elif is_there(venv):
            shutil.rmtree(str(venv))
    except OSError as error:
        raise in_use(venv, error) from None


def old_folder(venv):
    """Where an environment waits while a new one is made in its place."""
    return venv.with_name(venv.name + ".old")


def put_aside(venv, cpu_torch):
    """Rename the environment that is there, if it is worth keeping, and make room; True if one is kept."""
    require_ours(venv)
    old, record = old_folder(venv), read_record(venv)
    half_made = record.get("state") == "installing" and "fingerprint" not in record  # it never worked
    if not venv.is_dir() or is_empty(venv) or venv.is_symlink() or half_made:
        remove(venv)
        return record_file(old).is_file()  # left by a start that was killed at this point
    remove(old)
    # The record says that the renamed folder is ours, and keeps the wish for the small build.
    write_record(venv, dict(record, adopted=False, cpu_torch=bool(record.get("cpu_torch") or cpu_torch)))
    try:
        venv.rename(old)
    except OSError as error:
        raise in_use(venv, error) from None
    return True


def put_back(venv):
    old, log = old_folder(venv), venv / "install.log"
    try:
        if log.is_file():
            log.replace(old / "install.log")  # the message names it
        remove(venv)
        if venv.exists():
            venv.rmdir()  # an empty one
        old.rename(venv)
    except (OSError, Stop) as error:
        say(f"The environment that was there before is kept in {old}: {error}")
    else:
        say(f"The environment that was there before is in {venv} again.")


@contextlib.contextmanager
def set_aside(venv, cpu_torch=False):
    """Begin with an empty place; if what is done there fails, the environment that was there comes back."""
    kept = put_aside(venv, cpu_torch)
    try:
        yield
    except BaseException:  # Ctrl-C as well
        if kept:
            put_back(venv)
        raise
    if kept:
        try:
            remove(old_folder(venv))
        except Stop:
            say(f"The old environment could not be deleted. You can delete it yourself: {old_folder(venv)}")


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
