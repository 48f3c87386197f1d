"""What a check says: points, and findings with hints in three tiers, as text and as HTML."""

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

NOT_DONE, PASSED, FAILED = "not done yet", "passed", "not right yet"
TIERS = ("a question", "where to look", "almost the line itself")


class Text(str):
    """A text that a prompt or a notebook shows as it is, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong. misconception: its id in the catalogue, or None for an observation."""

    message: str
    misconception: str | None = None
    hints: tuple[str, ...] = ()
    case: str = ""


@dataclass(frozen=True)
class CaseResult:
    """One case of the exercise: what it shows, and the points earned in it."""

    name: str
    shows: str
    points: int
    max_points: int


@dataclass(frozen=True)
class Report:
    """The result of one check. `points` is a plain number; a notebook shows the report as HTML."""

    exercise: str
    points: int
    max_points: int
    passed: bool
    state: str
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    cases: tuple[CaseResult, ...] = ()
    optional: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The report as plain lists, dicts, strings and numbers."""
        return asdict(self)

    def hint(self, number: int) -> "Text":
        """Hint 1, 2 or 3 of each finding: a question, where to look, almost the line itself.

        Raises ValueError for any other number.
        """
        if number not in range(1, len(TIERS) + 1):
            raise ValueError(f"hint({number!r}): there are {len(TIERS)} hints, hint(1) to hint({len(TIERS)}).")
        told = [finding for finding in self.findings if len(finding.hints) >= number]
        if not told:
            return Text(f"{self.exercise}: {self.state}, so there is nothing to hint at.")
        named = [f"- {finding.message}\n    " if len(told) > 1 else "" for finding in told]
        return Text("\n".join(f"{n}hint {number}: {f.hints[number - 1]}" for n, f in zip(named, told, strict=True)))

    def _headline(self) -> str:
        extra = ", optional" if self.optional else ""
        return f"{self.exercise}: {self.state} ({self.points} of {self.max_points} points{extra})"

    def __str__(self) -> str:
        lines = [self._headline()]
        if self.state == FAILED and self.cases:
            lines += [f"  {'[x]' if c.points == c.max_points else '[ ]'} {c.name}" for c in self.cases]
        for finding in self.findings:
            lines += ["", f"- {finding.message}", *(f"    hint 1: {hint}" for hint in finding.hints[:1])]
        if any(len(finding.hints) > 1 for finding in self.findings):
            lines += ["", "  The next hint: check(...).hint(2)"]
        lines += [f"  Note: {note}" for note in self.notes]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f"<strong>{escape(self._headline())}</strong>"]
        if self.state == FAILED and self.cases:
            items = "".join(_case_item(c) for c in self.cases)
            parts.append(
                f'<ul aria-label="cases" style="margin:.3em 0;padding-left:1.2em;list-style:none">{items}</ul>'
            )
        parts += [_finding_block(f) for f in self.findings]
        parts += [f'<p style="margin:.4em 0 0">Note: {escape(note)}</p>' for note in self.notes]
        label = escape(f"Check of {self.exercise}", quote=True)
        return f'<div role="region" aria-label="{label}" style="{_BOX}{_EDGE[self.state]}">{"".join(parts)}</div>'


# The words carry the meaning; the edge only repeats it. Colours follow the theme of JupyterLab where there is one.
_BOX = (
    "color:var(--jp-ui-font-color1,inherit);background:transparent;padding:.5em .8em;margin:.3em 0;"
    "max-width:60em;line-height:1.45;"
)
_EDGE = {
    PASSED: "border-left:4px solid var(--jp-success-color1,#2e7d32)",
    FAILED: "border-left:4px dashed var(--jp-warn-color1,#b26a00)",
    NOT_DONE: "border-left:4px dotted var(--jp-border-color1,#888)",
}


def _case_item(case: CaseResult) -> str:
    full = case.points == case.max_points
    mark, word = ("✓", "right") if full else ("✗", "not right")
    return (
        f'<li><span aria-hidden="true">{mark}</span> {escape(case.name)} '
        f"<small>({word}, {case.points}/{case.max_points}: {escape(case.shows)})</small></li>"
    )


def _finding_block(finding: Finding) -> str:
    hints = "".join(
        f'<details style="margin-left:1em"><summary>Hint {i}: {tier}</summary>'
        f'<p style="margin:.2em 0 .4em 1em">{escape(hint)}</p></details>'
        for i, (tier, hint) in enumerate(zip(TIERS, finding.hints, strict=False), 1)
    )
    return f'<div style="margin:.5em 0 0"><p style="margin:0">{escape(finding.message)}</p>{hints}</div>'
