"""What state the course's environment is in."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parents[2]
LAYOUT = 1  # raise it when environments made by an earlier version have to be brought up to date
WINDOWS = os.name == "nt"
START = "py -3 course.py" if WINDOWS else "python3 course.py"

# Looks at an environment from inside. It imports nothing of the course, so it takes only a moment.
PROBE = """
import importlib.metadata as m, importlib.util as u, json, sys, sysconfig
def version(name):
    try:
        return m.version(name)
    except m.PackageNotFoundError:
        return None
spec = u.find_spec("course_utils")
print(json.dumps({
    "python": list(sys.version_info[:2]), "pip": u.find_spec("pip") is not None, "torch": version("torch"),
    "setuptools": version("setuptools"), "course": spec.origin if spec else None,
    "site": sysconfig.get_path("purelib"),
}))
"""


class Stop(Exception):
    """Something the reader has to do first; the message says what."""


def say(text):
    print(text, flush=True)


def venv_folder():
    given = os.environ.get("COURSE_VENV", "").strip()
    return Path(given).expanduser().resolve() if given else ROOT / ".venv"


def venv_python(venv):
    return venv / "Scripts" / "python.exe" if WINDOWS else venv / "bin" / "python"


def record_file(venv):
    return venv / "course-environment.json"


def read_record(venv):
    """What was noted about this environment; {} if nothing, or if the note is damaged."""
    try:
        record = json.loads(record_file(venv).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def write_record(venv, record):
    """Note it beside the old record first: a full disk must not leave half a record."""
    file = record_file(venv)
    fresh = file.with_name(file.name + ".new")
    try:
        fresh.write_text(json.dumps(record, indent=1), encoding="utf-8")
        fresh.replace(file)
    except OSError as error:
        raise Stop(f"Cannot write {file}: {error}") from None


def fingerprint():
    """Changes whenever the environment has to be brought up to date."""
    digest = hashlib.sha256(str(LAYOUT).encode())
    for name in ("requirements.txt", "pyproject.toml"):
        path = ROOT / name
        if not path.is_file():
            raise Stop(f"{path} is missing: this copy of the course is not complete. Download it again.")
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()


def child_environment(venv):
    """The environment variables for everything that runs inside the virtual environment."""
    env = dict(os.environ, VIRTUAL_ENV=str(venv), PIP_USER="0")
    for name in ("PYTHONHOME", "PYTHONPATH", "__PYVENV_LAUNCHER__"):
        env.pop(name, None)  # these would mix in packages of another Python
    env["PATH"] = str(venv_python(venv).parent) + os.pathsep + env.get("PATH", "")
    return env


def probe(venv):
    """Facts about a working environment, or None if its Python does not run."""
    try:
        done = subprocess.run(
            [str(venv_python(venv)), "-I", "-c", PROBE],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment(venv),
            timeout=60,
            check=True,
        )
        return json.loads(done.stdout.decode("utf-8"))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def served_course(facts):
    """The folder of the course whose files an environment uses, or None; `facts` are those of `probe`."""
    return Path(facts["course"]).resolve().parent.parent if facts and facts["course"] else None


def points_here(venv):
    """Whether an environment works and uses this copy of the course."""
    return served_course(probe(venv)) == ROOT


def is_empty(folder):
    return folder.is_dir() and not any(folder.iterdir())


def judge(venv, extra):
    """What is to be done, and why.

    The action is "ready", "update" (install into what is there) or "rebuild" (begin with an empty folder).
    """
    if not venv.exists() or is_empty(venv):
        return "rebuild", "this is the first start"
    record, facts = read_record(venv), probe(venv)
    # In an environment that was not made by course.py, nothing is ever deleted.
    interrupted = record.get("state") == "installing" and not record.get("adopted")
    rebuild = (
        (facts is None or not facts["pip"], "the one that is there does not run"),
        (facts and tuple(facts["python"]) < OLDEST, "the one that is there has too old a Python"),
        (interrupted, "an earlier installation was interrupted"),
        (facts and record.get("python", facts["python"]) != facts["python"], "its Python was replaced"),
    )
    for found, reason in rebuild:
        if found:
            return "rebuild", reason
    update = (
        (not record, "it was not made by course.py"),
        (record.get("state") == "installing", "an earlier installation was interrupted"),
        (record.get("venv", str(venv)) != str(venv), "the folder was moved or copied"),
        (record.get("fingerprint") != fingerprint(), "the list of packages changed"),
        (served_course(facts) != ROOT, "it does not point to this copy of the course"),
        (extra and extra not in record.get("extras", []), f"this command needs more packages ({extra})"),
    )
    for found, reason in update:
        if found:
            return "update", reason
    return "ready", ""
