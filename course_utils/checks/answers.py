"""An answer that runs in this process: calls a student's function or class and makes values of what happens."""

import contextlib
import inspect
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_utils.checks import doubles, limit, modules, probes
from course_utils.checks.limit import DidNotReturnError
from course_utils.checks.raising import describe_error
from course_utils.checks.values import Call, Double, Foreign, Inside, Outcome, Probe, Raised, leaves

MAX_ELEMENTS = 10**6
MAX_ITEMS = 8
MAX_PRINTED = 2000
NUMPY_NUMBERS = (np.float16, np.float32, np.float64, np.int32, np.int64)


@dataclass
class _Run:
    """One run: what came back, and the tensors that gradients may be asked of."""

    value: Any = None
    more: tuple[Any, ...] = ()
    error: Raised | None = None
    changed: tuple[str, ...] = ()
    tensors: dict[str, Tensor] = field(default_factory=dict)
    module: nn.Module | None = None
    inside: Inside | None = None


class LocalAnswer:
    """A function or class of this process, as an `Answer`."""

    def __init__(self, function: Callable[..., Any], seconds: float | None = None) -> None:
        """seconds: how long a call may take; None for no limit, as for code of the course."""
        self._function = function
        self._seconds = seconds

    def call(self, call: Call) -> Outcome:
        """Run the call on copies of its arguments; see `Answer.call`."""
        try:
            with limit.limit(self._seconds):
                return self._call(call)
        except DidNotReturnError as exc:
            self._seconds = limit.AFTERWARDS
            return Outcome(error=describe_error(exc, self._function))

    def _call(self, call: Call) -> Outcome:
        run = self._run(call, seed=0)
        outcome = {"value": plain(run.value), "error": run.error, "changed": run.changed, "inside": run.inside}
        if run.error is None and call.more:
            outcome["more"] = tuple(plain(value) for value in run.more)
        if run.error is None and call.repeat:
            # The same module once more: it must not remember the call before.
            again = self._run(call, seed=1, module=run.module)
            outcome["second"] = Outcome(value=plain(again.value), error=again.error)
        if run.error is None and call.gradients_of:
            outcome |= self._gradients(call)
        return Outcome(**outcome)

    def _run(
        self, call: Call, seed: int, differentiable: tuple[str, ...] = (), module: nn.Module | None = None
    ) -> _Run:
        given = [{name: _copy(value) for name, value in a.items()} for a in (call.arguments, *call.more)]
        probe = None if call.probe is None else replace(call.probe, params=_copy(call.probe.params))
        run = _Run(tensors=dict(leaves(given[0])), module=module)
        for name in differentiable:
            if name in run.tensors:
                run.tensors[name].requires_grad_(True)
        # Random answers must differ between two calls and yet not between two checks.
        torch.default_generator.manual_seed(seed)
        defaults = _defaults()
        stage = "call"
        try:
            with torch.inference_mode(False), torch.enable_grad():
                function = self._function
                if call.construction is not None:
                    if run.module is None:
                        stage = "make"
                        run.module = modules.make(function, call.construction.arguments)
                        stage = "copy"
                        run.inside = modules.load(run.module, call.construction)
                        stage = "call"
                    function = run.module
                run.value, *others = [_result(function, a, probe) for a in given]
                run.more = tuple(others)
        except (KeyboardInterrupt, DidNotReturnError):
            raise
        except BaseException as exc:  # a student's SystemExit is theirs, not ours
            run.error = describe_error(exc, self._function, stage)
        _put_back(defaults)
        now = dict(leaves(given[0] | ({} if probe is None else probe.params)))
        before = call.arguments | ({} if probe is None else call.probe.params)
        run.changed = tuple(
            name for name, old in leaves(before) if name not in now or not _identical(old, now[name].detach())
        )
        return run

    def _gradients(self, call: Call) -> dict[str, Any]:
        """The entries of an outcome about gradients."""
        nothing: dict[str, Tensor | None] = dict.fromkeys(call.gradients_of)
        run = self._run(call, seed=0, differentiable=call.gradients_of)
        if run.error is not None:
            return {"gradients": nothing, "gradient_error": run.error}
        tensors = {name: run.tensors[name] for name in call.gradients_of if name in run.tensors}
        try:
            if run.module is not None:
                tensors |= _weights(run, call.gradients_of)
            items = _items(run.value) if isinstance(run.value, tuple | list) else [run.value]
            outputs = [items[i] for i in call.through if i < len(items)]
            outputs = [o for o in outputs if isinstance(o, Tensor) and o.requires_grad and o.numel() <= MAX_ELEMENTS]
            inputs = {name: t for name, t in tensors.items() if t.requires_grad}
            found: Sequence[Tensor | None] = [None] * len(inputs)
            if outputs and inputs:
                with torch.inference_mode(False), torch.enable_grad():
                    found = torch.autograd.grad(
                        outputs, list(inputs.values()), [cotangent(o) for o in outputs], allow_unused=True
                    )
            gradients = dict(zip(inputs, found, strict=True))
            own = {n.removeprefix(_OWN): g for n, g in gradients.items() if n.startswith(_OWN)}
            idle = () if run.module is None else modules.idle(run.module, own)
        except (KeyboardInterrupt, DidNotReturnError):
            raise
        except BaseException as exc:
            return {"gradients": nothing, "gradient_error": describe_error(exc, self._function)}
        asked = {name: gradients.get(name) for name in tensors if not name.startswith(_OWN)}
        return {"gradients": {n: None if g is None else plain(g) for n, g in asked.items()}, "idle": idle}


_OWN = "own:"  # marks a parameter under the name that the student gave it


def _weights(run: _Run, asked: tuple[str, ...]) -> dict[str, Tensor]:
    """The weights asked for that the module has by that name, and all of its own parameters."""
    held = {name: modules.weight(run.module, name) for name in asked if name not in run.tensors}
    own = {_OWN + name: p for name, p in modules.listed(run.module).items()}
    return {name: tensor for name, tensor in held.items() if tensor is not None} | own


def cotangent(output: Tensor) -> Tensor:
    """The weights with which gradients flow back from an output."""
    # Uneven on purpose: equal numbers would cancel in a softmax, whose rows sum to one whatever happens.
    return torch.arange(1, output.numel() + 1, dtype=output.dtype).mul(1.7).sin().reshape(output.shape)


def _result(function: Callable[..., Any], arguments: dict[str, Any], probe: Probe | None) -> Any:
    if probe is not None:
        return probes.run(function, arguments, probe)
    return function(*(_build(value) for value in arguments.values()))


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
        if type(value) in NUMPY_NUMBERS:
            value = value.item()
        if value is None or type(value) in (bool, int, float, str, Foreign):
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
    except (KeyboardInterrupt, DidNotReturnError):
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


def _defaults() -> tuple[torch.dtype, torch.device]:
    return torch.get_default_dtype(), torch.get_default_device()


def _put_back(defaults: tuple[torch.dtype, torch.device]) -> None:
    """Make new tensors as before: an answer may have chosen another dtype or device for all that follow."""
    dtype, device = defaults
    if torch.get_default_dtype() != dtype:
        torch.set_default_dtype(dtype)
    if torch.get_default_device() != device:  # None and not the CPU by name, which would slow every call down
        torch.set_default_device(None if device.type == "cpu" else device)


@contextlib.contextmanager
def untouched() -> Iterator[None]:
    """Put back what a student's code may leave changed: random states, dtype, threads, print, warnings."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    threads, limit = torch.get_num_threads(), sys.getrecursionlimit()
    grad, defaults = torch.is_grad_enabled(), _defaults()
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
        _put_back(defaults)
