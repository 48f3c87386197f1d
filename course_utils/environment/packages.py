"""Make the environment and install the packages into it."""

import importlib.util
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from .advice import explain
from .folders import writable
from .state import (
    ROOT,
    START,
    Stop,
    child_environment,
    fingerprint,
    points_here,
    probe,
    read_record,
    say,
    venv_python,
    write_record,
)

CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # PyTorch's own index of builds without GPU support


def extra_requirements(extra):
    """The packages of one extra of pyproject.toml; extras may refer to each other."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = set()
    for line in project.get("optional-dependencies", {}).get(extra, []):
        other = re.fullmatch(re.escape(project["name"]) + r"\[(.+)\]", line.strip())
        if other:
            found = found.union(*(extra_requirements(name.strip()) for name in other.group(1).split(",")))
        else:
            found.add(line)
    return found


def pinned_torch():
    found = re.search(r"^torch==([^\s;#]+)", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.M)
    return found.group(1) if found else None


def pip(venv, *arguments):
    """Run pip in the environment. Its output goes to the screen, and with details to install.log."""
    log = venv / "install.log"
    before = log.stat().st_size if log.exists() else 0
    command = [str(venv_python(venv)), "-m", "pip", "install", "--disable-pip-version-check"]
    command += ["--log", str(log), *arguments]
    code = subprocess.call(command, env=child_environment(venv), cwd=str(ROOT))
    if code:
        text = log.read_bytes()[before:].decode("utf-8", "replace") if log.exists() else ""
        raise Stop(
            f"The installation did not finish (pip ended with code {code}).\n  {explain(text, code)}\n"
            f"  The whole log: {log}\nThen start again: what was downloaded is not downloaded twice."
        )


def note_beginning(venv, extras, cpu_torch):
    """Note what is being installed before anything is: the next start has to know if this one is stopped."""
    record = dict(read_record(venv), state="installing", extras=sorted(extras), cpu_torch=cpu_torch)
    write_record(venv, record)


def create(venv, extras=(), cpu_torch=False):
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        name = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        raise Stop(
            "This Python cannot make environments: Debian and Ubuntu keep that in a package of its own.\n"
            f"  sudo apt install python3-venv     (or {name})\nThen start again."
        )
    venv.mkdir(parents=True, exist_ok=True)
    note_beginning(venv, extras, cpu_torch)  # first of all: a half-made one must be known as ours
    code = subprocess.call([sys.executable, "-m", "venv", str(venv)])
    if code:
        raise Stop(f"Python could not make an environment in {venv} (code {code}); the reason is above.")


def install_cpu_torch(venv, wanted, torch):
    """PyTorch's small build for Linux if it is wanted and still missing; otherwise a word about its size."""
    present = (probe(venv) or {}).get("torch") or ""
    missing = torch is not None and present.split("+")[0] != torch
    if sys.platform != "linux" or not (missing or wanted):
        return  # elsewhere the usual build is the small one
    if wanted and missing:
        say("      First PyTorch's CPU build (about 200 MB).")
        try:
            pip(venv, f"torch=={torch}", "--index-url", CPU_INDEX)
        except Stop as stop:
            raise Stop(
                f"{stop}\nIf only download.pytorch.org is blocked: take the usual build (about 3 GB on Linux), which\n"
                f"comes from the ordinary package index. To do so, leave out --cpu-torch:  {START} setup --rebuild"
            ) from None
    elif wanted and "+cpu" not in present:
        say(f"      PyTorch {present} is already there. To replace it:  {START} setup --rebuild --cpu-torch")
    elif missing and platform.machine() == "x86_64" and shutil.which("nvidia-smi") is None:
        say(
            "      Note: this computer shows no NVIDIA GPU. PyTorch's usual build for Linux brings GPU\n"
            "      libraries, about 3 GB to download; its CPU build has about 200 MB and does everything\n"
            f"      in this course. To get it, stop with Ctrl-C and run:  {START} lab --cpu-torch"
        )


def path_file(facts):
    return Path(facts["site"]) / "attention_course.pth"


def link_by_path(venv):
    """Link the course without pip: a line in a file that Python reads at its start."""
    facts = probe(venv)
    if facts:
        path_file(facts).write_text(f"{ROOT}\n", encoding="locale")  # as Python reads it


def link_course(venv):
    """Install the course itself so that its files are used where they lie."""
    facts = probe(venv) or {}
    if not writable(ROOT):  # pip would have to write beside the sources; this is what it comes to
        link_by_path(venv)
        return
    arguments = ["--quiet", "--no-deps", "--editable", str(ROOT)]
    if int((facts.get("setuptools") or "0").split(".")[0]) >= 77:
        arguments.insert(0, "--no-build-isolation")  # all it takes is here: works without network
    try:
        pip(venv, *arguments)
    except Stop:  # without network, pip cannot fetch what it builds with
        say("      pip could not do that; linked by a path file instead, which serves as well.")
        link_by_path(venv)
    else:
        if facts:
            path_file(facts).unlink(missing_ok=True)  # it may name the place where the course was before


def install(venv, extras, cpu_torch):
    """Install everything into an environment whose Python runs."""
    note_beginning(venv, extras, cpu_torch)
    say("[2/3] Installing JupyterLab, PyTorch and the other packages (minutes the first time).")
    install_cpu_torch(venv, cpu_torch, pinned_torch())
    wanted = set().union(*(extra_requirements(extra) for extra in extras))
    pip(venv, "-r", str(ROOT / "requirements.txt"), *sorted(wanted))
    say("[3/3] Linking the course itself.")
    link_course(venv)
    if not points_here(venv):
        raise Stop(f"The environment in {venv} does not work after installing. Run:  {START} setup --rebuild")
    record = {"state": "ready", "venv": str(venv), "python": probe(venv)["python"], "fingerprint": fingerprint()}
    adopted = bool(read_record(venv).get("adopted"))
    write_record(venv, dict(record, extras=sorted(extras), cpu_torch=cpu_torch, adopted=adopted))
