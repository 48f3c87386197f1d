"""One page for each student and lesson: points, what was observed, hints. No hidden case is in it."""

from pathlib import Path
from typing import Any

from course_utils.checks.report import TIERS
from course_utils.grading.lesson import QUESTIONS, WRITTEN, lesson
from course_utils.grading.model import GRADED, ExerciseResult, Result
from course_utils.grading.names import folder_name
from course_utils.grading.page import esc, folded, inline, page, points, table
from course_utils.grading.records import Records, Total
from course_utils.store import write_atomically

MAX_BYTES = 1_000_000
FINDINGS = 8  # of one exercise
NOTES = 20


def feedback_path(out: Path, student: str, notebook: str) -> Path:
    """Where the page of a student and lesson is."""
    return out / "feedback" / folder_name(student) / f"{notebook}.html"


def write_feedback(out: Path, records: Records) -> int:
    """Write a page for everybody who handed in something; pages that would say the same stay. Their number."""
    for result in records.results:
        path = feedback_path(out, result.student, result.notebook)
        data = feedback_page(result, records.totals[result.student, result.notebook]).encode("utf-8", "replace")
        if not path.exists() or path.read_bytes() != data:
            write_atomically(path, data)
    return len(records.results)


def feedback_page(result: Result, total: Total) -> str:
    """The page of one result."""
    title = f"{result.notebook}: feedback for {result.student}"
    head = [f"<h1>{esc(result.notebook)}</h1>", f"<p>Feedback for <strong>{esc(result.student, 200)}</strong></p>"]
    head.append(f'<div class="card">{_summary(result, total)}</div>')
    if result.notes:
        notes = "".join(f"<li>{inline(note)}</li>" for note in result.notes[:NOTES])
        more = f"<li>and {len(result.notes) - NOTES} more</li>" if len(result.notes) > NOTES else ""
        head.append(f"<h2>About your file</h2><ul>{notes}{more}</ul>")
    body = "".join(_part(result, part) for part in result.exercises)
    whole = page(title, "".join(head) + body)
    if len(whole.encode("utf-8", "replace")) > MAX_BYTES:  # never seen: every text is cut, and their number limited
        whole = page(title, "".join(head) + "<p>Details were left out, because they are too long for a page.</p>")
    return whole


def _summary(result: Result, total: Total) -> str:
    if total.points is None:
        reasons = dict.fromkeys(part.reason for part in result.exercises)
        return "".join(
            [f"<p><strong>No points yet: {esc(result.state)}.</strong></p>", *(f"<p>{inline(r)}</p>" for r in reasons)]
        )
    lines = [f"<p><strong>{points(total.points)} of {points(total.max_points)} points</strong></p>"]
    if total.penalty:
        day = "day" if total.days_late == 1 else "days"
        lines.append(
            f"<p>The file came {total.days_late} {day} late: {100 * total.penalty:g} % of the points earned are taken "
            "off; the points of each part below are without that.</p>"
        )
    if total.waiting:
        lines.append(f"<p>Not in this number yet, because a person looks at it: {esc(', '.join(total.waiting))}.</p>")
    return "".join(lines)


def _part(result: Result, part: ExerciseResult) -> str:
    kinds = {graded.name: graded.kind for graded in lesson(result.notebook).graded}
    kind = kinds.get(part.exercise)
    title = {QUESTIONS: "Questions", WRITTEN: "In your own words"}.get(kind or "", f"<code>{esc(part.exercise)}</code>")
    optional = bool(part.report and part.report.get("optional"))
    earned = (
        f"{points(part.points)} of {points(part.max_points)} points" if part.points is not None else esc(part.state)
    )
    if optional:
        earned = "optional, does not count"
    blocks = [f'<section class="card"><h2 style="margin-top:0">{title} <small>{earned}</small></h2>']
    text = result.written.get(part.exercise, "") if kind == WRITTEN else ""
    if part.reason and (part.state != GRADED or part.report is None) and (text or kind != WRITTEN):
        blocks.append(f"<p>{inline(part.reason)}</p>")
    if kind == WRITTEN:
        blocks.append(
            folded("Your answer", f'<p class="text">{esc(text)}</p>') if text else "<p>You wrote nothing here.</p>"
        )
    elif kind == QUESTIONS:
        blocks.append(question_table(part.report))
    elif part.report:
        blocks.append(_report(part.report))
    blocks.append("</section>")
    return "".join(blocks)


def _report(report: dict[str, Any]) -> str:
    blocks = [f"<p>{esc(report.get('state', ''))}</p>"]
    cases = report.get("cases") or ()
    if cases:
        rows = [
            [
                _mark(c["points"] == c["max_points"]),
                esc(c["name"]),
                inline(c["shows"]),
                f"{points(c['points'])} / {points(c['max_points'])}",
            ]
            for c in cases
        ]
        blocks.append(table(["", "case", "what a right answer does", "points"], rows, "cases", (3,)))
    for finding in (report.get("findings") or ())[:FINDINGS]:
        blocks.append(f"<h3>What was observed</h3><p>{inline(finding['message'])}</p>")
        for number, (tier, hint) in enumerate(zip(TIERS, finding.get("hints") or (), strict=False), 1):
            blocks.append(folded(f"Hint {number}: {tier}", f"<p>{inline(hint)}</p>"))
    blocks += [f"<p>Note: {inline(note)}</p>" for note in (report.get("notes") or ())[:FINDINGS]]
    return "".join(blocks)


def question_table(report: dict[str, Any] | None) -> str:
    """The questions of a lesson: answered, right, and what there is to say about the answer given."""
    rows = [
        [
            esc(row["question"]),
            _mark(bool(row["right"])) if row["answered"] else "not answered",
            inline(row.get("message", "")),
            f"{points(row['points'])} / {points(row['max_points'])}",
        ]
        for row in question_rows(report)
    ]
    return table(["question", "", "about your answer", "points"], rows, "questions", (3,)) if rows else ""


def question_rows(report: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The rows of a report on questions; none if there is no such report."""
    rows = report.get("questions") if isinstance(report, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list | tuple) else []


def _mark(right: bool) -> str:
    return '<span class="good">right</span>' if right else '<span class="warn">not right</span>'
