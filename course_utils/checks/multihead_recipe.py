"""The recipe of `MultiHeadAttention`: a right answer in steps."""

from torch import nn

from course_utils.checks import hiding


def assemble(s):
    """The module from its steps."""

    class MultiHeadAttention(nn.Module):
        def __init__(self, d_model, n_heads):
            s.begin(super())
            s.divide(d_model, n_heads)
            self.d_model, self.n_heads = d_model, n_heads
            s.layers(self, d_model, n_heads)

        def forward(self, x_q, x_kv=None, mask=None):
            given = x_q
            x_q, x_kv = s.sources(s.enter(x_q), x_kv if x_kv is None else s.enter(x_kv))
            q, k, v = (s.split(t, self.n_heads) for t in s.project(self, x_q, x_kv))
            mask = s.given(s.place(mask, q), q, k)
            scores = s.scale(s.score(q, k), q, k, self.d_model)
            weights = s.after(s.settle(s.normalise(s.hide(scores, mask)), mask))
            out = s.enter(s.output(self, s.merge(weights @ v)))
            return s.last(out, given, weights)

    return MultiHeadAttention


def _divide(d_model, n_heads):
    if d_model % n_heads:
        raise ValueError("n_heads must divide d_model")


def layers(bias=True):
    def make(module, d_model, n_heads):
        for name in ("W_q", "W_k", "W_v", "W_o"):
            setattr(module, name, nn.Linear(d_model, d_model, bias=bias))

    return make


def split(t, h):
    return t.view(*t.shape[:2], h, t.shape[-1] // h).transpose(1, 2)


def merge(out):
    return out.transpose(1, 2).flatten(2)


def place(mask, q):
    return mask.unsqueeze(1) if mask is not None and mask.dim() == 3 else mask


RIGHT = {
    "begin": lambda parent: parent.__init__(),
    "divide": _divide,
    "layers": layers(),
    "enter": lambda x: x,
    "sources": lambda x_q, x_kv: (x_q, x_q if x_kv is None else x_kv),
    "project": lambda m, x_q, x_kv: (m.W_q(x_q), m.W_k(x_kv), m.W_v(x_kv)),
    "split": split,
    "place": place,
    "given": lambda mask, q, k: mask,
    "score": lambda q, k: q @ k.transpose(-2, -1),
    "scale": lambda scores, q, k, d_model: scores / q.shape[-1] ** 0.5,
    "hide": hiding.hide,
    "normalise": hiding.normalise,
    "settle": hiding.settle,
    "after": lambda weights: weights,
    "merge": merge,
    "output": lambda m, out: m.W_o(out),
    "last": lambda out, x_q, weights: out,
}
