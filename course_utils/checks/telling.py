"""What is said about received values, wrong places, errors, written arguments and weights of other sizes."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from course_utils.checks.model import Output
from course_utils.checks.values import Call, Foreign, Outcome, Raised


def tell_changed(changed: tuple[str, ...]) -> str:
    """That arguments were written to."""
    names = in_words(f"`{n}`" for n in changed)
    verb = "is" if len(changed) == 1 else "are"
    return f"After the call {names} {verb} not what the caller passed in: your code writes into its arguments."


def tell_misfits(got: Outcome, call: Call) -> str:
    """That weights have other sizes than the statement says."""
    weights = call.construction.weights
    told = [f"`{n}` has shape {shape}, not {tuple(weights[n].shape)}" for n, shape in got.inside.misfits.items()]
    made = in_words(f"{n}={v}" for n, v in call.construction.arguments.items())
    return f"With {made}, the weights of your module do not have the sizes of the statement: {'; '.join(told)}."


def tell_error(error: Raised, call: Call) -> str:
    """An error of the student's code, with the line."""
    if wrong_signature(error):
        arguments, what = call.arguments, "Your function cannot be called"
        if error.stage == "make":
            arguments, what = call.construction.arguments, "An instance of your class cannot be made"
        elif call.construction is not None:
            what = "Your `forward` cannot be called"
        count = "the argument" if len(arguments) == 1 else f"the {len(arguments)} arguments"
        return f"{what} with {count} ({', '.join(arguments)}), in this order: {error.message}"
    if error.kind == "RecursionError":
        return "Your function calls itself without end (RecursionError). What ends the recursion?"
    if error.kind == "DidNotReturnError":
        line = f" It was in line {error.line}: `{error.source}`." if error.line and error.source else ""
        return (
            f"Your code did not return within {error.message}.{line} Does every loop come to its end? "
            "If the cell goes on running all the same, interrupt the kernel."
        )
    where = f" in line {error.line}: `{error.source}`" if error.line and error.source else ""
    if not where and error.line:
        where = f" in line {error.line}"
    if error.stage == "copy":
        where += " while weights are copied into your module"
    return f"Your code raises {error.kind}{where}" + (f" — {error.message}" if error.message else "")


def wrong_signature(error: Raised) -> bool:
    """Whether the answer could not even be called: the number of its parameters is another one."""
    return error.kind == "TypeError" and error.line is None and "argument" in error.message


def wrong_call(error: Raised) -> bool:
    """Whether a call in the student's code has another number of arguments than what is called, or other names."""
    says = ("positional argument", "keyword argument", "required keyword-only", "missing a required argument")
    return error.kind == "TypeError" and error.line is not None and any(s in error.message for s in says)


def kind_of(tensor: Tensor) -> str:
    """The kind of number in a tensor, in words."""
    if tensor.dtype == torch.bool:
        return "yes/no values (bool)"
    if tensor.is_complex():
        return "complex numbers"
    return "floating-point numbers" if tensor.is_floating_point() else "whole numbers"


def describe(value: Any) -> str:
    """A received value by type and shape."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, Foreign):
        return value.description
    if isinstance(value, tuple):
        return f"{len(value)} results, in a tuple or a list" if len(value) != 1 else "a tuple or a list of one result"
    if value is None:
        return "None"
    return f"a plain {type(value).__name__}"


def share(wrong: Tensor) -> str:
    """How many of the places are wrong, in words."""
    count, total = int(wrong.sum()), wrong.numel()
    return f"all {total} places" if count == total else f"{count} of {total} places"


def first_place(output: Output, wrong: Tensor) -> str:
    """Where the first wrong place is; nothing where all are."""
    if wrong.all():
        return ""
    position = wrong.nonzero()[0].tolist()
    names = output.axis_names(wrong.dim())
    return ", first at " + ", ".join(f"{n} {i}" for n, i in zip(names, position, strict=True)) + " (counted from 0)"


def confined(output: Output, wrong: Tensor) -> list[str]:
    """Where the differences are confined to a part of an axis."""
    found = []
    for axis, name in enumerate(output.axis_names(wrong.dim())):
        others = [i for i in range(wrong.dim()) if i != axis]
        touched = wrong.any(dim=others) if others else wrong
        if name in ("feature", "vocabulary") or touched.all() or touched.numel() == 1:
            continue
        if 2 * int(touched.sum()) > touched.numel():
            found.append(f"Nothing at {_places(name, ~touched)} is affected.")
        else:
            verb = "is" if int(touched.sum()) == 1 else "are"
            found.append(f"Only {_places(name, touched)} {verb} affected.")
    return found[:2]


_PLURALS = {"batch": "batches", "query": "queries"}


def _places(name: str, chosen: Tensor) -> str:
    """ "batch 1", "queries 0 and 2", "places 0, 1 and 3 of axis 2"."""
    numbers = chosen.nonzero().flatten().tolist()
    listed = in_words(numbers)
    if name.startswith("axis"):
        return f"place{'s' if len(numbers) > 1 else ''} {listed} of {name}"
    return f"{name if len(numbers) == 1 else _PLURALS.get(name, f'{name}s')} {listed}"


def in_words(items: Iterable[Any], last: str = "and") -> str:
    """ "a", "a and b", "a, b and c"."""
    *first, end = map(str, items)
    return f"{', '.join(first)} {last} {end}" if first else end
