"""Blocks that leave something out, and blocks that replace something: what notebook 06 compares.

B sentences, T positions, d_model features.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from .layers import rms_norm, swiglu
from .transformer import TransformerBlock


class BlockVariant(TransformerBlock):
    """The same parts, put together in another way, to see what each of them is for.

    norm: "pre" on what a sub-layer reads, "post" on the sum, "none". residual=False hands on the sub-layer's output
    alone. The post-norm block as published is `PostNormBlock`. Raises ValueError for another norm.
    """

    NORMS = ("pre", "post", "none")

    def __init__(self, d_model: int, n_heads: int, d_ff: int, *, norm: str = "pre", residual: bool = True):
        super().__init__(d_model, n_heads, d_ff)
        if norm not in self.NORMS:
            raise ValueError(f"norm: got {norm!r}, must be one of {', '.join(map(repr, self.NORMS))}")
        self.norm, self.residual = norm, residual
        if norm == "none":
            self.ln1 = self.ln2 = nn.Identity()

    def forward(
        self, x: Float[Tensor, "B T d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "B T d_model"]:
        def sublayer(x: Tensor, ln: nn.Module, f) -> Tensor:
            out = f(ln(x) if self.norm == "pre" else x)
            out = x + out if self.residual else out
            return ln(out) if self.norm == "post" else out

        x = sublayer(x, self.ln1, lambda z: self.attn(z, None, mask))
        return sublayer(x, self.ln2, lambda z: self.ff2(F.relu(self.ff1(z))))


class RMSNorm(nn.Module):
    """`layers.rms_norm` with its scale as a parameter. Source: Zhang and Sennrich 2019, section 3."""

    def __init__(self, d_model: int):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        return rms_norm(x, self.gamma)


class SwiGLU(nn.Module):
    """`layers.swiglu` with its three matrices as parameters, without biases. Source: Shazeer 2020, section 2."""

    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        self.gate, self.up = nn.Linear(d_model, d_ff, bias=False), nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        return swiglu(x, self.gate.weight.T, self.up.weight.T, self.down.weight.T)


class FeedForward(nn.Module):
    """The feed-forward network as a module, with the activation to choose ("relu", "gelu", or "none").

    Source: Vaswani et al. 2017, section 3.3; GELU: Hendrycks and Gimpel 2016. Raises ValueError for another activation.
    """

    ACTIVATIONS = ("relu", "gelu", "none")

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu"):
        super().__init__()
        if activation not in self.ACTIVATIONS:
            raise ValueError(f"activation: got {activation!r}, must be one of {', '.join(map(repr, self.ACTIVATIONS))}")
        self.ff1, self.ff2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.activation = {"relu": F.relu, "gelu": F.gelu, "none": lambda x: x}[activation]

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        return self.ff2(self.activation(self.ff1(x)))


class MixtureOfExperts(nn.Module):
    """Several feed-forward networks, of which each position uses one: the one its router gives most weight.

    The output is that expert's, times its weight, which is how the router learns. After a call, `load` (n_experts)
    is the share of positions that chose each expert, and `balance_loss` the auxiliary loss that evens the load out:
    n_experts · Σ share · mean weight, which is 1 for an even load and up to n_experts for one expert alone.
    Source: Fedus, Zoph and Shazeer 2022, "Switch Transformers", sections 2.1 and 2.2. Raises ValueError for fewer
    than one expert.
    """

    def __init__(self, d_model: int, d_ff: int, n_experts: int = 4):
        super().__init__()
        if n_experts < 1:
            raise ValueError(f"n_experts: got {n_experts}, must be at least 1")
        self.router = nn.Linear(d_model, n_experts, bias=False)
        self.experts = nn.ModuleList(FeedForward(d_model, d_ff) for _ in range(n_experts))
        self.load: Float[Tensor, " n_experts"] | None = None
        self.balance_loss: Float[Tensor, ""] | None = None

    def choose(self, x: Float[Tensor, "N d_model"]) -> tuple[Float[Tensor, "N n_experts"], Int[Tensor, " N"]]:
        """The router's weights for each position, and the expert it chooses."""
        weights = self.router(x).softmax(dim=-1)
        return weights, weights.argmax(dim=-1)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        positions = x.reshape(-1, x.shape[-1])
        weights, chosen = self.choose(positions)
        out = torch.zeros_like(positions)
        for i, expert in enumerate(self.experts):
            mine = (chosen == i).nonzero().squeeze(1)
            if len(mine):
                out = out.index_copy(0, mine, expert(positions[mine]) * weights[mine, i : i + 1])
        share = F.one_hot(chosen, len(self.experts)).to(weights).mean(dim=0)
        self.load = share.detach()
        self.balance_loss = len(self.experts) * (share * weights.mean(dim=0)).sum()
        return out.reshape(x.shape)


class ModernBlock(TransformerBlock):
    """A pre-norm block with other norms or another feed-forward network.

    make_norm(d_model) and make_ffn(d_model, d_ff) make the parts, for example `RMSNorm`, `SwiGLU` or
    `MixtureOfExperts`.
    """

    def __init__(self, d_model: int, n_heads: int, d_ff: int, *, make_norm=nn.LayerNorm, make_ffn=FeedForward):
        super().__init__(d_model, n_heads, d_ff)
        self.ln1, self.ln2 = make_norm(d_model), make_norm(d_model)
        self.ffn = make_ffn(d_model, d_ff)
        del self.ff1, self.ff2

    def forward(
        self, x: Float[Tensor, "B T d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "B T d_model"]:
        x = x + self.attn(self.ln1(x), None, mask)
        return x + self.ffn(self.ln2(x))
