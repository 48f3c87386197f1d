"""Wrong answers to dropout and noam_lr."""

import math

import torch
import torch.nn.functional as F

from wrong_answers import wrong

# --- dropout


@wrong("dropout", "drop_no_rescale")
def _(x, p, training):
    if not training:
        return x
    return x * (torch.rand_like(x) > p)


@wrong("dropout", "drop_scales_in_eval")
def _(x, p, training):
    if training:
        return x * (torch.rand(x.shape) > p).float()
    return x * (1 - p)


@wrong("dropout", "drop_divides_by_p")
def _(x, p, training):
    if not training:
        return x
    return x * (torch.rand_like(x) > p) / p


@wrong("dropout", "drop_in_place")
def _(x, p, training):
    if not training:
        return x
    x[torch.rand_like(x) < p] = 0
    return x / (1 - p)


@wrong("dropout", "drop_in_place")
def _(x, p, training):
    if training:
        x *= (torch.rand_like(x) > p) / (1 - p)
    return x


@wrong("dropout", "drop_gaussian")
def _(x, p, training):
    if not training:
        return x
    return x * (torch.randn(x.shape) > p) / (1 - p)


@wrong("dropout")
def _(x, p, training):
    """p is taken for the chance of surviving."""
    if not training:
        return x
    return x * (torch.rand_like(x) < p) / p


@wrong("dropout")
def _(x, p, training):
    """The other share is dropped, with the scale of the right one."""
    return x * (torch.rand_like(x) < p) / (1 - p) if training else x


@wrong("dropout")
def _(x, p, training):
    """The flag is never read."""
    return F.dropout(x, p)


@wrong("dropout")
def _(x, p, training):
    """The flag is read the other way round."""
    return F.dropout(x, p, training=not training)


@wrong("dropout")
def _(x, p, training):
    """Multiplied by 1 - p instead of divided."""
    return x * (torch.rand_like(x) > p) * (1 - p) if training else x


@wrong("dropout")
def _(x, p, training):
    """One draw for a whole row."""
    if not training:
        return x
    return x * (torch.rand(x.shape[:-1]).unsqueeze(-1) >= p) / (1 - p)


@wrong("dropout")
def _(x, p, training):
    """The same entries at every call."""
    if not training:
        return x
    source = torch.Generator().manual_seed(0)
    return x * (torch.rand(x.shape, generator=source) >= p) / (1 - p)


@wrong("dropout", "drop_only_scales")
def _(x, p, training):
    """Everything scaled, nothing dropped."""
    return x / (1 - p) if training else x


@wrong("dropout")
def _(x, p, training):
    """Scaled in evaluation as well."""
    mask = torch.rand_like(x) > p if training else torch.ones_like(x)
    return x * mask / (1 - p)


@wrong("dropout")
def _(x, p, training):
    """The first entries instead of random ones."""
    if not training:
        return x
    out = x.flatten().clone()
    out[: int(p * out.numel())] = 0
    return out.view(x.shape) / (1 - p)


@wrong("dropout")
def _(x, p, training):
    """Noise in place of the survivors' own values."""
    return x * torch.rand_like(x) / (1 - p) if training else x


# --- noam_lr


@wrong("noam_lr", "lr_max")
def _(step, d_model, warmup):
    step = max(step, 1)
    return d_model**-0.5 * max(step**-0.5, step * warmup**-1.5)


@wrong("noam_lr", "lr_no_model_size")
def _(step, d_model, warmup):
    step = max(1, step)
    return min(step**-0.5, step * warmup**-1.5)


@wrong("noam_lr", "lr_step_zero")
def _(step, d_model, warmup):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


@wrong("noam_lr", "lr_step_zero")
def _(step, d_model, warmup):
    return 1 / math.sqrt(d_model) * min(1 / math.sqrt(step), step / warmup**1.5)


@wrong("noam_lr", "lr_warmup_exponent")
def _(step, d_model, warmup):
    step = max(step, 1)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-0.5)


@wrong("noam_lr")
def _(step, d_model, warmup):
    """Step 0 has rate 0."""
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5) if step > 0 else 0.0


@wrong("noam_lr")
def _(step, d_model, warmup):
    """Every step counts one more."""
    step += 1
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


@wrong("noam_lr")
def _(step, d_model, warmup):
    """The model size under the bar without its root."""
    step = max(step, 1)
    return min(step**-0.5, step * warmup**-1.5) / d_model


@wrong("noam_lr")
def _(step, d_model, warmup):
    """The sign of the exponent."""
    step = max(step, 1)
    return d_model**0.5 * min(step**-0.5, step * warmup**-1.5)


@wrong("noam_lr")
def _(step, d_model, warmup):
    """No warm-up."""
    return (d_model * max(step, 1)) ** -0.5


@wrong("noam_lr")
def _(step, d_model, warmup):
    """No end of the warm-up."""
    return d_model**-0.5 * max(step, 1) * warmup**-1.5


@wrong("noam_lr")
def _(step, d_model, warmup):
    """Constant after the warm-up."""
    return d_model**-0.5 * min(warmup**-0.5, max(step, 1) * warmup**-1.5)


@wrong("noam_lr")
def _(step, d_model, warmup):
    """The bracket: the model size belongs to one branch only."""
    step = max(step, 1)
    return min(d_model**-0.5 * step**-0.5, step * warmup**-1.5)


@wrong("noam_lr")
def _(step, d_model, warmup):
    """The sum of both branches."""
    step = max(step, 1)
    return d_model**-0.5 * (step**-0.5 + step * warmup**-1.5)


@wrong("noam_lr")
def _(step, d_model, warmup):
    """Printed, not returned."""
    step = max(step, 1)
    print(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))
