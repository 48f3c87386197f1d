"""The command `course grade`: from what was handed in to grades, feedback pages and a report."""

import argparse
import os
import secrets
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from course_utils.folders import CourseError
from course_utils.grading.exports import EXPORTS
from course_utils.grading.intake import UNKNOWN, Collected, collect
from course_utils.grading.model import (
    NEEDS_REVIEW,
    NOT_SUBMITTED,
    SECONDS,
    STATES,
    UNREADABLE,
    Result,
    Submission,
    Unreadable,
)
from course_utils.grading.progress import Progress
from course_utils.grading.records import Records, did_run, waiting_answers, whole
from course_utils.grading.results import Store
from course_utils.grading.roster import Roster, read_roster
from course_utils.grading.settings import Settings, read_settings

FAILED, STOPPED = 3, 130

EPILOG = (
    "PATH is a notebook, a folder or an archive; what Canvas, Moodle, Gradescope, GitHub Classroom and nbgrader "
    "make of submissions is recognised. Run the same command again after an interruption, or with late files only: "
    "what is done is kept. Ends with 0 if everything has a result, 3 if the grader failed somewhere. See "
    "docs/instructors.md."
)


def add_grade(command: argparse.ArgumentParser) -> None:
    """The arguments of `course grade`."""
    command.epilog = EPILOG
    command.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="what students handed in")
    command.add_argument("--out", type=Path, default=Path("graded"), metavar="DIR", help="where results go (graded/)")
    command.add_argument("--roster", type=Path, metavar="CSV", help="the class; its columns are in docs/instructors.md")
    command.add_argument("--settings", type=Path, metavar="FILE", help="weights, deadlines, late policy (TOML)")
    command.add_argument("--jobs", type=int, metavar="N", help="submissions at a time (the number of processors)")
    command.add_argument("--timeout", type=float, default=SECONDS, metavar="S", help="seconds for one call (10)")
    command.add_argument("--secret", type=Path, metavar="FILE", help="seed of the hidden cases (DIR/secret.key)")
    command.add_argument(
        "--gradebook", metavar="URL", help="fill an nbgrader gradebook: sqlite:///… or postgresql+psycopg://…"
    )
    command.add_argument("--dask", metavar="ADDRESS", help="grade on an existing Dask cluster: tcp://host:8786")
    command.add_argument(
        "--export", action="append", choices=list(EXPORTS), default=[], help="also write its import file"
    )
    command.add_argument(
        "--export-from",
        action="append",
        type=Path,
        default=[],
        metavar="CSV",
        help="the platform's own file, to be filled in",
    )


def run_grade(options: argparse.Namespace, rest: list[str]) -> int:
    """Grade; returns the exit code. Raises CourseError for what has to be put right first."""
    os.environ["COURSE_REMEMBER"] = "0"
    if options.jobs is not None and options.jobs < 1:
        raise CourseError(f"--jobs {options.jobs}: at least 1 submission at a time.")
    if not options.timeout > 0:
        raise CourseError(f"--timeout {options.timeout:g}: a number of seconds above 0.")
    from course_utils.grading.tables import read_marks

    settings = read_settings(options.settings)
    roster = read_roster(options.roster) if options.roster else None
    options.out.mkdir(parents=True, exist_ok=True)
    marks = read_marks(options.out / "marks.csv")
    secret = read_secret(options.secret, options.out)
    collected = collect(options.paths, roster, leave_out=options.out)
    tell_collected(collected)
    store = Store(options.out)
    people = store.people(_with_roster(collected, roster))
    store_refused(collected, store)
    try:
        again = grade(collected, store, settings, options, secret)
    except KeyboardInterrupt:
        print(
            "\nStopped. What is done is kept: run the same command again, and it goes on from there.", file=sys.stderr
        )
        return STOPPED
    records = Records(tuple(store.all()), people, tuple(roster.people) if roster else (), settings, marks)
    notes = write_everything(records, collected, options)
    tell_summary(records, options.out, again, notes)
    return FAILED if any(result.state == NEEDS_REVIEW for result in records.results) else 0


def read_secret(path: Path | None, out: Path) -> bytes:
    """The seed of the hidden cases; made once for each folder of results, where none is given."""
    if path is None:
        path = out / "secret.key"
        if not path.exists():
            path.write_text(secrets.token_hex(32) + "\n", encoding="ascii")
            path.chmod(0o600)
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise CourseError(f"--secret {path}: {error.strerror}.") from None
    if len(secret) < 8:
        raise CourseError(f"--secret {path} holds {len(secret)} characters; 8 are the least that nobody guesses.")
    return secret


