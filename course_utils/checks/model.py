"""What an exercise is made of: outputs with named axes, cases with points, and misconceptions that run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from course_utils.checks.values import Call, Construction, Outcome, Probe

LEADING_AXES = {0: (), 1: ("batch",), 2: ("batch", "head")}


class Draw:
    """Random inputs from one generator: the same seed gives the same case."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers."""
        return torch.randn(*shape, generator=self.generator)

    def tokens(self, low: int, high: int, *shape: int) -> Tensor:
        """Token ids from low to high - 1."""
        return torch.randint(low, high, shape, generator=self.generator)

    def distinct(self, low: int, high: int, count: int) -> Tensor:
        """`count` different token ids from low to high - 1."""
        return low + torch.randperm(high - low, generator=self.generator)[:count]

    def seed(self) -> int:
        """A number for a test double to draw its own weights from."""
        return int(self.tokens(0, 2**31 - 1, 1))


@dataclass(frozen=True)
class Output:
    """One result: its name, the names of its last axes, and whether its rows are attention weights.

    number: a plain number is asked for; one from numpy, or a tensor without axes, is as good.
    """

    name: str
    axes: tuple[str, ...]
    weights: bool = False
    number: bool = False

    def axis_names(self, rank: int) -> tuple[str, ...]:
        """A name for each axis of a result of this rank."""
        extra = rank - len(self.axes)
        if extra < 0:
            return tuple(f"axis {i}" for i in range(rank))
        leading = LEADING_AXES.get(extra, tuple(f"axis {i}" for i in range(extra)))
        return (*leading, *self.axes)


@dataclass(frozen=True)
class Case:
    """One input with its points.

    shows: what a right answer does here, in the student's words ("hidden keys get no weight").
    build: draws the arguments, in the order of the signature; optional arguments only where they are used.
    loose: for each output, positions (broadcast) that only have to be finite; None where all are compared.
    keeps_inputs: whether writing to an argument fails this case.
    make: for a class, how the module is made; draws after `build`.
    probe: how the answer is tried out, where it is not simply called; draws after `build`.
    more: the arguments of further calls of the same module, from those of the first.
    compare: says how an outcome differs from the right one, or from that of a misconception, "" if it does not;
        in place of the comparison number by number (for random answers, and for properties).
    must_raise: the right answer here is an error, of any type.
    tolerance: how far a number may be off (absolute); None for the usual.
    Points 0 make a case advisory: it can add a note to the report, and never fails an answer.
    """

    name: str
    shows: str
    points: int
    build: Callable[[Draw], dict[str, Any]]
    gradients_of: tuple[str, ...] = ()
    through: tuple[int, ...] = (0,)
    repeat: bool = False
    keeps_inputs: bool = False
    loose: Callable[[dict[str, Any]], tuple[Tensor | None, ...]] | None = None
    note: str = ""
    make: Callable[[Draw], Construction] | None = None
    more: Callable[[dict[str, Any]], tuple[dict[str, Any], ...]] | None = None
    compare: Callable[[Call, Outcome, Outcome], str] | None = None
    must_raise: bool = False
    tolerance: float | None = None
    probe: Callable[[Draw], Probe] | None = None

    def call(self, seed: int) -> Call:
        """The call of this case; the same for the same seed."""
        draw = Draw(seed)
        arguments = self.build(draw)
        return Call(
            arguments,
            self.gradients_of,
            self.through,
            self.repeat,
            self.make(draw) if self.make else None,
            self.more(arguments) if self.more else (),
            self.probe(draw) if self.probe else None,
        )


Steps = dict[str, Callable[..., Any]]


@dataclass(frozen=True)
class Recipe:
    """A right answer cut into named steps, so that a wrong answer is a right one with a step exchanged.

    assemble: makes the function from the steps. Mistakes in different steps can be combined.
    """

    assemble: Callable[[SimpleNamespace], Callable[..., Any]]
    right: Steps

    def make(self, *changes: Steps) -> Callable[..., Any]:
        """The function with some steps exchanged; the step "whole" replaces the function itself."""
        steps = dict(self.right)
        for change in changes:
            if "whole" in change:
                return change["whole"]
            unknown = change.keys() - self.right.keys()
            if unknown:
                raise ValueError(f"no such step: {sorted(unknown)}; the steps are {sorted(self.right)}")
            steps |= change
        return self.assemble(SimpleNamespace(**steps))


@dataclass(frozen=True)
class Misconception:
    """A mistake that people make, as code.

    says: the mistake in one plain sentence about the student's code.
    hints: three tiers: a question, where to look, nearly the line itself.
    variants: ways in which people write it, each a set of exchanged steps of the recipe.
    convention: the sentence of the statement that the answer differs from, where both ways exist.
    symptom: recognises it where its numbers cannot be reproduced (randomness); gets the outcome and the right one.
    """

    id: str
    says: str
    hints: tuple[str, str, str]
    variants: tuple[Steps, ...] = ()
    convention: str = ""
    symptom: Callable[[Outcome, Outcome], bool] | None = None


@dataclass(frozen=True, eq=False)
class Exercise:
    """An exercise: its name is its identity in lessons, checks and grades.

    properties: for a class, the cases that take the place of the others when no weights can be copied into an answer.
    """

    name: str
    notebook: str
    reference: Callable[..., Any]
    outputs: tuple[Output, ...]
    cases: tuple[Case, ...]
    recipe: Recipe
    misconceptions: tuple[Misconception, ...]
    hints: tuple[str, str, str]
    optional: bool = False
    properties: tuple[Case, ...] = ()

    @property
    def is_class(self) -> bool:
        """Whether students write a class."""
        return isinstance(self.reference, type)

    @cached_property
    def by_properties(self) -> "Exercise":
        """The same exercise for an answer with weights of its own, whose numbers no misconception can reproduce."""
        symptoms = tuple(replace(m, variants=()) for m in self.misconceptions if m.symptom)
        return replace(self, cases=self.properties, misconceptions=symptoms, properties=())

    @property
    def max_points(self) -> int:
        """Points of all cases together."""
        return sum(case.points for case in self.cases)

    def singles(self) -> Iterator[tuple[tuple[Misconception, ...], Callable[..., Any]]]:
        """Every misconception in every variant, as a function."""
        for misconception in self.misconceptions:
            for variant in misconception.variants:
                yield (misconception,), self.recipe.make(variant)

    def pairs(self) -> Iterator[tuple[Misconception, Misconception]]:
        """Two misconceptions at once, where their usual variants touch different steps."""
        for a, b in combinations([m for m in self.misconceptions if m.variants], 2):
            first, second = a.variants[0], b.variants[0]
            if "whole" not in first | second and not first.keys() & second.keys():
                yield a, b

    def pair(self, a: Misconception, b: Misconception) -> Callable[..., Any]:
        """Two misconceptions at once, as a function."""
        return self.recipe.make(a.variants[0], b.variants[0])
