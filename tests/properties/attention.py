"""Properties of the attention functions; a loop, nn.Linear or torch's own attention is the judge."""

import math
import warnings

import torch
import torch.nn.functional as F
from torch import nn

from properties import Case, close, gradients, states

HUGE = 1e30  # what hidden keys and values are replaced with


@states("masked_softmax")
def masked_softmax_is_a_softmax_over_what_is_visible(masked_softmax, case: Case):
    scores, mask = case.random()(case.B, case.H, case.T), case.mask(case.B, case.H, case.T)
    weights = masked_softmax(scores, mask)
    assert not weights[~mask].any()
    for i in range(case.B):
        for j in range(case.H):
            visible = mask[i, j]
            close(weights[i, j, visible], scores[i, j, visible].softmax(dim=0))
    close(masked_softmax(scores), scores.softmax(dim=-1))
    close(masked_softmax(scores, torch.ones_like(mask)), scores.softmax(dim=-1))


@states("masked_softmax")
def masked_softmax_does_not_see_a_shift(masked_softmax, case: Case):
    r = case.random()
    scores, mask = r(case.B, case.T), case.mask(case.B, case.T)
    close(masked_softmax(scores + 10 * r(case.B, 1), mask), masked_softmax(scores, mask))
    assert masked_softmax(1000 * scores, mask).isfinite().all()


@states("masked_softmax")
def masked_softmax_broadcasts_its_mask(masked_softmax, case: Case):
    scores, mask = case.random()(case.B, case.H, case.T), case.mask(case.T)
    close(masked_softmax(scores, mask), masked_softmax(scores, mask.expand(case.B, case.H, case.T)))


@states("masked_softmax")
def masked_softmax_gives_an_empty_row_zeros_and_no_gradient(masked_softmax, case: Case):
    r = case.random()
    scores, mask = r(case.B + 1, case.T).requires_grad_(), case.mask(case.B + 1, case.T)
    mask[0] = False
    weights = masked_softmax(scores, mask)
    assert not weights[0].any()
    close(weights[1:].sum(dim=-1), torch.ones(case.B, dtype=torch.float64))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this mode is slow
        with torch.autograd.detect_anomaly(check_nan=True):  # NaN on the way counts, even where it is masked later
            (gradient,) = gradients(weights, [scores], r(case.B + 1, case.T))
    assert gradient.isfinite().all() and not gradient[0].any()


@states("linear_score")
def linear_score_is_one_layer_on_query_and_key(linear_score, case: Case):
    r = case.random()
    query, keys, w = r(case.B, case.D), r(case.B, case.T, case.D), r(2 * case.D)
    layer = nn.Linear(2 * case.D, 1, bias=False).double()
    with torch.no_grad():
        layer.weight.copy_(w.unsqueeze(0))
    both = torch.cat([query.unsqueeze(1).expand(-1, case.T, -1), keys], dim=-1)
    close(linear_score(query, keys, w), layer(both).squeeze(-1).detach())


@states("linear_score")
def linear_score_gives_weights_that_ignore_the_query(linear_score, case: Case):
    r = case.random()
    query, other, keys, w = r(case.B, case.D), r(case.B, case.D), r(case.B, case.T, case.D), r(2 * case.D)
    one, two = linear_score(query, keys, w), linear_score(other, keys, w)
    assert not torch.allclose(one, two)
    close(one.softmax(dim=-1), two.softmax(dim=-1))


def _additive_inputs(case: Case):
    r = case.random()
    A = case.H
    return r(case.B, case.D), r(case.B, case.T, case.D), r(case.D, A), r(case.D, A), r(A)


@states("additive_attention")
def additive_attention_is_the_formula_with_linear_layers(attend, case: Case):
    query, keys, W_q, W_k, v = _additive_inputs(case)
    layers = [nn.Linear(w.shape[0], w.shape[1], bias=False).double() for w in (W_q, W_k, v.unsqueeze(1))]
    with torch.no_grad():
        for layer, weight in zip(layers, (W_q, W_k, v.unsqueeze(1)), strict=True):
            layer.weight.copy_(weight.T)
    mask = case.mask(case.B, case.T)
    context, weights = attend(query, keys, W_q, W_k, v, mask)
    for i in range(case.B):
        scores = torch.stack([layers[2](torch.tanh(layers[0](query[i]) + layers[1](key))) for key in keys[i]])
        expected = torch.zeros(case.T, dtype=torch.float64)
        expected[mask[i]] = scores.detach().squeeze(-1)[mask[i]].softmax(dim=0)
        close(weights[i], expected)
        close(context[i], sum(w * key for w, key in zip(expected, keys[i], strict=True)))


