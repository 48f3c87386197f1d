"""The sections about single students: what a person has to look at, who is alike, notes on files, everybody."""

import json
from pathlib import Path

from course_utils.folders import course_root
from course_utils.grading.feedback import feedback_path
from course_utils.grading.intake import Line
from course_utils.grading.lesson import WRITTEN, lesson, source_of
from course_utils.grading.model import NEEDS_REVIEW, UNREADABLE
from course_utils.grading.page import esc, folded, inline, points, table
from course_utils.grading.records import Records, waiting_answers
from course_utils.grading.similarity import Alike, alike

ANSWERS = 400  # written answers that are shown on the page; all are in to_mark.csv
SHOWN = 6000  # characters of one side
HERE = Path()  # links are relative to the page

CAUTION = (
    "Names, comments and layout do not count; what the course hands out, its own solution and what many students write "
    "are taken away first. So two right one-liners are not listed. A listed pair is a reason to look and to ask, "
    "not a proof: students who worked together in class write alike."
)


def human_eye(records: Records, strangers: list[str], unknown: list[Line]) -> str:
    """Everything that no program should decide."""
    blocks = []
    failed = [r for r in records.results if r.state == NEEDS_REVIEW]
    if failed:
        rows = []
        for result in failed:
            parts = [
                p for p in result.exercises if p.state == NEEDS_REVIEW and p.exercise not in _written(result.notebook)
            ]
            why = "<br>".join(f"<code>{esc(p.exercise)}</code>: {inline(p.reason)}" for p in parts) or "no part named"
            rows.append([esc(result.student, 200), esc(result.notebook), why])
        blocks.append(
            "<h3>The grader could not finish these</h3><p>The next run of the same command tries them again.</p>"
        )
        blocks.append(table(["student", "lesson", "why"], rows, "to review"))
    unreadable = [r for r in records.results if r.state == UNREADABLE]
    if unreadable:
        rows = [
            [
                esc(r.student, 200),
                esc(r.notebook),
                inline(r.exercises[0].reason if r.exercises else ""),
                esc(r.origin, 300),
            ]
            for r in unreadable
        ]
        blocks.append("<h3>Files that could not be read</h3>")
        blocks.append(table(["student", "lesson", "why", "file"], rows, "unreadable files"))
    if unknown:
        rows = [[esc(line.origin, 300), esc(line.why, 500)] for line in unknown[:ANSWERS]]
        blocks.append(
            "<h3>Notebooks that belong to nobody, or to no lesson</h3>" + table(["file", "why"], rows, "not understood")
        )
    if strangers:
        names = esc(", ".join(strangers[:ANSWERS]))
        blocks.append(
            f"<h3>Not on the roster</h3><p>{len(strangers)} handed in something and match no student of the roster; "
            f"they were graded under the name that the platform gives them: {names}.</p>"
        )
    if records.missing:
        rows = [[esc(s, 200), esc(_name(records, s)), esc(n)] for s, n in records.missing]
        blocks.append(
            folded(f"Not submitted: {len(rows)}", table(["student", "name", "lesson"], rows, "not submitted"))
        )
    blocks.append(_written_section(records))
    found = "".join(blocks)
    return f"<h2>What needs a human eye</h2>{found or '<p>Nothing.</p>'}"


def _written_section(records: Records) -> str:
    blocks = []
    waiting = waiting_answers(records.results)
    for notebook in records.notebooks:
        for part in (p for p in lesson(notebook).graded if p.kind == WRITTEN):
            answers = [(r, text) for r, p, text in waiting if r.notebook == notebook and p.exercise == part.name]
            if not answers:
                continue
            guide = marking_guide(notebook, part.cell)
            question = lesson(notebook).by_grade_id.get(f"{part.cell}_question")
            shown = "".join(
                f'<h4>{esc(result.student, 200)}</h4><p class="text">{esc(text) or "<em>nothing written</em>"}</p>'
                for result, text in answers[:ANSWERS]
            )
            more = f"<p>All {len(answers)} are in to_mark.csv.</p>" if len(answers) > ANSWERS else ""
            blocks.append(
                f"<h3>Written answers: {esc(part.name)}, {points(part.max_points)} points, {len(answers)} to mark</h3>"
                + (folded("The question", f'<p class="text">{esc(question.source)}</p>') if question else "")
                + folded("Marking guide", f'<p class="text">{esc(guide)}</p>')
                + folded(f"The {len(answers)} answers", shown + more)
            )
    if blocks:
        blocks.append(
            "<p>To mark them: save to_mark.csv as marks.csv in the same folder, fill in the column points (and "
            "comment), and run the same command again.</p>"
        )
    return "".join(blocks)


