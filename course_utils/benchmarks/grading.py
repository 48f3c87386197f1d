"""How fast a class is graded: 300 submissions of lesson 02, and twelve of them by `nbgrader autograde` as well.

Both grade the same files in the same run. nbgrader executes whole notebooks, one after another, with training cut short
(COURSE_SMOKE); the course's grader runs the exercises only, in a sandbox, with a worker for each core.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from course_utils.folders import CourseError, course_root
from course_utils.plots import table

LESSON = "02_attention"
CLASS, BOTH = 300, 12
BUDGET_SECONDS, BUDGET_RATIO = 60, 50
WRONG = {  # what students write: a mistake in one exercise each
    "additive_attention": (
        "def additive_attention(query, keys, W_q, W_k, v, mask=None):\n"
        "    scores = torch.tanh((query @ W_q)[:, None] + keys @ W_k) @ v\n"
        "    weights = scores.softmax(dim=0)\n"
        "    return (weights[..., None] * keys).sum(1), weights\n"
    ),
    "decode_step": (
        "def decode_step(y_emb, h, enc_out, enc_mask, p):\n"
        "    weights = (enc_out @ h[..., None]).squeeze(-1).softmax(dim=-1)\n"
        "    c = (weights[..., None] * enc_out).sum(1)\n"
        "    new = torch.tanh(torch.cat([y_emb, c], -1) @ p['W_x'] + h @ p['W_h'] + p['b'])\n"
        "    return torch.cat([new, c], -1) @ p['W_o'] + p['b_o'], new, weights\n"
    ),
    "scaled_dot_product_attention": (
        "def scaled_dot_product_attention(q, k, v, mask=None):\n"
        "    weights = (q @ k.transpose(-2, -1)).softmax(dim=-1)\n"
        "    return weights @ v, weights\n"
    ),
}


def submissions(number: int) -> list[bytes]:
    """Files of a class: of six, three are right, two have a mistake, one has two exercises left out."""
    root = course_root()
    stub = json.loads((root / "notebooks" / f"{LESSON}.ipynb").read_text(encoding="utf-8"))
    solved = json.loads((root / "solutions" / f"{LESSON}.ipynb").read_text(encoding="utf-8"))
    right = {cell["id"]: cell["source"] for cell in solved["cells"]}
    names = list(WRONG)
    found = []
    for i in range(number):
        book = json.loads(json.dumps(stub))
        for cell in book["cells"]:
            marks = cell["metadata"].get("nbgrader", {})
            name = marks.get("grade_id", "")
            if not marks.get("solution") or (i % 6 == 5 and name in names[:2]):
                continue
            cell["source"] = WRONG[name] if i % 6 in (1, 3) and name == names[i % 3] else right[cell["id"]]
        book["metadata"]["student"] = i  # no two files are the same
        found.append(json.dumps(book).encode())
    return found


def whole_command(files: list[bytes], folder: Path) -> float:
    """Seconds of `course grade` on these files, from the start of Python to the last file written."""
    for i, data in enumerate(files):
        place = folder / "class" / f"s{i:03d}"
        place.mkdir(parents=True)
        (place / f"{LESSON}.ipynb").write_bytes(data)
    command = [sys.executable, "-m", "course_utils.cli", "grade", folder / "class", "--out", folder / "graded"]
    started = time.monotonic()
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CourseError(f"course grade ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return time.monotonic() - started


def grader_alone(files: list[bytes]) -> float:
    """Seconds for a submission by the grader, once it runs: what a larger class adds."""
    from course_utils.grading.model import Submission
    from course_utils.grading.pool import default_jobs, grade_all

    warm = default_jobs()
    each = [Submission(f"s{i}", LESSON, data, "") for i, data in enumerate((files * 10)[: warm + 10 * len(files)])]
    times = [time.monotonic() for _ in grade_all(each, secret=b"a secret of the benchmark")]
    # The first of each worker waits for its start.
    return (times[-1] - times[warm - 1]) / (len(times) - warm)


def nbgrader(files: list[bytes], folder: Path) -> float:
    """Seconds for a submission by `nbgrader autograde`, start-up included."""
    try:
        from nbgrader.apps import NbGraderAPI
        from traitlets.config import Config
    except ImportError:
        raise CourseError('The comparison needs nbgrader: pip install -e ".[author]".') from None
    (folder / "source" / LESSON).mkdir(parents=True)
    source = course_root() / "notebooks" / f"{LESSON}.ipynb"
    (folder / "source" / LESSON / source.name).write_bytes(source.read_bytes())
    for i, data in enumerate(files):
        place = folder / "submitted" / f"s{i:03d}" / LESSON
        place.mkdir(parents=True)
        (place / source.name).write_bytes(data)
    config = Config()
    config.CourseDirectory.root = str(folder)
    config.CourseDirectory.db_url = f"sqlite:///{folder / 'gradebook.db'}"
    config.ClearSolutions.enabled = False
    config.Execute.timeout = 600
    with contextlib.redirect_stderr(io.StringIO()), contextlib.chdir(folder):
        if not NbGraderAPI(config=config).generate_assignment(LESSON)["success"]:
            raise CourseError("nbgrader generate_assignment failed.")
    command = [sys.executable, "-m", "nbgrader", "autograde", LESSON, "--Execute.timeout=600"]
    command += [f"--CourseDirectory.root={folder}", f"--CourseDirectory.db_url={config.CourseDirectory.db_url}"]
    started = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    graded = len(list((folder / "autograded").glob(f"*/{LESSON}/*.ipynb")))
    if graded < len(files):
        raise CourseError(f"nbgrader graded {graded} of {len(files)}:\n{done.stderr[-2000:]}")
    return (time.monotonic() - started) / len(files)


def main() -> int:
    """Print what was measured; 1 if a budget is exceeded."""
    os.environ |= {"COURSE_REMEMBER": "0", "COURSE_SMOKE": "1"}
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    files = submissions(CLASS)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        one = grader_alone(files[:BOTH])
        twelve = whole_command(files[:BOTH], folder / "twelve")
        whole = whole_command(files, folder / "whole")
        theirs = nbgrader(files[:BOTH], folder / "nbgrader")
    rows = [
        ("nbgrader autograde", BOTH, theirs * BOTH, theirs, 1.0),
        ("course grade, start and all files", BOTH, twelve, twelve / BOTH, theirs * BOTH / twelve),
        ("course grade, start and all files", CLASS, whole, whole / CLASS, theirs * CLASS / whole),
        ("course grade, once it runs", BOTH, one * BOTH, one, theirs / one),
    ]
    header = ("", "submissions", "seconds", "seconds each", "throughput")
    print(repr(table(rows, header, caption=f"Grading lesson {LESSON} on {os.cpu_count()} cores")))
    fast, ahead = whole <= BUDGET_SECONDS, theirs / one >= BUDGET_RATIO
    print(f"\n{CLASS} submissions: {'within' if fast else 'OVER'} the budget of {BUDGET_SECONDS} s")
    print(f"throughput beside nbgrader: {'within' if ahead else 'UNDER'} the budget of {BUDGET_RATIO} times")
    return int(not (fast and ahead))
