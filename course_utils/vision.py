"""An image as a sequence of patches: the Vision Transformer.

B images, C channels, H rows, W columns, patches of p x p pixels, N patches in row-major order.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .transformer import TransformerBlock


def patchify(images: Float[Tensor, "B C H W"], p: int) -> Float[Tensor, "B N CPP"]:
    """Cut images into patches, row by row; each patch is flattened as (channel, row, column).

    Raises ValueError when p does not divide the height and the width.
    """
    B, C, H, W = images.shape
    if p < 1 or H % p or W % p:
        raise ValueError(f"p: got {p}, which does not divide an image of {H} x {W} pixels into whole patches")
    # (B, C, rows of patches, row in the patch, columns of patches, column in the patch)
    grid = images.reshape(B, C, H // p, p, W // p, p)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(B, (H // p) * (W // p), C * p * p)


def unpatchify(patches: Float[Tensor, "B N CPP"], p: int, height: int, width: int) -> Float[Tensor, "B C H W"]:
    """The inverse of `patchify`. Raises ValueError for patches that do not fit."""
    B, N, size = patches.shape
    wanted = (height // p) * (width // p)
    if wanted != N or size % (p * p):
        raise ValueError(
            f"patches: got {N} of {size} numbers; {height} x {width} pixels in patches of {p} x {p} need "
            f"{wanted}, each of a multiple of {p * p} numbers"
        )
    grid = patches.reshape(B, height // p, width // p, size // (p * p), p, p)
    return grid.permute(0, 3, 1, 4, 2, 5).reshape(B, size // (p * p), height, width)


class ViTEmbedding(nn.Module):
    """Patches projected to d_model features, a class token before them, a learned position added to each.

    Source: Dosovitskiy et al. 2021, "An image is worth 16x16 words", section 3.1. Raises ValueError when the patch
    does not divide the image.
    """

    def __init__(self, img_size: int | tuple[int, int], patch: int, in_ch: int, d_model: int):
        super().__init__()
        height, width = (img_size, img_size) if isinstance(img_size, int) else img_size
        if patch < 1 or height % patch or width % patch:
            raise ValueError(f"patch: got {patch}, which does not divide an image of {height} x {width} pixels")
        self.patch = patch
        n_patches = (height // patch) * (width // patch)
        self.proj = nn.Linear(in_ch * patch * patch, d_model)
        self.cls_token = nn.Parameter(torch.randn(1, 1, d_model) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, 1 + n_patches, d_model) * 0.02)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B N1 d_model"]:
        tokens = self.proj(patchify(images, self.patch))
        tokens = torch.cat([self.cls_token.expand(len(tokens), -1, -1), tokens], dim=1)
        return tokens + self.pos_embed


def vit_pool(tokens: Float[Tensor, "B N1 d"]) -> Float[Tensor, "B d"]:
    """The class token stands for the image."""
    return tokens[:, 0]


class VisionTransformer(nn.Module):
    """Classifies images: patches, class token and positions in, blocks, a last norm, scores read from one token.

    The parts can be a reader's own: embedding(img_size, patch, in_ch, d_model), block(d_model, n_heads, d_ff, dropout)
    and pool(tokens). attention(d_model, n_heads) goes into the course's block; a block of one's own has its own.
    positions=False keeps the table of positions at zero. d_ff is 4 d_model unless told otherwise.
    Source: Dosovitskiy et al. 2021, section 3.1. Raises ValueError when positions are to go and have another name.
    """

    def __init__(
        self,
        img_size: int | tuple[int, int],
        patch: int,
        in_ch: int = 1,
        n_classes: int = 10,
        *,
        d_model: int = 64,
        n_layers: int = 2,
        n_heads: int = 4,
        d_ff: int | None = None,
        dropout: float = 0.0,
        positions: bool = True,
        embedding: Callable[..., nn.Module] = ViTEmbedding,
        block: Callable[..., nn.Module] = TransformerBlock,
        attention: Callable[[int, int], nn.Module] | None = None,
        pool: Callable[[Tensor], Tensor] = vit_pool,
    ):
        super().__init__()
        self.n_heads, self.pool = n_heads, pool
        self.embed = embedding(img_size, patch, in_ch, d_model)
        if not positions:
            self._forget_positions()
        options = {"attention": attention} if attention is not None and block is TransformerBlock else {}
        d_ff = 4 * d_model if d_ff is None else d_ff
        self.blocks = nn.ModuleList(block(d_model, n_heads, d_ff, dropout, **options) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)

    def _forget_positions(self) -> None:
        table = getattr(self.embed, "pos_embed", None)
        if not isinstance(table, nn.Parameter):
            raise ValueError(
                "positions: False needs an embedding that keeps its positions in the parameter pos_embed; "
                f"{type(self.embed).__name__} does not, so leave embedding out, or positions in"
            )
        nn.init.zeros_(table)
        table.requires_grad_(False)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B V"]:
        x = self.embed(images)
        for block in self.blocks:
            x = block(x)
        return self.head(self.pool(self.norm(x)))

    @torch.no_grad()
    def attention_weights(self, images: Float[Tensor, "B C H W"]) -> list[Float[Tensor, "B h T T"]]:
        """The weights of every layer for these images, first layer first.

        Raises ValueError when an attention does not keep the weights of its last call, as `MultiHeadAttention` does.
        """
        self(images)
        found = [getattr(getattr(block, "attn", None), "weights", None) for block in self.blocks]
        if missing := [i for i, weights in enumerate(found) if weights is None]:
            raise ValueError(
                f"blocks {missing} do not tell the weights of their attention; train with "
                "attention=MultiHeadAttention, or see experiments.showing_weights"
            )
        return found


def attention_rollout(weights: list[Float[Tensor, "B h T T"]]) -> Float[Tensor, "B T T"]:
    """How attention adds up over layers: heads averaged, half of each layer left to the residual, layers multiplied.

    Source: Abnar and Zuidema 2020, "Quantifying attention flow in Transformers", section 4.
    """
    if not weights:
        raise ValueError("weights: got no layer; rollout needs the attention weights of at least one")
    total = None
    for layer in weights:
        mean = layer.mean(dim=1)
        mixed = 0.5 * mean + 0.5 * torch.eye(mean.shape[-1], dtype=mean.dtype, device=mean.device)
        total = mixed if total is None else mixed @ total
    return total
