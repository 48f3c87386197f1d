"""Norms, feed-forward networks and dropout, beside torch's own."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from course_utils.layers import dropout, feed_forward, layer_norm, rms_norm, swiglu
from course_utils.training import noam_lr, train_step
from course_utils.transformer import TiedLM


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(2, 7), st.sampled_from([1e-5, 0.1, 1e-12]))
def test_layer_norm_is_torchs(seed, rows, d, eps):
    torch.manual_seed(seed)
    x, gamma, beta = 5 * torch.randn(2, rows, d, dtype=torch.float64), torch.randn(d).double(), torch.randn(d).double()
    torch.testing.assert_close(layer_norm(x, gamma, beta, eps), F.layer_norm(x, (d,), gamma, beta, eps))


def test_layer_norm_keeps_its_digits_far_from_zero_and_passes_gradients():
    x = 1e4 + torch.randn(3, 8)
    wanted = F.layer_norm(x.double(), (8,))
    torch.testing.assert_close(layer_norm(x, torch.ones(8), torch.zeros(8)).double(), wanted, atol=1e-2, rtol=1e-2)
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: layer_norm(x, torch.ones(4).double(), torch.zeros(4).double()), x)


@given(st.integers(0, 10**6), st.integers(1, 7))
def test_rms_norm_is_torchs_and_does_not_centre(seed, d):
    torch.manual_seed(seed)
    x, gamma = torch.randn(4, d, dtype=torch.float64), torch.randn(d).double()
    torch.testing.assert_close(rms_norm(x, gamma, 1e-5), F.rms_norm(x, (d,), gamma, 1e-5))
    one = torch.ones(2, 5, dtype=torch.float64)
    torch.testing.assert_close(rms_norm(one, torch.ones(5).double(), 0.0), one)


def test_feed_forward_is_two_linear_layers_and_acts_on_each_position_alone():
    first, second = nn.Linear(6, 9), nn.Linear(9, 6)
    x = torch.randn(2, 4, 6)

    def apply(x):
        return feed_forward(x, first.weight.T, first.bias, second.weight.T, second.bias)

    torch.testing.assert_close(apply(x), second(F.relu(first(x))))
    changed = x.clone()
    changed[:, 2] += 1
    moved = (apply(changed) - apply(x)).abs().amax(dim=(0, 2)) > 0
    assert moved.tolist() == [False, False, True, False]


def test_swiglu_is_gated():
    x, gate, up, down = torch.randn(3, 4), torch.randn(4, 7), torch.randn(4, 7), torch.randn(7, 4)
    torch.testing.assert_close(swiglu(x, gate, up, down), (F.silu(x @ gate) * (x @ up)) @ down)
    assert swiglu(x, torch.full((4, 7), 0.0), up, down).abs().max() == 0, "a closed gate lets nothing through"


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_zeroes_its_share_and_keeps_the_mean(p):
    torch.manual_seed(0)
    x = torch.ones(200_000)
    out = dropout(x, p, training=True)
    assert (out == 0).double().mean() == pytest.approx(p, abs=0.01)
    assert out.mean() == pytest.approx(1.0, abs=0.03)
    assert torch.equal(x, torch.ones(200_000))
    assert dropout(x, p, training=False) is x


@pytest.mark.parametrize("p", [-0.1, 1.0, 2.0])
def test_dropout_says_what_p_may_be(p):
    with pytest.raises(ValueError, match=rf"p: got {p}"):
        dropout(torch.ones(2), p, training=True)


@given(st.integers(1, 4000), st.integers(1, 1024))
def test_noam_rises_to_the_end_of_the_warm_up_and_falls_after(warmup, d_model):
    at = [noam_lr(step, d_model, warmup) for step in (0, 1, warmup, warmup + 1, 4 * warmup)]
    assert at[0] == at[1] <= at[2]
    assert at[3] < at[2]
    assert at[4] == pytest.approx(at[2] / 2)
    assert at[2] == pytest.approx((d_model * warmup) ** -0.5)


def test_noam_says_what_is_wrong():
    with pytest.raises(ValueError, match="d_model, warmup: got 8 and 0"):
        noam_lr(1, 8, 0)


@pytest.mark.parametrize("max_norm", [None, 1e-3])
def test_train_step_is_the_step_written_out(max_norm):
    torch.manual_seed(0)
    models = [nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    ours, theirs = (torch.optim.SGD(m.parameters(), lr=0.5, momentum=0.9) for m in models)
    models[0].eval()
    for _ in range(3):
        x, y = torch.randn(7, 5), torch.randint(3, (7,))
        loss = F.cross_entropy(models[1](x), y)
        theirs.zero_grad()
        loss.backward()
        if max_norm:
            nn.utils.clip_grad_norm_(models[1].parameters(), max_norm)
        theirs.step()
        said = train_step(models[0], ours, x, y, max_norm)
        assert isinstance(said, float) and said == pytest.approx(loss.item())
    assert models[0].training
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_tied_weights_are_one_parameter_with_one_gradient():
    model = TiedLM(11, 4)
    assert model.head.weight is model.emb.weight
    assert sum(p.numel() for p in model.parameters()) == 44
    idx = torch.tensor([[3, 3]])
    model(idx).sum().backward()
    assert model.emb.weight.grad[7].abs().max() > 0, "a symbol that was not read is scored all the same"
