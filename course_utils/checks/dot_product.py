"""Cases and recipe of `scaled_dot_product_attention`; its misconceptions are in two other files."""

import math

import torch

from course_utils import attention as reference
from course_utils.checks.dot_product_hiding import HIDING
from course_utils.checks.dot_product_mistakes import PRODUCTS, SCALE
from course_utils.checks.hiding import LOWEST, WHY_LOWEST, hide, normalise, settle
from course_utils.checks.model import Case, Draw, Exercise, Output, Recipe
from course_utils.checks.shared import DOUBLE_NOTE, in_double


def _qkv(draw: Draw, *leading: int, Tq: int = 3, Tk: int = 5, d: int = 6, dv: int = 4, scale: float = 1.0) -> dict:
    return {
        "q": scale * draw.normal(*leading, Tq, d),
        "k": draw.normal(*leading, Tk, d),
        "v": draw.normal(*leading, Tk, dv),
    }


def _some_hidden(draw: Draw, *shape: int) -> torch.Tensor:
    """Every row hides a key and shows two: with a single one the weight is 1, and q and k get no gradient."""
    mask = draw.normal(*shape) > 0
    mask[..., :2] = True
    mask[..., -1] = False
    return mask


def _poisoned(draw: Draw) -> dict:
    """The last two keys are hidden and huge; another one is hidden for some queries only."""
    arguments = _qkv(draw, 3, Tq=2, Tk=6, d=4, dv=5)
    mask = _some_hidden(draw, 3, 2, 6)
    mask[..., -2] = False
    arguments["v"][:, -2:] = 1e4
    return arguments | {"mask": mask}


def _low_scores(draw: Draw) -> dict:
    """Visible scores near -60; the hidden keys have the values 1e4."""
    arguments = _qkv(draw, 2, Tq=4, Tk=5, d=9, dv=3)
    q = arguments["q"].abs() + 1
    q[:] = q[:, :1] + arguments["q"] / 20
    k = -180 * q[:, :1] / q[:, :1].square().sum(-1, keepdim=True) + arguments["k"] / 10
    arguments["v"][:, 3:] = 1e4
    return arguments | {"q": q, "k": k, "mask": torch.arange(5).expand(1, 5) < torch.tensor([3, 2]).view(2, 1, 1)}


def _very_low_scores(draw: Draw) -> dict:
    """Visible scores near -20000, hidden ones near 20000, exact in float32, as is the division by 4 (d = 16)."""
    q = torch.zeros(2, 3, 16)
    q[..., 0], q[..., 1] = 256.0, 4.0
    k = torch.zeros(2, 4, 16)
    k[..., 0] = -320.0
    k[..., 1] = draw.tokens(0, 3, 2, 4).float()
    mask = torch.tensor([True, True, False, True]).expand(3, 4)
    k[:, 2, 0] = 320.0
    return {"q": q, "k": k, "v": draw.normal(2, 4, 5), "mask": mask}


def _causal_heads(draw: Draw) -> dict:
    """(B, h, T, d) as a head split leaves it: not contiguous, with one mask for all heads."""
    arguments = {name: draw.normal(2, 4, 3, size).transpose(1, 2) for name, size in (("q", 5), ("k", 5), ("v", 6))}
    return arguments | {"mask": torch.ones(4, 4, dtype=torch.bool).tril()}


def _one_empty(draw: Draw) -> dict:
    mask = _some_hidden(draw, 2, 4, 3)
    mask[1, 2] = False
    return _qkv(draw, 2, Tq=4, Tk=3, d=2, dv=5) | {"mask": mask}


def _empty_row(arguments: dict):
    return tuple(~arguments["mask"].any(-1, keepdim=True) for _ in range(2))


def assemble(s):
    """Attention from its steps; the self-attention exercise is assembled from the same ones."""

    def run(q, k, v, mask=None):
        q = s.prepare_q(q)
        scores = s.scale(s.score(q, k), q, k, v)
        mask = s.given(mask, q, k)
        weights = s.settle(s.normalise(s.hide(scores, mask)), mask)
        weights = s.after(weights)
        return s.finish(s.mix(s.passed_on(weights), k, v), weights, scores)

    return run


RIGHT = {
    "prepare_q": lambda q: q,
    "score": lambda q, k: q @ k.transpose(-2, -1),
    "scale": lambda scores, q, k, v: scores / math.sqrt(q.shape[-1]),
    "given": lambda mask, q, k: mask,
    "hide": hide,
    "normalise": normalise,
    "settle": settle,
    "after": lambda weights: weights,
    "passed_on": lambda weights: weights,
    "mix": lambda weights, k, v: weights @ v,
    "finish": lambda out, weights, scores: (out, weights),
}

CASES = (
    Case("no mask, all sizes different", "scores are scaled, weights sum to one over the keys, values are mixed", 2,
         lambda d: _qkv(d, 2)),
    Case("hidden keys with huge values", "a hidden key gets no weight, however large its value", 2, _poisoned),
    Case("low scores", "a hidden key gets no weight, also when every visible score is near -60", 1, _low_scores),
    Case("very low scores", "a hidden key gets no weight, also when every visible score is near -20000", 1,
         _very_low_scores),
    Case("heads and a causal mask", "the last two axes are meant, however many come before; rows of a mask are queries",
         1, _causal_heads),
    Case("a query that may see nothing", "a fully hidden row gives finite numbers", 1, _one_empty, loose=_empty_row),
    Case("large scores", "scores in the hundreds give finite weights", 1,
         lambda d: _qkv(d, 3, Tq=5, Tk=4, scale=200.0)),
    Case("gradients, and arguments are kept", "gradients flow back to q, k and v; nothing is written to; no randomness",
         1, lambda d: _qkv(d, 2, Tq=3, Tk=4, d=5, dv=2) | {"mask": _some_hidden(d, 3, 4)},
         gradients_of=("q", "k", "v"), repeat=True, keeps_inputs=True),
    Case("double precision", "works in float64", 0,
         lambda d: in_double(_qkv(d, 2) | {"mask": _some_hidden(d, 3, 5)}), note=DOUBLE_NOTE),
    Case("half precision", "works in float16", 0,
         lambda d: {"q": torch.full((1, 2, 4), 0.5, dtype=torch.half), "k": torch.ones(1, 3, 4, dtype=torch.half),
                    "v": torch.tensor([[[1.0], [1.0], [0.0]]], dtype=torch.half),
                    "mask": torch.tensor([True, True, False])},
         note="Passed. In half precision (float16) your function gives an error or another result: a fixed number "
              "such as -1e9 does not fit there; torch.finfo(scores.dtype).min does."),
)  # fmt: skip

SCALED_DOT_PRODUCT_ATTENTION = Exercise(
    name="scaled_dot_product_attention",
    notebook="02",
    reference=reference.scaled_dot_product_attention,
    outputs=(Output("output", ("query", "feature")), Output("weights", ("query", "key"), weights=True)),
    cases=CASES,
    recipe=Recipe(assemble, RIGHT),
    misconceptions=(*SCALE, *HIDING, *PRODUCTS),
    hints=(
        "Which two axes must meet in the product, and which one is left for the softmax?",
        "Scores have shape (..., Tq, Tk). Hide keys before the softmax: what number becomes 0 after exp?",
        "scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]); "
        f"scores.masked_fill(~mask, {LOWEST}) ({WHY_LOWEST}); softmax(dim=-1); @ v",
    ),
)
