"""The command that isolates students' processes on Linux, and what of the machine they may read."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from course_utils.folders import CourseError
from course_utils.grading import trees
from course_utils.grading.jail import SCRATCH
from course_utils.grading.zygote import COURSE, TREES

NEEDED = ("torch", "IPython", "numpy", "matplotlib", "jaxtyping")
ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "MPLBACKEND": "Agg",
    "LANG": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
    "COURSE_REMEMBER": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def environment() -> dict[str, str]:
    """Of a process that is not isolated: what the system may need is kept."""
    return {**os.environ, **ENVIRONMENT, "PATH": os.environ.get("PATH", "")}


def import_paths() -> list[str]:
    """Where the modules of Python and the packages of the environment are, and nothing else."""
    homes = [Path(place).absolute() for place in (sys.prefix, sys.base_prefix)]
    packages = {Path(importlib.util.find_spec(name).origin).parents[1] for name in NEEDED}
    found = [Path(place).absolute() for place in sys.path if place]
    course = trees.PACKAGE.parent
    return [
        str(p)
        for p in found
        if p != course and p.exists() and (p in packages or any(p.is_relative_to(home) for home in homes))
    ]


def bubblewrap(folder: Path) -> list[str]:
    """The command before the command. Read-only: the system's libraries, Python, its packages, the trees."""
    program = shutil.which("bwrap")
    if program is None:
        raise CourseError("bubblewrap (the program bwrap) is not installed")
    command = [program, "--die-with-parent", "--new-session", "--clearenv"]
    command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    if os.geteuid() != 0:
        command += ["--unshare-user"]
    else:  # the first process inside becomes another user, for whom the limits hold
        command += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    command += ["--tmpfs", "/tmp"]  # before all others, which may lie in it
    for name, value in ENVIRONMENT.items():
        command += ["--setenv", name, value]
    for name in ("HOME", "TMPDIR", "IPYTHONDIR", "MPLCONFIGDIR", "XDG_CACHE_HOME"):
        command += ["--setenv", name, SCRATCH]
    for place in _readable():
        for parent in reversed(Path(place).parents[:-1]):
            command += ["--dir", str(parent)]  # readable for everybody; those made by a bind are for their owner
        command += ["--ro-bind", place, place]
    for link in ("bin", "lib", "lib64", "lib32", "sbin"):
        path = Path("/") / link
        if path.is_symlink():
            command += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            command += ["--ro-bind", str(path), str(path)]
    for place in _secret():
        command += ["--tmpfs", place]
    command += [
        "--ro-bind",
        str(folder),
        TREES,
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--perms",
        "1777",
        "--tmpfs",
        SCRATCH,
        "--dir",
        COURSE,
    ]
    return [*command, "--remount-ro", "/tmp", "--remount-ro", "/"]


def _readable() -> list[str]:
    """Folders and files of the machine that Python needs; none inside another."""
    wanted = ["/usr", "/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"]
    wanted += [sys.prefix, sys.base_prefix, *import_paths(), str(Path(sys.executable).resolve().parent)]
    wanted += [str(Path(place).resolve()) for place in wanted]
    chosen: list[str] = []
    for place in sorted(set(wanted)):
        inside = any(Path(place).is_relative_to(other) for other in chosen)
        if not inside and Path(place).exists() and place != "/":
            chosen.append(place)
    return chosen


def _secret() -> list[str]:
    """Folders of the course that lie inside a readable one, such as a package that was copied into the environment."""
    readable = [Path(place).resolve() for place in _readable()]
    places = [trees.PACKAGE.resolve(), *(trees.PACKAGE.parent.resolve() / n for n in ("solutions", "lessons", "tests"))]
    return [str(p) for p in places if p.is_dir() and any(p.is_relative_to(other) for other in readable)]
