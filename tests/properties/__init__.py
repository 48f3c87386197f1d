"""Properties of the reference functions, each a function that raises AssertionError when it does not hold.

They are written once and used twice: the unit tests try them on the reference with hypothesis, and the mutation
test tries them on broken versions of the reference, each of which at least one property must reject.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor


@dataclass(frozen=True)
class Case:
    """Sizes and a seed; everything random in a property comes from its generator."""

    B: int = 3
    T: int = 4
    D: int = 2
    H: int = 5
    seed: int = 0

    def random(self) -> Callable[..., Tensor]:
        """A function of a shape that draws standard normal numbers in float64."""
        generator = torch.Generator().manual_seed(self.seed)
        return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)

    def integers(self, below: int, *shape: int) -> Tensor:
        """Integers 0 … below - 1."""
        return torch.randint(below, shape, generator=torch.Generator().manual_seed(self.seed + 1))

    def lengths(self) -> Tensor:
        """One length from 1 to T for each sentence of the batch; the first sentence is full."""
        lengths = self.integers(self.T, self.B) + 1
        lengths[0] = self.T
        return lengths

    def mask(self, *shape: int) -> Tensor:
        """A boolean mask, True = may attend, with at least one True in each row."""
        generator = torch.Generator().manual_seed(self.seed + 2)
        mask = torch.rand(*shape, generator=generator) < 0.5
        always = torch.randint(shape[-1], shape[:-1], generator=generator)
        return mask.scatter(-1, always.unsqueeze(-1), True)


# Sizes that differ from each other, then one sentence, then a longer one; what the mutation test runs on.
CASES = (Case(), Case(B=1, T=2, D=3, H=2, seed=1), Case(B=4, T=7, D=4, H=3, seed=2))

cases = st.builds(
    Case,
    B=st.integers(1, 4),
    T=st.integers(1, 6),
    D=st.integers(1, 4),
    H=st.integers(1, 5),
    seed=st.integers(0, 10_000),
)

OF: dict[str, list[Callable]] = {}


def states(function: str) -> Callable[[Callable], Callable]:
    """Register a property (implementation, case) of the reference function of this name."""

    def collect(holds: Callable) -> Callable:
        OF.setdefault(function, []).append(holds)
        return holds

    return collect


def close(actual: Tensor, expected: Tensor, tolerance: float = 1e-9) -> None:
    """The same shape and type and, up to rounding, the same values."""
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def gradients(outputs: Tensor, inputs: list[Tensor], weights: Tensor) -> tuple[Tensor, ...]:
    """Gradients of a weighted sum of the outputs, weighted so that no two of them cancel."""
    return torch.autograd.grad((outputs * weights).sum(), inputs)


def raises(call: Callable[[], object], message: str) -> None:
    """The call raises a ValueError whose message starts like this."""
    try:
        call()
    except ValueError as error:
        assert str(error).startswith(message), str(error)
    else:
        raise AssertionError(f"no error, expected {message!r}")


from properties import (  # noqa: E402, F401
    attention,
    blocks,
    decoding,
    layers,
    losses,
    masks,
    multihead,
    positions,
    recurrent,
    training,
    translator,
    vision,
)
