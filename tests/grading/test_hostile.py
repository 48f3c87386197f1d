"""Submissions of all sorts: each ends in the state, with the points and the reason, that a fair teacher would give.

And none does harm: nothing is read, written, sent or left behind.
"""

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from course_utils.grading.executor import Grader
from course_utils.grading.model import Submission
from grading import corpus

SECONDS = 3.0
ROOT = Path(__file__).parents[2]
needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


@pytest.fixture(scope="module")
def grader():
    with Grader(b"a secret", SECONDS) as grader:
        yield grader


def grade(grader, raw, notebook=corpus.NOTEBOOK):
    return grader.grade(Submission("ann", notebook, raw, "ann.ipynb"))


def points(result):
    return {part.exercise: part.points for part in result.exercises if not part.exercise.startswith("written_")}


def everything(result):
    return str(result.to_dict())


QUICK = (*corpus.ORDINARY, *corpus.FILES, *corpus.TRICKS)
SLOW = (*corpus.ENDLESS, *corpus.CRASHES)
CASES = [
    *(pytest.param(odd, id=odd.name) for odd in QUICK),
    *(pytest.param(odd, id=odd.name, marks=pytest.mark.slow) for odd in SLOW),
]


@pytest.mark.parametrize("odd", CASES)
def test_ends_in_the_state_that_is_fair(grader, odd):
    result = grade(grader, odd.raw, odd.notebook)
    assert result.state == odd.state, everything(result)
    assert points(result) == odd.expected, everything(result)
    for part in odd.says:
        assert part in everything(result)
    assert all(part.reason for part in result.exercises)


def fingerprint(folder):
    """Of every file below a folder: name, content and time."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        whole.update(f"{path}{path.lstat().st_mtime_ns}".encode())
        whole.update(path.read_bytes() if path.is_file() else b"")
    return whole.hexdigest()


def needs_isolation(grader):
    if grader.isolation == "none":
        pytest.skip("students' code is not isolated on this machine")


def in_a_cell(source):
    return corpus.with_extra(textwrap.dedent(source))


def test_reads_and_writes_nothing_outside(grader, tmp_path):
    needs_isolation(grader)
    (tmp_path / "grades.csv").write_text("the secret of the other students", encoding="utf-8")
    before = fingerprint(tmp_path), fingerprint(ROOT / "notebooks"), fingerprint(ROOT / "course_utils" / "grading")
    source = f"""
        import contextlib, pathlib
        found = []
        for folder in {[str(tmp_path), str(ROOT), str(ROOT / "notebooks"), "/home", "/etc", "/trees", "/course"]}:
            with contextlib.suppress(OSError):
                (pathlib.Path(folder) / "left.txt").write_text("mine")
                found.append(folder)
            with contextlib.suppress(OSError):
                for path in pathlib.Path(folder).iterdir():
                    path.unlink()
        for path in {[str(tmp_path / "grades.csv"), str(ROOT / "solutions"), str(ROOT / "lessons")]}:
            with contextlib.suppress(OSError):
                found.append(pathlib.Path(path).stat() and path)
        raise ValueError(f"found: {{found}}")
        """
    result = grade(grader, in_a_cell(source))
    assert "found: []" in everything(result)
    assert points(result) == corpus.FULL
    after = fingerprint(tmp_path), fingerprint(ROOT / "notebooks"), fingerprint(ROOT / "course_utils" / "grading")
    assert after == before


def test_reaches_no_listener(grader):
    needs_isolation(grader)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.5)
        source = f"""
            import socket
            with socket.socket() as s:
                s.settimeout(1)
                s.connect(("127.0.0.1", {listener.getsockname()[1]}))
            """
        result = grade(grader, in_a_cell(source))
        with pytest.raises(TimeoutError):
            listener.accept()
    assert "OSError" in everything(result) or "refused" in everything(result).lower()


def test_no_solution_can_be_found(grader):
    """Neither the checks' catalogue nor the questions are there, and the tree of no other exercise."""
    needs_isolation(grader)
    source = """
        import pathlib, sys, gc
        files = [str(p) for folder in ("/course", "/trees") for p in pathlib.Path(folder).rglob("*")]
        texts = [p.read_text() for p in pathlib.Path("/course").rglob("*.py")]
        names = [m for m in sys.modules if m.startswith("course_utils")]
        bad = [f for f in files if "questions" in f or "exercises" in f or "trees" in f]
        bad += [n for n in names if n.endswith((".exercises", ".dot_product", ".executor"))]
        bad += ["formula" for t in texts if "weights @ v, weights" in t]
        raise ValueError(f"bad: {bad}, {len(files) > 20}")
        """
    assert "bad: [], True" in everything(grade(grader, in_a_cell(source)))


