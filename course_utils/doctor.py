"""`course doctor`: one line for everything that commonly goes wrong, and what to do about it."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from course_utils.folders import START, CourseError, course_root, shipped_notebooks, work_folder

OK, NOTE, PROBLEM = "ok", "note", "PROBLEM"
Line = tuple[str, str, str]  # level, what was found, what to do about it
INSTALL = f"{START} setup   (in an environment of your own: pip install -r requirements.txt)"


def check_python(root: Path) -> Iterator[Line]:
    version = ".".join(map(str, sys.version_info[:3]))
    if tuple(sys.version_info) >= (3, 11):
        yield OK, f"Python {version}, {sys.executable}", ""
    else:
        yield PROBLEM, f"Python {version} is too old", "install Python 3.11 or newer"
    if sys.maxsize < 2**32:
        yield PROBLEM, "this Python has 32 bit, PyTorch needs 64", "install a 64-bit Python"


def check_packages(root: Path) -> Iterator[Line]:
    pins = re.findall(r"^([\w.-]+)==([^\s;#]+)", (root / "requirements.txt").read_text(encoding="utf-8"), re.M)
    different = []
    for name, tested in pins:
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield PROBLEM, f"{name} is not installed", INSTALL
            continue
        if found.split("+")[0] != tested:
            different.append(f"{name} {found} (tested: {tested})")
    if different:
        yield (
            NOTE,
            "other versions than the tested ones: " + ", ".join(different),
            f"if something fails: {INSTALL}",
        )
    else:
        yield OK, f"packages: {len(pins)} in requirements.txt, none at another version", ""


def check_torch(root: Path) -> Iterator[Line]:
    try:
        import torch

        total = torch.ones(2, 3).sum().item()
    except Exception as error:  # a broken installation raises anything: ImportError, OSError, RuntimeError
        todo = f"{START} setup --rebuild"
        if os.name == "nt":
            todo += "; if that does not help, install the Microsoft Visual C++ Redistributable"
        yield PROBLEM, f"PyTorch does not work: {str(error).splitlines()[0] if str(error) else error!r}", todo
        return
    threads = f"{torch.get_num_threads()} of {os.cpu_count()} threads"
    yield (OK if total == 6 else PROBLEM), f"PyTorch {torch.__version__} calculates, {threads}", ""


def check_package_path(root: Path) -> Iterator[Line]:
    used = Path(__file__).resolve().parents[1]
    if used == root:
        yield OK, f"course_utils is used from {used}", ""
    else:
        yield (
            PROBLEM,
            f"course_utils is used from {used}, but the course is in {root}",
            f"pip install -e {root}",
        )


def check_kernel(root: Path) -> Iterator[Line]:
    if importlib.util.find_spec("ipykernel") is None or importlib.util.find_spec("jupyter_client") is None:
        yield PROBLEM, "there is no Python kernel for notebooks (ipykernel)", INSTALL
        return
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # as `course lab` does, read at import
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        yield (
            PROBLEM,
            "the kernel python3 of the notebooks is not found",
            "python -m ipykernel install --sys-prefix",
        )
        return
    program = spec.argv[0]
    # jupyter_client replaces a bare "python" by the interpreter that runs JupyterLab
    same = program in {"python", "python3"} or (Path(program).parent.resolve() == Path(sys.executable).parent.resolve())
    if same:
        yield OK, f"notebooks run with {sys.executable}", ""
    else:
        yield (
            PROBLEM,
            f"notebooks would run with {program}, not with {sys.executable}",
            f"delete the kernel in {spec.resource_dir} or run: python -m ipykernel install --sys-prefix",
        )


def data_folder() -> Path:
    given = os.environ.get("COURSE_DATA", "").strip()
    if given:
        return Path(given).expanduser()
    import platformdirs

    return platformdirs.user_data_path("attention-course")


def check_folders(root: Path) -> Iterator[Line]:
    for what, folder, variable in (
        ("your notebooks", work_folder(root), "COURSE_WORK"),
        ("your finished parts", data_folder(), "COURSE_DATA"),
    ):
        existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
        try:
            with tempfile.TemporaryFile(dir=existing):
                yield OK, f"{what}: {folder} can be written", ""
        except OSError as error:
            todo = f"set {variable} to a folder of your own"
            yield PROBLEM, f"{what}: {folder} cannot be written ({error.strerror})", todo
    free = shutil.disk_usage(root).free / 1e9
    level = OK if free > 0.5 else PROBLEM
    yield level, f"{free:.1f} GB of disk space are free", "" if level == OK else "free some space"


def check_notebooks(root: Path) -> Iterator[Line]:
    from course_utils.lab import fingerprint, number, read_origins

    notebooks = shipped_notebooks(root)
    if not notebooks:
        yield PROBLEM, f"there are no notebooks in {root / 'notebooks'}", f"{START} build"
        return
    yield OK, f"{len(notebooks)} notebooks in {root / 'notebooks'}", ""
    work = work_folder(root)
    origins = read_origins(work)
    for notebook in notebooks:
        if (work / notebook.name).exists() and origins.get(notebook.name, "") not in {
            "",
            fingerprint(notebook),
        }:
            todo = f"{START} reset {number(notebook)}   (keeps yours beside it)"
            yield NOTE, f"{notebook.name} has a newer version than your copy", todo


def check_freshness(root: Path) -> Iterator[Line]:
    if importlib.util.find_spec("jupytext") is None or not any((root / "lessons").glob("*.py")):
        return  # a student has neither the lessons nor the tools to build them
    from course_utils import authoring

    problems = authoring.check(root)
    for problem in problems:
        yield PROBLEM, problem, f"{START} build"
    if not problems:
        yield OK, "notebooks/ and solutions/ are as the lessons say", ""


def check_switches(root: Path) -> Iterator[Line]:
    for name, effect in (
        ("COURSE_SMOKE", "little data and training, no claim is judged"),
        ("COURSE_STRICT", "a claim that does not hold stops a notebook"),
    ):
        if os.environ.get(name, "").strip().lower() not in {"", "0", "false", "no", "off"}:
            yield NOTE, f"{name} is set: {effect}", f"unset {name} unless that is what you want"


CHECKS: tuple[Callable[[Path], Iterator[Line]], ...] = (
    check_python,
    check_packages,
    check_torch,
    check_package_path,
    check_kernel,
    check_folders,
    check_notebooks,
    check_freshness,
    check_switches,
)


def examine(check: Callable[[Path], Iterator[Line]], root: Path) -> list[Line]:
    """The lines of one check; a check that fails itself is a problem too, never a traceback."""
    lines: list[Line] = []
    try:
        lines.extend(check(root))
    except Exception as error:
        name = check.__name__.removeprefix("check_").replace("_", " ")
        lines.append((PROBLEM, f"{name}: {type(error).__name__}: {error}", INSTALL))
    return lines


def doctor() -> int:
    """Print a line for every check; returns 1 if there is a problem, else 0."""
    try:
        root = course_root()
    except CourseError as error:
        print(f"{PROBLEM:8}{error}")
        return 1
    problems = 0
    for check in CHECKS:
        for level, found, todo in examine(check, root):
            problems += level == PROBLEM
            print(f"{level:8}{found}" + (f"\n        -> {todo}" if todo else ""), flush=True)
    print(f"\n{problems} problem{'s' * (problems != 1)} found." if problems else "\nNo problem found.")
    return 1 if problems else 0
