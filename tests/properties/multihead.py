"""Properties of multi-head attention and of its cheaper forms; torch's own attention is the judge."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.multihead import KeyValueCache as Cache
from properties import Case, close, gradients, raises, states

EVERYWHERE = ("no mask", "(Tq, Tk)", "(B, Tq, Tk)", "(B, 1, Tq, Tk)")


def _mask(case: Case, kind: str, B: int, Tq: int, Tk: int) -> Tensor | None:
    """A mask of one of the accepted shapes, with a visible key in each row."""
    shapes = {"(Tq, Tk)": (Tq, Tk), "(B, Tq, Tk)": (B, Tq, Tk), "(B, 1, Tq, Tk)": (B, 1, Tq, Tk)}
    return case.mask(*shapes[kind]) if kind in shapes else None


def _for_torch(mask: Tensor | None, B: int, n_heads: int) -> Tensor | None:
    """The same mask as nn.MultiheadAttention wants it: True = hidden, one matrix for each sentence and head."""
    if mask is None:
        return None
    mask = mask.unsqueeze(1) if mask.dim() == 3 else mask
    return ~mask.expand(B, n_heads, *mask.shape[-2:]).flatten(0, 1)


def torch_twin(ours: nn.Module) -> nn.MultiheadAttention:
    """nn.MultiheadAttention with the weights of ours; it packs those of query, key and value."""
    d_model = ours.W_o.out_features
    theirs = nn.MultiheadAttention(d_model, ours.n_heads, batch_first=True).to(ours.W_o.weight)
    packed = (ours.W_q, ours.W_k, ours.W_v)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([layer.weight for layer in packed]))
        theirs.in_proj_bias.copy_(torch.cat([layer.bias for layer in packed]))
    theirs.out_proj.load_state_dict(ours.W_o.state_dict())
    return theirs


def _module(kind: type[nn.Module], case: Case, d_head: int, n_heads: int) -> nn.Module:
    """In float64, with weights that depend on the case alone, biases included."""
    r, module = case.random(), kind(d_head * n_heads, n_heads).double()
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(r(*p.shape) * (d_head * n_heads) ** -0.5)
    return module


def _inputs(case: Case, B: int, d_model: int, cross: bool) -> list[Tensor]:
    r = Case(seed=case.seed + 50).random()
    shapes = [(B, case.T, d_model), (B, case.T + 2, d_model)]
    return [r(*shape).requires_grad_() for shape in shapes[: 1 + cross]]


def _agrees(kind: type[nn.Module], case: Case, B: int, n_heads: int, cross: bool) -> None:
    ours = _module(kind, case, case.D, n_heads)
    theirs = torch_twin(ours)
    inputs = _inputs(case, B, case.D * n_heads, cross)
    x_q, x_kv = inputs[0], inputs[-1]
    for shape in EVERYWHERE:
        mask = _mask(case, shape, B, x_q.shape[1], x_kv.shape[1])
        out = ours(*inputs, mask=mask)
        expected, weights = theirs(x_q, x_kv, x_kv, attn_mask=_for_torch(mask, B, n_heads), average_attn_weights=False)
        close(out, expected)
        if ours.weights is not None:
            close(ours.weights, weights.detach())
        direction = Case(seed=case.seed + 51).random()(*out.shape)
        own = [p for layer in (ours.W_q, ours.W_k, ours.W_v) for p in (layer.weight, layer.bias)]
        packed = [theirs.in_proj_weight, theirs.in_proj_bias]
        mine = gradients(out, [*inputs, *ours.W_o.parameters(), *own], direction)
        other = gradients(expected, [*inputs, *theirs.out_proj.parameters(), *packed], direction)
        for one, two in zip(mine[: -len(own)], other[:-2], strict=True):
            close(one, two)
        close(torch.cat(mine[-len(own) :: 2]), other[-2])
        close(torch.cat(mine[1 - len(own) :: 2]), other[-1])


@states("FusedMultiHeadAttention")
@states("MultiHeadAttention")
def the_heads_are_those_of_torch_to_itself(kind, case: Case):
    _agrees(kind, case, case.B, case.H, cross=False)


@states("FusedMultiHeadAttention")
@states("MultiHeadAttention")
def the_heads_are_those_of_torch_to_another_sequence(kind, case: Case):
    _agrees(kind, case, case.B, case.H, cross=True)


@states("FusedMultiHeadAttention")
@states("MultiHeadAttention")
def a_batch_as_large_as_the_number_of_heads_is_not_taken_for_them(kind, case: Case):
    """A mask (B, Tq, Tk) would broadcast over the heads without any error."""
    _agrees(kind, case, case.B, case.B, cross=True)


@states("MultiHeadAttention")
def the_heads_tell_their_weights(kind, case: Case):
    attend = _module(kind, case, case.D, case.H)
    assert attend.weights is None
    (x,) = _inputs(case, case.B, case.D * case.H, cross=False)
    mask = _mask(case, "(B, Tq, Tk)", case.B, case.T, case.T)
    attend(x, mask=mask)
    assert not attend.weights.requires_grad
    close(attend.weights.sum(dim=-1), torch.ones(case.B, case.H, case.T, dtype=torch.float64))
    assert not attend.weights.masked_fill(mask.unsqueeze(1), 0.0).any()


@states("FusedMultiHeadAttention")
@states("MultiHeadAttention")
def the_heads_move_with_their_positions(kind, case: Case):
    attend = _module(kind, case, case.D, case.H)
    (x,) = _inputs(case, case.B, case.D * case.H, cross=False)
    order = torch.randperm(case.T, generator=torch.Generator().manual_seed(case.seed))
    close(attend(x[:, order]), attend(x)[:, order], 1e-12)
    close(attend(x, x[:, order]), attend(x), 1e-12)


@states("FusedMultiHeadAttention")
@states("MultiHeadAttention")
def the_heads_are_finite_where_everything_is_hidden(kind, case: Case):
    attend = _module(kind, case, case.D, case.H)
    inputs = _inputs(case, case.B, case.D * case.H, cross=True)
    mask = _mask(case, "(Tq, Tk)", case.B, case.T, case.T + 2)
    mask[0] = False
    out = attend(*inputs, mask=mask)
    close(out[:, 0], attend.W_o.bias.expand(case.B, -1))
    assert all(slope.isfinite().all() for slope in gradients(out, inputs, torch.ones_like(out)))


@states("MultiHeadAttention")
def the_number_of_parameters_does_not_depend_on_the_heads(kind, case: Case):
    d_model = case.D * case.H
    sizes = {sum(p.numel() for p in kind(d_model, n).parameters()) for n in (1, case.H, case.D, d_model)}
    assert sizes == {4 * d_model * (d_model + 1)}


@states("MultiHeadAttention")
def heads_that_do_not_share_evenly_are_an_error(kind, case: Case):
    for d_model, n_heads in ((case.H * 2 + 1, 2), (case.H, case.H + 1), (case.H, 0), (case.H, -1)):
        raises(lambda: kind(d_model, n_heads), f"d_model, n_heads: got {d_model} and {n_heads};")  # noqa: B023


@states("FusedMultiHeadAttention")
@states("MultiHeadAttention")
def the_cache_gives_the_same_as_reading_everything(kind, case: Case):
    attend, cache = _module(kind, case, case.D, case.H), Cache()
    (x,) = _inputs(case, case.B, case.D * case.H, cross=False)
    causal = torch.ones(case.T, case.T, dtype=torch.bool).tril()
    for t in range(case.T):
        out = attend(x[:, t : t + 1], mask=causal[t : t + 1, : t + 1], cache=cache)
        close(out, attend(x[:, : t + 1], mask=causal[: t + 1, : t + 1])[:, t:])
        assert len(cache) == t + 1


@states("MultiHeadAttention")
def queries_and_keys_are_placed_where_the_cache_ends(kind, case: Case):
    class Placed(kind):
        def place(self, q, k, start):
            starts.append(start)
            return 0.0 * q, k  # what it returns is used: every key gets the same score

    starts: list[int] = []
    attend, cache = _module(Placed, case, case.D, case.H), Cache()
    (x,) = _inputs(case, case.B, case.D * case.H, cross=False)
    attend(x)
    for piece in x.split([1, *([case.T - 1] if case.T > 1 else [])], dim=1):
        attend(piece, cache=cache)
    attend(x[:, :1], cache=cache)
    assert starts == [0, 0, *([1] if case.T > 1 else []), case.T]
    close(attend.weights, torch.full((case.B, case.H, 1, case.T + 1), 1 / (case.T + 1), dtype=torch.float64))


@states("KeyValueCache")
def a_cache_returns_everything_so_far_in_order(KeyValueCache, case: Case):
    r, cache = case.random(), KeyValueCache()
    k, v = r(case.B, 2, case.T + 1, case.D), r(case.B, 2, case.T + 1, case.D)
    assert len(cache) == 0
    for start, end in ((0, case.T), (case.T, case.T + 1)):
        keys, values = cache.append(k[:, :, start:end], v[:, :, start:end])
        assert torch.equal(keys, k[:, :, :end]) and torch.equal(values, v[:, :, :end])
        assert len(cache) == end


@states("head_mask")
def a_mask_for_each_sentence_gets_a_head_axis(head_mask, case: Case):
    assert head_mask(None) is None
    for shape in ((case.T, case.T), (case.B, 1, case.T, case.T)):
        assert torch.equal(head_mask(case.mask(*shape)), case.mask(*shape))
    assert torch.equal(head_mask(case.mask(case.B, case.T, 2)), case.mask(case.B, case.T, 2)[:, None])


def _blockwise_inputs(case: Case, Tq: int, *batch: int) -> list[Tensor]:
    r = case.random()
    return [r(*batch, Tq, case.D), r(*batch, case.T, case.D), r(*batch, case.T, case.D + 1)]


@states("blockwise_attention")
def blocks_give_exact_attention(blockwise, case: Case):
    for batch in ((), (case.B, 2)):
        q, k, v = _blockwise_inputs(case, case.H, *batch)
        for block in range(1, max(case.T, case.H) + 2):
            close(blockwise(q, k, v, block), F.scaled_dot_product_attention(q, k, v), 1e-12)
            single = [part.float() for part in (q, k, v)]
            close(blockwise(*single, block), F.scaled_dot_product_attention(q, k, v).float(), 2e-6)
    close(blockwise(q, k, v), blockwise(q, k, v, 1), 1e-12)


@states("blockwise_attention")
def blocks_give_exact_causal_attention(blockwise, case: Case):
    q, k, v = _blockwise_inputs(case, case.T, case.B)
    for block in range(1, case.T + 2):
        exact = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        close(blockwise(q, k, v, block, causal=True), exact, 1e-12)
        poisoned = [torch.cat([part, torch.full_like(part[:, :1], torch.nan)], dim=1) for part in (k, v)]
        first = blockwise(q[:, :1], poisoned[0][:, :1], poisoned[1][:, :1], block, causal=True)
        close(first, exact[:, :1], 1e-12)


@states("blockwise_attention")
def blocks_survive_extreme_scores(blockwise, case: Case):
    """Scores of ±200: their exponentials are beyond float32, the differences to the largest are not."""
    q, k = torch.full((case.H, 1), 200.0), case.mask(case.T).float().mul(2).sub(1).unsqueeze(1)
    v = case.random()(case.T, case.D).float()
    for sign in (1.0, -1.0):
        for block in (1, 2, case.T):
            close(blockwise(sign * q, k, v, block), F.scaled_dot_product_attention(sign * q, k, v), 1e-5)


@states("blockwise_attention")
def blocks_have_the_gradients_of_attention(blockwise, case: Case):
    inputs = [part.requires_grad_() for part in _blockwise_inputs(case, case.T, 2)]
    for causal in (False, True):
        direction = torch.arange(1.0, 2 * case.T * (case.D + 1) + 1, dtype=torch.float64).view(2, case.T, -1)
        mine = gradients(blockwise(*inputs, 2, causal=causal), inputs, direction)
        other = gradients(F.scaled_dot_product_attention(*inputs, is_causal=causal), inputs, direction)
        for one, two in zip(mine, other, strict=True):
            close(one, two)


@states("blockwise_attention")
def a_block_of_nothing_is_an_error(blockwise, case: Case):
    for block in (0, -2):
        raises(lambda: blockwise(*_blockwise_inputs(case, 2), block), f"block: got {block}, must be at least 1")  # noqa: B023


class Counted(Tensor):
    """A tensor that counts the matrix products it takes part in."""

    products = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Counted.products += func in (Tensor.matmul, Tensor.__matmul__)
        return super().__torch_function__(func, types, args, kwargs or {})


@states("blockwise_attention")
def blocks_of_the_future_are_not_computed(blockwise, case: Case):
    """They would change nothing, but they are half of the work."""
    q, k, v = (part.as_subclass(Counted) for part in _blockwise_inputs(case, case.T))
    for block in range(1, case.T + 1):
        Counted.products = 0
        blockwise(q, k, v, block, causal=True)
        n_blocks = -(-case.T // block)
        assert Counted.products == n_blocks * (n_blocks + 1), "two products for each pair of blocks"
