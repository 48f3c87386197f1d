"""What attention is compared with: causal layers with the reach that they claim."""

import math

import pytest
import torch
from torch import nn

from course_utils.attention import scaled_dot_product_attention
from course_utils.baselines import CausalAttention, CopyModel, DilatedCNN, LastState, Lookup, Recurrent
from course_utils.recurrent import seq2seq_encode

LAYERS = {
    "rnn": lambda d: Recurrent("rnn", d),
    "gru": lambda d: Recurrent("gru", d),
    "lstm": lambda d: Recurrent("lstm", d, forget_bias=1.0),
    "cnn": DilatedCNN,
    "attention": CausalAttention,
}


def reach(layer, T, d=4):
    """Which inputs the last output depends on, by its gradient."""
    torch.manual_seed(0)
    x = torch.randn(1, T, d, requires_grad=True)
    layer(x)[:, -1].sum().backward()
    return x.grad[0].abs().sum(dim=-1) > 0


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_causal_and_keeps_the_shape(name):
    torch.manual_seed(0)
    layer = LAYERS[name](5)
    x = torch.randn(2, 9, 5)
    before = layer(x)
    assert before.shape == x.shape
    x[:, 6] += 1
    after = layer(x)
    torch.testing.assert_close(after[:, :6], before[:, :6], rtol=0, atol=1e-6)
    assert (after[:, 6:] - before[:, 6:]).abs().amax(dim=-1).gt(1e-7).all()


@pytest.mark.parametrize("n_layers", [1, 2, 4])
def test_a_dilated_cnn_sees_two_to_the_number_of_its_layers(n_layers):
    torch.manual_seed(1)
    seen = torch.stack([reach(DilatedCNN(8, n_layers), 20, 8) for _ in range(5)]).any(dim=0)  # a ReLU may hide a path
    assert seen.tolist() == [False] * (20 - 2**n_layers) + [True] * 2**n_layers


def test_attention_and_recurrence_see_everything():
    for name in ("rnn", "gru", "lstm", "attention"):
        assert reach(LAYERS[name](4), 12).all(), name


def test_attention_knows_positions():
    torch.manual_seed(0)
    layer, x = CausalAttention(6), torch.randn(1, 5, 6)
    swapped = x[:, [1, 0, 2, 3, 4]]
    assert not torch.allclose(layer(x)[:, -1], layer(swapped)[:, -1])
    for position, row in enumerate(layer.positions[:50].tolist()):
        for i in range(3):
            angle = position / 10000 ** (2 * i / 6)
            assert math.isclose(row[2 * i], math.sin(angle), abs_tol=1e-4)
            assert math.isclose(row[2 * i + 1], math.cos(angle), abs_tol=1e-4)


def test_a_forget_bias_is_added_to_the_forget_gate_alone():
    torch.manual_seed(0)
    plain = Recurrent("lstm", 3).layer.bias_ih_l0.detach()
    torch.manual_seed(0)
    biased = Recurrent("lstm", 3, forget_bias=1.0).layer.bias_ih_l0.detach()
    torch.testing.assert_close(biased - plain, torch.tensor([0.0] * 3 + [1.0] * 3 + [0.0] * 6))


def test_an_unknown_kind_is_an_error_with_the_choices():
    with pytest.raises(ValueError, match="kind: got 'RNN', must be one of 'rnn', 'gru', 'lstm'"):
        Recurrent("RNN", 3)


def test_the_last_state_classifies():
    torch.manual_seed(0)
    model = LastState(nn.Identity(), 6, 4)
    x = torch.tensor([[0, 1, 2], [5, 5, 2], [2, 2, 3]])
    logits = model(x)
    assert logits.shape == (3, 6)
    torch.testing.assert_close(logits[0], logits[1])
    assert not torch.allclose(logits[0], logits[2])


def test_the_copy_model_copies_through_its_vector_alone():
    torch.manual_seed(0)
    contexts = []

    def spy(*arguments):
        outputs, final = seq2seq_encode(*arguments)
        contexts.append(final)
        return outputs, torch.zeros_like(final)

    model = CopyModel(10, 4, spy)
    x = torch.randint(10, (3, 5))
    other = torch.cat([x[:, :4], (x[:, 4:] + 1) % 10], dim=1)
    assert model(x).shape == (3, 5, 10)
    assert contexts[0].shape == (3, 4)
    # Without its vector it knows the words before each one, and nothing of the last word.
    torch.testing.assert_close(model(x), model(other))
    torch.manual_seed(0)
    whole = CopyModel(10, 4)
    assert (whole(x)[:, 0] - whole(other)[:, 0]).abs().amax(dim=-1).gt(1e-7).all()


def lookup_inputs():
    return torch.randint(8, (5, 4)), torch.randint(8, (5, 4)), torch.randint(8, (5,))


def test_a_lookup_without_scaling_takes_the_division_back():
    torch.manual_seed(0)
    scaled = Lookup(8, 9)
    plain = Lookup(8, 9, scaled=False)
    plain.load_state_dict(scaled.state_dict())
    inputs = lookup_inputs()
    q, k, v = plain.project(*inputs)
    torch.testing.assert_close(q, 3 * scaled.project(*inputs)[0])
    weights = scaled_dot_product_attention(q, k, v)[1]
    unscaled = (scaled.project(*inputs)[0] @ k.transpose(1, 2)).softmax(dim=-1)
    torch.testing.assert_close(weights, unscaled)


def test_tied_keys_serve_as_values():
    torch.manual_seed(0)
    _, k, v = Lookup(8, 6, tied=True).project(*lookup_inputs())
    assert k is v
    _, k, v = Lookup(8, 6).project(*lookup_inputs())
    assert not torch.allclose(k, v)


def test_queries_and_keys_start_with_variance_one():
    torch.manual_seed(0)
    q, k, _ = Lookup(500, 64).project(torch.randint(500, (200, 8)), torch.randint(500, (200, 8)), torch.arange(200))
    assert 0.8 < q.var().item() < 1.25 and 0.8 < k.var().item() < 1.25


def test_a_lookup_uses_the_attention_it_is_given():
    def values_mean(q, k, v):
        return v.mean(dim=1, keepdim=True), None

    torch.manual_seed(0)
    model = Lookup(8, 6, attention=values_mean)
    keys, values, asked = lookup_inputs()
    torch.testing.assert_close(model(keys, values, asked), model(keys, values, (asked + 1) % 8))
