"""What a notebook calls of the course while it is graded: harmless forms of `check`, `use`, `answer` and the others.

Runs in the student's process. Nothing here knows a right answer: the grader judges elsewhere.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MAX_CHOICES = 500
NOT_HERE = "{} is not there while your notebook is graded: experiments and training are not run then."


class Silent:
    """A result that shows nothing; points are given elsewhere."""

    points = max_points = 0
    passed = correct = answered = False
    state = "graded elsewhere"

    def table(self) -> "Silent":
        return self

    def __repr__(self) -> str:
        return ""


class Classroom:
    """The stand-ins, and what they were told.

    failed: the exercises whose own function is not right, as the grader has found so far.
    references: for each exercise, the module and name of its reference.
    """

    def __init__(self, references: dict[str, tuple[str, str]], namespace: dict[str, Any]) -> None:
        self.references, self.namespace = references, namespace
        self.failed: frozenset[str] = frozenset()
        self.choices: list[tuple[str, Any]] = []

    def setup(self, lesson: Any) -> None:
        """Done before the notebook began."""

    def check(self, obj: Any = None, exercise: str | None = None, **_: Any) -> Silent:
        return Silent()

    def claim(self, text: Any = None, condition: Any = True, *_: Any, **__: Any) -> None:
        """A claim about an experiment is not judged."""

    def question_points(self, lesson: Any = None) -> Silent:
        return Silent()

    progress = question_points

    def answer(self, question: Any, choice: Any = None) -> Silent:
        if len(self.choices) < MAX_CHOICES:
            self.choices.append((str(question)[:100], choice))
        return Silent()

    def use(self, part: Any, exercise: str | None = None, *, quiet: bool = False) -> Callable[..., Any]:
        """As in the notebook: the student's own part if it is right, else the reference; by name, the reference."""
        name = part if isinstance(part, str) else exercise or getattr(part, "__name__", "")
        if name not in self.references:
            raise ValueError(f'There is no exercise called "{name}".')
        if not isinstance(part, str) and name not in self.failed:
            return part
        module, attribute = self.references[name]
        return getattr(import_module(module), attribute)

    def names(self) -> dict[str, Any]:
        """What `course_utils` offers by name."""
        return {
            "answer": self.answer,
            "check": self.check,
            "claim": self.claim,
            "progress": self.progress,
            "question_points": self.question_points,
            "setup": self.setup,
            "use": self.use,
        }


class Absent:
    """A name of a module that is not there: it can be imported, not used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(NOT_HERE.format(self._name))

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(NOT_HERE.format(self._name))


class AbsentModules(MetaPathFinder, Loader):
    """Makes every module of the course that was left out importable, as a module full of `Absent` names."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.startswith("course_utils.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return ModuleType(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__

        def absent(attribute: str) -> Absent:
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            return Absent(f"{name}.{attribute}")

        module.__getattr__ = absent  # type: ignore[method-assign]


def install(classroom: Classroom) -> None:
    """Put the stand-ins where a notebook imports them from."""
    course = import_module("course_utils")
    for name, value in classroom.names().items():
        setattr(course, name, value)
    sys.meta_path.append(AbsentModules())
