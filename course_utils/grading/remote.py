"""A student's notebook in a process of its own: its cells are run there, and what they define is an `Answer`."""

import math
import re
import time
from dataclasses import dataclass, field
from typing import Any

from course_utils.checks.values import Call, Outcome, Raised
from course_utils.grading import wire
from course_utils.grading.sandbox import Child, Gone, Sandbox

MARGIN = 2.0  # seconds beyond its time that a cell or call has to notice the end by itself; then the process is killed
SHORT = 2.0  # seconds for a call after one that did not return
MAX_LOST_CELLS = 5
MAX_LOST_CALLS = 3
MAX_NOTES = 8
CELL_FILE = re.compile(r"<ipython-input-[^>]*>,? ?")  # what IPython calls a cell, in the message of a SyntaxError
WHOLE = 30  # times the time of one cell or call: for everything in one notebook
BUDGET = 4  # times the time of one cell or call: for all cells together, and for all calls of one exercise


@dataclass(frozen=True)
class Piece:
    """A cell to run: its name for notes, its source, its place in the submission; below 0 for the course's own."""

    name: str
    source: str
    place: int
    grade_id: str | None = None


@dataclass
class Told:
    """What is known of a submission, whichever process found it out.

    lost: places of cells that hung or ended the process; they are left out from then on.
    choices: for each cell that was run, the questions it answered.
    ended: for each cell that did not run to its end, how it ended.
    seconds: how long all of it may take, from the first request on.
    """

    seconds: float = math.inf
    until: float | None = None

    lost: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    choices: dict[int, list[tuple[str, Any]]] = field(default_factory=dict)
    ended: dict[int, str] = field(default_factory=dict)

    def used_up(self) -> bool:
        """Whether the time for the whole notebook is over."""
        if self.until is None:
            self.until = time.monotonic() + self.seconds
        return time.monotonic() > self.until

    def note(self, text: str) -> None:
        if text not in self.notes and len(self.notes) < MAX_NOTES:
            self.notes.append(text)