def marking_guide(notebook: str, cell: str) -> str:
    """The marking guide of a written question, from solutions/; a sentence where that is not there."""
    path = course_root() / "solutions" / f"{notebook}.ipynb"
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = [source_of(c) for c in cells if c["metadata"].get("nbgrader", {}).get("grade_id") == cell]
        return texts[0].replace("**Marking guide**", "").strip()
    except (OSError, ValueError, KeyError, IndexError):
        return f"The marking guide is in solutions/{notebook}.ipynb, which is not here."


def alike_section(records: Records) -> str:
    """Pairs of submissions that are more alike than the exercise makes them, side by side."""
    blocks = []
    for notebook in records.notebooks:
        here = [s for s in records.stored if s.result.notebook == notebook]
        code = {s.result.student: s.code for s in here}
        written = {s.result.student: s.result.written for s in here}
        pairs = [(pair, code) for pair in alike(code, _given(notebook))]
        pairs += [(pair, written) for pair in alike(written, (), written=True)]
        blocks += [_pair(notebook, pair, texts) for pair, texts in pairs]
    body = "".join(blocks) or "<p>None.</p>"
    return f"<h2>Submissions that are alike</h2><p>{CAUTION}</p>{body}"


def _pair(notebook: str, pair: Alike, texts: dict[str, dict[str, str]]) -> str:
    sides = ""
    for student in (pair.first, pair.second):
        text = esc(texts[student].get(pair.part, ""), SHOWN)
        sides += f'<div><strong>{esc(student, 200)}</strong><pre tabindex="0">{text}</pre></div>'
    summary = (
        f"{esc(pair.first, 200)} and {esc(pair.second, 200)}, {esc(notebook)}: {pair.share:.0%} of what is uncommon, "
        f"most of it in <code>{esc(pair.part)}</code>"
    )
    return folded(summary, f'<div class="two">{sides}</div>')


def _given(notebook: str) -> list[str]:
    """The lesson's own code, handed out or solved."""
    texts = [cell.source for cell in lesson(notebook).cells if cell.kind == "code"]
    try:
        cells = json.loads((course_root() / "solutions" / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
        texts += [source_of(cell) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, KeyError):
        pass
    return texts


def students_section(records: Records) -> str:
    """Everybody with their points, and the way to their feedback."""
    rows = []
    for student in records.students:
        cells = [esc(student, 200), esc(_name(records, student))]
        for notebook in records.notebooks:
            total = records.totals.get((student, notebook))
            if total is None or total.points is None:
                shown = esc(total.state if total else "")
            else:
                shown = f"{points(total.points)} / {points(total.max_points)}{' +' if total.waiting else ''}"
            if total is not None and total.state != "not submitted":
                path = feedback_path(HERE, student, notebook).as_posix()
                shown = f'<a href="{esc(path, 400)}">{shown}</a>'
            cells.append(shown)
        percent = records.percent(student, complete=False)
        rows.append([*cells, "" if percent is None else f"{percent:g} %"])
    header = ["student", "name", *(esc(n) for n in records.notebooks), "so far"]
    body = table(
        header, rows, "points after the late policy; + means that a written answer is not marked yet", shown=True
    )
    return f"<h2>Students</h2>{folded(f'all {len(rows)}', body)}"


def notes_section(records: Records) -> str:
    """What was odd about files, and what was done about it."""
    noted = [r for r in records.results if r.notes]
    if not noted:
        return ""
    rows = [
        [
            esc(r.student, 200),
            esc(r.notebook),
            "<br>".join(inline(n) for n in r.notes[:10]) + (" …" if len(r.notes) > 10 else ""),
        ]
        for r in noted
    ]
    body = table(["student", "lesson", "notes"], rows, "notes")
    return f"<h2>What was odd about files</h2>{folded(f'{len(noted)} submissions', body)}"


def _written(notebook: str) -> set[str]:
    return {part.name for part in lesson(notebook).graded if part.kind == WRITTEN}


def _name(records: Records, student: str) -> str:
    person = records.people.get(student)
    return person.name if person else ""
