"""Multi-head and blockwise attention: the properties of tests/properties/multihead.py, and what memory they take."""

import copy

import properties
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.multihead import torch_twin
from torch import nn

from course_utils import multihead
from course_utils.attention import scaled_dot_product_attention
from course_utils.experiments import HeadsInALoop, exponent, peak_bytes
from course_utils.multihead import FusedMultiHeadAttention, MultiHeadAttention, blockwise_attention

PROPERTIES = [
    pytest.param(name, holds, id=f"{name}-{holds.__name__}")
    for name, every in properties.OF.items()
    if getattr(getattr(multihead, name, None), "__module__", "") == multihead.__name__
    for holds in every
]


@pytest.mark.parametrize("name, holds", PROPERTIES)
@settings(max_examples=8)
@given(case=properties.cases)
def test_property(name, holds, case):
    holds(getattr(multihead, name), case)


@pytest.mark.parametrize("kind", [MultiHeadAttention, FusedMultiHeadAttention])
def test_it_is_the_attention_of_torch_in_the_usual_precision(kind):
    torch.manual_seed(0)
    ours, x, memory = kind(64, 4), torch.randn(4, 10, 64), torch.randn(4, 7, 64)
    theirs = torch_twin(ours)
    causal = torch.ones(10, 10, dtype=torch.bool).tril()
    torch.testing.assert_close(ours(x, mask=causal), theirs(x, x, x, attn_mask=~causal)[0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours(x, memory), theirs(x, memory, memory)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_heads", [1, 2, 4, 16])
def test_fused_loop_and_batched_heads_are_the_same(n_heads):
    torch.manual_seed(n_heads)
    batched, x = MultiHeadAttention(16, n_heads).double(), torch.randn(3, 5, 16, dtype=torch.float64)
    fused = FusedMultiHeadAttention(16, n_heads).double()
    fused.load_state_dict(batched.state_dict())
    expected = batched(x)
    for other in (fused, HeadsInALoop(copy.deepcopy(batched)), HeadsInALoop(fused)):
        properties.close(other(x), expected, 1e-12)
    assert fused.weights is None


def test_one_head_is_the_scaled_product_between_two_linear_layers():
    torch.manual_seed(0)
    attend, x = MultiHeadAttention(6, 1), torch.randn(2, 4, 6)
    out, _ = scaled_dot_product_attention(attend.W_q(x), attend.W_k(x), attend.W_v(x))
    properties.close(attend(x), attend.W_o(out), 1e-6)


def test_each_head_owns_its_features():
    """What one head does not get to write into W_o does not depend on that head's values."""
    torch.manual_seed(0)
    attend, x = MultiHeadAttention(8, 4), torch.randn(2, 5, 8)
    nn.init.eye_(attend.W_o.weight)
    before = attend(x)
    with torch.no_grad():
        attend.W_v.bias[2:4] += 1.0  # the values of head 1
    properties.close(attend(x) - before, torch.tensor([0.0, 0, 1, 1, 0, 0, 0, 0]).expand(2, 5, -1), 1e-5)


def test_a_model_with_attention_can_be_copied_and_moved():
    attend = MultiHeadAttention(8, 2)
    attend(torch.randn(1, 3, 8))
    moved = copy.deepcopy(attend).to("meta")
    assert moved(torch.empty(2, 3, 8, device="meta")).device.type == "meta"


@settings(max_examples=25)
@given(case=properties.cases, block=st.integers(1, 9), scale=st.sampled_from([1e-3, 1.0, 30.0]))
def test_any_block_size_gives_exact_attention(case, block, scale):
    r = case.random()
    q, k, v = scale * r(case.B, case.H, case.D), r(case.B, case.T, case.D), r(case.B, case.T, 3)
    properties.close(blockwise_attention(q, k, v, block), F.scaled_dot_product_attention(q, k, v), 1e-12)


def test_blockwise_attention_is_exact_for_long_sequences_in_float32():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 300, 16, dtype=torch.float64) for _ in range(3))
    for causal in (False, True):
        exact = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        for block in (64, 300, 1000):
            error = blockwise_attention(q.float(), k.float(), v.float(), block, causal=causal) - exact
            assert error.norm() / exact.norm() < 1e-6


@pytest.mark.parametrize("causal", [False, True])
def test_blockwise_attention_works_on_another_device(causal):
    q, k, v = (torch.empty(2, 5, 4, device="meta") for _ in range(3))
    assert blockwise_attention(q, k, v, 2, causal=causal).device.type == "meta"


SIZES = (256, 512, 1024, 2048)


def growth(attend) -> float:
    return exponent(SIZES, [peak_bytes(lambda: attend(*torch.zeros(3, 1, n, 8))) for n in SIZES])  # noqa: B023


def test_full_attention_needs_memory_in_proportion_to_the_square_of_the_length():
    assert growth(scaled_dot_product_attention) >= 1.8


@pytest.mark.parametrize("causal", [False, True])
def test_blockwise_attention_needs_memory_in_proportion_to_the_length(causal):
    assert growth(lambda q, k, v: blockwise_attention(q, k, v, 128, causal=causal)) <= 1.2