def grade(collected: Collected, store: Store, settings: Settings, options: argparse.Namespace, secret: bytes) -> int:
    """Grade what is not kept from before; returns how many were kept."""
    from course_utils.grading.executor import digest_of

    submissions = [
        replace(s, late=s.late or settings.days_late(s.notebook, s.submitted) > 0) for s in collected.submissions
    ]
    todo = [s for s in submissions if store.known(s, digest_of(s, secret)) is None]
    by_key = {(s.student, s.notebook): s for s in todo}
    progress = Progress(len(todo))
    try:
        for result in _grader(todo, options, secret):
            store.put(result, code_of(by_key[result.student, result.notebook]))
            progress.step(f"{result.student}: {result.state}")
    finally:
        progress.close()
    return len(submissions) - len(todo)


def _grader(todo: list[Submission], options: argparse.Namespace, secret: bytes) -> Iterator[Result]:
    if not todo:
        return iter(())
    if options.dask:
        from course_utils.grading.cluster import grade_on_cluster

        return grade_on_cluster(options.dask, todo, secret=secret, timeout=options.timeout)
    from course_utils.grading.pool import default_jobs, grade_all

    jobs = min(options.jobs or default_jobs(), len(todo))
    return grade_all(todo, jobs, secret=secret, timeout=options.timeout)


def code_of(submission: Submission) -> dict[str, str]:
    """The student's code by cell, for the search for similar answers."""
    from course_utils.grading.rebuild import take

    code: dict[str, str] = {}
    try:
        for name, source in take(submission.raw, submission.notebook).cells:
            key = name or "added cells"
            code[key] = f"{code[key]}\n{source}" if key in code else source
    except Unreadable:
        return {}
    return {name: source for name, source in code.items() if not name.startswith("answer_")}


def store_refused(collected: Collected, store: Store) -> None:
    """Keep a result for files that cannot even be read."""
    for refused in collected.refused:
        store.put(whole(refused.student, refused.notebook, UNREADABLE, refused.reason, origin=refused.origin), {})


def write_everything(records: Records, collected: Collected, options: argparse.Namespace) -> list[str]:
    """Write all files but the results themselves; returns sentences about exports and the gradebook."""
    from course_utils.grading.exports import export
    from course_utils.grading.feedback import write_feedback
    from course_utils.grading.report import Run, write_report
    from course_utils.grading.tables import write_tables

    notes = []
    if options.gradebook:
        from course_utils.grading.gradebook import fill

        records, said = fill(options.gradebook, records, options.out)
        notes += said
    write_tables(options.out, records)
    write_feedback(options.out, records)
    write_report(options.out, records, Run(collected.lines, collected.platforms, collected.strangers))
    for kind in dict.fromkeys(options.export):
        notes += export(kind, options.out, records, options.export_from)
    return notes


def tell_collected(collected: Collected) -> None:
    """Say what was found, before the long part begins."""
    lessons = Counter(s.notebook for s in collected.submissions)
    found = (
        ", ".join(f"{n} of {notebook}" for notebook, n in sorted(lessons.items())) or "no notebook that can be graded"
    )
    print(f"{'; '.join(collected.platforms)}.\nFound {found}.")
    unknown = [line for line in collected.lines if line.what == UNKNOWN]
    for line in unknown[:5]:
        print(f"  not understood: {line.origin}: {line.why}")
    if len(unknown) > 5:
        print(f"  and {len(unknown) - 5} more; all are in report.html")
    if collected.strangers:
        print(
            f"  not on the roster: {', '.join(collected.strangers[:8])}{' …' if len(collected.strangers) > 8 else ''}"
        )


def tell_summary(records: Records, out: Path, again: int, notes: list[str]) -> None:
    """The last lines: states, isolation, what to do next."""
    counts = Counter(result.state for result in records.everything)
    print("\n" + ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state] or state == STATES[0]) + ".")
    if again:
        print(f"{again} of them had not changed and were kept from before.")
    _tell_isolation(records.results)
    if waiting := len(waiting_answers(records.results)):
        print(f"{waiting} written answers wait for you: {out / 'to_mark.csv'}, with their marking guide in the report.")
    if counts[NEEDS_REVIEW]:
        print("The grader could not finish some; the same command tries them again.")
    if counts[NOT_SUBMITTED]:
        print("Who handed in nothing has no number: that is not 0.")
    for note in notes:
        print(note)
    print(f"Read {out / 'report.html'} first. Grades are in {out / 'grades.csv'}, feedback in {out / 'feedback'}.")


def _tell_isolation(results: Iterable[Result]) -> None:
    kinds = Counter(result.isolation for result in results if did_run(result))
    if kinds["none"]:
        print(
            f"\n*** isolation: none, for {kinds['none']} submissions. Students' code ran as you, with your files and\n"
            "*** your network. Grade on Linux with bubblewrap installed, or in a container.\n"
        )
    elif kinds:
        print("isolation: bubblewrap (no network, no files of yours, limits on memory, time and output).")


def _with_roster(collected: Collected, roster: Roster | None) -> dict:
    return {**(roster.people if roster else {}), **collected.people}
