"""The student's own copies of the notebooks, and JupyterLab on them.

work/ holds the copies; work/.course.json remembers from which version each was made, so that an
update of the course can be announced. A student's copy is never overwritten.
"""

import difflib
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from course_utils.folders import START, CourseError, course_root, shipped_notebooks, work_folder


def fingerprint(notebook: Path) -> str:
    """The same for the same notebook, however the system ends its lines."""
    return hashlib.sha256(notebook.read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def number(notebook: Path) -> str:
    """What to call a notebook in a command: "01" for 01_rnn_bottleneck.ipynb."""
    return notebook.stem.split("_")[0]


def read_origins(work: Path) -> dict[str, str]:
    """From which version each copy was made: name of the notebook → fingerprint. Nothing if the file is damaged."""
    try:
        origins = json.loads((work / ".course.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # the last: brackets in brackets, thousands deep
        return {}
    return {k: v for k, v in origins.items() if isinstance(v, str)} if isinstance(origins, dict) else {}


def write_origins(work: Path, origins: dict[str, str]) -> None:
    (work / ".course.json").write_text(json.dumps(origins, indent=1, sort_keys=True), encoding="utf-8")


def make_work_folder(work: Path) -> None:
    try:
        work.mkdir(parents=True, exist_ok=True)
        probe = work / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise CourseError(
            f"Your notebooks are kept in {work}, but nothing can be written there ({error}).\n"
            "Name a folder of your own and start again:  "
            + ("set COURSE_WORK=%USERPROFILE%\\course-work" if os.name == "nt" else "export COURSE_WORK=~/course-work")
        ) from None


def copy_new(root: Path, work: Path) -> list[str]:
    """Copy each notebook that is not there yet; returns what to tell the student."""
    notebooks = shipped_notebooks(root)
    if not notebooks:
        raise CourseError(
            f"There are no notebooks in {root / 'notebooks'}. Download the course again, or make them from\n"
            f"the lessons:  {START} build"
        )
    make_work_folder(work)
    origins, told = read_origins(work), []
    if not origins and (work / ".course.json").exists():
        told.append(
            f"{work / '.course.json'} is damaged and is made anew. Your notebooks are as they were; whether one of\n"
            "         them is older than the course's cannot be told this time."
        )
    for notebook in notebooks:
        own, now = work / notebook.name, fingerprint(notebook)
        if not own.exists():
            shutil.copyfile(notebook, own)
            origins[notebook.name] = now
            told.append(f"new:     {notebook.name}")
        elif origins.setdefault(notebook.name, now) != now:
            told.append(
                f"updated: {notebook.name} has a newer version. Yours stays as it is;\n"
                f"         `{START} reset {number(notebook)}` gives the new version and keeps yours too."
            )
    write_origins(work, origins)
    return told


def jupyter_environment() -> dict[str, str]:
    """Settings for JupyterLab that a reader can still change: no question about news, the course's kernel."""
    env = dict(os.environ, JUPYTER_PREFER_ENV_PATH="1")
    ours = str(Path(__file__).with_name("jupyter"))
    env["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, [ours, env.get("JUPYTER_CONFIG_PATH", "")]))
    return env


def jupyter_command(work: Path, arguments: list[str]) -> list[str]:
    """JupyterLab on the student's folder, asking nothing of the network; the reader's arguments come last."""
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={work}", "--LabApp.news_url=None"]
    command.append("--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate")
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "--allow-root" not in arguments:
        command.append("--allow-root")  # in a container everybody is root, and JupyterLab would refuse
    return command + arguments


def lab(arguments: list[str]) -> int:
    """Copy what is new, say what changed, open JupyterLab; returns its exit code."""
    root = course_root()
    work = work_folder(root)
    told = copy_new(root, work)
    print(f"Your notebooks are in {work}")
    for line in told:
        print(f"  {line}")
    if importlib.util.find_spec("jupyterlab") is None:
        raise CourseError(
            f"JupyterLab is not installed for {sys.executable}.\nIn the folder of the course:  "
            f"{START} lab   (or, in this environment:  pip install -r requirements.txt)"
        )
    print("Opening JupyterLab; to stop it, press Ctrl-C here, then y.", flush=True)
    command, env = jupyter_command(work, arguments), jupyter_environment()
    os.chdir(work)
    if os.name != "nt":
        os.execve(command[0], command, env)  # JupyterLab takes over: signals and exit code are its own
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is JupyterLab's to answer: wait for it
    return subprocess.call(command, env=env)


def find_notebook(root: Path, wanted: str) -> Path:
    """The notebook that "01", "1", "01_rnn_bottleneck" or its file name means."""
    notebooks = shipped_notebooks(root)
    name = Path(wanted).name.removesuffix(".ipynb")
    for notebook in notebooks:
        if name in {notebook.stem, number(notebook)} or name.zfill(2) == number(notebook):
            return notebook
    near = difflib.get_close_matches(name, [notebook.stem for notebook in notebooks], n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    known = ", ".join(notebook.stem for notebook in notebooks) or "none"
    raise CourseError(f"There is no notebook {wanted!r}.{hint}\nThe notebooks are: {known}.")


def keep(own: Path) -> Path:
    """Rename a student's notebook so that nothing is lost; returns its new place."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    for extra in ("", *(f"-{n}" for n in range(2, 100))):
        kept = own.with_name(f"{own.stem}.kept-{stamp}{extra}.ipynb")
        if not kept.exists():
            own.rename(kept)
            return kept
    raise CourseError(f"There are too many kept copies of {own.name} from this second; wait a moment.")


def reset(names: list[str]) -> int:
    """Give back pristine copies of the named notebooks; the old ones are kept under another name."""
    root = course_root()
    work = work_folder(root)
    notebooks = [find_notebook(root, name) for name in names]  # all of them, before anything is changed
    make_work_folder(work)
    origins = read_origins(work)
    for notebook in dict.fromkeys(notebooks):
        own = work / notebook.name
        if own.exists() and fingerprint(own) == fingerprint(notebook):
            print(f"{own} is pristine already.")
        else:
            fresh = own.with_name(f".{own.name}.new")
            shutil.copyfile(notebook, fresh)  # first of all: it may fail, and then nothing has changed
            if own.exists():
                print(f"Your notebook is kept as {keep(own)}")
            fresh.replace(own)
            print(f"{own} is pristine. If it is open in JupyterLab: File > Reload Notebook from Disk.")
        origins[notebook.name] = fingerprint(notebook)
    write_origins(work, origins)
    return 0
