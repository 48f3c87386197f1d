"""What attention costs: bytes, seconds, and which head earns its keep."""

import statistics
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .. import mode
from ..data.roles import NOUNS, WORDS, RoleData
from ..role_models import MultiHeadReader
from ..transformer import LanguageModel


class _Held(TorchDispatchMode):
    """Counts the bytes of all tensors that were made under it and are still alive."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: dict[int, int] = {}  # storage → number of tensors that use it
        self.held = self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = {t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        if func is torch.ops.aten.lift_fresh.default:  # the last step of torch.tensor: what it is given is new
            given = set()
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                self._note(tensor, given)
        return out

    def _note(self, tensor: Tensor, given: set[int]) -> None:
        storage = tensor.untyped_storage()
        at, size = storage.data_ptr(), storage.nbytes()
        if at not in self.alive:
            if at in given:  # a view of what was there before the call
                return
            self.alive[at] = 0
            self.held += size
            self.peak = max(self.peak, self.held)
        self.alive[at] += 1
        weakref.finalize(tensor, self._drop, at, size)

    def _drop(self, at: int, size: int) -> None:
        self.alive[at] -= 1
        if not self.alive[at]:
            del self.alive[at]
            self.held -= size


@torch.no_grad()
def peak_bytes(compute: Callable[[], object]) -> int:
    """The most bytes held at one time by tensors that are made during a call (without gradients)."""
    with _Held() as counted:
        compute()
    return counted.peak


def median_seconds(compute: Callable[[], object], repeats: int = 7) -> float:
    """Median seconds of one call."""
    took = []
    for _ in range(mode.size(repeats, 1)):
        started = time.perf_counter()
        compute()
        took.append(time.perf_counter() - started)
    return statistics.median(took)


@torch.no_grad()
def head_focus(model: MultiHeadReader, data: RoleData) -> Tensor:
    """(n_heads, 2): the mean weight that each head's reading position puts on the biter and on the bitten."""
    model(data.tokens)
    weights = model.layers[0].weights[:, :, 0]  # (N, n_heads, T): the first position asks
    first_noun = WORDS.index(NOUNS[0])
    is_role = data.tokens.unsqueeze(1) == (data.roles + first_noun).unsqueeze(2)  # (N, 2, T)
    return torch.einsum("nht,nrt->hr", weights, is_role.to(weights)) / len(data)


@contextmanager
def _head_off(model: MultiHeadReader, head: int | None) -> Iterator[None]:
    """One head's output is set to zero on its way into W_o; None: all heads work."""
    layer = model.layers[0]
    saved = layer.W_o.weight.clone()
    if head is not None:
        d_head = layer.W_o.in_features // layer.n_heads
        layer.W_o.weight[:, head * d_head : (head + 1) * d_head] = 0.0
    try:
        yield
    finally:
        layer.W_o.weight.copy_(saved)


@torch.no_grad()
def without_head(model: MultiHeadReader, head: int, data: RoleData) -> tuple[float, float]:
    """Accuracy for biter and bitten when one head's output is set to zero on its way into W_o."""
    with _head_off(model, head):
        right = (model(data.tokens).argmax(dim=-1) == data.roles).double().mean(dim=0)
    return right[0].item(), right[1].item()


@torch.no_grad()
def role_loss(model: MultiHeadReader, data: RoleData, *, without: int | None = None) -> float:
    """Cross-entropy in nats, the mean over sentences and both roles; without one of the heads, if one is named."""
    with _head_off(model, without):
        return F.cross_entropy(model(data.tokens).flatten(0, -2), data.roles.flatten()).item()


@torch.no_grad()
def generate_greedily(model: LanguageModel, idx: Tensor, n: int, *, cached: bool) -> Tensor:
    """Append the likeliest symbol n times, (B, T0 + n): with key-value caches, or reading everything anew each time."""
    caches = model.new_caches() if cached else None
    new = idx
    for _ in range(n):
        logits = model(new, caches) if cached else model(idx)
        new = logits[:, -1:].argmax(dim=-1)
        idx = torch.cat([idx, new], dim=1)
    return idx


class HeadsInALoop(nn.Module):
    """The same multi-head attention, one head after the other; its weights are those of `model`."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        m = self.model
        d_head = m.W_q.out_features // m.n_heads
        heads = []
        for h in range(m.n_heads):
            own = slice(h * d_head, (h + 1) * d_head)
            q, k, v = (nn.functional.linear(x, w.weight[own], w.bias[own]) for w in (m.W_q, m.W_k, m.W_v))
            heads.append(m.attend(q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1), None).squeeze(1))
        return m.W_o(torch.cat(heads, dim=-1))
