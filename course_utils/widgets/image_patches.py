"""Attention over the patches of an image: raw weights and rollout side by side, and how far they agree."""

from typing import Any

import numpy as np
import traitlets as t

from course_utils.plots import Figure, Table, format_value, table
from course_utils.plots.figure import canvas, finish
from course_utils.plots.style import course_style
from course_utils.plots.values import to_array

from .base import CourseWidget
from .layered import layered_weights
from .packing import index, numbers, pack, unpack

MOST = 60_000  # numbers of an image; more would make the notebook heavy, and a patch shows no finer detail
GLOW = np.array([1.0, 0.83, 0.3])  # what weight looks like; the module has the same
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
CAUTION = (
    "Neither map is an explanation: a map shows where information came from, not what it was used for. "
    "Take a patch away and measure"
)


class ImagePatches(CourseWidget):
    """What one token of a Vision Transformer reads of an image, by two maps: raw attention and rollout.

    image: (H, W) in grey or (H, W, 3), from 0 to 1. patch: the side p of a patch; N = H/p · W/p patches, row by row.
    weights: (layers, heads, 1 + N, 1 + N), or a list with (heads, 1 + N, 1 + N) for each layer, of this image; token 0
    is the class token. rollout: (1 + N, 1 + N); `vision.attention_rollout` of the weights unless given.
    query: the token whose row is shown, 0 = class token, 1 + i = patch i. layer: the last unless given; head: None for
    the mean of all heads. show: "both", "raw" or "rollout". overlay: how strongly a map covers the picture, 0 to 1.
    """

    module = "image_patches"

    image = t.Dict().tag(sync=True)
    weights = t.Dict().tag(sync=True)
    rollout = t.Dict().tag(sync=True)
    pixels = t.List(t.Int()).tag(sync=True)
    patch = t.Int().tag(sync=True)
    layers = t.Int().tag(sync=True)
    query = t.Int(0).tag(sync=True)
    layer = t.Int(0).tag(sync=True)
    head = t.Int(-1).tag(sync=True)
    show = t.Enum(("both", "raw", "rollout"), "both").tag(sync=True)
    overlay = t.Float(0.8).tag(sync=True)

    def __init__(
        self,
        image: Any,
        weights: Any,
        patch: int,
        rollout: Any = None,
        *,
        query: int = 0,
        layer: int | None = None,
        head: int | None = None,
        show: str = "both",
        overlay: float = 0.8,
        title: str = "Where does it look?",
        predict: Any = None,
        prediction: str | None = None,
    ):
        where = "ImagePatches"
        image = _picture(where, image)
        height, width = image.shape[:2]
        if isinstance(patch, bool) or not isinstance(patch, int) or patch < 1 or height % patch or width % patch:
            raise ValueError(
                f"{where}: patch is {patch!r}, which does not divide an image of {height} x {width} pixels into "
                "whole patches"
            )
        self._tokens = n = 1 + (height // patch) * (width // patch)
        weights = layered_weights(where, weights, ("layers", "heads", "1 + N", "1 + N"), (None, None, n, n))
        self._heads = weights.shape[1]
        if rollout is None:
            rollout = _rollout(weights)
        rollout = numbers(where, "rollout", rollout, ("1 + N", "1 + N"), (n, n))
        if rollout.min() < -1e-3 or rollout.max() > 1 + 1e-3:
            raise ValueError(
                f"{where}: rollout runs from {rollout.min():.3g} to {rollout.max():.3g}; its rows are weights, "
                "between 0 and 1"
            )
        default = (
            "Two maps of one model and one image, both made of its attention weights: the raw weights of the last "
            "layer, and rollout through all layers. How alike are the two maps for the class token?",
            ["the same, near enough (correlation above 0.95)", "alike (0.5 to 0.95)", "hardly alike (below 0.5)"],
        )
        last = len(weights) - 1
        super().__init__(
            title=title,
            predict=predict,
            prediction=prediction,
            default=default,
            image=pack(np.rint(image * 255) / 255),
            weights=pack(weights),
            rollout=pack(rollout),
            pixels=[height, width],
            patch=patch,
            layers=len(weights),
            query=index(where, "query", query, n, none=False),
            layer=last if layer is None else index(where, "layer", layer, len(weights), none=False),
            head=index(where, "head", head, self._heads),
            show=show,
            overlay=overlay,
        )

    @t.validate("query", "layer", "head")
    def _an_index(self, proposal: Any) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        low, size = {"query": (0, self._tokens), "layer": (0, self.layers), "head": (-1, self._heads)}[name]
        if not low <= value < size:
            nothing = ", or -1 for the mean of all heads" if low < 0 else ""
            raise t.TraitError(f"ImagePatches: {name} is {value}; it must be 0 to {size - 1}{nothing}")
        return value

    @t.validate("overlay")
    def _a_share(self, proposal: Any) -> float:
        if not 0 <= proposal["value"] <= 1:
            raise t.TraitError(f"ImagePatches: overlay is {proposal['value']}; it must be 0 (picture only) to 1")
        return proposal["value"]

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The image (H, W, 1 or 3), the weights (L, h, 1 + N, 1 + N) and rollout (1 + N, 1 + N), as the browser sees
        them: to 8e-6."""
        n = self._tokens
        image = unpack(self.image, (*self.pixels, -1))
        return image, unpack(self.weights, (self.layers, -1, n, n)), unpack(self.rollout, (n, n))

    def maps(self) -> dict[str, np.ndarray]:
        """The two rows that are compared, (1 + N,) each: of the query in the chosen layer and head, and in rollout."""
        _, weights, rollout = self.arrays()
        chosen = weights[self.layer].mean(axis=0) if self.head < 0 else weights[self.layer, self.head]
        return {"raw attention": chosen[self.query], "rollout": rollout[self.query]}

    def agreement(self) -> float:
        """Pearson's correlation of the two maps over the patches, the query's own left out; NaN for a constant map.

        Rollout leaves half of each token where it is, so that its own patch says nothing.
        """
        raw, rolled = (row[self._compared()] for row in self.maps().values())
        if len(raw) < 2 or np.ptp(raw) < 1e-12 or np.ptp(rolled) < 1e-12:
            return float("nan")
        return float(np.corrcoef(raw, rolled)[0, 1])

    def _compared(self) -> np.ndarray:
        return np.array([j for j in range(1, self._tokens) if j != self.query], dtype=int)

    def _token(self, j: int) -> str:
        columns = self.pixels[1] // self.patch
        return "class token" if j == 0 else f"patch row {(j - 1) // columns}, column {(j - 1) % columns}"

    def _name(self) -> str:
        heads = f"mean of {self._heads} heads" if self.head < 0 else f"head {self.head}"
        return f"raw attention of layer {self.layer}, {heads}"

    def _shown(self) -> dict[str, np.ndarray]:
        hidden = {"raw": "rollout", "rollout": "raw attention"}.get(self.show)
        return {name: row for name, row in self.maps().items() if name != hidden}

    def describe(self) -> str:
        rows, columns = (size // self.patch for size in self.pixels)
        parts = [
            f"Image patches: {self.title.rstrip('.?!')}. An image of {self.pixels[0]} x {self.pixels[1]} pixels, "
            f"{rows} x {columns} patches. Query: {self._token(self.query)}."
        ]
        for name, row in self._shown().items():
            patches = self._compared()
            if len(patches):
                best = int(patches[row[patches].argmax()])
                told = self._name() if name != "rollout" else "rollout through all layers"
                parts.append(f"{told[0].upper()}{told[1:]}: most on {self._token(best)}, {row[best]:.3f}.")
        same = self.agreement()
        told = "none, as one of them is constant" if np.isnan(same) else format_value(same, 2)
        parts.append(f"Correlation of the two maps over {len(self._compared())} patches: {told}. {CAUTION}.")
        return " ".join(parts)

    def static(self) -> Figure:
        image = self.arrays()[0]
        shown = {"image": None, **self._shown()}
        rows, columns = (size // self.patch for size in self.pixels)
        side = 2.3
        fig, _ = canvas(max(len(shown) * (side + 0.15) + 0.3, 4.2), side * rows / columns + 1.0, "compressed")
        fig.clear()
        with course_style():
            for place, (name, row) in enumerate(shown.items(), start=1):
                ax = fig.add_subplot(1, len(shown), place)
                amounts = None if row is None else self._amounts(row)
                ax.imshow(np.broadcast_to(tinted(image, amounts, self.patch, self.overlay), (*self.pixels, 3)))
                self._mark(ax)
                ax.set_title(
                    name if row is None or name == "rollout" else self._name().replace(", ", "\n"), fontsize=10
                )
                ax.set_axis_off()
        return finish(fig, self.title, self.describe(), None, photo=image.shape[-1] == 3)

    def _amounts(self, row: np.ndarray) -> np.ndarray:
        """Shares of the largest weight among the patches that are compared, (rows, columns)."""
        rows, columns = (size // self.patch for size in self.pixels)
        top = row[self._compared()].max(initial=0.0)
        return (row[1:] / top if top > 0 else row[1:] * 0).clip(0, 1).reshape(rows, columns)

    def _mark(self, ax: Any) -> None:
        from matplotlib.patches import Rectangle

        if self.query:
            i, j = divmod(self.query - 1, self.pixels[1] // self.patch)
            corner = (j * self.patch - 0.5, i * self.patch - 0.5)
            for colour, width in (("#000000", 4.0), ("#ffffff", 1.8)):
                ax.add_patch(Rectangle(corner, self.patch, self.patch, fill=False, edgecolor=colour, linewidth=width))

    def table(self) -> Table:
        """One row for each token that is read: its weight for the query, in every layer and head, and in rollout."""
        _, weights, rollout = self.arrays()
        names = [f"layer {layer} head {head}" for layer in range(self.layers) for head in range(self._heads)]
        read = np.concatenate([weights[:, :, self.query].reshape(len(names), -1), rollout[self.query][None]])
        rows = [(self._token(j), *map(float, read[:, j])) for j in range(self._tokens)]
        caption = f"What the {self._token(self.query)} reads"
        return table(rows, ("reads", *names, "rollout"), caption=caption, digits=4)


def tinted(image: np.ndarray, amounts: np.ndarray | None, patch: int, strength: float) -> np.ndarray:
    """The picture (H, W, C) under a map (rows, columns) of amounts from 0 to 1: the more, the brighter and yellower.

    The picture turns grey and darker as the map gets stronger, so that more weight is brighter on every pixel.
    """
    if amounts is None:
        return image
    over = np.kron(amounts, np.ones((patch, patch)))[..., None] * 0.85 * strength
    grey = image @ LUMINANCE[..., None] if image.shape[-1] == 3 else image
    under = (image * (1 - strength) + grey * strength) * (1 - 0.5 * strength)
    return under * (1 - over) + GLOW * over


def _picture(where: str, image: Any) -> np.ndarray:
    """(H, W, 1) or (H, W, 3), from 0 to 1."""
    array = to_array(f"{where}: image", image)
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or array.shape[-1] not in (1, 3) or 0 in array.shape:
        way = ""
        if array.ndim == 3 and array.shape[0] in (1, 3):
            way = "; image.permute(1, 2, 0) brings the channels to the end"
        raise ValueError(f"{where}: image has shape {np.shape(image)}; it must be (H, W) or (H, W, 3){way}")
    array = numbers(where, "image", array, ("H", "W", "channels"))
    if array.min() < 0 or array.max() > 1:
        raise ValueError(
            f"{where}: image runs from {array.min():.3g} to {array.max():.3g}; brightness lies between 0 and 1. "
            "Undo the normalisation, or divide by 255"
        )
    if array.size > MOST:
        raise ValueError(
            f"{where}: image holds {array.size:,} numbers, and at most {MOST:,} can be shown; "
            "scale it down, or take a part of it"
        )
    return array


def _rollout(weights: np.ndarray) -> np.ndarray:
    import torch

    from course_utils.vision import attention_rollout

    return attention_rollout([torch.tensor(layer)[None] for layer in weights])[0].numpy()
