#!/usr/bin/env python3
"""Makes the course's own Python environment and runs the course in it.

Needs Python 3.11 or newer and nothing else. What it installs goes into the folder .venv beside
this file; deleting that folder undoes the installation.

Much older Pythons, down to 3.6, have to understand this file: only then can it say that the Python
is too old instead of stopping with a syntax error. The work is done in course_utils/environment/.
"""

import difflib
import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent
WINDOWS = os.name == "nt"
START = "py -3 course.py" if WINDOWS else "python3 course.py"

# Every command: what it does, and which extra of pyproject.toml it needs.
COMMANDS = {
    "lab": ("open the lessons in JupyterLab; further arguments go to JupyterLab", None),
    "test": ("run the whole test suite; --fast leaves out notebooks and browsers", "test"),
    "build": ("make notebooks/ and solutions/ from lessons/", "author"),
    "site": ("make pages of the solved lessons that need no Python and no network", "author"),
    "grade": ("grade what a class has handed in: grade FOLDER --out results", "author"),
    "bench": ("measure how fast the course works here: bench checks, bench widgets, bench grading", "test"),
    "doctor": ("look for problems and say what to do about them", None),
    "reset": ("give back a pristine copy of a notebook and keep yours: reset 01", None),
    "setup": ("only make or repair the environment; --rebuild makes it anew", None),
}


def runs(program):
    """Whether it is a Python that is new enough; a name on the search path may lead nowhere."""
    check = f"import sys; sys.exit(sys.version_info < {OLDEST})"
    nowhere = subprocess.DEVNULL
    try:
        return subprocess.call([program, "-c", check], stdin=nowhere, stdout=nowhere, stderr=nowhere, timeout=30) == 0
    except (OSError, subprocess.SubprocessError):
        return False


def too_old(version, argv=()):
    """What to tell somebody whose Python is too old, or None if it is not; argv: what was to be done."""
    if tuple(version[:2]) >= OLDEST:
        return None
    have = f"{version[0]}.{version[1]} ({sys.executable})"
    lines = [f"This course needs Python 3.11 or newer; this is Python {have}."]
    wanted = "course.py " + " ".join(map(shlex.quote, argv or ["lab"]))
    names = [f"python3.{minor}" for minor in (13, 12, 11, 14)]
    newer = next((name for name in names if shutil.which(name) and runs(shutil.which(name))), None)
    if newer:
        lines.append(f"A newer one is on this computer. Start with:  {newer} {wanted}")
    else:
        lines.append("Get one from https://www.python.org/downloads/ (on Linux from your package manager),")
        lines.append("then start again, naming it:  " + ("py -3.12 " if WINDOWS else "python3.12 ") + wanted)
    return "\n".join(lines)


def usage():
    lines = [f"usage: {START} COMMAND [arguments]", ""]
    lines += [f"  {name:8}{text}" for name, (text, _) in COMMANDS.items()]
    lines += [
        "",
        "  --cpu-torch   with any command, on Linux: PyTorch's small build without GPU support",
        "",
        f"More about one command, once the environment is there:  {START} COMMAND --help",
        "COURSE_VENV=FOLDER puts the environment elsewhere, COURSE_WORK=FOLDER your notebooks.",
    ]
    return "\n".join(lines)


def complaint(words):
    """What is wrong with the arguments (without --cpu-torch), or None."""
    if not words:
        return "Which command?\n\n" + usage()
    if words[0] not in COMMANDS:
        near = difflib.get_close_matches(words[0], COMMANDS, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]}?" if near else ""
        return f"There is no command {words[0]!r}.{hint}\n\n{usage()}"
    if words[0] in ("test", "build", "site", "grade") and not (ROOT / "lessons").is_dir():
        return f"{words[0]} needs the whole course; this is the students' archive, without lessons and tests."
    return None


def wrong_arguments(words):
    """What is wrong with the arguments of a known command, as far as it can be told without the environment."""
    if words == ["reset"]:
        return f"Which notebook? For example:  {START} reset 01"
    if words[0] == "build" and words[-1] == "--release":
        return f"Into which file? For example:  {START} build --release course.zip"
    if words[0] == "doctor" and words[1:]:
        return f"doctor does not take {words[1]!r}; it takes no arguments."
    unknown = [word for word in words[1:] if word != "--rebuild"]
    if words[0] == "setup" and unknown:
        return f"setup does not take {unknown[0]!r}; it takes --rebuild and --cpu-torch."
    return None


def load_environment():
    """The package course_utils.environment by itself: what course_utils imports may not be installed yet."""
    folder = ROOT / "course_utils" / "environment"
    path = folder / "__init__.py"
    if not path.is_file():
        sys.exit(f"{path} is missing: this copy of the course is not complete. Download it again.")
    spec = importlib.util.spec_from_file_location("environment", str(path), submodule_search_locations=[str(folder)])
    module = importlib.util.module_from_spec(spec)
    sys.modules["environment"] = module
    spec.loader.exec_module(module)
    return module


def hand_over(command, env):
    """Run a command in place of this program and return its exit code."""
    sys.stdout.flush()
    if not WINDOWS:
        os.execve(command[0], command, env)  # signals and the exit code need no forwarding
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is the child's to answer: wait for it
    return subprocess.call(command, env=env)


def run(command, rest, cpu_torch):
    """Bring the environment into order, then run the command in it; for help and doctor, install nothing."""
    environment = load_environment()
    asks_for_help = "-h" in rest or "--help" in rest
    try:
        if command == "doctor" or asks_for_help:
            python = environment.ready_python()
            if python is None and asks_for_help:
                print(usage())
                return 0
            if python is None:
                return environment.doctor()
        else:
            python = environment.prepare(
                extra=COMMANDS[command][1],
                cpu_torch=cpu_torch,
                rebuild=command == "setup" and "--rebuild" in rest,
                may_go_on=command in ("lab", "reset"),
            )
    except environment.Stop as stop:
        print(f"\n{stop}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next start takes up the work.", file=sys.stderr)
        return 130
    if command == "setup":
        print(f"The environment is ready. Open the lessons with:  {START} lab")
        return 0
    # -P: a folder named course_utils where the reader happens to be must not be taken for ours
    command_line = [str(python), "-P", "-m", "course_utils.cli", command, *rest]
    return hand_over(command_line, environment.child_environment(environment.venv_folder()))


def main(argv):
    words = [word for word in argv if word != "--cpu-torch"]
    problem = too_old(sys.version_info, argv)
    asks_for_help = "-h" in words or "--help" in words
    if not problem and (words[:1] in (["-h"], ["--help"], ["help"]) or (words[:1] == ["setup"] and asks_for_help)):
        print(usage())
        return 0
    problem = problem or complaint(words) or (None if asks_for_help else wrong_arguments(words))
    if problem:
        print(problem, file=sys.stderr)
        return 2
    return run(words[0], words[1:], "--cpu-torch" in argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
