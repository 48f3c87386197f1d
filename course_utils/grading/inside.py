"""What serves in a student's process: runs cells, finds what they defined, calls it.

The calls are made by the same code as in the notebook (`LocalAnswer`), so that what happens there happens here. Nothing
said by this process is trusted: the student's code could say it as well.
"""

import io
import os
import random
import socket
import sys
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import nn

from course_utils.checks import limit, modules
from course_utils.checks.answers import LocalAnswer, plain, untouched
from course_utils.checks.raising import describe_error
from course_utils.checks.values import Outcome
from course_utils.grading import refusal, stand_ins, wire

SEED = 0
MAX_OUTPUT = 20_000


class Bounded(io.TextIOBase):
    """Takes whatever is printed, and keeps the first characters of it."""

    def __init__(self) -> None:
        self.kept, self.left = [], MAX_OUTPUT

    def write(self, text: str) -> int:
        if self.left > 0 and isinstance(text, str):
            self.kept.append(text[: self.left])
            self.left -= len(text)
        return len(text)

    def writable(self) -> bool:
        return True


class Room:
    """Everything that is ready before a student's code comes: the stand-ins, and the imports of the lesson.

    references: module and name of each exercise's reference. bare: for an exercise that is a class and whose reference
    is not there, module and name of what `modules.REFERENCES` gets. prologue: the lesson's own imports.
    """

    def __init__(self, references: dict[str, Any], bare: dict[str, Any], prologue: list[str]) -> None:
        from IPython.core.interactiveshell import InteractiveShell

        self.shell = InteractiveShell.instance()
        self.run_cell = self.shell.run_cell  # as it is now, whatever a cell puts in its place
        for name in ("system", "system_raw", "system_piped"):
            setattr(self.shell, name, _no_command)
        self.shell.getoutput = _no_command
        self.shell.enable_gui = self.shell.enable_matplotlib = _no_window
        self.classroom = stand_ins.Classroom({n: tuple(place) for n, place in references.items()}, self.shell.user_ns)
        stand_ins.install(self.classroom)
        for name, (module, attribute) in bare.items():
            modules.REFERENCES[name] = getattr(import_module(module), attribute)
        self.missing = [statement for statement in prologue if not self._runs(statement)]
        torch.set_flush_denormal(True)  # as `setup` does

    def _runs(self, statement: str) -> bool:
        try:
            exec(compile(statement, "<lesson>", "exec"), self.shell.user_ns)
        except Exception:  # a package of the lesson that this machine does not have
            return False
        return True

    def serve(self, sock: socket.socket) -> None:
        """Answer requests until the other side is gone."""
        os.register_at_fork(after_in_child=sock.close)  # a process that a cell forks answers nobody
        random.seed(SEED)
        np.random.seed(SEED)
        torch.manual_seed(SEED)
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115  (input() must find an end)
        while True:
            try:
                request, buffers = wire.receive(sock)
            except EOFError:
                return
            sys.stdout = sys.stderr = Bounded()
            wire.send(sock, *self._reply(request, buffers))

    def _reply(self, request: dict[str, Any], buffers: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        kind = request["op"]
        if kind == "cell":
            self.classroom.failed = frozenset(request["failed"])
            return self._cell(request["source"], request["seconds"])
        if kind == "find":
            return self._find(request["name"]), []
        call = wire.unpack(request["call"], buffers, wire.ASKED)
        try:
            with untouched():
                outcome = LocalAnswer(self.shell.user_ns[request["name"]], request["seconds"]).call(call)
        except BaseException as exc:  # around the call itself: another default device, a torch that was replaced
            outcome = Outcome(error=describe_error(exc, _nobody))
        packed, out = wire.pack(outcome)
        return {"outcome": packed, "refused": sorted(refusal.called)}, out

    def _cell(self, source: str, seconds: float) -> tuple[dict[str, Any], list[bytes]]:
        """Run a cell; says which error ended it, and which questions it answered."""
        before = len(self.classroom.choices)
        error: BaseException | None = None
        try:
            with limit.limit(seconds):
                result = self.run_cell(source, store_history=False)
            error = result.error_before_exec or result.error_in_exec
        except limit.DidNotReturnError as exc:  # outside the cell itself, in IPython's own code
            error = exc
        choices = [(question, plain(choice)) for question, choice in self.classroom.choices[before:]]
        packed, out = wire.pack({"choices": choices, "error": error and describe_error(error, _nobody)})
        return {"cell": packed}, out

    def _find(self, name: str) -> dict[str, Any]:
        """What kind of thing a name stands for."""
        if name not in self.shell.user_ns:
            return {"kind": "missing", "type": ""}
        value = self.shell.user_ns[name]
        kind = "value"
        if isinstance(value, type):
            kind = "class"
        elif isinstance(value, nn.Module):
            kind = "instance"
        elif callable(value):
            kind = "function"
        return {"kind": kind, "type": type(value).__name__[:60]}


def _no_command(command: str = "", *_: Any, **__: Any) -> list[str]:
    """Stands for lines that begin with "!": nothing is installed or fetched while a notebook is graded."""
    return []


def _no_window(*_: Any, **__: Any) -> tuple[None, str]:
    """Stands for `%matplotlib`: figures are drawn without a window, and nobody looks at them."""
    return None, "agg"


def _nobody() -> None:
    """Stands for the function whose error is described, where there is none."""
