"""Attention weights of several layers, as lessons have them: read, checked, and small enough to travel."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from course_utils.plots.values import to_array

from .packing import numbers

SLACK = 1e-3  # rows of float32 or float16 weights do not sum to one exactly
MOST = 600_000  # numbers, about half a megabyte in a notebook


def layered_weights(where: str, values: Any, axes: Sequence[str], shape: Sequence[int | None] = ()) -> np.ndarray:
    """Weights (layers, heads, Tq, Tk) as float64, from an array, or from a list with (heads, Tq, Tk) for each layer.

    Raises ValueError for another shape, for what is no result of a softmax over the keys, and for too many numbers.
    """
    if isinstance(values, (list, tuple)) and values and all(hasattr(layer, "shape") for layer in values):
        layers = [to_array(f"{where}: weights[{i}]", layer) for i, layer in enumerate(values)]
        if shapes := sorted({layer.shape for layer in layers})[1:]:
            raise ValueError(
                f"{where}: weights has layers of shape {layers[0].shape} and {shapes[-1]}; all must have the same"
            )
        values = np.stack(layers)
    array = to_array(f"{where}: weights", values)
    if array.ndim == 5:
        raise ValueError(
            f"{where}: weights has shape {array.shape}; it must be ({', '.join(axes)}), without a batch: "
            "choose one example, as in [layer[0] for layer in weights]"
        )
    array = numbers(where, "weights", array, axes, shape)
    if array.size > MOST:
        raise ValueError(
            f"{where}: weights holds {array.size:,} numbers, and at most {MOST:,} can be shown; "
            "take fewer layers or heads, or a shorter sequence"
        )
    check_weights(where, array)
    return array


def check_weights(where: str, array: np.ndarray) -> None:
    """Raise ValueError unless every row of (…, heads, Tq, Tk) can be what a softmax gave: 0 to 1, sum at most 1."""
    low, high, sums = array.min(), array.max(), array.sum(axis=-1)
    if low < -SLACK or high > 1 + SLACK:
        raise ValueError(
            f"{where}: weights run from {low:.3g} to {high:.3g}; weights lie between 0 and 1. "
            "If these are scores, apply the softmax over the keys first"
        )
    if sums.max() > 1 + 10 * SLACK:
        *layer, head, i = (int(x) for x in np.unravel_index(sums.argmax(), sums.shape))
        row = f"layer {layer[0]}, head {head}, query {i}" if layer else f"head {head}, query {i}"
        raise ValueError(
            f"{where}: the weights of {row} sum to {sums.max():.3g}; the sum over the keys (last axis) is 1. "
            "Was the softmax over another axis, or dropout still on? Call model.eval() before"
        )


def check_hidden(where: str, array: np.ndarray, visible: np.ndarray) -> None:
    """Raise ValueError where a mask (Tq, Tk) hides what weights (…, heads, Tq, Tk) read."""
    if (leak := np.where(visible, 0.0, array)).any():
        *layer, head, i, j = (int(x) for x in np.unravel_index(leak.argmax(), leak.shape))
        whose = f"head {head} of layer {layer[0]}" if layer else f"head {head}"
        raise ValueError(
            f"{where}: mask hides query {i}, key {j}, but {whose} has a weight of {leak.max():.3g} there; "
            "give the mask that the weights were computed with, True = may attend"
        )
