"""What crosses between a check and an answer: values only, never functions.

The answer may run in this process or in another one, so a call is described by plain numbers, tensors and
`Double`s (stand-ins for models, built where the answer runs), and what happened comes back as an `Outcome`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from torch import Tensor


@dataclass(frozen=True)
class Double:
    """A test double, described by value: `kind` names a class in `doubles.py`, `params` are its arguments."""

    kind: str
    params: dict[str, Any]


@dataclass(frozen=True)
class Foreign:
    """Stands for a returned value of a type that no exercise asks for; only its description crosses."""

    description: str


@dataclass(frozen=True)
class Raised:
    """An exception: its type, its message, and the student's own line that led to it.

    `by_student` is True when the student's own code raised it (a stub does), not a library underneath.
    """

    kind: str
    message: str
    line: int | None = None
    source: str = ""
    by_student: bool = False


@dataclass(frozen=True)
class Call:
    """One call of an answer. Arguments are passed by position: students may rename their parameters.

    gradients_of: names of float arguments whose gradients are asked for; an entry of a dict is named "p['W']".
    through: which outputs the gradients flow back from.
    repeat: call a second time, on fresh copies, to see whether both results agree.
    """

    arguments: dict[str, Any]
    gradients_of: tuple[str, ...] = ()
    through: tuple[int, ...] = (0,)
    repeat: bool = False

    def forward_only(self) -> "Call":
        """The same call without the second run and without gradients."""
        return replace(self, gradients_of=(), repeat=False)


@dataclass(frozen=True)
class Outcome:
    """What a call did. Tensors in it are detached copies.

    changed: names of the arguments that were written to.
    second: the value of the second call, when one was asked for (an `Outcome` of its own).
    gradients: one entry for each name asked for; None where no gradient arrived.
    """

    value: Any = None
    error: Raised | None = None
    changed: tuple[str, ...] = ()
    second: "Outcome | None" = None
    gradients: dict[str, Tensor | None] = field(default_factory=dict)
    gradient_error: Raised | None = None


class Answer(Protocol):
    """Anything that can be called by value: a function in this process, or one behind a process boundary."""

    def call(self, call: Call) -> Outcome:
        """Run the call and say what happened; never raises because of the student's code."""


def leaves(arguments: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Every tensor among the arguments with its name; entries of a dict as "p['W_x']"."""
    for name, value in arguments.items():
        if isinstance(value, Tensor):
            yield name, value
        elif isinstance(value, dict):
            for key, entry in value.items():
                if isinstance(entry, Tensor):
                    yield f"{name}[{key!r}]", entry
