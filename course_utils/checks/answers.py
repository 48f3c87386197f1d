"""An answer that runs in this process: calls a student's function and turns whatever happens into values."""

import contextlib
import inspect
import linecache
import random
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_utils.checks import doubles
from course_utils.checks.values import Call, Double, Foreign, Outcome, Raised, leaves

MAX_ELEMENTS = 10**6
MAX_ITEMS = 8
MAX_MESSAGE = 400
MAX_PRINTED = 2000

# Code that is not the student's: frames in these places are trimmed from an error.
_LIBRARIES = tuple(
    str(Path(place).resolve())
    for place in (
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        Path(torch.__file__).parent.parent,
        Path(__file__).parent.parent,
    )
)


class LocalAnswer:
    """A function of this process, as an `Answer`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def call(self, call: Call) -> Outcome:
        """Run the call on copies of its arguments; see `Answer.call`."""
        value, error, changed, _ = self._run(call.arguments, seed=0)
        outcome = {"value": plain(value), "error": error, "changed": changed}
        if error is None and call.repeat:
            again, again_error, _, _ = self._run(call.arguments, seed=1)
            outcome["second"] = Outcome(value=plain(again), error=again_error)
        if error is None and call.gradients_of:
            outcome["gradients"], outcome["gradient_error"] = self._gradients(call)
        return Outcome(**outcome)

    def _run(
        self, arguments: dict[str, Any], seed: int, differentiable: tuple[str, ...] = ()
    ) -> tuple[Any, Raised | None, tuple[str, ...], dict[str, Tensor]]:
        given = {name: _copy(value) for name, value in arguments.items()}
        tensors = dict(leaves(given))
        for name in differentiable:
            tensors[name].requires_grad_(True)
        # Random answers must differ between two calls and yet not between two checks.
        torch.default_generator.manual_seed(seed)
        dtype = torch.get_default_dtype()
        value, error = None, None
        try:
            with torch.inference_mode(False), torch.enable_grad():
                value = self._function(*(_build(v) for v in given.values()))
        except KeyboardInterrupt:
            raise
        except BaseException as exc:  # a student's SystemExit is theirs, not ours
            error = describe_error(exc, self._function)
        if torch.get_default_dtype() != dtype:
            torch.set_default_dtype(dtype)
        now = dict(leaves(given))
        changed = tuple(
            name for name, before in leaves(arguments) if name not in now or not _identical(before, now[name].detach())
        )
        return value, error, changed, tensors

    def _gradients(self, call: Call) -> tuple[dict[str, Tensor | None], Raised | None]:
        nothing: dict[str, Tensor | None] = dict.fromkeys(call.gradients_of)
        value, error, _, tensors = self._run(call.arguments, seed=0, differentiable=call.gradients_of)
        if error is not None:
            return nothing, error
        inputs = [tensors[name] for name in call.gradients_of]
        try:
            items = _items(value) if isinstance(value, tuple | list) else [value]
            outputs = [items[i] for i in call.through if i < len(items)]
            outputs = [o for o in outputs if isinstance(o, Tensor) and o.requires_grad and o.numel() <= MAX_ELEMENTS]
            if not outputs:
                return nothing, None
            with torch.inference_mode(False), torch.enable_grad():
                found = torch.autograd.grad(outputs, inputs, [_cotangent(o) for o in outputs], allow_unused=True)
        except KeyboardInterrupt:
            raise
        except BaseException as exc:
            return nothing, describe_error(exc, self._function)
        return {n: None if g is None else plain(g) for n, g in zip(call.gradients_of, found, strict=True)}, None


def _cotangent(output: Tensor) -> Tensor:
    # Uneven on purpose: equal numbers would cancel in a softmax, whose rows sum to one whatever happens.
    return torch.arange(1, output.numel() + 1, dtype=output.dtype).mul(1.7).sin().reshape(output.shape)


def _copy(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: _copy(entry) for key, entry in value.items()}
    return value


def _build(value: Any) -> Any:
    return doubles.build(value) if isinstance(value, Double) else value


def _identical(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and bool(torch.equal(a, b))


def _items(value: tuple[Any, ...] | list[Any]) -> list[Any]:
    """The first items of a sequence, without calling a method that a subclass may have replaced."""
    base = tuple if isinstance(value, tuple) else list
    return [base.__getitem__(value, i) for i in range(min(base.__len__(value), MAX_ITEMS + 1))]


def plain(value: Any, depth: int = 0) -> Any:
    """The value in a form that can be compared without running any code of the student's."""
    try:
        if isinstance(value, Tensor):
            return _plain_tensor(value)
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, tuple | list):
            items = _items(value)
            if depth > 1 or len(items) > MAX_ITEMS:
                return Foreign(f"a {type(value).__name__} of many items")
            return tuple(plain(item, depth + 1) for item in items)
        if inspect.iscoroutine(value) or inspect.isgenerator(value):
            value.close()  # one that never ran would complain later
        kind = type(value)
        where = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
        return Foreign(f"{where}{kind.__name__}"[:100])
    except KeyboardInterrupt:
        raise
    except BaseException:
        return Foreign("an object that cannot be looked at")


def _plain_tensor(value: Tensor) -> Tensor | Foreign:
    with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
        value = value.detach()
        if value.layout != torch.strided or value.is_quantized or value.device.type == "meta":
            return Foreign(f"a tensor with layout {value.layout} on {value.device}")
        if value.numel() > MAX_ELEMENTS:
            return Foreign(f"a tensor of shape {tuple(value.shape)}")
        return torch.empty(value.shape, dtype=value.dtype).copy_(value)


def describe_error(exc: BaseException, function: Callable[..., Any]) -> Raised:
    """The exception in one line, with the deepest line of the student's own code."""
    try:
        message = " ".join(str(exc).split())[:MAX_MESSAGE]
    except BaseException:
        message = ""
    code = getattr(inspect.unwrap(function) if inspect.isfunction(function) else function, "__code__", None)
    own_file = getattr(code, "co_filename", None)
    last, by_student = None, False
    for frame, number in _frames(exc.__traceback__):
        file = frame.f_code.co_filename
        by_student = file == own_file or not _is_library(file)
        if by_student:
            last = file, number
    if last is None:
        return Raised(type(exc).__name__, message)
    source = linecache.getline(*last).strip()[:200]
    return Raised(type(exc).__name__, message, last[1], source, by_student)


def _frames(traceback: TracebackType | None) -> Iterator[tuple[Any, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _is_library(file: str) -> bool:
    return file.startswith((*_LIBRARIES, "<frozen", "<string>"))


class _FewLines:
    """Passes the first printed characters on and swallows the rest: a check calls a function many times."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._left = stream, MAX_PRINTED

    def write(self, text: str) -> int:
        if self._left > 0:
            self._stream.write(text[: self._left])
            self._left -= len(text)
            if self._left <= 0:
                self._stream.write("\n(what your function prints from here on is not shown)\n")
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def untouched() -> Iterator[None]:
    """Put back what a student's code may leave changed: random states, dtype, threads, print, warnings."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    threads, limit = torch.get_num_threads(), sys.getrecursionlimit()
    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    stdout, stderr = sys.stdout, sys.stderr
    try:
        with warnings.catch_warnings(), torch.inference_mode(False), torch.enable_grad():
            warnings.simplefilter("ignore")
            sys.stdout, sys.stderr = _FewLines(stdout), _FewLines(stderr)
            torch.set_num_threads(1)  # tensors are tiny here; a second thread only waits, on a busy machine for long
            yield
    finally:
        sys.stdout, sys.stderr = stdout, stderr
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        sys.setrecursionlimit(limit)
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
