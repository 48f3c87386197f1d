"""The questions of a lesson: what a student chose, read from the cells where it stands there, and the points for it."""

import ast
from typing import Any

import torch
from torch import Tensor

from course_utils import questions
from course_utils.grading.source_code import parse

Choice = tuple[str, Any]


def written_choices(source: str) -> list[Choice] | None:
    """The answers in a cell that does nothing but answer(question, value); None if they have to be computed.

    A cell that does not mention `answer` has none.
    """
    if "answer" not in source:
        return []
    tree = parse(source)
    if tree is None:
        return None
    found = []
    for node in tree.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a text that stands alone
        call = node.value if isinstance(node, ast.Expr | ast.Assign) else None
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "answer"):
            return None
        if call.keywords or len(call.args) != 2:
            return None
        try:
            question, choice = (ast.literal_eval(argument) for argument in call.args)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None
        found.append((str(question), choice))
    return found


def judge(lesson: str, choices: list[Choice]) -> list[questions.Answer]:
    """What each question of a lesson ("02") got; of several answers to one the last counts, as in the notebook."""
    last = {question.strip(): _plain(choice) for question, choice in choices}
    return [questions.judge(q, last.get(q)) for q in questions.asked(lesson)]


def _plain(choice: Any) -> Any:
    """A number of a tensor with one element; what is no number and no text stands for itself."""
    if isinstance(choice, Tensor):
        return choice.double().item() if choice.numel() == 1 and not choice.is_complex() else "a tensor"
    return choice if isinstance(choice, str | int | float | None | torch.types.Number) else "something else"
