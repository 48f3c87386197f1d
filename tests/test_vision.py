"""Patches, the embedding of a Vision Transformer, and attention rollout."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from course_utils.vision import ViTEmbedding, attention_rollout, patchify, unpatchify, vit_pool


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
