"""Wrong answers to self_attention, sinusoidal_positions and apply_rope."""

import math

import torch
import torch.nn.functional as F

from wrong_answers import wrong

# --- self_attention


def _attend(q, k, v, mask=None, size=None, dim=-1):
    """The rest of a right answer."""
    scores = torch.einsum("...id,...jd->...ij", q, k) * (size or q.size(-1)) ** -0.5
    if mask is not None:
        scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    w = torch.softmax(scores, dim)
    return torch.matmul(w, v), w


@wrong("self_attention", "self_one_matrix")
def _(x, W_q, W_k, W_v, mask=None):
    q = k = v = x @ W_q
    return _attend(q, k, v, mask)


@wrong("self_attention", "self_one_matrix")
def _(x, W_q, W_k, W_v, mask=None):
    return _attend(x @ W_q, x @ W_q, x @ W_v, mask)


@wrong("self_attention", "self_scale_d_in")
def _(x, W_q, W_k, W_v, mask=None):
    return _attend(x @ W_q, x @ W_k, x @ W_v, mask, size=x.shape[-1])


@wrong("self_attention", "self_scale_value_size")
def _(x, W_q, W_k, W_v, mask=None):
    return _attend(x @ W_q, x @ W_k, x @ W_v, mask, size=W_v.shape[1])


@wrong("self_attention", "self_scale_seq_len")
def _(x, W_q, W_k, W_v, mask=None):
    return _attend(x @ W_q, x @ W_k, x @ W_v, mask, size=x.shape[-2])


@wrong("self_attention", "self_scale_d")
def _(x, W_q, W_k, W_v, mask=None):
    q = x @ W_q
    return _attend(q, x @ W_k, x @ W_v, mask, size=q.shape[-1] ** 2)


@wrong("self_attention", "self_no_scale")
def _(x, W_q, W_k, W_v, mask=None):
    return _attend(x @ W_q, x @ W_k, x @ W_v, mask, size=1)


@wrong("self_attention", "self_scale_output")
def _(x, W_q, W_k, W_v, mask=None):
    out, w = _attend(x @ W_q, x @ W_k, x @ W_v, mask, size=1)
    return out / math.sqrt(W_q.shape[1]), w


@wrong("self_attention", "self_values_not_projected")
def _(x, W_q, W_k, W_v, mask=None):
    return _attend(x @ W_q, x @ W_k, x, mask)


@wrong("self_attention", "self_no_projection")
def _(x, W_q, W_k, W_v, mask=None):
    return _attend(x, x, x, mask)


@wrong("self_attention", "self_roles_swapped")
def _(x, W_q, W_k, W_v, mask=None):
    k, q = x @ W_q, x @ W_k
    return _attend(q, k, x @ W_v, mask)


@wrong("self_attention", "self_matrices_transposed")
def _(x, W_q, W_k, W_v, mask=None):
    return _attend(F.linear(x, W_q), F.linear(x, W_k), F.linear(x, W_v), mask)


@wrong("self_attention", "self_input_added")
def _(x, W_q, W_k, W_v, mask=None):
    out, w = _attend(x @ W_q, x @ W_k, x @ W_v, mask)
    return x + out, w


@wrong("self_attention", "self_mask_ignored")
def _(x, W_q, W_k, W_v, mask=None):
    return _attend(x @ W_q, x @ W_k, x @ W_v)


@wrong("self_attention", "self_mask_inverted")
def _(x, W_q, W_k, W_v, mask=None):
    return _attend(x @ W_q, x @ W_k, x @ W_v, None if mask is None else mask.logical_not())


@wrong("self_attention", "self_mask_transposed")
def _(x, W_q, W_k, W_v, mask=None):
    return _attend(x @ W_q, x @ W_k, x @ W_v, None if mask is None else mask.mT)


@wrong("self_attention", "self_mask_fill_1e-9")
def _(x, W_q, W_k, W_v, mask=None):
    s = x @ W_q @ (x @ W_k).mT / W_q.shape[1] ** 0.5
    w = (s if mask is None else torch.where(mask, s, -1e-9)).softmax(-1)
    return w @ (x @ W_v), w


@wrong("self_attention", "self_mask_fill_minus_1e4")
def _(x, W_q, W_k, W_v, mask=None):
    s = x @ W_q @ (x @ W_k).mT / W_q.shape[1] ** 0.5
    w = (s if mask is None else torch.where(mask, s, -1e4)).softmax(-1)
    return w @ (x @ W_v), w


@wrong("self_attention", "self_mask_after_softmax")
def _(x, W_q, W_k, W_v, mask=None):
    _, w = _attend(x @ W_q, x @ W_k, x @ W_v)
    w = w if mask is None else torch.where(mask, w, 0)
    return w @ (x @ W_v), w


@wrong("self_attention", "self_fully_masked_nan")
def _(x, W_q, W_k, W_v, mask=None):
    s = x @ W_q @ (x @ W_k).mT / W_q.shape[1] ** 0.5
    w = F.softmax(s if mask is None else torch.where(mask, s, -torch.inf), -1)
    return w @ (x @ W_v), w


