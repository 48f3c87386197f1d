"""The scoreboard of the translation task: one line a model, over all lessons, by length of the sentence."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import mode, notebook, parts
from .plots import Table, table

if TYPE_CHECKING:
    from .evaluation import Scores as TranslationScores
    from .training import History

REFERENCE = Path(__file__).parent / "measured" / "scoreboard.json"
TRAINED_ON = 6  # dates a sentence; longer ones occur in the test only
LENGTHS = 8
THIS_RUN = "this run"

Scores = Sequence[float] | Sequence[Sequence[float]]


@dataclass(frozen=True)
class Line:
    """One model's line.

    exact_match, token_accuracy: shares from 0 to 1 for sentences of 1, 2, … 8 dates; several runs give one
    such list each.
    alignment: the share of target words that read their gold source word. seconds: of training.
    """

    name: str
    exact_match: Scores
    token_accuracy: Scores
    parameters: int
    steps: int
    seconds: float | None = None
    alignment: float | Sequence[float] | None = None
    source: str = THIS_RUN
    lesson: str | None = None

    def __post_init__(self) -> None:
        for field in ("exact_match", "token_accuracy"):
            object.__setattr__(self, field, _runs(self.name, field, getattr(self, field)))
        for field in ("parameters", "steps", "seconds", "alignment"):  # of whatever library: plain numbers
            value = getattr(self, field)
            object.__setattr__(self, field, value.tolist() if hasattr(value, "tolist") else value)


def line(name: str, scores: "TranslationScores", parameters: int, history: "History") -> Line:
    """The line of a model that has just been trained and scored."""
    return Line(
        name,
        exact_match=list(scores.exact_match.values()),
        token_accuracy=list(scores.token_accuracy.values()),
        parameters=parameters,
        steps=history.steps,
        seconds=history.seconds,
        alignment=None if scores.alignment is None else scores.mean_alignment(up_to=TRAINED_ON),
    )


class Scoreboard:
    """Lines, one for each model; shown as tables. `add` replaces the line of the same name."""

    def __init__(self, lines: Sequence[Line] = ()):
        self.lines = list(lines)

    def add(self, line: Line) -> "Scoreboard":
        """Put a line on the board, and keep it for later lessons unless training was cut short."""
        line = replace(line, lesson=line.lesson or notebook.current_lesson())
        board = {old.name: old for old in self.lines} | {line.name: line}  # a known name keeps its place
        self.lines = list(board.values())
        if mode.remembering() and not mode.smoke():
            kept = {old.name: old for old in _read(_remembered_file())} | {line.name: line}
            parts.write_json(_remembered_file(), {"lines": [asdict(one) for one in kept.values()]})
        return self

    def tables(self) -> list[Table]:
        """Exact match, then token accuracy; several runs are shown as their median and their range."""
        return [
            _table("Exact match, by number of dates in the sentence", self.lines, "exact_match"),
            _table("Token accuracy, by number of dates in the sentence", self.lines, "token_accuracy"),
            _costs(self.lines),
        ]

    def __repr__(self) -> str:
        if not self.lines:
            return "The scoreboard is empty: no model has been measured yet."
        return "\n\n".join(map(repr, self.tables()))

    def _repr_html_(self) -> str:
        if not self.lines:
            return f"<p>{self!r}</p>"
        return "<br>".join(one._repr_html_() for one in self.tables())


def load(lesson: str | None = None) -> Scoreboard:
    """The board with the lines of earlier lessons: the reader's own where remembered, else the authors'.

    lesson: the lesson that asks, by default the one that `setup` was called with; without either, all lines.
    """
    lesson = lesson or notebook.current_lesson()
    lines = {line.name: line for line in _read(REFERENCE)}
    if mode.remembering():
        for line in _read(_remembered_file()):
            where = f"your run, notebook {line.lesson}" if line.lesson else "an earlier run of yours"
            lines[line.name] = replace(line, source=where)
    earlier = [line for line in lines.values() if lesson is None or (line.lesson or "") < lesson]
    return Scoreboard(sorted(earlier, key=lambda line: line.lesson or ""))


def _read(path: Path) -> list[Line]:
    """The lines of a file. One that is missing or damaged has none; a line that does not fit is left out."""
    entries = (parts.read_json(path) or {}).get("lines")
    lines = []
    for entry in entries if isinstance(entries, list) else []:
        try:
            seeds = len(_runs(entry["name"], "exact_match", entry["exact_match"]))
            source = f"authors, {seeds} {'seeds' if seeds > 1 else 'seed'}" if path == REFERENCE else THIS_RUN
            lines.append(Line(**{"source": source, **entry}))
        except (TypeError, KeyError, ValueError):
            continue
    return lines


def _remembered_file() -> Path:
    return parts.data_folder() / "scoreboard.json"


def _runs(name: str, field: str, scores: Any) -> list[list[float]]:
    """Scores as a list of runs, each a list of plain numbers."""
    scores = scores.tolist() if hasattr(scores, "tolist") else list(scores)
    runs = scores if scores and isinstance(scores[0], (list, tuple)) else [scores]
    runs = [[float(score) for score in run] for run in runs]
    for run in runs:
        if len(run) != LENGTHS:
            raise ValueError(
                f"Line({name!r}): {field} must hold {LENGTHS} numbers, one for each number of dates "
                f"from 1 to {LENGTHS}; got {len(run)}"
            )
        if not all(0 <= score <= 1 for score in run):
            raise ValueError(f"Line({name!r}): {field} must be shares from 0 to 1; got {json.dumps(run)}")
    return runs


def _table(caption: str, lines: Sequence[Line], field: str) -> Table:
    rows = []
    for line in lines:
        runs = getattr(line, field)
        rows.append((line.name, *(_spread([run[i] for run in runs]) for i in range(LENGTHS))))
    header = ("model", *(str(n) for n in range(1, LENGTHS + 1)))
    groups = (("", 1), ("lengths seen in training", TRAINED_ON), ("beyond training", LENGTHS - TRAINED_ON))
    board = table(rows, header, caption=caption, groups=groups)
    board.right = [False] + [True] * LENGTHS
    return board


def _costs(lines: Sequence[Line]) -> Table:
    rows = []
    for line in lines:
        alignment = line.alignment
        if alignment is not None:
            alignment = _spread(list(alignment) if isinstance(alignment, (list, tuple)) else [float(alignment)])
        seconds = None if line.seconds is None else round(line.seconds)
        rows.append((line.name, int(line.parameters), int(line.steps), seconds, alignment, line.source))
    header = ("model", "parameters", "steps", "seconds", "alignment", "measured in")
    costs = table(rows, header, caption="What each model cost, and how often it reads the gold word")
    costs.right = [False, True, True, True, True, False]
    return costs


def _spread(values: Sequence[float]) -> str:
    """Two digits behind the point; several runs as their median, with the range on a line of its own."""
    middle, low, high = (f"{v:.2f}" for v in (statistics.median(values), min(values), max(values)))
    return middle if low == high else f"{middle}\n({low}-{high})"
