"""The command `course`: everything that `course.py` does inside the environment."""

import argparse
import difflib
import sys
from pathlib import Path

from course_utils.folders import CourseError, course_root


class Parser(argparse.ArgumentParser):
    """An argparse parser that names the nearest command when there is none of that name."""

    def error(self, message: str):
        if "invalid choice" in message and self._subparsers is not None:
            wanted = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
            near = difflib.get_close_matches(wanted, COMMANDS, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]}?" if near else ""
            message = f"there is no command {wanted!r}.{hint} The commands are: {', '.join(COMMANDS)}."
        self.print_usage(sys.stderr)
        self.exit(2, f"course: {message}\n")


def run_lab(options: argparse.Namespace, rest: list[str]) -> int:
    from course_utils.lab import lab

    return lab(rest)


def run_reset(options: argparse.Namespace, rest: list[str]) -> int:
    from course_utils.lab import reset

    return reset(options.notebook)


def run_doctor(options: argparse.Namespace, rest: list[str]) -> int:
    from course_utils.doctor import doctor

    return doctor()


def source_root() -> Path:
    """The course's folder, if it is the whole course and not the archive that students get."""
    root = course_root()
    if not (root / "lessons").is_dir():
        raise CourseError(f"{root} has no lessons/: it is the students' archive. This needs the whole course.")
    return root


def run_test(options: argparse.Namespace, rest: list[str]) -> int:
    root = source_root()
    from course_utils.suite import run_suite

    return run_suite(root, fast=options.fast, arguments=rest)


def run_build(options: argparse.Namespace, rest: list[str]) -> int:
    root = source_root()
    from course_utils import authoring

    try:
        if options.check:
            problems = authoring.check(root)
            print("\n".join(problems) if problems else "Everything generated is fresh.")
            return 1 if problems else 0
        if options.release:
            print(f"wrote {authoring.release(root, options.release)}")
            return 0
        written = authoring.build(root, options.names or None, execute=options.execute, force=options.force)
    except authoring.BuildError as error:
        raise CourseError(str(error)) from None
    print("\n".join(f"wrote {path}" for path in written) or "Nothing to do: everything is up to date.")
    return 0


def run_grade(options: argparse.Namespace, rest: list[str]) -> int:
    source_root()
    from course_utils.grading.command import run_grade

    return run_grade(options, rest)


def run_site(options: argparse.Namespace, rest: list[str]) -> int:
    root = source_root()
    from course_utils.site import build_site

    out = options.out or root / "site"
    written = build_site(root, out)
    print(f"wrote {len(written)} files; open {out / 'index.html'}")
    if options.pictures:
        from course_utils.site.pictures import take_pictures

        pages = [path for path in written if path.suffix == ".html" and path.stem != "index"]
        for file, words in take_pictures([path.resolve() for path in pages], options.pictures):
            print(f"wrote {file} ({file.stat().st_size / 1e3:.0f} kB): {words}")
    return 0


def run_bench(options: argparse.Namespace, rest: list[str]) -> int:
    from course_utils.benchmarks import BENCHMARKS

    return BENCHMARKS[options.benchmark][1](options)


def add_lab(command: argparse.ArgumentParser) -> None:
    command.epilog = "Every argument goes to JupyterLab: course lab --no-browser --port=8889"


def add_reset(command: argparse.ArgumentParser) -> None:
    command.add_argument("notebook", nargs="+", help="number or name: 01, 02_attention")


def add_test(command: argparse.ArgumentParser) -> None:
    command.add_argument("--fast", action="store_true", help="leave out running notebooks and browsers")
    command.epilog = "Every other argument goes to pytest for the tests in tests/: course test --fast -k masks"


def add_build(command: argparse.ArgumentParser) -> None:
    command.add_argument("names", nargs="*", help="lessons to build, all by default: 01, 02_attention")
    command.add_argument("--check", action="store_true", help="change nothing; fail if anything is stale")
    command.add_argument("--force", action="store_true", help="execute solutions even if nothing changed")
    command.add_argument("--no-execute", dest="execute", action="store_false", help="do not run solutions")
    command.add_argument("--release", type=Path, metavar="FILE", help="pack what students get into a .zip file")


def add_grade(command: argparse.ArgumentParser) -> None:
    try:
        from course_utils.grading.command import add_grade
    except ModuleNotFoundError:  # the students' archive has no grader; run_grade says so
        command.add_argument("paths", nargs="*", help="only in the whole course")
        return
    add_grade(command)


def add_site(command: argparse.ArgumentParser) -> None:
    command.add_argument("--out", type=Path, metavar="DIR", help="the folder for the pages (site/)")
    command.add_argument("--pictures", type=Path, metavar="DIR", help="picture every widget as well; needs a browser")


def add_bench(command: argparse.ArgumentParser) -> None:
    from course_utils.benchmarks import BENCHMARKS

    texts = [f"{name}: {text}" for name, (text, _) in BENCHMARKS.items()]
    command.add_argument("benchmark", choices=list(BENCHMARKS), help="; ".join(texts))
    command.add_argument("--repeats", type=int, default=5, metavar="N", help="how often to repeat what is quick (5)")


def add_nothing(command: argparse.ArgumentParser) -> None:
    pass


# name: (what it does, its arguments, the function that runs it, whether unknown arguments are passed on)
COMMANDS = {
    "lab": ("open the lessons in JupyterLab", add_lab, run_lab, True),
    "test": ("run the whole test suite", add_test, run_test, True),
    "build": ("make notebooks/ and solutions/ from lessons/", add_build, run_build, False),
    "grade": ("grade what a class has handed in", add_grade, run_grade, False),
    "site": ("make pages of the solved lessons that need no Python and no network", add_site, run_site, False),
    "bench": ("measure how fast the course works here", add_bench, run_bench, False),
    "doctor": ("look for problems and say what to do about them", add_nothing, run_doctor, False),
    "reset": ("give back pristine notebooks and keep yours", add_reset, run_reset, False),
}


def make_parser() -> Parser:
    parser = Parser(prog="course", description="The interactive course on attention and transformers.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (text, add_arguments, _, _) in COMMANDS.items():
        add_arguments(commands.add_parser(name, help=text, description=text, allow_abbrev=False))
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code (2: wrong arguments, 1: something to do first)."""
    parser = make_parser()
    options, rest = parser.parse_known_args(argv)
    _, _, run, passes_on = COMMANDS[options.command]
    if rest and not passes_on:
        parser.error(f"{options.command} does not take {' '.join(rest)}; see: course {options.command} --help")
    try:
        return run(options, rest)
    except CourseError as error:
        print(f"\n{error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    return 1


if __name__ == "__main__":
    sys.exit(main())
