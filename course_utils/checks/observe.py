"""What is said about a failing case when no misconception explains it: what was observed, and how to look closer."""

import inspect
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from course_utils.checks.answers import LocalAnswer
from course_utils.checks.bench import Bench
from course_utils.checks.compare import RANDOM, Problem, same_values
from course_utils.checks.exercises import EXERCISES
from course_utils.checks.model import Case, Exercise
from course_utils.checks.report import Finding
from course_utils.checks.telling import in_words
from course_utils.checks.values import Answer, Call, Outcome, leaves

KIND_HINTS = {
    "error": "Read the last line of the message first. Which shapes or types meet in the line it names?",
    "signature": "How many parameters stand between the parentheses of your `def`, and in which order?",
    "call": "Which function or layer is called in that line, and which arguments does its own `def` name?",
    "endless": "Print something in each round of your loops. Which one never ends, and what should end it?",
    "structure": "Compare your `return` line with the docstring: how many results, of which kind, in which order?",
    "shape": "Print the shape after every line. Which line is the first one with a shape you did not expect?",
    "kind": "Print `result.dtype`. Which line turned the numbers into another kind?",
    "nan": "NaN spreads. Which line makes the first one: a division by zero, exp of a large number, inf - inf?",
    "value": "Take an input so small that you can compute the result by hand, and compare line by line.",
    "accepted": "Which sizes fit together? What does your code do with those that do not?",
    "weights": "Compare the layers in your `__init__` with the statement: names, and sizes (in, out).",
    "property": "Make the experiment in a few lines yourself: what was changed, and what should follow from it?",
    "changed": "Operations that end in an underscore, `+=` on a tensor and assignment to a slice write in place.",
    "repeat": "What in your code is random, or remembers the call before?",
    "gradient": "Which of your operations leave the graph: detach, .data, .item(), no_grad, a copy into a new tensor?",
}


@dataclass(frozen=True)
class CaseRun:
    """What an answer did in one case, and what is wrong with it."""

    case: Case
    outcome: Outcome
    problem: Problem | None


def observed(exercise: Exercise, answer: Answer, call: Call, run: CaseRun, wanted: Outcome, more: str = "") -> Finding:
    """The finding for a failing case that no misconception explains; more: a sentence about the answer as a whole."""
    if _calls_a_stub(run.outcome):
        return _stub_finding(exercise, run)
    text = run.problem.text if run.problem.text.endswith((".", "?")) else f"{run.problem.text}."
    sentences = [text]
    if run.problem.kind == "error":
        sentences.append(_shapes(call))
    if run.problem.kind == "value":
        idle = _without_influence(exercise, answer, call.forward_only(), run.outcome, wanted)
        if idle:
            sentences.append(f"Changing {' or '.join(idle)} does not change your result.")
    if more:
        sentences.append(more)
    sentences.append(f"(Case “{run.case.name}”: {run.case.shows}.)")
    kind = run.problem.kind
    if more:
        kind = "repeat" if more == RANDOM else "property"
    if kind == "property" and "gradient" in run.problem.text:
        kind = "gradient"
    hints = (KIND_HINTS[kind], *exercise.hints[1:])
    if kind == "signature":
        hints = (
            KIND_HINTS[kind],
            "Names are yours, number and order are those of the statement.",
            statement_def(exercise, run.outcome.error.stage),
        )
    return Finding(" ".join(filter(None, sentences)), None, hints, run.case.name)


def _shapes(call: Call) -> str:
    """What an answer that raises an error was called with."""
    given = [f"`{name}` of shape {tuple(t.shape)}" for name, t in call.arguments.items() if isinstance(t, Tensor)]
    return f"It was called with {in_words(given)}." if given else ""


def statement_def(exercise: Exercise, stage: str) -> str:
    """The line `def ...` of the statement: the reference's, without what only the course itself passes to it."""
    function, name, own = exercise.reference, exercise.name, ""
    if exercise.is_class:
        name, own = ("__init__" if stage == "make" else "forward"), "self, "
        function = getattr(exercise.reference, name)
    calls = [case.call(0) for case in exercise.cases]
    described = [c.construction.arguments if stage == "make" and exercise.is_class else c.arguments for c in calls]
    passed = {argument for arguments in described for argument in arguments}
    known = [p for p in inspect.signature(function).parameters.values() if p.name in passed]
    told = ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in known)
    return f"def {name}({own}{told}):"


def property_lost(at: Bench, answer: Answer) -> str:
    """The first property of every right module that an answer does not have; "" if it has them all.

    at: the bench of the exercise's properties. Where numbers differ in all places, properties still tell where to look.
    """
    for number, case in enumerate(at.exercise.cases):
        problem = at.problem(number, answer.call(at.calls[number])) if case.points else None
        if problem is not None and problem.kind == "property":
            return problem.text
    return ""


def _calls_a_stub(outcome: Outcome) -> bool:
    error = outcome.error
    return error is not None and error.kind == "NotImplementedError" and error.by_student and bool(error.within)


def _stub_finding(exercise: Exercise, run: CaseRun) -> Finding:
    """The finding for an answer that calls another function of the student's which is not done yet."""
    name = run.outcome.error.within
    way_out, lines = "write it out.", ("Write its formula in its place.", f"No call of {name}.")
    if name in EXERCISES:
        way_out = f"use step = use({name}), or write it out."
        lines = (
            "`use` gives the reference where your own part is not done yet.",
            f"step = use({name}), before the def",
        )
    message = f"Your {exercise.name} calls {name}, which is not done yet: {way_out}"
    return Finding(message, None, ("Which of your functions does your code call?", *lines), run.case.name)


def _without_influence(exercise: Exercise, answer: Answer, call: Call, got: Outcome, wanted: Outcome) -> list[str]:
    """Arguments that should matter in this case and change nothing in the answer's result."""
    reference, idle = LocalAnswer(exercise.reference), []
    for name, tensor in leaves(call.arguments):
        moved = _with(call, name, _moved(tensor))
        if moved is None or not same_values(answer.call(moved).value, got.value):
            continue
        if not same_values(reference.call(moved).value, wanted.value):
            idle.append(f"`{name}`")
    return idle


def _moved(tensor: Tensor) -> Tensor | None:
    if tensor.is_floating_point():
        return 0.5 * tensor + 0.3
    if tensor.dtype == torch.bool:
        return torch.ones_like(tensor)
    return None


def _with(call: Call, name: str, value: Tensor | None) -> Call | None:
    if value is None:
        return None
    arguments = {
        key: {k: value if f"{key}[{k!r}]" == name else v for k, v in entry.items()}
        if isinstance(entry, dict)
        else entry
        for key, entry in call.arguments.items()
    }
    if name in arguments:
        arguments[name] = value
    return replace(call, arguments=arguments)
