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
class Probe:
    """How a function is tried out whose result is no plain value, or whose arguments are changed by it.

    kind: names a function in `probes.py`, which calls the answer and returns plain values.
    returns: what the answer itself has to return, in words.
    params: what the probe needs besides the arguments.
    """

    kind: str
    returns: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Foreign:
    """Stands for a returned value of a type that no exercise asks for; only its description crosses."""

    description: str


@dataclass(frozen=True)
class Raised:
    """An exception: its type, its message, and the student's own line that led to it.

    `by_student` is True when the student's own code raised it (a stub does), not a library underneath.
    stage: what was going on: "make" a module, "copy" weights into it, "call" it.
    within: the student's other function or class whose line it is; empty for a line of the answer itself.
    """

    kind: str
    message: str
    line: int | None = None
    source: str = ""
    by_student: bool = False
    stage: str = "call"
    within: str = ""


@dataclass(frozen=True)
class Construction:
    """How a class answer is made before it is called: once for each call, in evaluation mode.

    reference: names the reference class in `modules.py`; a `copy_from` of the answer gets an instance of it.
    arguments: of the constructor, passed by position.
    weights: by their names in the reference; empty where the answer keeps the weights it was made with.
    own: what is done to weights that it keeps, whatever their names: "" nothing, else see `modules.OWN`.
    training: whether it is called in training mode.
    """

    reference: str
    arguments: dict[str, Any]
    weights: dict[str, Tensor] = field(default_factory=dict)
    own: str = ""
    training: bool = False


@dataclass(frozen=True)
class Call:
    """One call of an answer. Arguments are passed by position: students may rename their parameters.

    gradients_of: names of float arguments whose gradients are asked for; an entry of a dict is named "p['W']",
        a weight of a class answer has its name in the reference.
    through: which outputs the gradients flow back from.
    repeat: call a second time, on fresh copies, to see whether both results agree.
    construction: how a class answer is made; None for a function.
    more: arguments of further calls of the same module, whose results are compared with the first.
    probe: how the answer is tried out, where it is not simply called with the arguments.
    """

    arguments: dict[str, Any]
    gradients_of: tuple[str, ...] = ()
    through: tuple[int, ...] = (0,)
    repeat: bool = False
    construction: Construction | None = None
    more: tuple[dict[str, Any], ...] = ()
    probe: Probe | None = None

    def forward_only(self) -> "Call":
        """The same call without the second run and without gradients."""
        return replace(self, gradients_of=(), repeat=False)


@dataclass(frozen=True)
class Inside:
    """What a module holds, and how weights came into it.

    loaded: "names", "copy_from", "parts" (by a `copy_from` of a part), or "" where they were not copied.
    missing: weights of the reference that the module does not have; misfits: those of another shape, with it.
    parameters, buffers: name -> shape; frozen: the names of parameters that do not ask for gradients.
    aliases: names of parameters whose numbers are those of another one before them.
    plain: names of tables of numbers that are ordinary attributes, neither parameter nor buffer.
    """

    loaded: str = ""
    missing: tuple[str, ...] = ()
    misfits: dict[str, tuple[int, ...]] = field(default_factory=dict)
    parameters: dict[str, tuple[int, ...]] = field(default_factory=dict)
    buffers: dict[str, tuple[int, ...]] = field(default_factory=dict)
    frozen: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What a call did. Tensors in it are detached copies.

    changed: names of the arguments that were written to.
    second: the value of the second call, when one was asked for (an `Outcome` of its own).
    gradients: one entry for each name asked for; None where no gradient arrived. Weights of a class answer that
        have another name there are left out.
    more: the values of the further calls.
    inside: of a class answer; idle: its own weight matrices, by name, that no gradient reaches (if asked for any).
    """

    value: Any = None
    error: Raised | None = None
    changed: tuple[str, ...] = ()
    second: "Outcome | None" = None
    gradients: dict[str, Tensor | None] = field(default_factory=dict)
    gradient_error: Raised | None = None
    more: tuple[Any, ...] = ()
    inside: Inside | None = None
    idle: tuple[str, ...] = ()


class Answer(Protocol):
    """Anything that can be called by value: a function or class in this process, or behind a process boundary."""

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
