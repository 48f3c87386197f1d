"""Finds the misconception whose own wrong result an answer reproduces, or says what was observed.

A misconception is a program: it runs on the inputs on which the answer failed. What reproduces the answer's
numbers, NaN, gradients, written arguments and errors is its explanation. Two mistakes at once are tried next,
then one mistake for each failing case. What nothing reproduces is described.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from course_utils.checks.bench import Bench, Candidate, Run, bench
from course_utils.checks.compare import ELSEWHERE, RANDOM, repeats
from course_utils.checks.likeness import change, distance, form, likeness
from course_utils.checks.model import Case, Misconception
from course_utils.checks.observe import CaseRun, observed, property_lost
from course_utils.checks.report import Finding
from course_utils.checks.values import Answer, Outcome

MAX_FINDINGS = 4
MAX_TIED = 2
MAX_PAIRS = 60  # of some hundreds; the right pair is nearly always among the first 40
Explanation = tuple[Misconception, ...]


def explain(at: Bench, answer: Answer, runs: list[CaseRun]) -> list[Finding]:
    """The findings for an answer that failed some case with points."""
    failing = [i for i, run in enumerate(runs) if run.problem and run.case.points]
    whole = _whole_explanations(at, runs, failing)
    if whole:
        first = runs[failing[0]].case
        tied = [_named(m, first) for m in _unique(m for e in whole for m in e)]
        # Two misconceptions that behave alike in every case: the answer cannot say which one it is.
        return tied[: MAX_TIED if len(whole[0]) == 1 else MAX_FINDINGS]
    named, left = _partial_explanations(at, runs, failing)
    findings = [_named(misconception, runs[case].case) for misconception, case in named]
    if named and _is_random(runs):
        left = [case for case in left if runs[case].problem.kind != "value"]  # random numbers are wrong everywhere
    findings += _observations(at, answer, runs, left, alone=not named)
    telling = [finding for finding in findings if not finding.message.startswith(ELSEWHERE)]
    return (telling or findings)[:MAX_FINDINGS]


def _observations(at: Bench, answer: Answer, runs: list[CaseRun], failing: list[int], alone: bool) -> Iterator[Finding]:
    """What was seen in cases that nothing explains; the same kind of thing is told once.

    alone: no misconception was named; then properties may tell where to look.
    """
    seen = set()
    for number in failing:
        problem = runs[number].problem
        told = (problem.kind, problem.output, problem.text == ELSEWHERE)
        if told in seen:
            continue
        more = ""
        if alone and problem.kind == "value":
            more, alone = _more_to_say(at, answer, runs), False
        seen.add(told)
        yield observed(at.exercise, answer, at.calls[number], runs[number], at.wanted[number], more)


def _more_to_say(at: Bench, answer: Answer, runs: list[CaseRun]) -> str:
    if _is_random(runs):
        return RANDOM
    return property_lost(bench(at.exercise.by_properties, at.seed), answer) if at.exercise.properties else ""


def _is_random(runs: list[CaseRun]) -> bool:
    return any(run.case.compare is None and not repeats(run.outcome) for run in runs)


def advice(at: Bench, runs: list[CaseRun]) -> list[str]:
    """Notes from the advisory cases, for an answer that passed all the others."""
    return [run.case.note for run in runs if run.problem and not run.case.points and run.case.note]


def _named(misconception: Misconception, case: Case) -> Finding:
    message = misconception.says
    if misconception.convention:
        message = f"{message} In this course: {misconception.convention}"
    return Finding(message, misconception.id, misconception.hints, case.name)


def _unique(items: Iterable[Misconception]) -> list[Misconception]:
    return list({m.id: m for m in items}.values())


def _whole_explanations(at: Bench, runs: list[CaseRun], failing: list[int]) -> list[Explanation]:
    """Explanations that reproduce the answer in every case with points; the closest ones."""
    found: list[tuple[float, Run, Explanation]] = []
    for number, candidate in enumerate(at.candidates()):
        run = partial(at.outcome, number)
        if _reproduces(at, runs, failing, run):
            found.append((distance(runs, run), run, (candidate.misconception,)))
    if not found and not _is_random(runs):  # whose numbers would hardly come again
        for a, b in _promising_pairs(at, runs, failing):
            run = partial(at.run, at.exercise.pair(a, b))
            if _reproduces(at, runs, failing, run):
                found.append((distance(runs, run), run, (a, b)))
        found = sorted(found, key=lambda f: f[0])[:1]
    if not found:
        return []
    best = min(gap for gap, _, _ in found)
    # In the order of the catalogue: what is equally close differs by rounding only.
    close = [(run, explanation) for gap, run, explanation in found if gap <= 10 * best + 1e-14]
    alike = [_advisory_likeness(at, runs, run) if len(close) > 1 else 0 for run, _ in close]
    return [explanation for (_, explanation), n in zip(close, alike, strict=True) if n == max(alike)]


def _advisory_likeness(at: Bench, runs: list[CaseRun], run: Run) -> int:
    """In how many cases without points, which no answer can fail, a candidate does the same."""
    free = (number for number, student in enumerate(runs) if not student.case.points)
    return sum(bool(likeness(at, runs[number], number, run)) for number in free)


def _promising_pairs(at: Bench, runs: list[CaseRun], failing: list[int]) -> list[Explanation]:
    """Pairs of misconceptions that are worth a run, the most promising first.

    Where a misconception by itself changes nothing, the other one must reproduce the answer alone. For the rest: what
    gives the answer its form (an error, a shape) is one of the two; and changes of numbers roughly add up.
    """
    case, student = failing[0], runs[failing[0]]
    right = at.wanted[case]
    first = {c.misconception.id: n for n, c in enumerate(at.candidates()) if c.first}
    outcomes = {name: at.outcome(number, case, False) for name, number in first.items()}
    changes = {name: at.problem(case, outcome) is not None for name, outcome in outcomes.items()}
    alike = {name: likeness(at, student, case, partial(at.outcome, number)) for name, number in first.items()}
    mine, forms = form(student.outcome), {name: form(outcome) for name, outcome in outcomes.items()}
    off = {name: change(outcome, right) for name, outcome in outcomes.items() if forms[name] == mine == form(right)}

    def possible(a: str, b: str) -> bool:
        return (changes[a] and changes[b]) or bool(changes[a] and alike[a]) or bool(changes[b] and alike[b])

    def missed(pair: Explanation) -> float:
        a, b = (m.id for m in pair)
        if a in off and b in off:
            return float((change(student.outcome, right) - off[a] - off[b]).norm())
        return 0.0 if mine in (forms[a], forms[b]) and mine != form(right) else math.inf

    rated = [(missed(pair), pair) for pair in at.exercise.pairs() if possible(*(m.id for m in pair))]
    near = sorted((r for r in rated if r[0] < math.inf), key=lambda r: r[0])
    return [pair for _, pair in near[:MAX_PAIRS]]


def _reproduces(at: Bench, runs: list[CaseRun], failing: list[int], run: Run) -> bool:
    exact = False
    for number in sorted(failing, key=at.seconds.__getitem__):
        alike = likeness(at, runs[number], number, run)
        if not alike:
            return False
        exact = exact or alike > 1
    if not exact:
        return False
    for number, student in enumerate(runs):
        if student.problem is None and student.case.points and at.problem(number, run(number, False)) is not None:
            return False
    return True


def _partial_explanations(
    at: Bench, runs: list[CaseRun], failing: list[int]
) -> tuple[list[tuple[Misconception, int]], list[int]]:
    """Misconceptions that reproduce a part of the failing cases, or show their symptom, each with its first case.

    Behind them the cases that none explains.
    """
    found: dict[str, tuple[Misconception, int]] = {}
    left = list(failing)
    for match in _partial_matches(at, runs, failing):
        if match.misconception.id not in found and any(case in left for case in match.cases):
            found[match.misconception.id] = match.misconception, match.cases[0]
            left = [case for case in left if case not in match.cases]
    if found and left:  # a second mistake that shows in few cases, and does nothing elsewhere
        second = next((m for m in _partial_matches(at, runs, left) if m.also_right == len(runs) - len(left)), None)
        if second is not None:
            found.setdefault(second.misconception.id, (second.misconception, second.cases[0]))
            left = [case for case in left if case not in second.cases]
    for misconception in at.exercise.misconceptions:
        if misconception.symptom:
            cases = [n for n in left if _shows(misconception, runs[n].outcome, at.wanted[n])]
            if cases:
                found.setdefault(misconception.id, (misconception, cases[0]))
                left = [case for case in left if case not in cases]
    return list(found.values()), left


def _shows(misconception: Misconception, got: Outcome, want: Outcome) -> bool:
    try:
        return misconception.symptom(got, want)
    except (ValueError, TypeError, IndexError, KeyError, AttributeError, RuntimeError):
        return False  # it looked into a result that has quite another form


@dataclass(frozen=True)
class _Match:
    """The failing cases that a misconception reproduces, how well, and in how many of the others it is right."""

    misconception: Misconception
    cases: list[int]
    degree: int
    also_right: int


def _partial_matches(at: Bench, runs: list[CaseRun], failing: list[int]) -> list[_Match]:
    """Misconceptions that reproduce at least half of these cases, the best first."""
    found = (_partial_match(at, runs, failing, number, c) for number, c in enumerate(at.candidates()))
    return sorted(filter(None, found), key=lambda m: (len(m.cases), m.degree, m.also_right), reverse=True)


def _partial_match(
    at: Bench, runs: list[CaseRun], failing: list[int], number: int, candidate: Candidate
) -> _Match | None:
    """None where fewer than half are reproduced: in a single extreme case many mistakes look alike."""
    run = partial(at.outcome, number)
    alike: dict[int, int] = {}
    for case in sorted(failing, key=at.seconds.__getitem__):  # the order is for speed alone
        alike[case] = likeness(at, runs[case], case, run)
        if 2 * sum(degree < 2 for degree in alike.values()) > len(failing):
            return None
    cases = [case for case in failing if alike[case] > 1]
    others = (n for n in range(len(runs)) if n not in alike)
    also_right = sum(at.problem(n, run(n, False)) is None for n in others)
    return _Match(candidate.misconception, cases, sum(alike.values()), also_right)
