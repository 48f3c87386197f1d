"""Cases and misconceptions of `self_attention`: those of the dot product, and those of the three projections."""

from dataclasses import replace

import torch

from course_utils import attention as reference
from course_utils.checks import dot_product
from course_utils.checks.hiding import LOWEST, WHY_LOWEST
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Output, Recipe
from course_utils.checks.shared import DOUBLE_NOTE, in_double


def _inputs(draw: Draw, *leading: int, T: int = 4, d_in: int = 5, d: int = 6, dv: int = 3) -> dict:
    return {
        "x": draw.normal(*leading, T, d_in),
        "W_q": 0.5 * draw.normal(d_in, d),
        "W_k": 0.5 * draw.normal(d_in, d),
        "W_v": draw.normal(d_in, dv),
    }


def _ends_at(lengths: list[int], T: int) -> torch.Tensor:
    """(B, 1, T): the words behind the end of a sentence are hidden from all its words."""
    return torch.arange(T) < torch.tensor(lengths).view(-1, 1, 1)


def _poisoned(draw: Draw) -> dict:
    """Hidden words are huge: as keys they would win, as values they would show."""
    arguments, mask = _inputs(draw, 3, T=6, d_in=4, d=5, dv=2), _ends_at([4, 2, 5], 6)
    arguments["x"] += 30 * (~mask).transpose(1, 2)
    return arguments | {"mask": mask}


def _low_scores(draw: Draw) -> dict:
    """Visible scores near -60; the hidden words have values near 1000 and ordinary scores."""
    arguments, mask = _inputs(draw, 2, T=5, d_in=4, d=9, dv=3), _ends_at([3, 2], 5)
    x, W_q, W_k = 0.3 * arguments["x"], 0.6 * arguments["W_q"], 0.6 * arguments["W_k"]
    x[..., 0], x[..., 1] = 1.0, 1000.0 * ~mask[:, 0]
    W_q[0], W_k[0] = 20**0.5, -(20**0.5)
    W_q[1], W_k[1] = 0.0, 0.0
    return arguments | {"x": x, "W_q": W_q, "W_k": W_k, "mask": mask}


def _very_low_scores(draw: Draw) -> dict:
    """Visible scores near -20000, hidden ones near 20000, exact in float32, as is the division by 4 (d = 16)."""
    arguments, mask = _inputs(draw, 2, T=4, d_in=3, d=16, dv=5), torch.tensor([True, True, False, True])
    x, W_q, W_k = torch.ones(2, 4, 3), torch.zeros(3, 16), torch.zeros(3, 16)
    x[..., 1] = draw.tokens(0, 3, 2, 4).float()
    x[..., 2] = (~mask).float()
    W_q[0, :2] = torch.tensor([256.0, 4.0])
    W_k[0, 0], W_k[1, 1], W_k[2, 0] = -320.0, 1.0, 640.0
    return arguments | {"x": x, "W_q": W_q, "W_k": W_k, "mask": mask.expand(4, 4)}


def _causal(draw: Draw, *leading: int, T: int) -> dict:
    return _inputs(draw, *leading, T=T) | {"mask": torch.ones(T, T, dtype=torch.bool).tril()}


def _one_empty(draw: Draw) -> dict:
    mask = torch.ones(2, 4, 4, dtype=torch.bool)
    mask[0, :, 3], mask[1, 2] = False, False
    return _inputs(draw, 2) | {"mask": mask}


def _empty_row(arguments: dict):
    return tuple(~arguments["mask"].any(-1, keepdim=True) for _ in range(2))


CASES = (
    Case("no mask, all sizes different", "three projections, scaled scores, weights that sum to one over the keys", 2,
         lambda d: _inputs(d, 2)),
    Case("hidden words that are huge", "a hidden word gets no weight, however large it is", 2, _poisoned),
    Case("low scores", "a hidden word gets no weight, also when every visible score is near -60", 1, _low_scores),
    Case("very low scores", "a hidden word gets no weight, also when every visible score is near -20000", 1,
         _very_low_scores),
    Case("more axes in front, and a causal mask", "the last two axes are meant, however many come before", 1,
         lambda d: _causal(d, 2, 3, T=4)),
    Case("one sentence without a batch", "x of shape (T, d_in) works as well", 1, lambda d: _causal(d, T=3)),
    Case("a word that may see nothing", "a fully hidden row gives finite numbers", 1, _one_empty, loose=_empty_row),
    Case("gradients, and arguments are kept", "gradients flow back to x and to all three matrices; nothing is written "
         "to; no randomness", 1, lambda d: _inputs(d, 2, T=3, dv=4) | {"mask": _ends_at([3, 2], 3)},
         gradients_of=("x", "W_q", "W_k", "W_v"), repeat=True, keeps_inputs=True),
    Case("double precision", "works in float64", 0, lambda d: in_double(_inputs(d, 2) | {"mask": _ends_at([2, 3], 4)}),
         note=DOUBLE_NOTE),
)  # fmt: skip


def _assemble(s):
    attend = dot_product.assemble(s)

    def run(x, W_q, W_k, W_v, mask=None):
        result = attend(*s.project(x, W_q, W_k, W_v), mask)
        return s.last(result, x)

    return run


def _as_if_scaled_by_d_in(x, W_q, W_k, W_v):
    return x @ W_q * (W_q.shape[1] / x.shape[-1]) ** 0.5, x @ W_k, x @ W_v


