"""Run a solved notebook, and say where in the lesson it failed when it does."""

import copy
import os
import re
from pathlib import Path

from .errors import BuildError
from .files import keep_outputs
from .notebook import EXERCISE_POINTS, Lines

CELL_SECONDS = 600
SHOWN_LINES = 12
ANSI = re.compile(r"\x1b\[[0-9;]*m")
AT_LINE = re.compile(r"Cell In\[(\d+)\], line (\d+)")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def kernel_environment(root: Path) -> dict[str, str]:
    """The environment of the kernel: claims are judged, nothing is remembered, the package is `root`'s."""
    environment = {**os.environ, "COURSE_STRICT": "1", "COURSE_REMEMBER": "0"}
    environment.pop("COURSE_SMOKE", None)
    path = os.environ.get("PYTHONPATH")
    environment["PYTHONPATH"] = str(root) + (os.pathsep + path if path else "")
    return environment


def execute(notebook: dict, root: Path, file: str, lines: Lines) -> None:
    """Run the cells of `notebook` in the folder solutions/ and put outputs and execution counts into it.

    file and lines (see `Notebooks.lines`) say where the cells come from. Raises BuildError when a cell fails,
    takes too long or takes the kernel down, or when the solution does not earn every point; the message names
    the lesson and the line.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    running: list = []
    # nbclient writes more than outputs into a notebook: it gets a copy.
    executed = copy.deepcopy(notebook)
    client = NotebookClient(
        executed,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        store_widget_state=False,
        record_timing=False,
        resources={"metadata": {"path": str(root / "solutions")}},
        on_cell_execute=lambda cell, cell_index: running.append(cell),
    )
    try:
        client.execute(env=kernel_environment(root))
    except CellExecutionError as error:
        trace = ANSI.sub("", error.traceback).rstrip()
        # The deepest frame in this cell; functions of earlier cells have another number.
        frames = [int(line) for count, line in AT_LINE.findall(trace) if int(count) == len(running)]
        at = frames[-1] if frames else 0
        what = f"the solution does not run: {error.ename}: {error.evalue}"
        raise failure(running[-1], file, lines, what, at=at, trace=trace) from None
    except CellTimeoutError:
        what = f"the solution does not run: more than {CELL_SECONDS} seconds in one cell"
        raise failure(running[-1], file, lines, what) from None
    except RuntimeError as error:  # the kernel died, or never came up
        if not running:
            raise BuildError(f"{file}: the kernel did not start: {error}") from None
        what = "the solution does not run: the kernel died (out of memory?)"
        raise failure(running[-1], file, lines, what) from None
    for cell in executed["cells"]:
        for output in cell.get("outputs", ()):
            # A live view needs the state of the run, which is not kept; what remains is its static form.
            output.get("data", {}).pop(WIDGET_VIEW, None)
    require_full_points(executed, file, lines)
    keep_outputs(executed, notebook)


def require_full_points(notebook: dict, file: str, lines: Lines) -> None:
    """Raise BuildError unless nbgrader gives every check of an executed solution all its points.

    nbgrader gives nothing to a cell that wrote to stderr: a warning during a check would cost students all.
    """
    from nbgrader.utils import determine_grade

    for cell in notebook["cells"]:
        metadata = cell["metadata"].get("nbgrader")
        if cell["cell_type"] != "code" or not metadata or metadata["solution"]:
            continue
        graded = copy.deepcopy(cell)
        # An optional exercise has no points in the gradebook, but its solution must be right all the same.
        graded["metadata"]["nbgrader"].update(grade=True, points=metadata.get("points", EXERCISE_POINTS))
        score, most = determine_grade(graded)
        if score != most:
            shown = "\n".join(_text(output) for output in cell["outputs"])
            what = f"the solution earns {score:g} of {most:g} points (and 0 if the check writes to stderr)"
            raise failure(cell, file, lines, what, trace=shown)


def _text(output: dict) -> str:
    return str(output.get("text") or output.get("data", {}).get("text/plain", ""))


def failure(cell: dict, file: str, lines: Lines, what: str, *, at: int = 0, trace: str = "") -> BuildError:
    """The error for a cell of the solution: where it stands (its line `at`, from 1) and what it printed."""
    number, numbers = lines[cell["id"]]
    if 1 <= at <= len(numbers):
        number = numbers[at - 1]
    rows = [f"    {'>' if i == at else ' '} {row}" for i, row in enumerate(cell["source"].splitlines(), 1)]
    first = max(0, at - SHOWN_LINES // 2)
    shown = [f"      {row}" for row in trace.splitlines()[-SHOWN_LINES:]]
    return BuildError(
        "\n".join(
            [
                f"{file}:{number}: {what}",
                f"  the cell ({cell['id']}):",
                *rows[first : first + SHOWN_LINES],
                *(["  the end of what it printed:", *shown] if shown else []),
                "  The solution that was there stays as it is. Edit the lesson, then build again.",
            ]
        )
    )
