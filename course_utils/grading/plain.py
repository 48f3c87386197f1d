"""Students' processes where a process cannot be forked (Windows): each is a new Python, started when it is needed.

Slower, and nothing is isolated but the process itself; the limits are those that the system has.
"""

import contextlib
import hmac
import json
import os
import secrets
import socket
import subprocess
import sys
from importlib import import_module
from typing import Any

START = 120.0
TOKEN = 32  # bytes with which the new process shows that it is the one that was started


class PlainRoom:
    """Starts a new process for each student; it is told what to do as the warm process of a lesson is."""

    def __init__(self, request: dict[str, Any], paths: list[str], environment: dict[str, str]) -> None:
        self._request, self._paths, self._environment = request, paths, environment
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, limits: dict[str, int]) -> tuple[socket.socket, int]:
        """A connection to a new process, and its number. OSError if it does not start."""
        token = secrets.token_hex(TOKEN // 2)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(START)
            code = (
                f"import sys; sys.path[:] = {[self._request['tree'], *self._paths]!r}\n"
                f"from course_utils.grading.plain import main; main({listener.getsockname()[1]}, {token!r})"
            )
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=self._environment,
                cwd=self._request["tree"],
            )
            self._processes[process.pid] = process
            process.stdin.write(json.dumps({**self._request, "limits": limits}).encode())
            process.stdin.close()
            connection, _ = listener.accept()
        connection.settimeout(START)
        if not hmac.compare_digest(connection.recv(TOKEN), token.encode()):
            raise OSError("something else connected in the place of the student's process")
        return connection, process.pid

    def end(self, pid: int, grace: float) -> int:
        """The exit status of a process, which is killed if it does not end by itself."""
        process = self._processes.pop(pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return _as_shell(process.wait(grace or 0.001))
        process.kill()
        return _as_shell(process.wait())

    def close(self) -> None:
        """End all."""
        for pid in list(self._processes):
            self.end(pid, 0)


def _as_shell(status: int) -> int:
    return status if status >= 0 else 128 - status


def main(port: int, token: str) -> None:
    """A student's process from its start: connects, gets ready, serves."""
    request = json.loads(sys.stdin.buffer.read())
    zygote = import_module("course_utils.grading.zygote")
    zygote.warm_up()
    inside = import_module("course_utils.grading.inside")
    room = inside.Room(request["references"], request["bare"], request["prologue"])
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(token.encode())
    with contextlib.suppress(ImportError):
        jail = import_module("course_utils.grading.jail")
        limits = request["limits"]
        limits["RLIMIT_AS"] += jail.address_space()
        jail.limit_resources(limits)
    room.serve(sock)
    os._exit(0)
