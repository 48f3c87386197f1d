"""Starts and ends the processes in which students' code runs, and talks to them."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.checks import EXERCISES
from course_utils.folders import CourseError
from course_utils.grading import trees, wire
from course_utils.grading.bubblewrap import ENVIRONMENT, bubblewrap, environment, import_paths
from course_utils.grading.lesson import Lesson, lesson, lessons
from course_utils.grading.lesson_code import imports
from course_utils.grading.plain import PlainRoom
from course_utils.grading.zygote import TREES

BUBBLEWRAP, NONE, AUTO = "bubblewrap", "none", "auto"
START = 120.0  # seconds: a cold disk and a busy machine
GRACE = 1.0
MIB = 2**20
LIMITS = {
    "RLIMIT_AS": 2048 * MIB,  # beyond what the process has when it starts
    "RLIMIT_FSIZE": 64 * MIB,
    "RLIMIT_CORE": 0,
    "RLIMIT_NOFILE": 256,
    "RLIMIT_CPU": 300,
    "RLIMIT_NPROC": 64,
}
CAN_FORK = hasattr(os, "fork")  # where a process cannot be forked, each student's is a new one


class Gone(Exception):
    """A student's process is there no longer, or does not answer; the message says how it ended, in words.

    timed_out: whether it was ended because it did not answer.
    """

    def __init__(self, message: str, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class Child:
    """A student's process, ready for requests."""

    def __init__(self, room: "_Room | PlainRoom", sock: socket.socket, pid: int) -> None:
        self._room, self._sock, self._pid = room, sock, pid
        self.alive = True

    def request(
        self, header: dict[str, Any], buffers: list[bytes] | None = None, *, seconds: float
    ) -> tuple[dict[str, Any], list[bytes]]:
        """The reply to a request. Gone if there is none within so many seconds, or none that may be trusted."""
        if not self.alive:
            raise Gone("is not there any more")
        try:
            self._sock.settimeout(seconds)
            wire.send(self._sock, header, buffers)
            return wire.receive(self._sock, seconds)
        except TimeoutError:
            self.close()
            raise Gone(f"{seconds:g} seconds", timed_out=True) from None
        except wire.InvalidMessage:
            self.close()
            raise Gone("sent an invalid reply") from None
        except (EOFError, OSError):
            raise Gone(_how_it_ended(self.close(GRACE))) from None

    def close(self, grace: float = 0.0) -> int:
        """End the process and everything it has started; returns its exit status."""
        if not self.alive:
            return 0
        self.alive = False
        self._sock.close()
        return self._room.end(self._pid, grace)


def _how_it_ended(status: int) -> str:
    """An exit status in words, for a sentence that begins with "your code"."""
    if status in (139, 135, 136, 132, 134):
        return "crashed the Python process (for example a segmentation fault)"
    if status in (137, 9):
        return "was ended by the system: it used too much memory, or ended itself"
    if status in (152, 24):
        return "used up its computing time"
    return f"ended the Python process (exit status {status})" if status else "ended the Python process"


@dataclass
class _Line:
    """A connection on which requests and replies are lines of JSON."""

    sock: socket.socket
    buffer: bytes = b""

    def read(self, seconds: float) -> dict[str, Any]:
        self.sock.settimeout(seconds)
        while b"\n" not in self.buffer:
            piece = self.sock.recv(65536)
            if not piece:
                raise EOFError("the sandbox ended")
            self.buffer += piece
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)

    def write(self, what: dict[str, Any], descriptor: int | None = None) -> None:
        text = json.dumps(what).encode() + b"\n"
        if descriptor is None:
            self.sock.sendall(text)
        else:
            sent = socket.send_fds(self.sock, [text], [descriptor])
            self.sock.sendall(text[sent:])


@dataclass
class _Room:
    """The warm process of one lesson."""

    line: _Line

    def start(self, limits: dict[str, int]) -> tuple[socket.socket, int]:
        """A connection to a new student's process, and its number."""
        ours, theirs = socket.socketpair()
        with theirs:
            self.line.write({"op": "spawn", "limits": limits}, theirs.fileno())
            return ours, self.line.read(START)["pid"]

    def end(self, pid: int, grace: float) -> int:
        """Ends a process that has so many seconds to end by itself; its exit status."""
        self.line.write({"op": "end", "pid": pid, "grace": grace})
        return self.line.read(START)["status"]

    def close(self) -> None:
        self.line.sock.close()


