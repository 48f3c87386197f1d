"""A lesson as written: its cells by what they are, checked strictly before anything is made from them."""

import re
from dataclasses import dataclass
from pathlib import Path

from .cells import Cell, Line, read_cells, trimmed
from .errors import BuildError, Problems
from .exercises import Exercise, Hints, read_exercise, read_hints
from .markers import Block, one_block, read_blocks, read_role
from .questions import Question, read_question

FILE_NAME = re.compile(r"(\d\d)_\w+")


@dataclass
class Plain:
    """A cell that both notebooks show as it is."""

    kind: str
    line: int
    lines: tuple[Line, ...]
    tags: tuple[str, ...]


@dataclass
class Written:
    """A question answered in words; the guide says how to mark it."""

    id: str
    line: int
    prompt: tuple[Line, ...]
    guide: tuple[Line, ...]
    secret: list[Line]


@dataclass
class QuestionTotal:
    """The place where the points of all questions of the lesson are added up."""

    line: int


Part = Plain | Exercise | Hints | Question | Written | QuestionTotal


@dataclass
class Lesson:
    """A lesson without mistakes in its markers. `file` is its path below the root, with forward slashes."""

    name: str
    number: str
    file: str
    parts: list[Part]

    @property
    def exercises(self) -> list[Exercise]:
        """The exercises, in order."""
        return [part for part in self.parts if isinstance(part, Exercise)]

    @property
    def questions(self) -> list[Question]:
        """The questions with a choice or a number, in order."""
        return [part for part in self.parts if isinstance(part, Question)]

    def secrets(self) -> list[tuple[Line, str]]:
        """The lines that students must not see, each with what it belongs to."""
        found: list[tuple[Line, str]] = []
        for part in self.parts:
            if isinstance(part, Exercise):
                found += [(line, f"the solution of {part.name}") for line in part.secret]
            elif isinstance(part, Question):
                found += [(line, f"the answer of question {part.id}") for line in part.secret]
                found.append((Line(part.line, part.call(part.right)), f"the answer of question {part.id}"))
            elif isinstance(part, Written):
                found += [(line, f"the marking guide of {part.id}") for line in part.secret]
        return found

    def visible(self) -> str:
        """All text that students may see."""
        texts: list[str] = []
        for part in self.parts:
            if isinstance(part, Plain):
                texts += [line.text for line in part.lines]
            elif isinstance(part, Question | Written):
                texts += [line.text for line in part.prompt]
            elif isinstance(part, Hints):
                texts += part.tiers
            elif isinstance(part, Exercise):
                secret = {line.number for line in part.secret}
                texts += [line.text for line in part.solved if line.number not in secret]
        return "\n".join(texts)


def read_lesson(path: Path, file: str) -> Lesson:
    """Read one lesson; raises BuildError with every problem found, as "file:line: what to do"."""
    problems = Problems(file)
    number = path.stem[:2]
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors put a byte order mark first
    except UnicodeDecodeError as error:
        raise BuildError(f"{file}:1: not UTF-8 text ({error.reason}); save the file as UTF-8") from error
    parts: list[tuple[Part | None, str | None, Cell]] = []
    for cell in read_cells(text, problems):
        role = read_role(cell, problems)
        parts.append((_read_part(cell, role, number, problems), role, cell))
    _check_together(parts, number, problems)
    problems.stop_if_any()
    return Lesson(path.stem, number, file, [part for part, _, _ in parts if part is not None])


def _read_part(cell: Cell, role: str | None, number: str, problems: Problems) -> Part | None:
    blocks = read_blocks(cell, role, problems)
    part: Part | None = None
    if not cell.lines and role != "questions":
        problems.add(cell.line, "an empty cell; fill it or remove it")
    elif role == "exercise":
        part = read_exercise(cell, blocks, problems)
    elif role == "hints":
        part = read_hints(cell, problems)
    elif role == "question":
        _check_id(cell, role, rf"{number}\.[1-9]\d*", f'"{number}.1"', problems)
        part = read_question(cell, blocks, problems)
    elif role == "written":
        _check_id(cell, role, rf"{number}\.W[1-9]?\d*", f'"{number}.W" or "{number}.W2"', problems)
        part = _read_written(cell, problems, blocks)
    elif role == "questions":
        _check_id(cell, role, number, f'"{number}"', problems)
        if cell.lines:
            problems.add(cell.lines[0].number, "the build writes the cell marked questions=; leave it empty")
        part = QuestionTotal(cell.line)
    else:
        part = Plain(cell.kind, cell.line, cell.lines, tuple(cell.metadata.get("tags", ())))
    return part