class Desk:
    """Where one student's cells run, one after the other as in a kernel. A context manager.

    A process that ends is replaced by another, in which the same cells run again.
    exercise: for a process in which only its reference is missing; None for the lesson's.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        notebook: str,
        pieces: list[Piece],
        told: Told,
        seconds: float,
        exercise: str | None = None,
    ) -> None:
        self._sandbox, self._place = sandbox, (notebook, exercise)
        self._pieces, self._told, self.seconds = pieces, told, seconds
        self._child: Child | None = None
        self._wanted = self._done = 0
        self._failed: list[str] = []
        self.refused: set[str] = set()

    def __enter__(self) -> "Desk":
        return self

    def __exit__(self, *_: Any) -> None:
        if self._child is not None:
            self._child.close()

    def run(self, count: int, failed: list[str]) -> None:
        """From now on the first `count` cells have run when something is asked; those before are not run again.

        failed: the exercises whose own answers are known to be wrong.
        """
        self._wanted, self._failed = max(self._wanted, count), list(failed)

    def ask(
        self, header: dict[str, Any], buffers: list[bytes] | None = None, seconds: float | None = None
    ) -> tuple[dict[str, Any], list[bytes]]:
        """The reply of a process in which the cells have run. Gone if it ends over it; the next call gets a new one."""
        return self.ready().request(header, buffers, seconds=(seconds or self.seconds) + MARGIN)

    def end(self) -> None:
        """Give the process up; the next request gets a new one."""
        if self._child is not None:
            self._child.close()

    def ready(self) -> Child:
        """A process in which the cells have run. Gone where there cannot be one, or where all the time is used up."""
        if self._told.used_up():
            self.end()
            raise Gone(f"has used up the {self._told.seconds:g} seconds that a whole notebook may take")
        while self._child is None or not self._child.alive or self._done < self._wanted:
            if len(self._told.lost) > MAX_LOST_CELLS:
                raise Gone("does not run: too many of its cells hang or end the process")
            if self._child is None or not self._child.alive:
                self._child, self._done = self._sandbox.spawn(*self._place), 0
            self._run_cells(self._child)
        return self._child

    def _run_cells(self, child: Child) -> None:
        until = time.monotonic() + BUDGET * self.seconds
        while self._done < self._wanted:
            piece = self._pieces[self._done]
            self._done += 1
            if piece.place in self._told.lost:
                continue
            seconds = min(self.seconds, max(until - time.monotonic(), SHORT))
            header = {"op": "cell", "source": piece.source, "seconds": seconds, "failed": self._failed}
            try:
                reply, buffers = child.request(header, seconds=seconds + MARGIN)
                self._note(piece, wire.unpack(reply.get("cell"), buffers, wire.TOLD))
            except (Gone, wire.InvalidMessage, TypeError, KeyError, ValueError) as exc:
                child.close()
                self._told.lost.add(piece.place)
                why = exc.args[0] if isinstance(exc, Gone) else "sent an invalid reply"
                if isinstance(exc, Gone) and exc.timed_out:
                    why = f"did not come to its end within {seconds:g} seconds"
                self._told.ended[piece.place] = why
                if piece.name:
                    self._told.note(f"The cell {piece.name} {why}; the rest was graded without it.")
                return

    def _note(self, piece: Piece, said: Any) -> None:
        error, choices = said["error"], said["choices"]
        if not isinstance(choices, list) or not all(isinstance(c, tuple) and len(c) == 2 for c in choices):
            raise ValueError("no choices")
        if piece.place < 0:
            return
        self._told.choices[piece.place] = [(str(question), choice) for question, choice in choices]
        if isinstance(error, Raised) and error.kind == "DidNotReturnError":
            self._told.lost.add(piece.place)  # another process need not wait for it again
            why = f"did not come to its end within {self.seconds:g} seconds"
            self._told.ended[piece.place] = why
            self._told.note(f"The cell {piece.name} {why}; the rest was graded without it.")
        elif isinstance(error, Raised):
            said = f"{str(error.kind)[:60]}: {str(error.message)[:160]}".removesuffix(": ")
            why = f"stops with an error ({CELL_FILE.sub('', said)})"
            self._told.ended[piece.place] = why
            self._told.note(f"The cell {piece.name} {why}.")


class RemoteAnswer:
    """A function or class that a student's cells define, as an `Answer`: every call crosses to their process."""

    def __init__(self, desk: Desk, name: str) -> None:
        self._desk, self._name, self._seconds = desk, name, desk.seconds
        self._until: float | None = None  # set by the first call: another answer may come before
        self._lost, self._last = 0, Outcome()

    def call(self, call: Call) -> Outcome:
        """See `Answer.call`. An answer that keeps ending its process is not called again and again."""
        if self._lost >= MAX_LOST_CALLS:
            return self._last
        if self._until is None:
            self._until = time.monotonic() + BUDGET * 2 * self._desk.seconds
        left = self._until - time.monotonic()
        if left <= 0:
            spent = f"{BUDGET * 2 * self._desk.seconds:g} seconds for all calls"
            return Outcome(error=Raised("DidNotReturnError", spent))
        packed, buffers = wire.pack(call)
        seconds = min(self._seconds, max(left, SHORT))
        header = {"op": "call", "name": self._name, "seconds": seconds, "call": packed}
        try:
            reply, buffers = self._desk.ask(header, buffers, seconds)
            outcome = wire.outcome_of(reply.get("outcome"), buffers)
            if isinstance(refused := reply.get("refused"), list):
                self._desk.refused.update(name for name in refused if isinstance(name, str))
            if outcome.error is not None and outcome.error.kind == "DidNotReturnError":
                self._seconds = min(self._seconds, SHORT)
                self._lost, self._last = self._lost + 1, outcome
            return outcome
        except Gone as exc:
            kind, message = "no error, but " + str(exc), ""
            if exc.timed_out:
                self._seconds = min(self._seconds, SHORT)
                kind, message = "DidNotReturnError", f"{seconds:g} seconds"
        except wire.InvalidMessage:
            self._desk.end()
            kind, message = "no error, but sent an invalid reply", ""
        self._lost += 1
        self._last = Outcome(error=Raised(kind, message))
        return self._last
