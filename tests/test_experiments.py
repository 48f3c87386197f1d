"""The instruments of the experiments, on cases whose answer is known without them."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from course_utils import experiments
from course_utils.attention import scaled_dot_product_attention
from course_utils.baselines import Lookup
from course_utils.data.toy import lookup_batches
from course_utils.recurrent import rnn_step, seq2seq_encode


@pytest.mark.parametrize(
    "exact_match, length",
    [
        ({1: 1.0, 2: 1.0, 3: 0.0, 4: 0.0}, 2.5),
        ({1: 1.0, 2: 0.9, 3: 0.1}, 2.5),
        ({1: 1.0, 2: 0.75, 3: 0.25}, 2.5),
        ({1: 1.0, 2: 0.6, 3: 0.2}, 2.25),
        ({2: 1.0, 6: 0.0}, 4.0),
        ({3: 0.0, 1: 1.0, 2: 1.0}, 2.5),  # in any order
        ({1: 1.0, 2: 0.5, 3: 0.5}, 3.0),  # never below one half
        ({1: 1.0, 2: 1.0}, 2.0),
        ({1: 1.0, 2: 0.0, 3: 1.0}, 1.5),  # the first fall counts
    ],
)
def test_half_length_is_where_exact_match_falls_through_one_half(exact_match, length):
    assert experiments.half_length(exact_match) == pytest.approx(length)


def test_half_length_of_a_model_that_never_reaches_one_half_is_what_is_documented():
    assert experiments.half_length({1: 0.2, 2: 0.1, 3: 0.0}) == 0.0


def test_steps_to_is_the_first_full_window_above_the_level():
    curve = [0.0] * 10 + [1.0] * 10
    assert experiments.steps_to(curve, level=0.45, window=10) == 15
    assert experiments.steps_to(curve, level=0.95, window=10) == 20
    assert experiments.steps_to(curve, level=0.5, window=1) == 11
    assert experiments.steps_to(curve, level=1.0, window=10) is None, "exceeds, not reaches"
    assert experiments.steps_to([1.0] * 3, window=10) is None, "no full window"


@given(st.floats(-3, 3), st.floats(0.01, 100))
def test_exponent_recovers_a_power_law(p, factor):
    sizes = [8, 16, 64, 100]
    assert experiments.exponent(sizes, [factor * s**p for s in sizes]) == pytest.approx(p, abs=1e-6)


@pytest.mark.parametrize("T", [1, 5, 30])
def test_the_longest_chain_of_a_recurrent_loop_is_its_length(T):
    x, W, U, b = torch.randn(2, T, 3), torch.randn(3, 4), torch.randn(4, 4, requires_grad=True), torch.zeros(4)
    h = torch.zeros(2, 4)
    for t in range(T):
        h = rnn_step(x[:, t], h, W, U, b)
    assert experiments.longest_chain(h) == T
    assert experiments.longest_chain(seq2seq_encode(x, torch.full((2,), T), W, U, b)[1]) == T


def test_the_longest_chain_of_attention_does_not_depend_on_the_length():
    def chain(T):
        x, W = torch.randn(2, T, 4), torch.randn(4, 4, requires_grad=True)
        return experiments.longest_chain(scaled_dot_product_attention(x @ W, x @ W, x @ W)[0])

    assert chain(2) == chain(50) == 3  # projection, scores, weighted mean


def test_the_longest_chain_counts_what_waits_and_not_what_stands_beside():
    W = torch.randn(3, 3, requires_grad=True)
    assert experiments.longest_chain(W @ W + W @ W) == 1
    assert experiments.longest_chain((W @ W) @ (W @ W)) == 2
    assert experiments.longest_chain(torch.tanh(W) * 2) == 0
    layers = nn.Sequential(nn.Conv1d(2, 2, 1), nn.ReLU(), nn.Conv1d(2, 2, 1))
    assert experiments.longest_chain(layers(torch.randn(1, 2, 5))) == 2


def test_a_deep_graph_is_no_problem():
    h = torch.randn(1, 2)
    U = torch.randn(2, 2, requires_grad=True)
    for _ in range(3000):
        h = torch.tanh(h @ U)
    assert experiments.longest_chain(h) == 3000


def test_the_influence_of_a_known_layer_is_known():
    class Decay(nn.Module):
        """Output t is the sum of the inputs, each step back worth half."""

        def forward(self, x):
            total = [x[:, 0]]
            for t in range(1, x.shape[1]):
                total.append(x[:, t] + total[-1] / 2)
            return torch.stack(total, dim=1)

    found = experiments.influence(lambda d: Decay(), [0, 1, 3, 6])
    for k, value in zip([0, 1, 3, 6], found, strict=True):
        assert value / found[0] == pytest.approx(0.5**k, rel=1e-5)


def test_the_influence_of_far_inputs_decays_in_an_rnn_and_stays_in_attention():
    for seed in range(3):
        rnn = experiments.influence(experiments.LAYERS["RNN"], [1, 10, 20], seed=seed)
        assert rnn[0] > 10 * rnn[1] > 100 * rnn[2]
        attention = experiments.influence(experiments.LAYERS["attention"], [1, 10, 20], seed=seed)
        assert min(attention) > max(attention) / 3


def test_an_experiment_gives_the_same_numbers_again():
    torch.manual_seed(99)
    once = experiments.influence(experiments.LAYERS["GRU"], [2], seed=1)
    torch.rand(3)
    assert experiments.influence(experiments.LAYERS["GRU"], [2], seed=1) == once
    curves = [experiments.lookup_curve(8, steps=4, seed=2) for _ in range(2)]
    assert curves[0] == curves[1] and len(curves[0]) == 4


@pytest.mark.parametrize("d, scaled", [(16, True), (64, False), (256, False)])
def test_dead_share_is_that_of_the_gradient_of_autograd(d, scaled):
    torch.manual_seed(3)
    model = Lookup(32, d, scaled=scaled)
    keys, values, asked, answer = next(lookup_batches(batch_size=512, seed=3))
    q, k, v = model.project(keys, values, asked)
    scores = (q @ k.transpose(1, 2) / math.sqrt(d)).detach().requires_grad_()
    output = (scores.softmax(dim=-1) @ v).squeeze(1)
    F.cross_entropy(model.out(output), answer, reduction="sum").backward()
    norms = scores.grad.squeeze(1).norm(dim=-1)
    for share in (0.2, 0.5, 0.9):
        below = norms.quantile(share).item()
        found = experiments.dead_share(d, scaled=scaled, seed=3, below=below)
        assert found == pytest.approx(share, abs=2 / 512)  # the example on the edge may fall on either side


def test_dead_share_grows_with_the_width_unless_scaled():
    narrow, wide = (experiments.dead_share(d, scaled=False) for d in (16, 256))
    assert narrow < wide / 2
    assert experiments.dead_share(256, scaled=True) < 0.01


def test_layer_seconds_is_the_median_of_its_repeats(monkeypatch):
    ticks = iter([0.0, 1.0, 10.0, 13.0, 20.0, 22.0])
    monkeypatch.setattr(experiments.distance.time, "perf_counter", lambda: next(ticks))
    assert experiments.layer_seconds(nn.Linear(4, 4), 3, d=4, repeats=3) == 2.0


def test_the_copy_experiment_uses_the_encoder_it_is_given():
    calls = []

    def spy(*arguments):
        calls.append(arguments[0].shape)
        return seq2seq_encode(*arguments)

    match = experiments.copy_capacity(8, max_length=3, steps=2, encode=spy)
    assert list(match) == [1, 2, 3] and all(0 <= share <= 1 for share in match.values())
    assert len(calls) == 2 + 3


def test_recall_next_door_is_easy():
    assert experiments.recall_accuracy(experiments.LAYERS["attention"], 1, steps=120) > 0.9
