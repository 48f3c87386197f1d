"""Grades many submissions at the same time, in workers with a grader each. One that dies costs one submission."""

import contextlib
import multiprocessing
import os
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from course_utils.folders import CourseError
from course_utils.grading.model import NEEDS_REVIEW, SECONDS, Result, Submission

LOST = "The grader's own process ended over this submission. Somebody has to look at it."


def default_jobs() -> int:
    """As many workers as this process may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def grade_all(
    submissions: Iterable[Submission],
    jobs: int | None = None,
    *,
    secret: bytes,
    timeout: float = SECONDS,
    isolation: str = "auto",
) -> Iterator[Result]:
    """The results, each as soon as it is there, in no particular order.

    jobs: number of workers, by default one a core. The others as in `Grader`. Raises CourseError where no worker can
    start. Closing the iterator ends the workers.
    """
    waiting = iter(submissions)
    workers: list[_Worker] = []
    options = (secret, timeout, isolation)
    try:
        first = next(waiting, None)
        if first is None:
            return
        workers = [_Worker(options) for _ in range(max(1, jobs or default_jobs()))]
        upcoming: Iterator[Submission] = _then(first, waiting)
        idle = list(workers)
        while True:
            while idle and (submission := next(upcoming, None)) is not None:
                idle.pop().begin(submission)
            busy = [worker for worker in workers if worker.submission is not None]
            if not busy:
                return
            ready = wait([worker.connection for worker in busy])
            for worker in [worker for worker in busy if worker.connection in ready]:
                result = worker.end()
                if result is None:  # it died
                    result = _lost(worker.submission, options)
                    worker.close()
                    workers.remove(worker)
                    worker = _Worker(options)  # noqa: PLW2901  (in its place)
                    workers.append(worker)
                worker.submission = None
                idle.append(worker)
                yield result
    finally:
        for worker in workers:
            worker.close()


def _then(first: Submission, others: Iterator[Submission]) -> Iterator[Submission]:
    yield first
    yield from others


class _Worker:
    """A process with a grader, and the submission it has."""

    def __init__(self, options: tuple[Any, ...]) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would share torch's and the sandbox's state
        self.connection, other = context.Pipe()
        self.submission: Submission | None = None
        self._process = context.Process(target=_work, args=(other, *options), daemon=True)
        self._process.start()
        other.close()

    def begin(self, submission: Submission) -> None:
        self.submission = submission
        with contextlib.suppress(OSError):  # it died while nobody looked: `end` finds out
            self.connection.send(submission)

    def end(self) -> Result | None:
        """What came back; None if the process died. CourseError where it cannot work at all."""
        try:
            answer = self.connection.recv()
        except (EOFError, OSError):
            return None
        if isinstance(answer, CourseError):
            raise answer
        return answer

    def close(self) -> None:
        self.connection.close()
        self._process.join(3)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _work(connection: Connection, secret: bytes, timeout: float, isolation: str) -> None:
    from course_utils.grading.executor import Grader

    with Grader(secret, timeout, isolation) as grader:
        try:
            while True:
                submission = connection.recv()
                try:
                    connection.send(grader.grade(submission))
                except CourseError as exc:
                    connection.send(exc)
        except (EOFError, OSError, KeyboardInterrupt):
            return  # nobody is there any more


def _lost(submission: Submission, options: tuple[Any, ...]) -> Result:
    """The result of a submission over which a worker died."""
    from course_utils.grading.executor import digest_of
    from course_utils.grading.lesson import lesson

    return Result(
        submission.student,
        submission.notebook,
        digest_of(submission, options[0]),
        NEEDS_REVIEW,
        lesson(submission.notebook).without_points(NEEDS_REVIEW, LOST),
        (LOST,),
        late=submission.late,
        submitted=submission.submitted,
        origin=submission.origin,
    )
