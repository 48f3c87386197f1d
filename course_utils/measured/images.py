"""The tables of notebook 07, registered in `make`."""

import torch

from ..data.images import digits, mnist
from ..experiments import images
from ..image_baselines import SmallCNN, SmallMLP
from ..training import n_parameters
from ..vision import VisionTransformer
from . import SEEDS

MAP_SEEDS = range(8)  # attention maps differ more from seed to seed than accuracy does
SIZES = (100, 300, 1000, 4000)
MODELS = {
    "ViT": VisionTransformer,
    "CNN": lambda img_size, patch: SmallCNN(img_size),
    "MLP": lambda img_size, patch: SmallMLP(img_size),
}


def _run(make_model, data, seed: int, label: str, **options) -> float:
    """Test accuracy."""
    return images.train_image_classifier(make_model, data, seed=seed, label=label, **options)[1]


def image_sizes() -> dict:
    """MNIST, 400 steps, patches of 7 x 7: test accuracy by number of training images; without positions as well."""
    kinds = MODELS | {"ViT without positions": lambda size, patch: VisionTransformer(size, patch, positions=False)}
    return {
        "sizes": SIZES,
        "parameters": {name: n_parameters(make(28, 7)) for name, make in kinds.items()},
        "accuracy": {
            name: {
                str(n): [_run(lambda: make(28, 7), mnist(), s, f"{name}, {n}", n=n) for s in SEEDS]  # noqa: B023
                for n in (SIZES if name in MODELS else (300, 4000))
            }
            for name, make in kinds.items()
        },
    }


def image_shuffles() -> dict:
    """300 images of MNIST, 400 steps: test accuracy with all patches, or all pixels, in one fixed other order."""
    table: dict = {"accuracy": {}}
    for what, p in (("patches", 7), ("pixels", 1)):
        order = images.shuffled_patches((28 // p) ** 2)
        data = tuple(images.shuffle_patches(part, p, order) for part in mnist())
        table["accuracy"][what] = {
            name: [_run(lambda: make(28, 7), data, s, f"{name}, {what}", n=300) for s in SEEDS]  # noqa: B023
            for name, make in MODELS.items()
        }
    return table


def image_patches() -> dict:
    """Digits of 8 x 8 pixels, 300 steps: test accuracy by the size of the patches, with positions and without."""
    return {
        "accuracy": {
            f"{p}": [_run(lambda: VisionTransformer(8, p), digits(), s, f"patch {p}", steps=300) for s in SEEDS]  # noqa: B023
            for p in (1, 2, 4, 8)
        },
        "without_positions": {
            f"{p}": [
                _run(lambda: VisionTransformer(8, p, positions=False), digits(), s, f"patch {p}, none", steps=300)  # noqa: B023
                for s in SEEDS
            ]
            for p in (2, 4)
        },
        "baselines": {
            name: [_run(lambda: MODELS[name](8, 2), digits(), s, name, steps=300) for s in SEEDS]  # noqa: B023
            for name in ("CNN", "MLP")
        },
    }


def image_maps() -> dict:
    """ViT on 4,000 images of MNIST, 400 steps: attention maps against ink, patches painted black, learned positions."""
    table: dict = {key: {} for key in ("ink", "ink_beyond_average", "four_highest", "six_lowest")}
    table |= {"average_ink": [], "same_top": [], "accuracy": [], "neighbours": [], "distance": []}
    test_set, grid = mnist()[1], images.grid_distance(4, 4)
    inked = images.ink(test_set.images, 7)
    table["uniform"] = grid.mean().item()
    for seed in MAP_SEEDS:
        model, accuracy = images.train_image_classifier(
            lambda: VisionTransformer(28, 7), mnist(), n=4000, seed=seed, label=f"ViT to look into, {seed}"
        )
        model = images.readable_vit(model)
        maps = images.patch_maps(model, test_set.images)
        chance = torch.rand(inked.shape, generator=torch.Generator().manual_seed(seed))
        for name, scores in (maps | {"ink": inked, "chance": chance}).items():
            if name in maps:
                beyond = images.correlation(scores - scores.mean(dim=0), inked - inked.mean(dim=0))
                table["ink"].setdefault(name, []).append(images.correlation(scores, inked))
                table["ink_beyond_average"].setdefault(name, []).append(beyond)
            for key, k in (("four_highest", 4), ("six_lowest", 6)):
                left = images.accuracy_without(model, test_set, 7, scores, k, largest=k == 4)
                table[key].setdefault(name, []).append(left)
        first, second = (scores.argmax(dim=1) for scores in maps.values())
        table["accuracy"].append(accuracy)
        table["average_ink"].append(images.correlation(inked.mean(dim=0).expand_as(inked), inked))
        table["same_top"].append((first == second).double().mean().item())
        table["neighbours"].append(images.position_likeness(model)[grid == 1].mean().item())
        table["distance"].append(images.looking_distance(model, test_set.images, grid).tolist())
    return table


TABLES = {f.__name__: f for f in (image_sizes, image_shuffles, image_patches, image_maps)}
