"""Pictures in rows and columns: photographs, digits, patches, and maps over patches."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .figure import Figure, canvas, finish
from .style import CARD, course_style, rgb
from .values import same, to_array


def image_rows(
    rows: Mapping[str, Any],
    title: str,
    description: str,
    *,
    columns: Sequence[str] | None = None,
    maps: Sequence[str] = (),
    width: float = 7.2,
    caption: str | None = None,
) -> Figure:
    """Pictures in rows, each row under a name: (n, H, W) or (n, 1, H, W) in grey, (n, 3, H, W) in colour.

    Brightness runs from 0 to 1. The rows named in `maps` are amounts at or above zero, such as the weight on each
    patch: white is nothing, dark blue the largest amount of that picture, so only the pattern within one picture
    can be read. Pictures of different sizes are enlarged to the largest, pixel by pixel. width: inches.
    Raises ValueError for rows of different length and shapes that are no pictures.
    """
    if not rows:
        raise ValueError("image_rows: rows is empty; it maps a name to pictures")
    if unknown := [name for name in maps if name not in rows]:
        raise ValueError(f"image_rows: maps names {unknown}, but rows has {list(rows)}")
    pictures = {name: _pictures(f"rows[{name!r}]", row, as_map=name in maps) for name, row in rows.items()}
    n = len(next(iter(pictures.values())))
    for name, row in pictures.items():
        same("image_rows", f"rows[{name!r}] has pictures", len(row), "the first row has", n)
    if columns is not None:
        same("image_rows", "columns has names", len(columns), "a row has pictures", n)
    height, wide = (max(row.shape[axis] for row in pictures.values()) for axis in (1, 2))
    gap = max(1, round(0.06 * max(height, wide)))
    sheet = np.empty((len(pictures) * (height + gap) - gap, n * (wide + gap) - gap, 3))
    sheet[:] = rgb(CARD)
    for r, row in enumerate(pictures.values()):
        for c, picture in enumerate(row):
            top, left = r * (height + gap), c * (wide + gap)
            sheet[top : top + height, left : left + wide] = _enlarged(picture, height, wide)

    beside = max(len(str(name)) for name in rows) * 0.09 + 0.25  # inches
    above = 0.8 if columns else 0.5
    fig, ax = canvas(width, (width - beside) * sheet.shape[0] / sheet.shape[1] + above, "compressed")
    with course_style():
        ax.imshow(sheet, interpolation="nearest")
        ax.set_xticks([c * (wide + gap) + wide / 2 for c in range(n)], columns or [""] * n)
        ax.set_yticks([r * (height + gap) + height / 2 for r in range(len(pictures))], list(rows))
        ax.xaxis.tick_top()
        ax.tick_params(length=0)
        ax.grid(False)
        ax.spines[:].set_visible(False)
    photo = len(np.unique((sheet.reshape(-1, 3) * 255).round(), axis=0)) > 256
    return finish(fig, title, description, caption, photo=photo)


def _pictures(name: str, values: Any, *, as_map: bool) -> np.ndarray:
    """Any stack of pictures as (n, H, W, 3), from 0 to 1."""
    array = to_array(name, values)
    if array.ndim == 4 and array.shape[1] == 1:
        array = array[:, 0]
    colour = array.ndim == 4 and array.shape[1] == 3
    if not (colour or array.ndim == 3) or 0 in array.shape or (as_map and colour):
        kind = "maps must be (n, H, W)" if as_map else "pictures must be (n, H, W), (n, 1, H, W) or (n, 3, H, W)"
        raise ValueError(f"image_rows: {name} has shape {tuple(array.shape)}; {kind}")
    if as_map:
        import matplotlib as mpl

        largest = array.max(axis=(1, 2), keepdims=True)
        return mpl.colormaps["Blues"](array / np.where(largest > 0, largest, 1))[..., :3]
    array = array.clip(0, 1)
    return array.transpose(0, 2, 3, 1) if colour else np.repeat(array[..., None], 3, axis=-1)


def _enlarged(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """Each pixel repeated until the picture is height x width."""
    rows = np.arange(height) * picture.shape[0] // height
    columns = np.arange(width) * picture.shape[1] // width
    return picture[rows][:, columns]
