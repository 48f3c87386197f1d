"""Properties of the parts of a Vision Transformer; loops over patches, and a convolution, are the judge."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from properties import Case, close, gradients, raises, states


def _images(case: Case, p: int) -> Tensor:
    """Images with H rows and T + 2 columns of patches, and D channels."""
    return case.random()(case.B, case.D, p * case.H, p * (case.T + 2))


def _sides(case: Case) -> tuple[int, ...]:
    return (1, 2, 3)[: 2 + (case.T < 6)]


@states("patchify")
def patches_are_squares_row_by_row(patchify, case: Case):
    for p in _sides(case):
        images = _images(case, p)
        patches = patchify(images, p)
        rows, columns = images.shape[2] // p, images.shape[3] // p
        assert patches.shape == (case.B, rows * columns, case.D * p * p)
        for i in range(rows):
            for j in range(columns):
                square = images[:, :, i * p : (i + 1) * p, j * p : (j + 1) * p]
                assert torch.equal(patches[:, i * columns + j], square.flatten(1))


@states("patchify")
def patches_that_do_not_fit_are_an_error(patchify, case: Case):
    for p, height, width in ((0, 4, 4), (-1, 4, 4), (2, 4, 5), (2, 5, 4), (3, 4, 4)):
        told = f"p: got {p}, which does not divide an image of {height} x {width} pixels into whole patches"
        raises(lambda: patchify(torch.zeros(case.B, case.D, height, width), p), told)  # noqa: B023


@states("unpatchify")
def patches_go_back_together(unpatchify, case: Case):
    for p in _sides(case):
        images = _images(case, p)
        patches = F.unfold(images, p, stride=p).transpose(1, 2)
        assert torch.equal(unpatchify(patches, p, images.shape[2], images.shape[3]), images)


@states("unpatchify")
def patches_that_make_no_image_are_an_error(unpatchify, case: Case):
    for (N, size), p, wanted in (((5, 8), 2, 6), ((6, 10), 2, 6), ((6, 9), 2, 6), ((6, 4), 1, 24)):
        told = (
            f"patches: got {N} of {size} numbers; 4 x 6 pixels in patches of {p} x {p} need "
            f"{wanted}, each of a multiple of {p * p} numbers"
        )
        raises(lambda: unpatchify(torch.zeros(case.B, N, size), p, 4, 6), told)  # noqa: B023


def _embedding(kind: type[nn.Module], case: Case, size, patch: int, d_model: int) -> nn.Module:
    """In float64, with weights that depend on the case alone."""
    r, module = Case(seed=case.seed + 50).random(), kind(size, patch, case.D, d_model).double()
    with torch.no_grad():
        for weight in module.parameters():
            weight.copy_(r(*weight.shape))
    return module


@states("ViTEmbedding")
def the_embedding_is_a_strided_convolution_behind_a_class_token(ViTEmbedding, case: Case):
    d_model = case.H + 1
    for p in _sides(case):
        images = _images(case, p)
        embed = _embedding(ViTEmbedding, case, tuple(images.shape[2:]), p, d_model)
        kernel = embed.proj.weight.view(d_model, case.D, p, p)
        tokens = F.conv2d(images, kernel, embed.proj.bias, stride=p).flatten(2).transpose(1, 2)
        out = embed(images)
        close(out[:, 1:], tokens + embed.pos_embed[:, 1:])
        close(out[:, 0], (embed.cls_token + embed.pos_embed[:, :1])[0].expand(case.B, -1))
        direction = torch.arange(1.0, out.numel() + 1, dtype=out.dtype).view(out.shape).sin()
        cls, places = gradients(out, [embed.cls_token, embed.pos_embed], direction)
        close(places, direction.sum(0, keepdim=True))
        close(cls, direction[:, :1].sum(0, keepdim=True))


@states("ViTEmbedding")
def one_number_stands_for_a_square_image(ViTEmbedding, case: Case):
    p, side = 2, 2 * case.T
    images = case.random()(case.B, case.D, side, side)
    one, two = (_embedding(ViTEmbedding, case, size, p, case.H) for size in (side, (side, side)))
    assert torch.equal(one(images), two(images))


@states("ViTEmbedding")
def everything_in_the_embedding_is_learned_and_small_at_the_start(ViTEmbedding, case: Case):
    d_model = 40
    embed = ViTEmbedding((4, 6), 2, case.D, d_model)
    assert {name: tuple(p.shape) for name, p in embed.named_parameters()} == {
        "proj.weight": (d_model, case.D * 4),
        "proj.bias": (d_model,),
        "cls_token": (1, 1, d_model),
        "pos_embed": (1, 7, d_model),
    }
    for start in (embed.cls_token, embed.pos_embed):
        assert start.requires_grad and 0.001 < start.std() < 0.1 and abs(start.mean()) < 0.02


@states("ViTEmbedding")
def images_that_cannot_be_cut_are_an_error(ViTEmbedding, case: Case):
    for size, patch in (((4, 4), 0), ((4, 4), -1), ((4, 5), 2), ((5, 4), 2), (5, 2)):
        height, width = (size, size) if isinstance(size, int) else size
        told = f"patch: got {patch}, which does not divide an image of {height} x {width} pixels"
        raises(lambda: ViTEmbedding(size, patch, case.D, case.H), told)  # noqa: B023
    ViTEmbedding((3, 4), 1, case.D, case.H)


@states("vit_pool")
def the_class_token_is_the_first(vit_pool, case: Case):
    tokens = case.random()(case.B, case.T + 1, case.D)
    assert torch.equal(vit_pool(tokens), torch.stack([image[0] for image in tokens]))


@states("attention_rollout")
def rollout_is_what_a_network_that_only_mixes_does(attention_rollout, case: Case):
    r = case.random()
    layers = [r(case.B, case.H, case.T, case.T).softmax(dim=-1) for _ in range(3)]
    x = start = r(case.B, case.T, case.D)
    for n, layer in enumerate(layers, start=1):
        x = 0.5 * x + 0.5 * sum(layer[:, i] @ x for i in range(case.H)) / case.H
        close(attention_rollout(layers[:n]) @ start, x)
    assert attention_rollout([layer.float() for layer in layers]).dtype == torch.float32


@states("attention_rollout")
def rollout_of_nothing_is_an_error(attention_rollout, case: Case):
    raises(lambda: attention_rollout([]), "weights: got no layer; rollout needs the attention weights of at least one")
