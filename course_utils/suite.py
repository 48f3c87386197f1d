"""`course test`: every check of the course in one run, with one summary."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from course_utils.folders import START, CourseError

NEEDED = ("pytest", "xdist", "nbval", "hypothesis", "beartype", "ruff", "jupytext")
NO_TESTS = 5  # pytest's exit code when it found nothing to run


@dataclass
class Result:
    """What one stage of the run came to."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    note: str = ""
    seconds: float = 0.0


def suite_environment(data: Path, smoke: bool = False) -> dict[str, str]:
    """One thread, strict claims, nothing remembered: what every process of the suite is started with."""
    env = dict(os.environ, OMP_NUM_THREADS="1", COURSE_STRICT="1", COURSE_REMEMBER="0", COURSE_DATA=str(data))
    env.update(JUPYTER_PREFER_ENV_PATH="1", COURSE_SMOKE="1" if smoke else "0")
    return env


def workers() -> str:
    """How many processes to test with: notebooks keep one core each busy, and take about 1 GB."""
    return str(max(1, min(4, os.cpu_count() or 1)))


def run_freshness(root: Path) -> Result:
    from course_utils import authoring

    try:
        problems = authoring.check(root)
    except authoring.BuildError as error:
        problems = [str(error)]
    print("\n".join(problems) if problems else "Everything generated is fresh.", flush=True)
    return Result("build --check", passed=not problems, failed=bool(problems))


def run_ruff(root: Path, *arguments: str) -> Result:
    code = subprocess.call([sys.executable, "-m", "ruff", *arguments, "."], cwd=root)
    return Result("ruff " + " ".join(arguments), passed=code == 0, failed=code != 0)


def read_counts(report: Path) -> tuple[int, int, int]:
    """(passed, failed, skipped) from pytest's JUnit report."""
    passed = failed = skipped = 0
    for suite in ET.parse(report).getroot().iter("testsuite"):
        tests, bad, out = (
            int(suite.get("tests", 0)),
            int(suite.get("failures", 0)) + int(suite.get("errors", 0)),
            int(suite.get("skipped", 0)),
        )
        passed, failed, skipped = passed + tests - bad - out, failed + bad, skipped + out
    return passed, failed, skipped


def run_pytest(name: str, root: Path, arguments: list[str], env: dict[str, str]) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", "--durations=25", "-n", workers()]
        command += arguments
        code = subprocess.call(command, cwd=root, env=env)
        if code == NO_TESTS:
            return Result(name, failed=1, note="no test was found")
        if not report.exists():
            return Result(name, failed=1, note=f"pytest ended with code {code}")
        passed, failed, skipped = read_counts(report)
    if code and not failed:  # the run broke off: that must not look like success
        return Result(name, passed, 1, skipped, f"pytest ended with code {code}")
    return Result(name, passed, failed, skipped)


def run_units(root: Path, fast: bool, arguments: list[str], env: dict[str, str]) -> Result:
    """The tests in tests/, or those that the arguments name."""
    named = any(not word.startswith("-") and (root / word.split("::")[0]).exists() for word in arguments)
    chosen = ["--fast"] * fast + arguments + ([] if named else ["tests"])
    return run_pytest("pytest", root, chosen, env)


def run_notebooks(root: Path, folder: str, env: dict[str, str]) -> Result:
    """Every notebook of a folder from top to bottom, cell by cell."""
    if not any((root / folder).glob("*.ipynb")):
        return Result(f"nbval {folder}/", skipped=1, note=f"there is no notebook in {folder}/")
    options = ["--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=300", "--dist", "loadscope"]
    return run_pytest(f"nbval {folder}/", root, [*options, "-p", "no:cacheprovider", folder], env)


def summary(results: list[Result], fast: bool) -> str:
    """A table of the stages; the last line is the total, in the form pytest uses."""
    lines = ["", f"{'stage':<22}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}"]
    for r in results:
        note = f"  {r.note}" if r.note else ""
        lines.append(f"{r.name:<22}{r.passed:>8}{r.failed:>8}{r.skipped:>9}{r.seconds:>9.0f}{note}")
    if fast:
        lines.append("NOT RUN because of --fast: nbval on notebooks/ and solutions/, tests of notebooks and browsers.")
    failed = [r.name for r in results if r.failed]
    if failed:
        lines.append("FAILED: " + ", ".join(failed))
    total = [sum(getattr(r, kind) for r in results) for kind in ("passed", "failed", "skipped")]
    lines.append("{} passed, {} failed, {} skipped".format(*total))
    return "\n".join(lines)


def run_suite(root: Path, fast: bool, arguments: list[str]) -> int:
    """Run every stage, whatever becomes of the others; returns 1 if anything failed, else 0."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise CourseError(
            f"The test suite needs {', '.join(missing)}.\n"
            f"In the folder of the course:  {START} test\n"
            'or, in an environment of your own:  pip install -e ".[test]"'
        )
    results = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        stages = [
            ("generated files are fresh", lambda: run_freshness(root)),
            ("code format", lambda: run_ruff(root, "format", "--check")),
            ("code rules", lambda: run_ruff(root, "check")),
            ("tests", lambda: run_units(root, fast, arguments, suite_environment(data))),
        ]
        if not fast:
            # The claims are judged once, in the solved run; the students' form is tested for structure.
            stages += [
                ("solved notebooks", lambda: run_notebooks(root, "solutions", suite_environment(data))),
                (
                    "students' notebooks",
                    lambda: run_notebooks(root, "notebooks", suite_environment(data, smoke=True)),
                ),
            ]
        for position, (title, stage) in enumerate(stages, start=1):
            print(f"\n=== {position}/{len(stages)} {title}", flush=True)
            began = time.monotonic()
            result = stage()
            result.seconds = time.monotonic() - began
            results.append(result)
    print(summary(results, fast), flush=True)
    return 1 if any(r.failed for r in results) else 0