RIGHT = dot_product.RIGHT | {
    "project": lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_k, x @ W_v),
    "last": lambda result, x: result,
}

# A query is a product here, so that scaling it in place does no harm; and k @ q^T is what exchanged matrices give.
OF_THE_DOT_PRODUCT = tuple(
    replace(m, id=m.id.replace("sdpa_", "self_"))
    for m in dot_product.SCALED_DOT_PRODUCT_ATTENTION.misconceptions
    if m.id not in ("sdpa_scales_q_in_place", "sdpa_scores_transposed")
)

PROJECTIONS = (
    Misconception(
        "self_scale_d_in",
        "The scores are divided by the square root of the size of x instead of that of the queries.",
        ("Over how many numbers does the product of a query and a key sum?",
         "Print x.shape and q.shape.",
         "/ math.sqrt(q.shape[-1])"),
        ({"project": _as_if_scaled_by_d_in},),
    ),
    Misconception(
        "self_one_matrix",
        "One matrix is used for more than one of the three roles.",
        ("What would it mean if asking and answering were always the same?",
         "Are all three of W_q, W_k and W_v used in your code?",
         "q, k, v = x @ W_q, x @ W_k, x @ W_v"),
        ({"project": lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_q, x @ W_q)},
         {"project": lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_q, x @ W_v)},
         {"project": lambda x, W_q, W_k, W_v: (x @ W_k, x @ W_k, x @ W_v)},
         {"project": lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_k, x @ W_k)},
         {"project": lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_k, x @ W_q)},
         {"project": lambda x, W_q, W_k, W_v: (x @ W_k, x @ W_k, x @ W_k)},
         {"project": lambda x, W_q, W_k, W_v: (x @ W_v, x @ W_v, x @ W_v)}),
    ),
    Misconception(
        "self_roles_swapped",
        "Queries and keys have changed places: the one who is asked asks.",
        ("Row i of the scores belongs to the query of word i. Which matrix made it?",
         "Compare the letters left and right of your assignments, and the order of q and k in their product.",
         "q = x @ W_q and k = x @ W_k; scores are q @ k.transpose(-2, -1), not k @ q.transpose(-2, -1)"),
        ({"project": lambda x, W_q, W_k, W_v: (x @ W_k, x @ W_q, x @ W_v)},),
    ),
    Misconception(
        "self_values_not_projected",
        "The values are x itself: W_v is not used.",
        ("How many features has your output, and how many has W_v?",
         "Is there an argument that you did not use?",
         "weights @ (x @ W_v)"),
        ({"project": lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_k, x)},),
    ),
    Misconception(
        "self_no_projection",
        "Queries, keys or values are x itself, without their matrix.",
        ("What are the three matrices for?",
         "Which arguments does your code not use?",
         "q, k, v = x @ W_q, x @ W_k, x @ W_v"),
        ({"project": lambda x, W_q, W_k, W_v: (x, x, x)},
         {"project": lambda x, W_q, W_k, W_v: (x, x, x @ W_v)},
         {"project": lambda x, W_q, W_k, W_v: (x @ W_q, x, x @ W_v)},
         {"project": lambda x, W_q, W_k, W_v: (x, x @ W_k, x @ W_v)},
         {"project": lambda x, W_q, W_k, W_v: (x @ W_q, x, x)}),
    ),
    Misconception(
        "self_matrices_transposed",
        "The matrices are transposed before they are used; they have the shape (in, out) already.",
        ("Which size of W_q must meet the last size of x?",
         "F.linear and nn.Linear hold (out, in); here it is (in, out).",
         "x @ W_q"),
        ({"project": lambda x, W_q, W_k, W_v: (x @ W_q.T, x @ W_k.T, x @ W_v.T)},
         {"project": lambda x, W_q, W_k, W_v: tuple(torch.nn.functional.linear(x, W) for W in (W_q, W_k, W_v))},
         {"project": lambda x, W_q, W_k, W_v: (W_q @ x, W_k @ x, W_v @ x)},
         {"project": lambda x, W_q, W_k, W_v: (W_q.T @ x, W_k.T @ x, W_v.T @ x)}),
        convention="x @ W with W of shape (in, out).",
    ),
    Misconception(
        "self_input_added",
        "The input is added to the output. The block around attention will do that later, not attention.",
        ("Who adds the residual, the operator or the block?",
         "With W_v = 0 the output must be 0.",
         "Return weights @ v, without + x."),
        ({"last": lambda result, x: (result[0] + x, result[1])},),
    ),
)  # fmt: skip

SELF_ATTENTION = Exercise(
    name="self_attention",
    notebook="03",
    reference=reference.self_attention,
    outputs=(Output("output", ("query", "feature")), Output("weights", ("query", "key"), weights=True)),
    cases=CASES,
    recipe=Recipe(_assemble, RIGHT),
    misconceptions=(*PROJECTIONS, *OF_THE_DOT_PRODUCT),
    hints=(
        "You have attention of queries, keys and values already. Where do the three come from now?",
        "Project x three times, then attend. The size under the root is that of a query, not that of x.",
        "q, k, v = x @ W_q, x @ W_k, x @ W_v; scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]); "
        f"scores.masked_fill(~mask, {LOWEST}) ({WHY_LOWEST}); softmax(dim=-1); @ v",
    ),
)
