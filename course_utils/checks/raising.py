"""Makes a value of an exception: what it says, the student's own line, and whose code raised it."""

import inspect
import linecache
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

import torch

from course_utils.checks.values import Raised

MAX_MESSAGE = 400

# Code that is not the student's: frames in these places are trimmed from an error.
_LIBRARIES = tuple(
    str(Path(place).resolve())
    for place in (
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        Path(torch.__file__).parent.parent,
        Path(__file__).parent.parent,
    )
)


def describe_error(exc: BaseException, function: Callable[..., Any], stage: str = "call") -> Raised:
    """The exception in one line, with the deepest line of the student's own code."""
    try:
        message = " ".join(str(exc).split())[:MAX_MESSAGE]
    except BaseException:
        message = ""
    own_file, own_code = _file_of(function), _code_of(function)
    last, by_student = None, False
    for frame, number in _frames(exc.__traceback__):
        file = frame.f_code.co_filename
        by_student = file == own_file or not _is_library(file)
        if by_student:
            last = file, number, frame.f_code
    if last is None:
        return Raised(type(exc).__name__, message, stage=stage)
    *place, code = last
    within = _called(code) if own_code and code not in own_code else ""
    source = linecache.getline(*place).strip()[:200]
    return Raised(type(exc).__name__, message, place[1], source, by_student, stage, within)


def _file_of(function: Callable[..., Any]) -> str | None:
    """Where a function, or a method of a class, was written."""
    if isinstance(function, type):
        function = next((f for f in vars(function).values() if inspect.isfunction(f)), function)
    code = getattr(inspect.unwrap(function) if inspect.isfunction(function) else function, "__code__", None)
    return getattr(code, "co_filename", None)


def _code_of(function: Callable[..., Any]) -> set[CodeType]:
    """The code of a function, or of all methods of a class, with the functions written inside; empty if unknown."""
    if isinstance(function, type):
        written = [f for base in function.__mro__ for f in vars(base).values() if inspect.isfunction(f)]
    else:
        written = [function] if inspect.isfunction(function) else []
    found: set[CodeType] = set()
    left = [code for f in written for code in (f.__code__, inspect.unwrap(f).__code__)]
    while left:
        code = left.pop()
        if code not in found:
            found.add(code)
            left += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return found


def _called(code: CodeType) -> str:
    """The name by which a student knows this code: that of the function, or of the class of a method."""
    return code.co_qualname.rpartition("<locals>.")[2].partition(".")[0]


def _frames(traceback: TracebackType | None) -> Iterator[tuple[Any, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _is_library(file: str) -> bool:
    return file.startswith((*_LIBRARIES, "<frozen", "<string>"))