@states("additive_attention")
def additive_attention_needs_no_mask(attend, case: Case):
    inputs = _additive_inputs(case)
    everything = torch.ones(case.B, case.T, dtype=torch.bool)
    for one, two in zip(attend(*inputs), attend(*inputs, everything), strict=True):
        close(one, two)


@states("additive_attention")
def additive_attention_ignores_hidden_keys(attend, case: Case):
    query, keys, *weights = _additive_inputs(case)
    mask = case.mask(case.B, case.T)
    poisoned = keys.masked_fill(~mask.unsqueeze(-1), HUGE)
    for one, two in zip(attend(query, keys, *weights, mask), attend(query, poisoned, *weights, mask), strict=True):
        assert torch.equal(one, two)


@states("additive_attention")
def additive_attention_does_not_care_for_the_order_of_keys(attend, case: Case):
    query, keys, *parameters = _additive_inputs(case)
    mask = case.mask(case.B, case.T)
    order = torch.randperm(case.T, generator=torch.Generator().manual_seed(case.seed))
    context, weights = attend(query, keys, *parameters, mask)
    same, moved = attend(query, keys[:, order], *parameters, mask[:, order])
    close(same, context)
    close(moved, weights[:, order])


@states("additive_attention")
def additive_attention_stays_among_the_keys(attend, case: Case):
    query, keys, *parameters = _additive_inputs(case)
    context, weights = attend(query, keys, *parameters)
    close(weights.sum(dim=-1), torch.ones(case.B, dtype=torch.float64))
    assert (context <= keys.amax(dim=1) + 1e-9).all() and (context >= keys.amin(dim=1) - 1e-9).all()


@states("additive_attention")
def additive_attention_is_finite_when_everything_is_hidden(attend, case: Case):
    inputs = [part.requires_grad_() for part in _additive_inputs(case)]
    context, weights = attend(*inputs, torch.zeros(case.B, case.T, dtype=torch.bool))
    assert not weights.any() and not context.any()
    assert all(g.isfinite().all() for g in torch.autograd.grad(context.sum(), inputs, materialize_grads=True))


def _decoder_inputs(case: Case):
    r = case.random()
    B, T, D, H, V = case.B, case.T, case.D, case.H, case.D + case.H + 1
    p = {"W_x": r(D + H, H), "W_h": r(H, H), "b": r(H), "W_o": r(2 * H, V), "b_o": r(V)}
    return r(B, D), r(B, H), r(B, T, H), case.mask(B, T), p


@states("decode_step")
def decode_step_is_what_a_loop_over_sentences_computes(decode_step, case: Case):
    y, h, encoded, mask, p = _decoder_inputs(case)
    logits, h_next, weights = decode_step(y, h, encoded, mask, p)
    for i in range(case.B):
        visible = [t for t in range(case.T) if mask[i, t]]
        unnormalised = [math.exp(float((h[i] * encoded[i, t]).sum())) for t in visible]
        context = torch.zeros(case.H, dtype=torch.float64)
        for t, weight in zip(visible, unnormalised, strict=True):
            share = weight / sum(unnormalised)
            assert math.isclose(float(weights[i, t]), share, abs_tol=1e-9)
            context += share * encoded[i, t]
        state = torch.tanh(y[i] @ p["W_x"][: case.D] + context @ p["W_x"][case.D :] + h[i] @ p["W_h"] + p["b"])
        close(h_next[i], state)
        close(logits[i], state @ p["W_o"][: case.H] + context @ p["W_o"][case.H :] + p["b_o"])


@states("decode_step")
def decode_step_ignores_padding(decode_step, case: Case):
    y, h, encoded, mask, p = _decoder_inputs(case)
    poisoned = encoded.masked_fill(~mask.unsqueeze(-1), HUGE)
    for one, two in zip(decode_step(y, h, encoded, mask, p), decode_step(y, h, poisoned, mask, p), strict=True):
        assert torch.equal(one, two)


def _product_inputs(case: Case, *batch: int):
    r = case.random()
    queries, d_v = case.H, case.D + 1
    return r(*batch, queries, case.D), r(*batch, case.T, case.D), r(*batch, case.T, d_v)


@states("scaled_dot_product_attention")
def the_scaled_product_is_that_of_torch(attend, case: Case):
    for batch in ((), (case.B,), (case.B, 2)):
        for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 1e-4)):
            q, k, v = (part.to(dtype) for part in _product_inputs(case, *batch))
            one_mask = case.mask(case.H, case.T)
            for mask in (None, one_mask, case.mask(*batch, case.H, case.T), one_mask[:1]):
                out, weights = attend(q, k, v, mask)
                close(out, F.scaled_dot_product_attention(q, k, v, mask), tolerance)
                close(weights.sum(dim=-1), torch.ones(*batch, case.H, dtype=dtype), tolerance)
                assert (weights >= 0).all()
                close(weights @ v, out, tolerance)