def _check_id(cell: Cell, role: str, pattern: str, example: str, problems: Problems) -> None:
    if not re.fullmatch(pattern, cell.metadata[role]):
        problems.add(
            cell.line,
            f'{role}="{cell.metadata[role]}": the number is that of the file name; write {example}',
        )


def _read_written(cell: Cell, problems: Problems, blocks: list[Block]) -> Written:
    prompt, guide = one_block(cell, blocks, "GUIDE", problems)
    if not trimmed(prompt):
        problems.add(cell.line, "a written question without text")
    if blocks and not trimmed(guide):
        problems.add(cell.line, "the marking guide is empty")
    return Written(cell.metadata["written"], cell.line, trimmed(prompt), trimmed(guide), guide)


def _check_together(parts: list[tuple[Part | None, str | None, Cell]], number: str, problems: Problems) -> None:
    """What no cell can be judged by alone: duplicates, hints for every exercise, points for the questions."""
    seen: dict[tuple[str, str], int] = {}
    for _, role, cell in parts:
        if role is None:
            continue
        key = (role, cell.metadata[role])
        if key in seen:
            problems.add(cell.line, f'{role}="{key[1]}" is already used on line {seen[key]}')
        seen.setdefault(key, cell.line)
    names = {name for role, name in seen if role == "exercise"}
    hinted = {name for role, name in seen if role == "hints"}
    for (role, name), line in seen.items():
        if role == "exercise" and name not in hinted:
            problems.add(line, f'exercise "{name}" has no hints; add a cell  # %% [markdown] hints="{name}"')
        if role == "hints" and name not in names:
            known = ", ".join(sorted(names)) or "none"
            problems.add(line, f'hints="{name}": this lesson has no such exercise; its exercises: {known}')
        if role == "hints" and name in names and line < seen["exercise", name]:
            problems.add(line, f'hints="{name}" stand before their exercise; move them below it')
    asked = [line for (role, _), line in seen.items() if role == "question"]
    total = [line for (role, _), line in seen.items() if role == "questions"]
    if asked and not total:
        problems.add(
            max(asked),
            f'nothing adds up the questions; add a cell  # %% questions="{number}"  after the last',
        )
    if total and not asked:
        problems.add(total[0], "the lesson has no question to add up; remove the cell")
    if total and asked and total[0] < max(asked):
        problems.add(total[0], f"the cell marked questions= must follow the last question (line {max(asked)})")


def read_lessons(root: Path) -> tuple[list[Lesson], list[str]]:
    """All lessons of `root`/lessons that are well formed, in order, and the problems of the others."""
    folder = root / "lessons"
    paths = sorted(folder.glob("*.py"))
    if not paths:
        return [], ["lessons/: no lesson found; a lesson is a file lessons/NN_name.py"]
    lessons: list[Lesson] = []
    problems: list[str] = []
    for path in paths:
        file = f"lessons/{path.name}"
        if not FILE_NAME.fullmatch(path.stem):
            problems.append(f"{file}:1: rename it to NN_name.py (two digits, then a name)")
            continue
        try:
            lessons.append(read_lesson(path, file))
        except BuildError as error:
            problems += error.problems
    return lessons, problems + _check_across(lessons)


def _check_across(lessons: list[Lesson]) -> list[str]:
    """Lesson numbers and exercise names are identities in the whole course."""
    problems = []
    numbers: dict[str, str] = {}
    names: dict[str, str] = {}
    for lesson in lessons:
        if lesson.number in numbers:
            problems.append(f"{lesson.file}:1: {numbers[lesson.number]} has the number {lesson.number} too; rename one")
        numbers.setdefault(lesson.number, lesson.file)
        for exercise in lesson.exercises:
            place = f"{lesson.file}:{exercise.line}"
            if exercise.name in names:
                problems.append(f'{place}: exercise "{exercise.name}" is already defined at {names[exercise.name]}')
            names.setdefault(exercise.name, place)
    return problems
