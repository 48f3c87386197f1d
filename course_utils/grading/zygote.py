"""The warm process: has imported torch and IPython, knows nothing of the course, and forks what runs students' code.

First it forks a process for each lesson, which imports the lesson's tree of the course; from those the students'
processes are forked, one for each student, locked up before they see a line of anybody's code.
Everything is single-threaded: a fork would lose other threads. Nothing here may run backward for the same reason.
"""

import contextlib
import gc
import io
import json
import os
import select
import signal
import socket
import sys
import time
from importlib import import_module
from typing import Any

from course_utils.grading import jail

FRESH = 1 << 20
MANY = 4096  # processes that a user may have anyway, where that cannot be counted
TREES, COURSE = "/trees", "/course"


def main(control: int, isolated: bool) -> None:
    """Serve requests on the socket with this number, until its other end is closed."""
    sock = socket.socket(fileno=control)
    if isolated and os.getuid() == 0:
        jail.become_nobody()
    sock.sendall(b'{"ready": true}\n')
    warm_up()
    gc.collect()
    gc.freeze()
    sock.sendall(b'{"warm": true}\n')
    for request, descriptors in requests(sock):
        (end,) = descriptors
        pid = os.fork()
        if pid == 0:
            sock.close()
            serve_lesson(socket.socket(fileno=end), request)
        os.close(end)
        answer(sock, pid=pid)
    os._exit(0)


def requests(sock: socket.socket) -> Any:
    """Each request, a JSON object in a line, with the file descriptors that came with it."""
    buffer, descriptors = b"", []
    while True:
        while b"\n" not in buffer:
            piece, found, _, _ = socket.recv_fds(sock, FRESH, 4)
            if not piece:
                return
            buffer += piece
            descriptors += found
        line, _, buffer = buffer.partition(b"\n")
        yield json.loads(line), descriptors
        descriptors = []


def answer(sock: socket.socket, **what: Any) -> None:
    sock.sendall(json.dumps(what).encode() + b"\n")


def warm_up() -> Any:
    """Import what every notebook needs and run IPython's machinery once; returns the shell."""
    import torch

    torch.set_num_threads(1)
    for name in ("torch.nn.functional", "torch.optim", "torch.utils.flop_counter", "numpy", "jaxtyping", "matplotlib"):
        import_module(name)
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.cache_size = 0
    shell = InteractiveShell.instance(config=config)
    # A traceback costs more than the cell, and nobody reads it here.
    shell.showtraceback = shell.showsyntaxerror = shell.showindentationerror = lambda *_, **__: None
    streams = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = io.StringIO()
    for cell in ("1", "1 / 0", "%who", "import torch\n(torch.ones(2, 2) @ torch.ones(2, 2)).softmax(-1)"):
        shell.run_cell(cell, store_history=False)
    shell.reset(new_session=False)
    sys.stdout, sys.stderr = streams
    for name in _imported_by_training():
        with contextlib.suppress(ImportError):
            import_module(name)
    return shell


def _imported_by_training() -> list[str]:
    """The modules that torch imports at the first backward pass and the first steps, which must not happen here.

    A process of their own tries it out: a second of imports for each student's process would cost more than the rest.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            import torch

            before = set(sys.modules)
            model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.LayerNorm(2), torch.nn.Dropout(0.1))
            for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
                step = kind(model.parameters(), lr=0.1)
                loss = torch.nn.functional.cross_entropy(model(torch.ones(2, 2)), torch.tensor([0, 1]))
                torch.autograd.grad([loss], list(model.parameters()), [torch.ones(())], retain_graph=True)
                step.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                step.step()
            os.write(writing, "\n".join(n for n in sys.modules if n not in before).encode()[:60_000])
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:  # noqa: PTH123  (a descriptor)
        names = pipe.read().split()
    os.waitpid(pid, 0)
    return names


def serve_lesson(sock: socket.socket, request: dict[str, Any]) -> None:
    """The process of one lesson: imports its tree, then forks a student's process for each request."""
    try:
        jail.die_with_parent()
        isolated = request["isolated"]
        tree = request["tree"]
        if isolated:
            jail.show_only(tree, COURSE, TREES)
            tree = COURSE
        for name in [name for name in sys.modules if name.split(".")[0] == "course_utils"]:
            del sys.modules[name]
        sys.path[0] = tree
        inside = import_module("course_utils.grading.inside")
        room = inside.Room(request["references"], request["bare"], request["prologue"])
        space = jail.address_space()
        gc.collect()
        gc.freeze()
    except BaseException as exc:
        answer(sock, failed=f"{type(exc).__name__}: {exc}")
        os._exit(1)
    answer(sock, ready=True, missing=room.missing)
    for asked, descriptors in requests(sock):
        if asked["op"] == "spawn":
            (end,) = descriptors
            pid = os.fork()
            if pid == 0:
                sock.close()
                _student(socket.socket(fileno=end), room, asked["limits"], space, isolated)
            os.close(end)
            answer(sock, pid=pid)
        else:
            answer(sock, status=_end(asked["pid"], asked["grace"]))
    os._exit(0)


def _end(pid: int, grace: float) -> int:
    """The exit status of a student's process, which has so many seconds to end by itself before it is killed."""
    if grace:
        # A descriptor for the process becomes readable when it ends: nothing is polled.
        descriptor = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
        if descriptor is None:
            time.sleep(grace)
        else:
            select.select([descriptor], [], [], grace)
            os.close(descriptor)
    try:
        os.kill(pid, signal.SIGTERM)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except (ProcessLookupError, ChildProcessError):
        return 0


def _student(sock: socket.socket, room: Any, limits: dict[str, int], space: int, isolated: bool) -> None:
    """Becomes the keeper of a student's process: waits for it, kills it when told to, hands its status on."""
    try:
        jail.die_with_parent()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        if isolated:
            jail.new_namespaces(jail.NEWNS | jail.NEWPID | jail.NEWIPC | jail.NEWUTS)
        else:
            jail.adopt_orphans()
        pid = os.fork()
        if pid == 0:
            _locked(sock, room, limits, space, isolated)
    except BaseException as exc:
        _report_failure(sock, exc)
        os._exit(1)
    sock.close()

    def stop(*_: Any) -> None:
        os.kill(pid, signal.SIGKILL)

    signal.signal(signal.SIGTERM, stop)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])  # in a namespace of its own, all others die with it
    if not isolated:
        jail.kill_descendants()
    os._exit(status if status >= 0 else 128 - status)


def _locked(sock: socket.socket, room: Any, limits: dict[str, int], space: int, isolated: bool) -> None:
    try:
        jail.die_with_parent()
        os.setsid()
        if isolated:
            jail.first_to_go()
            jail.own_folders()
            os.chdir(jail.SCRATCH)
        if space and "RLIMIT_AS" in limits:
            limits["RLIMIT_AS"] += space
        if not isolated:  # in a namespace of its own nobody else's processes are counted
            limits["RLIMIT_NPROC"] += jail.tasks_of_user() or MANY
        jail.limit_resources(limits)
        if isolated:
            jail.give_up_privileges()
    except BaseException as exc:
        _report_failure(sock, exc)
        os._exit(1)
    try:
        room.serve(sock)
    except BaseException:
        os._exit(3)
    os._exit(0)


def _report_failure(sock: socket.socket, exc: BaseException) -> None:
    """In the form of a message of wire.py, which is not at hand in this process."""
    text = json.dumps({"failed": f"{type(exc).__name__}: {exc}"}).encode()
    sock.sendall(len(text).to_bytes(4, "little") + bytes(4) + text)
