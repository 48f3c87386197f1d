"""The instructor's page: states, what the class holds, what needs a human eye, what is alike, where every file went."""

import platform
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from course_utils.grading.intake import IGNORED, OLDER, TAKEN, UNKNOWN, Line
from course_utils.grading.model import NOT_SUBMITTED, STATES
from course_utils.grading.page import esc, folded, page, table
from course_utils.grading.records import Records, did_run
from course_utils.grading.report_class import distribution, misconceptions, questions
from course_utils.grading.report_people import alike_section, human_eye, notes_section, students_section
from course_utils.store import write_atomically

LINES = 400  # entries of one kind that are listed


@dataclass(frozen=True)
class Run:
    """What the page says about this run of the command, beside the results."""

    lines: list[Line] = field(default_factory=list)
    platforms: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)


def write_report(out: Path, records: Records, run: Run) -> Path:
    """Write report.html and return its path."""
    path = out / "report.html"
    write_atomically(path, report_page(records, run).encode("utf-8", "replace"))
    return path


def report_page(records: Records, run: Run) -> str:
    """The whole page."""
    sections = [
        _states(records),
        _isolation(records),
        human_eye(records, run.strangers, [line for line in run.lines if line.what == UNKNOWN]),
        misconceptions(records),
        distribution(records),
        questions(records),
        alike_section(records),
        students_section(records),
        notes_section(records),
        _files(run),
        _versions(),
    ]
    lessons = ", ".join(records.notebooks) or "nothing"
    return page(f"Report on {lessons}", f"<h1>Report on {esc(lessons)}</h1>{''.join(sections)}")


def _states(records: Records) -> str:
    counts = Counter(result.state for result in records.everything)
    many = len(records.notebooks) > 1
    rows = []
    for state in STATES:
        by_lesson = Counter(r.notebook for r in records.everything if r.state == state)
        where = ", ".join(f"{notebook}: {n}" for notebook, n in sorted(by_lesson.items())) if many else ""
        rows.append([esc(state), str(counts[state]), _meaning(state), esc(where)])
    header = ["state", "submissions", "what it means", "by lesson" if many else ""]
    return f"<h2>States</h2>{table(header, rows, 'states of all submissions', (1,))}"


def _meaning(state: str) -> str:
    return {
        "graded": "points for everything that is marked automatically",
        "needs review": "a part has no number, because the grader could not finish it: a person has to look",
        "unreadable": "the file is no notebook of this lesson; the reason is below and in the feedback",
        NOT_SUBMITTED: "on the roster, no file; not the same as 0 points",
    }[state]


def _isolation(records: Records) -> str:
    kinds = Counter(result.isolation for result in records.results if did_run(result))
    apart = kinds.pop("bubblewrap", 0)
    if not kinds:
        return f"<p>Isolation: bubblewrap, for all {apart} submissions.</p>" if apart else ""
    n = sum(kinds.values())
    return (
        f'<div class="card loud"><p><strong>Isolation: none, for {n} of {n + apart} submissions.</strong> Students\' '
        "code ran as you, with your files and your network; only time and memory were limited. Grade on Linux with "
        "bubblewrap installed, or in a container, unless you trust every file.</p></div>"
    )


def _files(run: Run) -> str:
    if not run.lines:
        return ""
    blocks = [f"<p>{esc('. '.join(run.platforms), 2000)}.</p>"]
    for what in (UNKNOWN, TAKEN, OLDER, IGNORED):
        lines = [line for line in run.lines if line.what == what]
        if lines:
            rows = [[esc(line.origin, 300), esc(line.why, 500)] for line in lines[:LINES]]
            if len(lines) > LINES:
                rows.append([f"and {len(lines) - LINES} more", ""])
            blocks.append(folded(f"{what}: {len(lines)}", table(["entry", "why"], rows, what)))
    return f"<h2>Every file of this run</h2>{''.join(blocks)}"


def _versions() -> str:
    found = [f"Python {platform.python_version()}", platform.system()]
    for name in ("attention-course", "torch"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return f"<h2>Versions</h2><p>{esc(', '.join(found))}</p>"
