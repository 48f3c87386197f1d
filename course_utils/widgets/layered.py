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
    low, high, sums = array.min(), array.max(), array.sum(axis=-1)
    if low < -SLACK or high > 1 + SLACK:
        raise ValueError(
            f"{where}: weights run from {low:.3g} to {high:.3g}; weights lie between 0 and 1. "
            "If these are scores, apply the softmax over the keys first"
        )
    if sums.max() > 1 + 10 * SLACK:
        layer, head, i = (int(x) for x in np.unravel_index(sums.argmax(), sums.shape))
        raise ValueError(
            f"{where}: the weights of layer {layer}, head {head}, query {i} sum to {sums.max():.3g}; the sum over the "
            "keys (last axis) is 1. Was the softmax over another axis, or dropout still on? Call model.eval() before"
        )
    return array
