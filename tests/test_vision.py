"""Patches, the Vision Transformer with its embedding, what it is compared with, and attention rollout."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from course_utils.image_baselines import SmallCNN, SmallMLP
from course_utils.multihead import MultiHeadAttention
from course_utils.vision import (
    VisionTransformer,
    ViTEmbedding,
    attention_rollout,
    patchify,
    unpatchify,
    vit_pool,
)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_patches_are_squares_row_by_row_and_go_back_together(B, C, rows, columns, p):
    images = torch.arange(B * C * rows * p * columns * p).reshape(B, C, rows * p, columns * p).float()
    patches = patchify(images, p)
    assert patches.shape == (B, rows * columns, C * p * p)
    for r in range(rows):
        for c in range(columns):
            square = images[:, :, r * p : (r + 1) * p, c * p : (c + 1) * p]
            assert torch.equal(patches[:, r * columns + c], square.flatten(1))
    assert torch.equal(unpatchify(patches, p, rows * p, columns * p), images)


@pytest.mark.parametrize(("size", "p"), [((8, 6), 4), ((6, 8), 4), ((4, 4), 0)])
def test_a_patch_that_does_not_divide_the_image_is_named(size, p):
    with pytest.raises(ValueError, match=rf"p: got {p}.*{size[0]} x {size[1]}"):
        patchify(torch.zeros(1, 1, *size), p)
    with pytest.raises(ValueError, match=rf"patch: got {p}.*{size[0]} x {size[1]}"):
        ViTEmbedding(size, p, 1, 8)
    with pytest.raises(ValueError, match="patches: got 3 of 16"):
        unpatchify(torch.zeros(1, 3, 16), 4, 8, 8)


@torch.no_grad()
def test_the_embedding_is_a_strided_convolution_with_a_class_token_and_positions():
    torch.manual_seed(0)
    embed, conv = ViTEmbedding((8, 12), 4, 3, 10), nn.Conv2d(3, 10, 4, stride=4)
    conv.weight.copy_(embed.proj.weight.view(10, 3, 4, 4))
    conv.bias.copy_(embed.proj.bias)
    nn.init.normal_(embed.cls_token), nn.init.normal_(embed.pos_embed)
    images = torch.randn(2, 3, 8, 12)
    tokens = embed(images) - embed.pos_embed
    torch.testing.assert_close(tokens[:, 1:], conv(images).flatten(2).transpose(1, 2), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(tokens[:, 0], embed.cls_token[0].expand(2, -1), atol=1e-6, rtol=1e-6)
    assert torch.equal(vit_pool(embed(images)), embed(images)[:, 0])
    assert {name for name, _ in embed.named_parameters()} == {"proj.weight", "proj.bias", "cls_token", "pos_embed"}


def test_rollout_rows_sum_to_one_and_layers_are_multiplied_in_order():
    torch.manual_seed(0)
    layers = [torch.randn(2, 3, 5, 5).softmax(dim=-1) for _ in range(3)]
    rolled = attention_rollout(layers)
    torch.testing.assert_close(rolled.sum(dim=-1), torch.ones(2, 5))
    start = torch.randn(2, 5, 4)
    x = start
    for layer in layers:  # a network that only mixes: half stays, half is attended
        x = 0.5 * x + 0.5 * layer.mean(dim=1) @ x
    torch.testing.assert_close(rolled @ start, x)
    with pytest.raises(ValueError, match="no layer"):
        attention_rollout([])


@torch.no_grad()
def test_scores_come_from_the_class_token_after_all_blocks():
    torch.manual_seed(0)
    model = VisionTransformer((8, 12), 4, 3, n_classes=7, d_model=16, n_heads=2, n_layers=2).eval()
    images = torch.randn(3, 3, 8, 12)
    x = model.embed(images)
    for block in model.blocks:
        x = block(x)
    torch.testing.assert_close(model(images), model.head(model.norm(x)[:, 0]))
    assert model(images).shape == (3, 7)
    assert model.blocks[0].ff1.out_features == 64, "four times d_model"


@torch.no_grad()
def test_shuffled_patches_with_shuffled_positions_give_the_same_scores():
    torch.manual_seed(0)
    model, order = VisionTransformer(8, 2, d_model=16, n_heads=2).eval(), torch.randperm(16)
    images = torch.randn(2, 1, 8, 8)
    moved = unpatchify(patchify(images, 2)[:, order], 2, 8, 8)
    scores, confused = model(images), model(moved)
    model.embed.pos_embed[:, 1:] = model.embed.pos_embed[:, 1:][:, order].clone()
    torch.testing.assert_close(model(moved), scores, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(confused, scores, atol=1e-4)


@torch.no_grad()
def test_without_positions_the_order_of_patches_does_not_count():
    torch.manual_seed(0)
    model = VisionTransformer(8, 2, d_model=16, n_heads=2, positions=False).eval()
    images = torch.randn(2, 1, 8, 8)
    moved = unpatchify(patchify(images, 2)[:, torch.randperm(16)], 2, 8, 8)
    torch.testing.assert_close(model(moved), model(images), atol=1e-5, rtol=1e-5)
    assert not model.embed.pos_embed.requires_grad and model.embed.cls_token.requires_grad


def test_the_parts_can_be_a_readers_own():
    made = []

    class Embedding(ViTEmbedding):
        def __init__(self, *sizes):
            made.append(("embedding", sizes))
            super().__init__(*sizes)

    class Block(nn.Module):
        def __init__(self, d_model, n_heads, d_ff, dropout=0.0):
            super().__init__()
            made.append(("block", (d_model, n_heads, d_ff, dropout)))

        def forward(self, x, mask=None):
            return x

    model = VisionTransformer(
        8,
        4,
        d_model=8,
        n_heads=2,
        embedding=Embedding,
        block=Block,
        attention=MultiHeadAttention,
        pool=lambda t: t[:, 1],
    )
    assert made == [("embedding", (8, 4, 1, 8)), ("block", (8, 2, 32, 0.0)), ("block", (8, 2, 32, 0.0))]
    images = torch.randn(2, 1, 8, 8)
    torch.testing.assert_close(model(images), model.head(model.norm(model.embed(images))[:, 1]))
    with pytest.raises(ValueError, match=r"blocks \[0, 1\] do not tell the weights"):
        model.attention_weights(images)
    own = VisionTransformer(8, 4, d_model=8, n_heads=2, attention=MultiHeadAttention)
    assert all(type(block.attn) is MultiHeadAttention for block in own.blocks)


def test_positions_of_another_name_cannot_be_left_out():
    class Embedding(nn.Module):
        def __init__(self, *sizes):
            super().__init__()

    with pytest.raises(ValueError, match=r"positions: False needs .* pos_embed; Embedding does not"):
        VisionTransformer(8, 4, embedding=Embedding, positions=False)


@pytest.mark.parametrize("kind", [SmallCNN, SmallMLP])
def test_the_baselines_give_a_score_for_each_class(kind):
    assert kind(8, in_ch=3, n_classes=5)(torch.randn(2, 3, 8, 8)).shape == (2, 5)


@torch.no_grad()
def test_a_convolution_moves_with_the_image_and_a_list_of_pixels_has_no_neighbours():
    torch.manual_seed(0)
    cnn, mlp = SmallCNN(12), SmallMLP(12)
    image = torch.zeros(1, 1, 12, 12)
    image[..., 3:7, 3:7] = torch.rand(4, 4)
    torch.testing.assert_close(cnn.conv1(image.roll(1, dims=-1)), cnn.conv1(image).roll(1, dims=-1))
    order = torch.randperm(144)
    shuffled = image.flatten(1)[:, order].view_as(image)
    scores = mlp(image)
    mlp.hidden.weight.copy_(mlp.hidden.weight[:, order])
    torch.testing.assert_close(mlp(shuffled), scores)


@pytest.mark.parametrize("side", [6, 2, 0])
def test_a_cnn_that_cannot_halve_twice_says_so(side):
    with pytest.raises(ValueError, match=f"img_size: got {side}; it is halved twice"):
        SmallCNN(side)
