"""What a widget tells the harness."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True)
class Case:
    """A call of an exported function of the module, and what torch says in float64."""

    function: str
    arguments: tuple[Any, ...]
    want: Any


@dataclass(frozen=True)
class Fault:
    """A mistake planted into the module's text: `old`, which must occur, becomes `new`; the cases must notice."""

    old: str
    new: str


@dataclass(frozen=True)
class Keys:
    """A path by keyboard alone: Tab until `reach` (a CSS selector) has the focus, then press these keys.

    says: a part of the text that the live region must hold afterwards; traits: the state that must have come of it.
    """

    reach: str
    press: tuple[str, ...]
    says: str = ""
    traits: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A widget in the harness.

    make(seed): an example; other seeds give other numbers behind the same words and shapes.
    cases(random): an endless stream of Cases; the harness takes `count` of them.
    kernel: an expression of the widget `w` that the keyboard path must change in the kernel as well.
    acts_on: the trait that a click on a cell of the stage changes ("" for a widget without a stage).
    """

    name: str
    make: Callable[[int], Any]
    cases: Callable[["Random"], Iterator[Case]]
    faults: dict[str, Fault]
    keyboard: tuple[Keys, ...]
    kernel: str
    acts_on: str = ""
    count: int = 60

    def some_cases(self) -> list[Case]:
        return list(itertools.islice(self.cases(Random(0)), self.count))


class Random:
    """Random inputs whose sizes all differ, so that no transposed matrix goes unnoticed."""

    def __init__(self, seed: int):
        self.numbers = np.random.default_rng(seed)

    def sizes(self, count: int, low: int = 1, high: int = 9) -> list[int]:
        return [int(x) for x in self.numbers.permutation(np.arange(low, high))[:count]]

    def normal(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        return torch.tensor(self.numbers.standard_normal(shape) * scale)

    def mask(self, *shape: int, share: float = 0.7) -> torch.Tensor:
        return torch.tensor(self.numbers.random(shape) < share)

    def choice(self, *options: Any) -> Any:
        return options[int(self.numbers.integers(len(options)))]

    def below(self, n: int) -> int:
        return int(self.numbers.integers(n))
