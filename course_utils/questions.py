"""The questions of a lesson: `answer` says whether a choice or a number is right, and why.

Right answers and explanations come from checks/questions.json, which the build writes from the lessons.
"""

import difflib
import html
import json
import math
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from . import mode, parts
from .plots import Table, table

POINTS = 2
QUESTIONS = Path(__file__).parent / "checks" / "questions.json"
MARKS = {True: ("Right", "#009E73"), False: ("Not right yet", "#D55E00"), None: ("", "#5a6068")}

_given: dict[str, "Answer"] = {}  # this session's answers, the last one to each question


class Answer:
    """What `answer` found: .correct, .answered, .points, .max_points; text by str(), HTML in a notebook."""

    kind, marks = "Question", MARKS

    def __init__(self, question: str, message: str, correct: bool | None = None, max_points: int = POINTS):
        self.question, self.message = question, message
        self.answered, self.correct = correct is not None, bool(correct)
        self.points, self.max_points = (max_points if correct else 0), max_points

    def __repr__(self) -> str:
        verdict, _ = self.marks[self.correct if self.answered else None]
        return f"{self._label()}. {f'{verdict}. ' if verdict else ''}{self.message}"

    def _label(self) -> str:
        return f"{self.kind} {self.question}".strip()

    def _repr_html_(self) -> str:
        verdict, colour = self.marks[self.correct if self.answered else None]
        strong = f"<strong>{verdict}.</strong> " if verdict else ""
        # The colour of the bar only repeats what the words say; text and background are the page's own.
        return (
            f'<div style="border-left:4px solid {colour};padding:4px 0 4px 12px;max-width:46em">'
            f"{html.escape(self._label())}. {strong}{inline_html(self.message)}</div>"
        )


class Prediction(Answer):
    """What was marked in a widget beside what is right; no points. Before it is marked, what is right stays folded."""

    kind = "Prediction"
    marks = MARKS | {True: ("Right", MARKS[True][1]), False: ("It comes out otherwise", MARKS[False][1])}

    def __init__(self, choices: Sequence[str], marked: str | None, right: str, why: str):
        letters = "abcdefghij"[: len(choices)]
        if len(right) != 1 or right not in letters:
            raise ValueError(f"compare: right is {right!r}; it must be one of {', '.join(letters) or 'no choice'}")
        self.outcome = f"{right}) {choices[letters.index(right)]}. {why}"
        if marked is None:
            super().__init__("", "None is marked yet. Mark one in the view above, and run this cell again.", None, 0)
            return
        said = f"{marked}) {choices[letters.index(marked)]}"
        message = f"You said {said}. {why}" if marked == right else f"You said {said}. It is {self.outcome}"
        super().__init__("", message, marked == right, 0)

    def _repr_html_(self) -> str:
        shown = super()._repr_html_()
        if self.answered:
            return shown
        # For pages that nobody can run, and for those who only read.
        folded = f"<details><summary>What comes out</summary>{inline_html(self.outcome)}</details></div>"
        return shown.removesuffix("</div>") + folded


class QuestionPoints:
    """The questions of one lesson: .points, .max_points, and a table of them."""

    def __init__(self, lesson: str, answers: Sequence[Answer]):
        self.lesson = lesson
        self.points = sum(a.points for a in answers)
        self.max_points = sum(a.max_points for a in answers)
        self._answers = answers

    def table(self) -> Table:
        """One row a question: answered, right, points."""
        rows = [
            (a.question, a.answered, a.correct if a.answered else None, a.points, a.max_points) for a in self._answers
        ]
        header = ("question", "answered", "right", "points", "of")
        return table(
            rows,
            header,
            caption=f"Questions of lesson {self.lesson}: {self.points} of {self.max_points} points",
        )

    def __repr__(self) -> str:
        return repr(self.table()) if self._answers else f"Lesson {self.lesson} has no questions."

    def _repr_html_(self) -> str:
        return self.table()._repr_html_() if self._answers else f"<p>{html.escape(repr(self))}</p>"


def answer(question: str, choice: Any, *more: Any) -> Answer:
    """Judge the answer to one question, such as answer("02.3", "b") or answer("02.4", 0.125).

    None or an empty string counts as not answered yet. An unknown question or something that cannot be an
    answer is said in words; nothing is raised. `more` is what Python makes of a comma in a number.
    """
    choice = (choice, *more) if more else choice
    result = judge(question, choice)
    if not result.max_points:
        return result
    question = result.question
    _given[question] = result
    if result.answered and mode.remembering():
        record = {"question": question, "points": result.points, "max_points": result.max_points}
        parts.write_json(_record_file(question), record)
    return result


def judge(question: str, choice: Any) -> Answer:
    """What `answer` says, without noting it anywhere."""
    question, known = str(question).strip(), load()
    if question not in known:
        return Answer(question, _unknown(question, known), max_points=0)
    entry = known[question]
    if choice is None or (isinstance(choice, str) and not choice.strip()):
        return Answer(question, "Not answered yet.")
    return (_judge_number if entry["kind"] == "number" else _judge_choice)(question, entry, choice)


def question_points(lesson: str | int) -> QuestionPoints:
    """The points of all questions of a lesson, from the answers given since the notebook's kernel started."""
    lesson = f"{int(lesson):02d}" if str(lesson).isdigit() else str(lesson)
    return QuestionPoints(lesson, [_given.get(q) or Answer(q, "Not answered yet.") for q in asked(lesson)])


