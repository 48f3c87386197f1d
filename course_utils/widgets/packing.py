"""How numbers travel to the browser, and how arguments of widgets are read and checked."""

import base64
import math
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from course_utils.plots.values import to_array

LEVELS = 65535  # 16 bits


def pack_exact(array: np.ndarray) -> dict[str, Any]:
    """Small arrays with every bit: 8 bytes a number."""
    return {"kind": "f8", "low": 0.0, "high": 0.0, "bytes": np.ascontiguousarray(array, dtype="<f8").tobytes()}


def pack(array: np.ndarray, low: float = 0.0, high: float = 1.0) -> dict[str, Any]:
    """Numbers from low to high in 16 bits, compressed; the error is at most (high - low) / 131070.

    All low bytes come first, then all high bytes: those are alike, so that they become smaller by about a tenth.
    """
    levels = np.rint((np.asarray(array, dtype=float) - low) / (high - low) * LEVELS)
    planes = levels.clip(0, LEVELS).astype("<u2").reshape(-1, 1).view(np.uint8).T
    return {"kind": "u2", "low": float(low), "high": float(high), "bytes": zlib.compress(planes.tobytes(), 9)}


def unpack(packed: dict[str, Any], shape: Sequence[int]) -> np.ndarray:
    """The inverse of `pack` and `pack_exact`, to the precision that the browser sees."""
    if packed["kind"] == "f8":
        return np.frombuffer(packed["bytes"], "<f8").reshape(shape)
    planes = np.frombuffer(zlib.decompress(packed["bytes"]), np.uint8).reshape(2, -1).astype(float)
    return (packed["low"] + (planes[0] + 256 * planes[1]) * (packed["high"] - packed["low"]) / LEVELS).reshape(shape)


def jsonable(value: Any) -> Any:
    """What `host.js` reads: bytes as {"$bytes": base64}, the rest as JSON has it."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$bytes": base64.b64encode(bytes(value)).decode("ascii")}
    if isinstance(value, dict):
        return {key: jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    return value


def numbers(where: str, name: str, values: Any, axes: Sequence[str], shape: Sequence[int | None] = ()) -> np.ndarray:
    """A finite float64 array with one axis for each name in `axes`; `shape` fixes the sizes that are known.

    Raises ValueError that names the argument, what came and what is wanted.
    """
    array = to_array(f"{where}: {name}", values)
    wanted = f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"
    if array.ndim != len(axes) or 0 in array.shape:
        raise ValueError(f"{where}: {name} has shape {array.shape}; it must be {wanted}, none of them 0")
    for axis, got, want in zip(axes, array.shape, shape, strict=False):
        if want is not None and got != want:
            raise ValueError(f"{where}: {name} has shape {array.shape}, but {axis} must be {want} in {wanted}")
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{where}: {name}{list(at)} is {array[at]}; every number must be finite")
    return array


def truths(where: str, name: str, values: Any, axes: Sequence[str], shape: Sequence[int]) -> np.ndarray:
    """A boolean array of this shape. Numbers other than 0 and 1 are refused: they may be an additive mask."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    array = np.asarray(values)
    if array.shape != tuple(shape):
        raise ValueError(f"{where}: {name} has shape {array.shape}; it must be ({', '.join(axes)}) = {tuple(shape)}")
    if array.dtype != bool and not (array.dtype.kind in "iuf" and np.isin(array, (0, 1)).all()):
        raise ValueError(f"{where}: {name} must hold True and False (True = may attend), got {array.dtype}")
    return array.astype(bool)


def words_of(where: str, name: str, words: Iterable[Any]) -> list[str]:
    """Words as a list of strings; one string with blanks is split."""
    found = words.split() if isinstance(words, str) else [str(word) for word in words]
    if not found:
        raise ValueError(f"{where}: {name} is empty; it needs at least one word")
    return found


def index(where: str, name: str, value: Any, size: int, none: bool = True) -> int:
    """An index from 0 to size - 1; None means -1, nothing chosen, where that is allowed."""
    if value is None and none:
        return -1
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < size:
        allowed = f"an index from 0 to {size - 1}" + (", or None" if none else "")
        raise ValueError(f"{where}: {name} is {value!r}; it must be {allowed}")
    return int(value)


def spread(row: np.ndarray) -> float:
    """Over how many keys a row of weights spreads: e to the power of its entropy in nats."""
    positive = row[row > 0]
    return math.exp(-float((positive * np.log(positive)).sum()))