def test_is_an_ordinary_user_with_little_room(grader):
    needs_isolation(grader)
    source = """
        import os, pathlib, resource
        said = [os.getuid() != 0]
        try:
            for i in range(200): os.posix_spawn("/bin/sleep", ["sleep", "100"], {})
            said.append("many")
        except OSError:
            said.append("few")
        try:
            with open("/scratch/big", "wb") as f:
                for i in range(200): f.write(bytes(2**20))
            said.append("large")
        except OSError:
            said.append("small")
        said.append([p for p in os.listdir("/proc") if p.isdigit()][1:] if os.path.exists("/proc/1") else [])
        raise ValueError(f"said: {said}")
        """
    result = everything(grade(grader, in_a_cell(source)))
    assert "said: [True, 'few', 'small', [" in result, result


def processes(mark):
    """The processes of this machine that have a word in their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                found.append(folder.name)
        except OSError:
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="there is no /proc")
@pytest.mark.parametrize("isolation", ["auto", "none"])
def test_leaves_no_process_behind(isolation):
    mark = f"7{os.getpid()}.5"
    source = f"""
        import subprocess, sys
        for start in (False, True):
            subprocess.Popen(["sleep", "{mark}"], start_new_session=start)
        subprocess.Popen([sys.executable or "python3", "-c", "import time; time.sleep({mark})"], start_new_session=True)
        """
    with Grader(b"a secret", SECONDS, isolation) as grader:
        grade(grader, in_a_cell(source))
        assert not processes(mark)
        everybody = grader.sandbox._process.pid
    assert not Path(f"/proc/{everybody}").exists()


def test_keeps_nothing_for_the_next_student(grader):
    needs_isolation(grader)
    write = "from pathlib import Path\nfor p in ('/scratch', '/dev/shm'): Path(p, 'note').write_text('the answers')"
    read = "import os\nraise ValueError([os.listdir(p) for p in ('/scratch', '/dev/shm')])"
    assert points(grade(grader, in_a_cell(write))) == corpus.FULL
    assert "ValueError: [[], []]" in everything(grade(grader, in_a_cell(read)))


@needs_bubblewrap
@pytest.mark.slow
def test_works_for_an_ordinary_user_too(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("this whole run is that of an ordinary user")
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv, which changes the user, is not installed")
    program = (
        "import sys; sys.path[:0] = ['tests']\nfrom grading import corpus\n"
        "from course_utils.grading.executor import Grader\nfrom course_utils.grading.model import Submission\n"
        "import os\nassert os.getuid() == 65534\n"
        "with Grader(b's', 20.0, 'bubblewrap') as g:\n"
        "    for raw in (corpus.raw(corpus.solved()), corpus.with_body('import os; os._exit(0)')):\n"
        "        r = g.grade(Submission('ann', corpus.NOTEBOOK, raw, 'x'))\n"
        "        print(r.isolation, [e.points for e in r.exercises][:3])\n"
    )
    # Where Python lies in root's own folder, the other user would not find it: a view of the files in which he does.
    homes = {str(Path(p).resolve()) for p in (sys.prefix, sys.base_prefix)}
    view = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/root"]
    for home in sorted(h for h in homes if h.startswith("/root/")):
        for parent in reversed(Path(home).parents[:-2]):
            view += ["--dir", str(parent)]
        view += ["--ro-bind", home, home]
    view += ["--chmod", "0755", "/root", "--cap-add", "ALL"]
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/nonexistent", "TMPDIR": "/tmp"}
    done = subprocess.run(
        [*view, *other, sys.executable, "-c", program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if "bwrap:" in done.stderr and not done.stdout:
        pytest.skip(f"no view of the files for another user: {done.stderr[-300:]}")
    assert done.stdout.split("\n")[:2] == ["bubblewrap [10.0, 10.0, 10.0]", "bubblewrap [10.0, 10.0, 0.0]"], done.stderr
