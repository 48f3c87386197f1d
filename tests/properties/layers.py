"""Properties of norms, feed-forward networks and dropout; torch's own are the judge."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from properties import Case, close, gradients, raises, states

EPSILONS = (1e-5, 0.1, 3.0)


def _agrees(ours: Callable[..., Tensor], theirs: Callable[..., Tensor], inputs: list[Tensor], tolerance=1e-9) -> None:
    """The same result and the same gradient of every input, none of which is written to."""
    before = [t.clone() for t in inputs]
    inputs = [t.requires_grad_() for t in inputs]
    out, expected = ours(*inputs), theirs(*inputs)
    close(out, expected, tolerance)
    direction = torch.linspace(-1.0, 2.0, out.numel(), dtype=out.dtype).view(out.shape)
    for one, two in zip(gradients(out, inputs, direction), gradients(expected, inputs, direction), strict=True):
        close(one, two, tolerance)
    assert all(torch.equal(a, b) for a, b in zip(before, inputs, strict=True))


def _vectors(case: Case, d: int) -> list[Tensor]:
    """Some vectors away from zero, in one axis, two and three."""
    r = case.random()
    return [3 * r(d) + 7, 3 * r(case.T, d) - 1, 0.01 * r(case.B, case.T, d)]


@states("layer_norm")
def layer_norm_is_that_of_torch(layer_norm, case: Case):
    d = case.D + 1
    gamma, beta = Case(seed=case.seed + 50).random()(2, d)
    for x in _vectors(case, d):
        for eps in EPSILONS:
            _agrees(
                lambda *given: layer_norm(*given, eps),  # noqa: B023
                lambda x, gamma, beta: F.layer_norm(x, (d,), gamma, beta, eps),  # noqa: B023
                [x, gamma, beta],
            )
        close(layer_norm(x, gamma, beta), F.layer_norm(x, (d,), gamma, beta))


@states("layer_norm")
def layer_norm_keeps_its_digits_far_from_zero(layer_norm, case: Case):
    d = case.D + 1
    x = (1e4 + case.random()(case.T, d)).float()
    close(layer_norm(x, torch.ones(d), torch.zeros(d)).double(), F.layer_norm(x.double(), (d,)), 1e-2)


@states("rms_norm")
def rms_norm_is_that_of_torch(rms_norm, case: Case):
    d = case.D + 1
    gamma = Case(seed=case.seed + 50).random()(d)
    for x in _vectors(case, d):
        for eps in EPSILONS:
            _agrees(
                lambda *given: rms_norm(*given, eps),  # noqa: B023
                lambda x, gamma: F.rms_norm(x, (d,), gamma, eps),  # noqa: B023
                [x, gamma],
            )
        close(rms_norm(x, gamma), F.rms_norm(x, (d,), gamma, 1e-5))


@states("feed_forward")
def a_feed_forward_network_is_two_linear_layers_around_a_relu(feed_forward, case: Case):
    r = Case(seed=case.seed + 50).random()
    weights = [r(case.D, case.H), r(case.H), r(case.H, case.D), r(case.D)]
    for x in _vectors(case, case.D):
        _agrees(
            feed_forward,
            lambda x, W1, b1, W2, b2: F.linear(F.linear(x, W1.T, b1).clamp(min=0), W2.T, b2),
            [x, *weights],
        )


@states("swiglu")
def swiglu_gates_one_map_by_another(swiglu, case: Case):
    r = Case(seed=case.seed + 50).random()
    weights = [r(case.D, case.H), r(case.D, case.H), r(case.H, case.D)]

    def written_out(x, W_gate, W_up, W_down):
        gate = F.linear(x, W_gate.T)
        return F.linear(gate * torch.sigmoid(gate) * F.linear(x, W_up.T), W_down.T)

    for x in _vectors(case, case.D):
        _agrees(swiglu, written_out, [x, *weights])


@states("dropout")
def dropout_drops_its_share_and_enlarges_the_rest(dropout, case: Case):
    x = 5 + case.random()(100, 200).abs()
    before = x.clone()
    for p in (0.1, 0.5, 0.8):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(case.seed)
            first, second = dropout(x, p, True), dropout(x, p, True)
        gone = first == 0
        close(first[~gone], x[~gone] / (1 - p))
        for share, n in ((gone.double().mean(), gone.numel()), (gone.double().mean(0).var(), None)):
            # Six standard deviations around the share; the columns differ as those of independent draws do.
            if n is not None:
                assert abs(share - p) < 6 * math.sqrt(p * (1 - p) / n)
            else:
                assert 0.4 < share / (p * (1 - p) / len(x)) < 2
        assert not torch.equal(first, second)
        assert torch.equal(x, before)


@states("dropout")
def dropout_passes_its_factors_on_to_the_gradient(dropout, case: Case):
    x = (5 + case.random()(20, 20).abs()).requires_grad_()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(case.seed)
        out = dropout(x, 0.3, True)
    (slope,) = gradients(out, [x], torch.ones_like(out))
    close(slope, (out / x).detach())


@states("dropout")
def dropout_returns_x_where_nothing_is_dropped(dropout, case: Case):
    x = case.random()(case.T, case.D)
    for p, training in ((0.7, False), (0.0, False), (0.0, True)):
        assert dropout(x, p, training) is x


@states("dropout")
def dropout_of_an_impossible_share_is_an_error(dropout, case: Case):
    for p in (-0.1, 1.0, 1.5):
        for training in (True, False):
            raises(lambda: dropout(torch.ones(2), p, training), f"p: got {p}, must be at least 0 and below 1")  # noqa: B023