@wrong("self_attention", "self_causal_always")
def _(x, W_q, W_k, W_v, mask=None):
    causal = torch.ones(x.shape[-2], x.shape[-2]).tril() > 0
    return _attend(x @ W_q, x @ W_k, x @ W_v, causal if mask is None else causal & mask)


@wrong("self_attention", "self_softmax_queries")
def _(x, W_q, W_k, W_v, mask=None):
    return _attend(x @ W_q, x @ W_k, x @ W_v, mask, dim=-2)


@wrong("self_attention", "self_transpose_12")
def _(x, W_q, W_k, W_v, mask=None):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    s = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
    w = s.softmax(-1) if mask is None else s.masked_fill(~mask, -1e9).softmax(-1)
    return w @ v, w


@wrong("self_attention", "self_returns_keys")
def _(x, W_q, W_k, W_v, mask=None):
    return _attend(x @ W_q, x @ W_k, x @ W_k, mask)


@wrong("self_attention", "self_output_only")
def _(x, W_q, W_k, W_v, mask=None):
    return _attend(x @ W_q, x @ W_k, x @ W_v, mask)[0]


@wrong("self_attention", "self_weights_detached")
def _(x, W_q, W_k, W_v, mask=None):
    with torch.no_grad():
        _, w = _attend(x @ W_q, x @ W_k, x @ W_v, mask)
    return w @ (x @ W_v), w


@wrong("self_attention")
def _(x, W_q, W_k, W_v, mask=None):
    """The matrices are concatenated into one product of the wrong width."""
    q, k, v = (x @ torch.cat([W_q, W_k, W_v], 1)).split(W_v.shape[1], -1)[:3]
    return _attend(q, k, v, mask)


# --- sinusoidal_positions


