"""Grades on an existing Dask cluster: batches of submissions go out, the same results come back.

The course must be installed on every worker, in the same version. How students' code is kept apart depends on the
worker's machine; each result says it. A batch runs in a process of its own, so that whatever happens there leaves the
worker alone.
"""

import base64
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from course_utils.folders import CourseError
from course_utils.grading.model import NEEDS_REVIEW, Result, Submission

ROUNDS = 3  # batches for each thread of the cluster: slow ones even out, and the progress bar moves
SMALLEST, LARGEST = 6, 40  # submissions in a batch: starting a grader takes as long as grading several


def grade_on_cluster(address: str, submissions: list[Submission], *, secret: bytes, timeout: float) -> Iterator[Result]:
    """Grade on the cluster whose scheduler is at `address` ("tcp://host:8786"), in whatever order batches finish.

    Raises CourseError where Dask is not installed, the scheduler does not answer, or a worker lacks the course.
    """
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise CourseError('--dask needs Dask: pip install -e ".[dask]".') from None
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise CourseError(f"--dask {address}: no scheduler answers there ({error}).") from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise CourseError(f"--dask {address}: the cluster has no workers.")
        _same_version(client, address)
        batches = split(submissions, threads)
        # Not pure: a key made from the content would give a second run the results of the first.
        futures = {client.submit(run_batch, packed(b), secret, timeout, pure=False, retries=1): b for b in batches}
        with client.as_current():
            finished = as_completed(futures)
        for future in finished:
            error = future.exception()
            if error is None:
                yield from map(Result.from_dict, future.result())
            else:
                yield from _lost(futures[future], str(error))


def split(submissions: list[Submission], threads: int) -> list[list[Submission]]:
    """Batches for a cluster with so many threads."""
    size = min(LARGEST, max(SMALLEST, math.ceil(len(submissions) / (ROUNDS * threads))))
    return [submissions[i : i + size] for i in range(0, len(submissions), size)]


def packed(submissions: list[Submission]) -> list[dict[str, Any]]:
    """Submissions as plain data."""
    return [{**asdict(s), "raw": base64.b64encode(s.raw).decode()} for s in submissions]


def run_batch(batch: list[dict[str, Any]], secret: bytes, timeout: float) -> list[dict[str, Any]]:
    """Grade some submissions in a process of its own. Runs on a worker."""
    order = json.dumps({"batch": batch, "secret": secret.hex(), "timeout": timeout})
    environment = {**os.environ, "COURSE_REMEMBER": "0", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", __name__], input=order.encode(), capture_output=True, env=environment, check=False
    )
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
        raise RuntimeError(f"the grader ended with {done.returncode}: {last[0][:300]}")
    return json.loads(done.stdout)


def main() -> None:
    """What the process of a batch does: an order on standard input, results on standard output."""
    from course_utils.grading.pool import grade_all

    order = json.load(sys.stdin)
    batch = [Submission(**{**data, "raw": base64.b64decode(data["raw"])}) for data in order["batch"]]
    results = grade_all(batch, 1, secret=bytes.fromhex(order["secret"]), timeout=order["timeout"])
    json.dump([result.to_dict() for result in results], sys.stdout)


def course_version() -> str:
    """What a machine has of the course. Runs on the workers."""
    from course_utils.grading.executor import version

    return version()


def _same_version(client: Any, address: str) -> None:
    mine = course_version()
    try:
        found = client.run(course_version)
    except Exception as error:  # whatever a worker raises comes back as it is
        raise CourseError(f"--dask {address}: a worker cannot grade: {error}. Install the course on it.") from None
    other = [worker for worker, theirs in found.items() if theirs != mine]
    if other:
        raise CourseError(
            f"--dask {address}: the course on {', '.join(other)} is not the one here. "
            "Install the same version everywhere."
        )


def _lost(batch: list[Submission], error: str) -> Iterator[Result]:
    from course_utils.grading.records import whole

    for s in batch:
        reason = f"The cluster failed at this submission: {error[:300]}"
        more = {"late": s.late, "submitted": s.submitted, "origin": s.origin}
        yield whole(s.student, s.notebook, NEEDS_REVIEW, reason, **more)


if __name__ == "__main__":
    main()