def asked(lesson: str) -> list[str]:
    """The questions of a lesson ("02"), in its order."""
    return sorted((q for q in load() if q.split(".")[0] == lesson), key=_order)


def last_points(question: str) -> int | None:
    """The points of the last answer to a question, from this session or before; None without an answer."""
    if (given := _given.get(question)) is not None and given.answered:
        return given.points
    stored = parts.read_json(_record_file(question)) if mode.remembering() else None
    points = stored.get("points") if stored else None
    return points if isinstance(points, int) else None


def load() -> dict[str, dict[str, Any]]:
    """All questions by id; empty if the build has not written them."""
    try:
        return json.loads(QUESTIONS.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def inline_html(text: str) -> str:
    """Inline Markdown as HTML: `code`, **strong** and *emphasis*; $mathematics$ is left for the notebook to set."""
    out = []
    for part in re.split(r"(`[^`]+`|\$[^$]+\$)", text):
        safe = html.escape(part, quote=False)
        if part.startswith("`") and part.endswith("`") and len(part) > 2:
            out.append(f"<code>{safe[1:-1]}</code>")
        elif part.startswith("$") and part.endswith("$") and len(part) > 2:
            out.append(safe)
        else:
            strong = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", safe)
            out.append(re.sub(r"\*(\S(?:[^*]*\S)?)\*", r"<em>\1</em>", strong))
    return "".join(out)


def _judge_choice(question: str, entry: dict[str, Any], choice: Any) -> Answer:
    letters = list(entry["choices"])
    given = choice.strip().strip("().").strip().lower() if isinstance(choice, str) else None
    if given not in letters:
        quoted = ", ".join(f'"{letter}"' for letter in letters)
        return Answer(question, f"The choices are {quoted}; {_shown(choice)} is none of them.")
    return Answer(question, entry["explain"][given], correct=given == entry["right"])


def _judge_number(question: str, entry: dict[str, Any], choice: Any) -> Answer:
    numbers = readings(choice)
    if not numbers:
        comma = " Python takes a comma for the end of a number: write 1200, not 1,200." if type(choice) is tuple else ""
        return Answer(question, f"The answer is one number, such as 0.5 or 1/2; {_shown(choice)} is not.{comma}")
    right, tolerance = float(entry["right"]), float(entry["tolerance"])
    # A tolerance of 0.1 should let 0.3 pass for 0.2, whatever the last binary digit says.
    if any(abs(number - right) <= tolerance + 1e-12 * max(abs(right), 1.0) for number in numbers):
        return Answer(question, entry["explain"], correct=True)
    read = ""
    if len(numbers) > 1:
        ways = [f"{number:.15g}" for number in numbers]
        read = f", neither as {ways[0]} nor as {ways[1]}; write one of them just so"
    within = f"Any number within {tolerance:g} of it counts."
    return Answer(question, f"{_shown(choice)} is not it{read}. {within}", correct=False)


def readings(value: Any) -> list[float]:
    """Every number that an answer may mean: one in most cases, two for "38,416", none for what is no number.

    Separators of thousands are read wherever all groups behind the first have three digits: 38,416, 38.416,
    38 416, 38'416 and 38_416.
    """
    texts = [value]
    if isinstance(value, str):
        text = re.sub(r"[\u00a0\u2009\u202f]", " ", value.strip()).replace("\u2019", "'").replace("\u2212", "-")
        texts = [text]
        for group in ",. '_":
            for point in ".,".replace(group, ""):
                grouped = rf"[+-]?[1-9]\d{{0,2}}(?:{re.escape(group)}\d{{3}})+(?:{re.escape(point)}\d*)?"
                if re.fullmatch(grouped, text, re.ASCII):
                    texts.append(text.replace(group, "").replace(point, "."))
    numbers = [number for number in map(to_number, texts) if number is not None]
    return list(dict.fromkeys(numbers))


def to_number(value: Any) -> float | None:
    """The number an answer means: a number, a tensor of one, "0,125" or "1/8"; None for anything else."""
    if hasattr(value, "item") and (value.numel() if hasattr(value, "numel") else value.size) == 1:
        value = value.item()
    if isinstance(value, str):
        text = value.strip().replace("−", "-")  # noqa: RUF001  (the minus sign of a text copied from a page)
        if text.count(",") == 1 and "." not in text:
            text = text.replace(",", ".")
        try:
            value = Fraction(text) if "/" in text else float(text)
        except (ValueError, ZeroDivisionError):
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return None if math.isnan(number) else number


def _record_file(question: str) -> Path:
    return parts.data_folder() / "answers" / f"{question}.json"


def _unknown(question: str, known: dict[str, Any]) -> str:
    if not known:
        return "No questions are known yet: course_utils/checks/questions.json is missing. Run `course build`."
    if question.rsplit(".", maxsplit=1)[-1].startswith("W"):
        return "Questions in your own words are read by a person: write below the question itself."
    near = difflib.get_close_matches(question, known, n=3, cutoff=0.5) or sorted(known, key=_order)[:3]
    return f"There is no such question. Did you mean {' or '.join(near)}?"


def _order(question: str) -> list[tuple[int, str]]:
    """02.10 comes after 02.9."""
    return [(int(part), "") if part.isdigit() else (10**6, part) for part in question.split(".")]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
