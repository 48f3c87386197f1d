"""Questions with a choice or a number: how they are written in a lesson, and what `answer` reads."""

import math
import re
from dataclasses import dataclass, field

from .cells import Cell, Line, source, trimmed
from .errors import Problems
from .markers import Block, one_block

CHOICE = re.compile(r"- ([a-z])\) +(\S.*)")
ENTRY = re.compile(r"(right|tolerance|explain|[a-z]): *(.*)")


@dataclass
class Question:
    """A question of the lesson; `right` is a letter (kind "choice") or a number (kind "number")."""

    id: str
    line: int
    prompt: tuple[Line, ...]
    choices: dict[str, str]
    right: str | int | float
    tolerance: float | None
    explain: dict[str, str] | str
    secret: list[Line] = field(default_factory=list)

    def entry(self) -> dict:
        """What questions.json says about this question."""
        text = re.sub(r"^#+\s*|\*\*", "", self.prompt[0].text).strip()
        if self.choices:
            return {
                "kind": "choice",
                "text": text,
                "choices": self.choices,
                "right": self.right,
                "explain": self.explain,
            }
        return {
            "kind": "number",
            "text": text,
            "right": self.right,
            "tolerance": self.tolerance,
            "explain": self.explain,
        }

    def call(self, value: str | int | float | None) -> str:
        """The source of the answer cell; None is what students get."""
        text = f'"{value}"' if isinstance(value, str) else repr(value)
        return f'answer("{self.id}", {text})'


def read_question(cell: Cell, blocks: list[Block], problems: Problems) -> Question | None:
    """Read a question cell; None (and entries in `problems`) when it is not well formed."""
    before = len(problems.found)
    prompt, block = one_block(cell, blocks, "ANSWER", problems)
    if not source(prompt).strip():
        problems.add(cell.line, "a question without text")
    choices = _read_choices(prompt, problems)
    entries = _read_entries(block, problems)
    at = block[0].number if block else cell.line
    required = {"right", *choices} if choices else {"right", "tolerance", "explain"}
    if block:
        for key in sorted(required - set(entries)):
            what = f'an explanation for choice {key}, "{key}: ..."' if len(key) == 1 else f'"{key}: ..."'
            problems.add(at, f"the answer block lacks {what}")
        for key in sorted(set(entries) - required):
            kind = "a question with choices" if choices else 'a question with a number (no choices "- a) ..." found)'
            problems.add(entries[key][0].number, f'"{key}:" does not belong into the answer of {kind}')
    if len(problems.found) > before or not block:
        return None

    texts = {key: " ".join(line.text.strip() for line in lines) for key, lines in entries.items()}
    right: str | int | float | None
    if choices:
        right = texts["right"]
        if right not in choices:
            problems.add(entries["right"][0].number, f"right: {right} is not one of the choices {', '.join(choices)}")
        tolerance, explain = None, {key: texts[key] for key in choices}
    else:
        right = _number(texts["right"], entries["right"][0], problems)
        tolerance = _number(texts["tolerance"], entries["tolerance"][0], problems)
        if tolerance is not None and tolerance < 0:
            problems.add(entries["tolerance"][0].number, f"tolerance: {tolerance} is negative")
        explain = texts["explain"]
    if len(problems.found) > before:
        return None
    secret = [line for lines in entries.values() for line in lines]
    return Question(cell.metadata["question"], cell.line, trimmed(prompt), choices, right, tolerance, explain, secret)


def _read_choices(prompt: list[Line], problems: Problems) -> dict[str, str]:
    """The choices "- a) ..." of a question, with continuation lines joined."""
    choices: dict[str, str] = {}
    current = None
    for line in prompt:
        found = CHOICE.fullmatch(line.text)
        if found:
            current = found[1]
            expected = chr(ord("a") + len(choices))
            if current != expected:
                problems.add(line.number, f'choice "{current})": expected "{expected})"; choices are a, b, c, ...')
            choices[current] = found[2]
        elif current and line.text.startswith("  ") and line.text.strip():
            choices[current] += " " + line.text.strip()
        else:
            current = None
            if re.match(r"\s*[-*] *[a-z]\)|\s*[a-z]\) ", line.text):
                problems.add(line.number, f'"{line.text.strip()}" looks like a choice; write "- a) ..."')
    if len(choices) == 1:
        problems.add(prompt[0].number, "a question with a single choice")
    return choices


def _read_entries(block: list[Line], problems: Problems) -> dict[str, list[Line]]:
    """The entries of an answer block; an indented line continues the entry above it."""
    entries: dict[str, list[Line]] = {}
    current: list[Line] = []
    for line in block:
        if not line.text.strip():
            continue
        found = ENTRY.fullmatch(line.text)
        if found and found[1] in entries:
            problems.add(line.number, f'"{found[1]}:" is there twice')
        elif found:
            if not found[2].strip():
                problems.add(line.number, f'"{found[1]}:" has no text')
            current = entries[found[1]] = [Line(line.number, found[2])]
        elif line.text.startswith(" ") and current:
            current.append(line)
        else:
            problems.add(
                line.number,
                f'"{line.text.strip()}": expected "right: ...", "a: ...", "tolerance: ..." or "explain: ...";'
                " indent a line that continues the one above",
            )
    return entries


def _number(text: str, line: Line, problems: Problems) -> int | float | None:
    """The number in `text`; an int stays an int."""
    try:
        value = int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        problems.add(line.number, f'"{text}" is not a number; without choices "- a) ..." the answer is a number')
        return None
    return value
