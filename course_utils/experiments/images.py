"""Images as sequences of patches: training classifiers, shuffling patches, and what attention maps are worth."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..data.images import ImageSet
from ..multihead import MultiHeadAttention
from ..training import seed_everything, train
from ..vision import VisionTransformer, attention_rollout, patchify, unpatchify
from .attention_maps import showing_weights

Images = tuple[ImageSet, ImageSet]  # to train on, and to test with


def train_image_classifier(
    make_model: Callable[[], nn.Module],
    data: Images,
    *,
    n: int | None = None,
    steps: int = 400,
    lr: float = 3e-3,
    seed: int = 0,
    label: str = "image classifier",
) -> tuple[nn.Module, float]:
    """Train on n of the training images (all without n); the model and its accuracy on the test images.

    The same seed means the same images and the same batches, whatever the model.
    """
    train_set, test_set = data
    if n is not None:
        train_set = train_set.subset(n, seed)
    seed_everything(seed)
    model = make_model()

    def loss_of(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return F.cross_entropy(model(batch[0]), batch[1])

    train(model, loss_of, train_set.batches(seed=seed), steps, lr=lr, label=label)
    return model, image_accuracy(model, test_set)


@torch.no_grad()
def image_accuracy(model: nn.Module, data: ImageSet) -> float:
    """Share of the images whose class gets the highest score."""
    return (model(data.images).argmax(dim=-1) == data.labels).double().mean().item()


def shuffled_patches(n_patches: int, seed: int = 0) -> Int[Tensor, " N"]:
    """One fixed order of patches that leaves few of them where they were."""
    return torch.randperm(n_patches, generator=torch.Generator().manual_seed(seed))


def shuffle_patches(
    data: ImageSet,
    p: int,
    order: Int[Tensor, " N"],
    cut: Callable[[Tensor, int], Tensor] = patchify,
) -> ImageSet:
    """The same images with their p x p patches in another order, the same for all: place i gets patch order[i]."""
    height, width = data.images.shape[-2:]
    return ImageSet(unpatchify(cut(data.images, p)[:, order], p, height, width), data.labels)


def readable_vit(model: VisionTransformer) -> VisionTransformer | None:
    """A copy that tells the weights of its attention, with the model's numbers.

    None if a part made by a reader keeps its numbers in another form than the course's.
    """
    model = showing_weights(model, model.n_heads)
    table = getattr(model.embed, "pos_embed", None)
    if not isinstance(table, nn.Parameter) or table.dim() != 3 or table.shape[0] != 1:
        return None
    attentions = [getattr(block, "attn", None) for block in model.blocks]
    return model if all(isinstance(attention, MultiHeadAttention) for attention in attentions) else None


def ink(images: Float[Tensor, "B C H W"], p: int) -> Float[Tensor, "B N"]:
    """The mean brightness of each patch."""
    return patchify(images, p).mean(dim=-1)


def patch_maps(model: VisionTransformer, images: Float[Tensor, "B C H W"]) -> dict[str, Float[Tensor, "B N"]]:
    """What the class token reads of each patch: the last layer's weights, averaged over heads, and rollout."""
    weights = model.attention_weights(images)
    return {"raw attention": weights[-1].mean(dim=1)[:, 0, 1:], "rollout": attention_rollout(weights)[:, 0, 1:]}


def correlation(a: Tensor, b: Tensor) -> float:
    """Pearson's correlation of two tensors of the same shape, number by number."""
    return torch.corrcoef(torch.stack([a.flatten(), b.flatten()]).double())[0, 1].item()


def accuracy_without(
    model: nn.Module, data: ImageSet, p: int, scores: Float[Tensor, "B N"], k: int, *, largest: bool = True
) -> float:
    """Accuracy when in each image the k patches with the highest (or lowest) scores are painted black."""
    height, width = data.images.shape[-2:]
    patches = patchify(data.images, p)
    chosen = scores.topk(k, dim=1, largest=largest).indices.unsqueeze(-1).expand(-1, -1, patches.shape[-1])
    painted = unpatchify(patches.scatter(1, chosen, 0.0), p, height, width)
    return image_accuracy(model, ImageSet(painted, data.labels))


def looking_distance(
    model: VisionTransformer, images: Float[Tensor, "B C H W"], distance: Float[Tensor, "N N"]
) -> Float[Tensor, "L h"]:
    """How far a patch looks on average, for every layer and head; what it gives to the class token is left out."""
    far = []
    for weights in model.attention_weights(images):
        among = weights[:, :, 1:, 1:]
        far.append((among / among.sum(dim=-1, keepdim=True) * distance).sum(dim=-1).mean(dim=(0, 2)))
    return torch.stack(far)


@torch.no_grad()
def position_likeness(model: VisionTransformer) -> Float[Tensor, "N N"]:
    """Cosine similarity of the learned positions of any two patches."""
    table = F.normalize(model.embed.pos_embed[0, 1:], dim=-1)
    return table @ table.T


def grid_distance(rows: int, columns: int) -> Float[Tensor, "N N"]:
    """How far apart any two patches of a grid are, in patches."""
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).float()
    return torch.cdist(places, places)