class Sandbox:
    """The warm processes of one worker. A context manager; nothing is left when it is closed.

    isolation: "bubblewrap", "none", or "auto" for the best there is; afterwards the one in use.
    """

    def __init__(self, isolation: str = AUTO) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="course-grade-"))
        self._folder.chmod(0o755)
        self._rooms: dict[str, _Room | PlainRoom] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self.notes: list[str] = []
        self.isolation = NONE
        trees.write_zygote_tree(self._folder / "zygote")
        try:
            self._start(isolation)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _start(self, isolation: str) -> None:
        if isolation != NONE and CAN_FORK:
            try:
                self._launch(bubblewrap(self._folder))
                self.isolation = BUBBLEWRAP
                self._try_out()
                return
            except (OSError, EOFError, CourseError) as exc:
                self._stop()
                if isolation == BUBBLEWRAP:
                    raise CourseError(f"Students' code cannot be isolated with bubblewrap here: {exc}") from None
                self.notes.append(f"no bubblewrap: {exc}")
                self.isolation = NONE
        if CAN_FORK:
            self._launch([])
        else:
            self.notes.append(
                "no processes can be forked on this system: each student's is started anew, which is slow"
            )

    def _launch(self, before: list[str]) -> None:
        """Start the first process; `before` is the command that isolates it."""
        ours, theirs = socket.socketpair()
        zygote = TREES if before else str(self._folder)
        code = (
            f"import sys; sys.path[:] = {[f'{zygote}/zygote', *import_paths()]!r}\n"
            f"from course_utils.grading.zygote import main; main({theirs.fileno()}, {bool(before)})"
        )
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the sandbox)
        with theirs:
            self._process = subprocess.Popen(
                [*before, sys.executable, "-I", "-S", "-c", code],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env=ENVIRONMENT if before else environment(),
                cwd="/" if before else self._folder,
            )
        self._line = _Line(ours)
        try:
            self._line.read(START)
            self._line.read(START)
        except (EOFError, OSError):
            raise EOFError(self._last_words()) from None

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self._errors.seek(0)
        lines = self._errors.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"exit status {self._process.returncode}"

    def _try_out(self) -> None:
        """One student's process on trial: namespaces may be forbidden although bubblewrap starts."""
        child = self.spawn(next(iter(lessons())))
        try:
            child.request({"op": "find", "name": "nothing"}, seconds=START)
        except Gone as exc:
            raise OSError(f"a student's process {exc}") from None
        finally:
            child.close()

    def spawn(self, notebook: str, exercise: str | None = None) -> Child:
        """A new student's process for a lesson; with an exercise, one in which only its reference is missing."""
        name = exercise or notebook
        if name not in self._rooms:
            self._rooms[name] = self._prepare(name, lesson(notebook), [exercise] if exercise else None)
        room = self._rooms[name]
        return Child(room, *room.start(LIMITS))

    def _prepare(self, name: str, form: Lesson, lacking: list[str] | None) -> _Room | PlainRoom:
        """Start the warm process of a lesson."""
        missing = [EXERCISES[exercise] for exercise in lacking or form.exercises]
        trees.write_course_tree(self._folder / name, missing)
        isolated = self.isolation == BUBBLEWRAP
        request = {
            "tree": f"{TREES}/{name}" if isolated else str(self._folder / name),
            "isolated": isolated,
            "references": {n: trees.place_of(e) for n, e in EXERCISES.items()},
            "bare": {e.name: (e.reference.__module__, trees.bare(e.reference.__name__)) for e in missing if e.is_class},
            "prologue": imports(form),
        }
        if self._process is None:
            return PlainRoom(request, import_paths(), environment())
        ours, theirs = socket.socketpair()
        with theirs:
            self._line.write(request, theirs.fileno())
            self._line.read(START)
        room = _Room(_Line(ours))
        ready = room.line.read(START)
        if "failed" in ready:
            raise OSError(f"the sandbox of {name} cannot start: {ready['failed']}")
        return room

    def close(self) -> None:
        """End everything."""
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _stop(self) -> None:
        for room in self._rooms.values():
            room.close()
        self._rooms.clear()
        if self._process is None:
            return
        self._line.sock.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2 * GRACE)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._process = None
        self._errors.close()
