"""Cases of `layer_norm`."""

import torch

from course_utils import layers as reference
from course_utils.checks.layer_norm_mistakes import MISCONCEPTIONS, RIGHT, assemble
from course_utils.checks.model import Case, Draw, Exercise, Output, Recipe
from course_utils.checks.shared import DOUBLE_NOTE, in_double, weight_gradient_note

# float32 holds 2 ** 15 + k exactly, and a library that multiplies before it subtracts is off by less than this.
FAR_TOLERANCE = 0.02


def _words(draw: Draw, *shape: int, eps: float = 1e-5) -> dict:
    """Vectors with a mean of their own, and no gamma or beta that could be left out."""
    d = shape[-1]
    x = 2 * draw.normal(*shape) + 3 * draw.normal(*shape[:-1], 1)
    gamma, beta = draw.normal(d), 2 * draw.normal(d)
    return {"x": x, "gamma": gamma + gamma.sign(), "beta": beta + beta.sign(), "eps": eps}


def _large_eps(draw: Draw) -> dict:
    """A large eps decides where it belongs; a vector of equal numbers has the variance 0."""
    arguments = _words(draw, 2, 3, 4, eps=0.5)
    arguments["x"][1, 1] = 1.5
    return arguments


def _sizes(draw: Draw) -> dict:
    """Sentences of very different size: what is computed over more than one vector mixes them."""
    arguments = _words(draw, 3, 2, 6, eps=1e-3)
    arguments["x"] = arguments["x"] * torch.tensor([0.1, 1.0, 30.0])[:, None, None]
    return arguments


def _far(draw: Draw) -> dict:
    """Small differences around 2 ** 15, adding up to zero: mean and variance are exact, a square loses the digits."""
    arguments = _words(draw, 2, 4, 6)
    small = torch.tensor([-5.0, -2.0, -1.0, 1.0, 3.0, 4.0])
    arguments["x"] = 2.0**15 + torch.stack([small[draw.distinct(0, 6, 6)] for _ in range(8)]).view(2, 4, 6)
    return arguments


CASES = (
    Case("ordinary numbers", "every vector gets mean 0 and variance 1, then gamma and beta", 2,
         lambda d: _words(d, 2, 3, 4)),
    Case("a large eps", "eps is added to the variance, under the root", 2, _large_eps),
    Case("sentences of different size", "each vector is normalised by itself", 1, _sizes),
    Case("far from zero", "small differences between large numbers survive", 1, _far, tolerance=FAR_TOLERANCE),
    Case("four axes", "the last axis is normalised, whatever comes before it", 1,
         lambda d: _words(d, 2, 3, 2, 5, eps=0.01)),
    Case("a single vector", "the last axis is normalised, also where it is the only one", 1,
         lambda d: _words(d, 7, eps=0.1)),
    Case("gradients, and x is kept", "gradients flow through mean and variance, too; nothing is written to", 2,
         lambda d: _words(d, 2, 4, 3, eps=0.1), gradients_of=("x",), repeat=True, keeps_inputs=True),
    Case("gradients of gamma and beta", "gradients flow back to what is learned", 0,
         lambda d: _words(d, 2, 3, 4), gradients_of=("gamma", "beta"), note=weight_gradient_note("gamma and beta")),
    Case("double precision", "works in float64", 0, lambda d: in_double(_words(d, 2, 3, 5)), note=DOUBLE_NOTE),
)  # fmt: skip

LAYER_NORM = Exercise(
    name="layer_norm",
    notebook="06",
    reference=reference.layer_norm,
    outputs=(Output("the normalised vectors", ("time", "feature")),),
    cases=CASES,
    recipe=Recipe(assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "Each vector is treated by itself. What is its mean afterwards, what its variance?",
        "Over which axis do mean and variance run, and how do they keep a shape that fits x? Divide by n, not by "
        "n - 1; eps protects the root. gamma and beta come last.",
        "centred = x - x.mean(dim=-1, keepdim=True); variance = centred.pow(2).mean(dim=-1, keepdim=True); "
        "centred / torch.sqrt(variance + eps) * gamma + beta",
    ),
)