@states("scaled_dot_product_attention")
def the_scaled_product_ignores_hidden_keys_and_values(attend, case: Case):
    q, k, v = _product_inputs(case, case.B)
    mask = case.mask(case.T)
    hidden = ~mask.unsqueeze(-1)
    poisoned = attend(q, k.masked_fill(hidden, HUGE), v.masked_fill(hidden, HUGE), mask)
    for one, two in zip(attend(q, k, v, mask), poisoned, strict=True):
        assert torch.equal(one, two)


@states("scaled_dot_product_attention")
def the_scaled_product_survives_a_row_without_keys(attend, case: Case):
    q, k, v = (part.requires_grad_() for part in _product_inputs(case, case.B))
    mask = case.mask(case.H, case.T)
    mask[0] = False
    out, weights = attend(q, k, v, mask)
    assert not out[:, 0].any() and not weights[:, 0].any()
    slopes = gradients(out, [q, k, v], torch.ones_like(out))
    assert all(slope.isfinite().all() for slope in slopes) and not slopes[0][:, 0].any()


@states("scaled_dot_product_attention")
def the_scaled_product_moves_with_its_keys(attend, case: Case):
    q, k, v = _product_inputs(case, case.B)
    mask = case.mask(case.H, case.T)
    order = torch.randperm(case.T, generator=torch.Generator().manual_seed(case.seed))
    out, weights = attend(q, k, v, mask)
    same, moved = attend(q, k[:, order], v[:, order], mask[:, order])
    close(same, out)
    close(moved, weights[:, :, order])


@states("scaled_dot_product_attention")
def the_scaled_product_stays_among_the_values(attend, case: Case):
    q, k, v = _product_inputs(case, case.B)
    out, _ = attend(3 * q, 3 * k, v)
    assert (out <= v.amax(dim=1, keepdim=True) + 1e-9).all() and (out >= v.amin(dim=1, keepdim=True) - 1e-9).all()


@states("scaled_dot_product_attention")
def the_scaled_product_has_the_gradients_of_its_formula(attend, case: Case):
    inputs = [part.requires_grad_() for part in _product_inputs(case, 2)]
    mask = case.mask(case.H, case.T)
    mask[0] = False
    assert torch.autograd.gradcheck(lambda q, k, v: attend(q, k, v, mask), inputs, fast_mode=True)


@states("additive_attention")
def additive_attention_has_the_gradients_of_its_formula(attend, case: Case):
    inputs = [part.requires_grad_() for part in _additive_inputs(case)]
    mask = case.mask(case.B, case.T)
    assert torch.autograd.gradcheck(lambda *parts: attend(*parts, mask), inputs, fast_mode=True)


@states("decode_step")
def decode_step_has_the_gradients_of_its_formula(decode_step, case: Case):
    y, h, encoded, mask, p = _decoder_inputs(case)
    inputs = [part.requires_grad_() for part in (y, h, encoded, *p.values())]

    def step(y, h, encoded, *weights):
        return decode_step(y, h, encoded, mask, dict(zip(p, weights, strict=True)))

    assert torch.autograd.gradcheck(step, inputs, fast_mode=True)


def _self_inputs(case: Case, *batch: int):
    r, d = case.random(), case.H
    return r(*batch, case.T, case.D), r(case.D, d), r(case.D, d), r(case.D, case.D + 1)


@states("self_attention")
def self_attention_is_the_product_of_three_projections(attend, case: Case):
    for batch in ((), (case.B,), (case.B, 2)):
        x, *matrices = _self_inputs(case, *batch)
        layers = [nn.Linear(W.shape[0], W.shape[1], bias=False).double() for W in matrices]
        with torch.no_grad():
            for layer, W in zip(layers, matrices, strict=True):
                layer.weight.copy_(W.T)
            q, k, v = (layer(x) for layer in layers)
        for mask in (None, case.mask(case.T, case.T), case.mask(*batch, 1, case.T)):
            out, weights = attend(x, *matrices, mask)
            close(out, F.scaled_dot_product_attention(q, k, v, mask))
            close(weights @ v, out)


@states("self_attention")
def self_attention_moves_with_its_positions(attend, case: Case):
    x, *matrices = _self_inputs(case, case.B)
    order = torch.randperm(case.T, generator=torch.Generator().manual_seed(case.seed))
    out, weights = attend(x, *matrices)
    moved, moved_weights = attend(x[:, order], *matrices)
    close(moved, out[:, order])
    close(moved_weights, weights[:, order][:, :, order])


@states("self_attention")
def self_attention_has_the_gradients_of_its_formula(attend, case: Case):
    inputs = [part.requires_grad_() for part in _self_inputs(case, 2)]
    mask = case.mask(case.T, case.T)
    assert torch.autograd.gradcheck(lambda *parts: attend(*parts, mask), inputs, fast_mode=True)
