"""What the class as a whole can and cannot do: misconceptions, points by exercise, questions."""

from collections import Counter
from statistics import mean

from course_utils.checks import EXERCISES
from course_utils.grading.feedback import question_rows
from course_utils.grading.model import ExerciseResult, Result
from course_utils.grading.page import esc, folded, inline, points, table
from course_utils.grading.records import Records
from course_utils.questions import load

BINS = 10
NAMES = 60  # students listed by name


def misconceptions(records: Records) -> str:
    """What to teach again: each misconception with how many students hold it."""
    who: dict[tuple[str, str], list[str]] = {}
    for result in records.results:
        for part in result.exercises:
            for name in dict.fromkeys(part.misconceptions):
                who.setdefault((part.exercise, name), []).append(result.student)
    title = "<h2>What the class holds: to teach again</h2>"
    if not who:
        return f"{title}<p>No answer shows a misconception of the catalogue.</p>"
    handed_in = Counter(part.exercise for result in records.results for part in result.exercises if _judged(part))
    rows = []
    for (exercise, name), students in sorted(who.items(), key=lambda item: (-len(item[1]), item[0])):
        share = len(students) / max(1, handed_in[exercise])
        rows.append(
            [
                f"{len(students)} <small>({share:.0%})</small>",
                f"<code>{esc(exercise)}</code>",
                inline(sentence(exercise, name)) + folded("who", f"<p>{_list(students)}</p>"),
            ]
        )
    return f"{title}{table(['students', 'exercise', 'what their code shows'], rows, 'misconceptions', (0,))}"


def sentence(exercise: str, name: str) -> str:
    """What the catalogue says about a misconception; its id, if it is not in this version of the course."""
    known = EXERCISES[exercise].misconceptions if exercise in EXERCISES else ()
    return next((m.says for m in known if m.id == name), name)


def distribution(records: Records) -> str:
    """Points of each part: how many have all, some, none, and a picture of it."""
    blocks = []
    for notebook in records.notebooks:
        results = [result for result in records.results if result.notebook == notebook]
        rows = [_distribution_row(name, parts) for name, parts in _by_part(results).items()]
        header = ["part", "of", "mean", "all", "some", "none", "no number", "distribution, from none to all"]
        blocks.append(
            table(header, rows, f"{esc(notebook)}, {len(results)} submissions", (1, 2, 3, 4, 5, 6), shown=True)
        )
    return f"<h2>Points by exercise</h2>{''.join(blocks)}" if blocks else ""


def _by_part(results: list[Result]) -> dict[str, list[ExerciseResult]]:
    parts: dict[str, list[ExerciseResult]] = {}
    for result in results:
        for part in result.exercises:
            parts.setdefault(part.exercise, []).append(part)
    return parts


def _distribution_row(name: str, parts: list[ExerciseResult]) -> list[str]:
    most = max(part.max_points for part in parts)
    known = [part.points for part in parts if part.points is not None]
    full, none = sum(p >= most for p in known), sum(p == 0 for p in known)
    return [
        f"<code>{esc(name)}</code>",
        points(most),
        points(mean(known)) if known else "–",  # noqa: RUF001
        str(full),
        str(len(known) - full - none) if most else "0",
        str(none),
        str(len(parts) - len(known)),
        _histogram(known, most),
    ]


def _histogram(known: list[float], most: float) -> str:
    if not known or not most:
        return ""
    counts = Counter(min(BINS, int(BINS * p / most)) for p in known)
    high = max(counts.values())
    words = ", ".join(f"{counts[i]} with {100 * i // BINS} %" for i in sorted(counts))
    bars = "".join(f'<i style="height:{round(100 * counts[i] / high)}%"></i>' for i in range(BINS + 1))
    return f'<div class="hist" role="img" aria-label="{words}">{bars}</div>'


def questions(records: Records) -> str:
    """How many got each question right, the hardest first."""
    right, asked = Counter(), Counter()
    for result in records.results:
        for part in result.exercises:
            for row in question_rows(part.report):
                asked[row["question"]] += 1
                right[row["question"]] += bool(row["right"])
    if not asked:
        return ""
    texts = load()
    order = sorted(asked, key=lambda q: (right[q] / asked[q], q))
    rows = [
        [
            esc(q),
            f"{right[q]} of {asked[q]}",
            f'<span class="bar" style="width:{6 * right[q] / asked[q]:.2f}rem" aria-hidden="true"></span>',
            inline(texts.get(q, {}).get("text", "")) + " …",
        ]
        for q in order
    ]
    return (
        f"<h2>Questions, the hardest first</h2>{table(['question', 'right', '', 'its text'], rows, 'questions', (1,))}"
    )


def _judged(part: ExerciseResult) -> bool:
    return part.points is not None


def _list(students: list[str]) -> str:
    more = f" and {len(students) - NAMES} more" if len(students) > NAMES else ""
    return esc(", ".join(sorted(students)[:NAMES])) + more