def _fill(angles, d):
    table = torch.zeros(len(angles), d)
    table[:, ::2], table[:, 1::2] = angles.sin(), angles.cos()[:, : d // 2]
    return table


def _t(T):
    return torch.arange(T, dtype=torch.float32).view(T, 1)


@wrong("sinusoidal_positions", "sin_double_exponent")
def _(T, d):
    return _fill(_t(T) / torch.pow(10000, 2 * torch.arange(0, d, 2) / d), d)


@wrong("sinusoidal_positions", "sin_own_frequency_per_column")
def _(T, d):
    table = torch.zeros(T, d)
    for j in range(d):
        angle = _t(T)[:, 0] / 10000 ** (2 * j / d)
        table[:, j] = angle.cos() if j % 2 else angle.sin()
    return table


@wrong("sinusoidal_positions", "sin_own_frequency_per_column")
def _(T, d):
    angles = _t(T) / 10000.0 ** (torch.arange(d) / d)
    angles[:, 0::2] = angles[:, 0::2].sin()
    angles[:, 1::2] = angles[:, 1::2].cos()
    return angles


@wrong("sinusoidal_positions", "sin_halves")
def _(T, d):
    angles = _t(T) * torch.exp(-math.log(10000) * torch.arange(0, d, 2) / d)
    return torch.hstack((torch.sin(angles), torch.cos(angles)))[:, :d]


@wrong("sinusoidal_positions", "sin_power_swapped")
def _(T, d):
    return _fill(_t(T) * (torch.arange(0, d, 2) / d) ** 1e-4, d)


@wrong("sinusoidal_positions", "sin_multiplied_freq")
def _(T, d):
    return _fill(torch.arange(T, dtype=torch.double)[:, None] * 10000 ** (torch.arange(0, d, 2).double() / d), d)


@wrong("sinusoidal_positions", "sin_only_sine")
def _(T, d):
    return torch.stack([(_t(T) / 10000 ** ((j - j % 2) / d)).sin()[:, 0] for j in range(d)], 1)


@wrong("sinusoidal_positions", "sin_cos_swapped")
def _(T, d):
    angles = _t(T) / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.stack([angles.cos(), angles.sin()], -1).flatten(1)[:, :d]


@wrong("sinusoidal_positions", "sin_divides_by_T")
def _(T, d):
    return _fill(_t(T) / 10000 ** (torch.arange(0, d, 2) / T), d)


@wrong("sinusoidal_positions", "sin_normalised_positions")
def _(T, d):
    return _fill(_t(T) / T / 10000 ** (torch.arange(0, d, 2) / d), d)


@wrong("sinusoidal_positions", "sin_odd_d_crash")
def _(T, d):
    pe = torch.zeros(T, d)
    div = torch.exp(torch.arange(0, d, 2) * -(math.log(10000.0) / d))
    pe[:, 0::2] = torch.sin(_t(T) * div)
    pe[:, 1::2] = torch.cos(_t(T) * div)
    return pe


@wrong("sinusoidal_positions", "sin_half_frequencies")
def _(T, d):
    return _fill(_t(T) / 10000 ** (torch.arange((d + 1) // 2) / d), d)


@wrong("sinusoidal_positions", "sin_starts_at_1")
def _(T, d):
    return _fill(torch.arange(1, T + 1)[:, None] / 10000 ** (torch.arange(0, d, 2) / d), d)


@wrong("sinusoidal_positions", "sin_wrong_base")
def _(T, d):
    return _fill(_t(T) / 1000 ** (torch.arange(0, d, 2) / d), d)


@wrong("sinusoidal_positions", "sin_single_frequency")
def _(T, d):
    return _fill(_t(T) / 10000 ** (torch.arange(0, d, 2) // d), d)


@wrong("sinusoidal_positions", "sin_transposed")
def _(T, d):
    return _fill(_t(T) / 10000 ** (torch.arange(0, d, 2) / d), d).t()


@wrong("sinusoidal_positions")
def _(T, d):
    """Degrees instead of radians."""
    return _fill(torch.deg2rad(_t(T) / 10000 ** (torch.arange(0, d, 2) / d)), d)


# --- apply_rope


def _angles(x):
    d = x.shape[-1]
    return torch.outer(torch.arange(x.shape[-2]).float(), 10000.0 ** (-torch.arange(0, d, 2).float() / d))


def _put(x, first, second):
    out = torch.zeros_like(x)
    out[..., 0::2], out[..., 1::2] = first, second
    return out


def _turned(x, a):
    p, q = x[..., 0::2], x[..., 1::2]
    return _put(x, p * a.cos() - q * a.sin(), p * a.sin() + q * a.cos())


@wrong("apply_rope", "rope_tiled_angles")
def _(x):
    a = _angles(x).repeat(1, 2)
    return x * a.cos() + _put(x, -x[..., 1::2], x[..., 0::2]) * a.sin()


@wrong("apply_rope", "rope_half_split")
def _(x):
    h = x.shape[-1] // 2
    a = _angles(x)
    return torch.cat([x[..., :h] * a.cos() - x[..., h:] * a.sin(), x[..., :h] * a.sin() + x[..., h:] * a.cos()], -1)


@wrong("apply_rope", "rope_wrong_axis")
def _(x):
    d = x.shape[-1]
    a = torch.arange(x.shape[1])[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)
    return _turned(x, a.view(1, x.shape[1], *[1] * (x.dim() - 3), d // 2))


@wrong("apply_rope", "rope_wrong_axis")
def _(x):
    d = x.shape[-1]
    a = torch.arange(x.shape[1])[:, None] / 10000.0 ** (torch.arange(0, d, 2) / d)
    return _turned(x, a[:, None] if x.dim() == 4 else a[: x.shape[-2]])


@wrong("apply_rope", "rope_clockwise")
def _(x):
    return _turned(x, -_angles(x))


@wrong("apply_rope", "rope_single_frequency")
def _(x):
    return _turned(x, torch.arange(x.shape[-2], dtype=x.dtype)[:, None])


@wrong("apply_rope", "rope_cos_only")
def _(x):
    return x * _angles(x).cos().repeat_interleave(2, -1)


@wrong("apply_rope", "rope_sign_slip")
def _(x):
    a, p, q = _angles(x), x[..., 0::2], x[..., 1::2]
    return _put(x, p * a.cos() - q * a.sin(), p * a.sin() - q * a.cos())


@wrong("apply_rope", "rope_added")
def _(x):
    return x + _put(x, _angles(x).sin(), _angles(x).cos())


@wrong("apply_rope", "rope_not_flattened_right")
def _(x):
    y = _turned(x, _angles(x))
    return torch.cat([y[..., 0::2], y[..., 1::2]], -1)


@wrong("apply_rope", "rope_starts_at_1")
def _(x):
    d = x.shape[-1]
    return _turned(x, (torch.arange(x.shape[-2]) + 1).unsqueeze(1) / 10000 ** (torch.arange(0, d, 2) / d))


@wrong("apply_rope", "rope_half_frequencies")
def _(x):
    d = x.shape[-1]
    return _turned(x, torch.arange(x.shape[-2]).unsqueeze(1) / 10000 ** (torch.arange(d // 2) / d))


@wrong("apply_rope", "rope_overwritten")
def _(x):
    x, a = x.clone(), _angles(x)
    x[..., 0::2] = x[..., 0::2] * a.cos() - x[..., 1::2] * a.sin()
    x[..., 1::2] = x[..., 0::2] * a.sin() + x[..., 1::2] * a.cos()
    return x


@wrong("apply_rope", "rope_x_overwritten")
def _(x):
    y = _turned(x, _angles(x))
    x[:] = y
    return x


@wrong("apply_rope", "rope_pair_swapped")
def _(x):
    y = _turned(x, _angles(x))
    return _put(x, y[..., 1::2], y[..., 0::2])


@wrong("apply_rope")
def _(x):
    """Only the first pair is turned."""
    y = x.clone()
    y[..., :2] = _turned(x, _angles(x))[..., :2]
    return y
