"""What callers pass in: any tensor, array or list as numbers, and clear errors where sizes do not fit."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


def scalar(value: Any) -> Any:
    """The Python value of a tensor or array of one element; anything else as it is."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return value.item()
    return value


def is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def to_array(name: str, values: Any) -> np.ndarray:
    """Any tensor, array or list of numbers as float64; None becomes NaN."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().double()
    try:
        return np.asarray([scalar(v) for v in values] if isinstance(values, (list, tuple)) else values, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold numbers in a regular shape, got {type(values).__name__}: {error}") from None


def same(where: str, first: str, a: int, second: str, b: int) -> None:
    if a != b:
        raise ValueError(f"{where}: {first}: {a}, but {second}: {b}; they must be equal")


def check_links(
    where: str, name: str, links: Sequence[int | None] | None, n: int, n_to: int
) -> list[int | None] | None:
    if links is None:
        return None
    links = [scalar(link) for link in links]
    same(where, f"{name} has entries", len(links), "there are queries or target words", n)
    for i, link in enumerate(links):
        if link is not None and not (isinstance(link, Integral) and 0 <= link < n_to):
            raise ValueError(f"{where}: {name}[{i}] is {link!r}; it must be None or an index from 0 to {n_to - 1}")
    return links
