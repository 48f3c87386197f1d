"""Cases and misconceptions of `additive_attention`."""

import torch

from course_utils import attention as reference
from course_utils.checks import hiding
from course_utils.checks.hiding import fill, hide, normalise, settle
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Output, Recipe
from course_utils.checks.shared import DOUBLE_NOTE, in_double, weight_gradient_note


def _sizes(draw: Draw, B: int = 2, T: int = 4, D: int = 3, A: int = 5) -> dict:
    return {
        "query": draw.normal(B, D),
        "keys": draw.normal(B, T, D),
        "W_q": draw.normal(D, A),
        "W_k": draw.normal(D, A),
        "v": draw.normal(A),
    }


def _mask(lengths: list[int], T: int) -> torch.Tensor:
    return torch.arange(T) < torch.tensor(lengths).unsqueeze(1)


def _padded(draw: Draw, lengths: list[int], T: int, D: int = 3, A: int = 5) -> dict:
    """Hidden keys are huge."""
    arguments = _sizes(draw, len(lengths), T, D, A)
    mask = _mask(lengths, T)
    arguments["keys"] = arguments["keys"].masked_fill(~mask.unsqueeze(-1), 1e4)
    return arguments | {"mask": mask}


def _low_scores(draw: Draw) -> dict:
    """Visible scores near -60, hidden keys huge: a hidden score that is merely small takes all the weight."""
    arguments = _padded(draw, [2, 4, 3], 5, D=4, A=6)
    arguments["W_k"] = arguments["W_k"] / 10
    arguments["W_q"] = arguments["W_q"] / 10
    arguments["query"] = arguments["query"].abs() + 3
    arguments["W_q"] = arguments["W_q"].abs() + 0.1
    arguments["v"] = -10.0 - arguments["v"].abs()
    return arguments


def _very_low_scores(draw: Draw) -> dict:
    """Visible scores near -20000, hidden ones near 20000, exact in float32: tanh is 1 or -1 everywhere."""
    B, T, D, A = 2, 4, 3, 3
    mask = torch.tensor([[True, True, False, False], [False, True, True, True]])
    signs = torch.ones(B, T, A)
    signs[~mask] = -1
    signs[:, 1::2, 2] = -1
    return {
        "query": torch.zeros(B, D),
        "keys": 40 * signs,
        "W_q": draw.normal(D, A),
        "W_k": torch.eye(D),
        "v": torch.tensor([-10000.0, -10000.0, 1.0]),
        "mask": mask,
    }


def _empty_row(arguments: dict):
    return tuple((~arguments["mask"].any(1)).unsqueeze(1) for _ in range(2))


def _assemble(s):
    def run(query, keys, W_q, W_k, v, mask=None):
        from_query, from_keys = s.project(query, keys, W_q, W_k)
        hidden = s.squash(s.spread(from_query, keys.shape[1]) + from_keys)
        scores = s.last(hidden @ v)
        weights = s.settle(s.normalise(s.hide(scores, mask)), mask)
        context = (weights.unsqueeze(-1) * s.content(keys, from_keys)).sum(1)
        return s.finish(s.after(context, query), weights)

    return run


RIGHT = {
    "project": lambda query, keys, W_q, W_k: (query @ W_q, keys @ W_k),
    "spread": lambda q, T: q.unsqueeze(1),
    "squash": torch.tanh,
    "last": lambda scores: scores,
    "hide": hide,
    "normalise": normalise,
    "settle": settle,
    "content": lambda keys, from_keys: keys,
    "after": lambda context, query: context,
    "finish": lambda context, weights: (context, weights),
}


def _mixed(q, T):
    B, A = q.shape
    return q.repeat(T, 1).reshape(B, T, A)


CASES = (
    Case("no mask", "scores, weights and context follow the formula", 3, _sizes),
    Case("padding with huge numbers", "hidden keys get no weight, however large their numbers", 2,
         lambda d: _padded(d, [5, 2, 3], 5)),
    Case("low scores", "hidden keys get no weight, also when every visible score is near -60", 1, _low_scores),
    Case("very low scores", "hidden keys get no weight, also when every visible score is near -20000", 1,
         _very_low_scores),
    Case("a sentence with nothing to see", "a fully hidden row gives finite numbers", 1,
         lambda d: _padded(d, [3, 0], 4), loose=_empty_row),
    Case("gradients, and arguments are kept", "gradients flow back to query and keys; nothing is written to", 2,
         lambda d: _padded(d, [2, 3, 1], 4, D=2, A=3) | {"keys": d.normal(3, 4, 2)},
         gradients_of=("query", "keys"), repeat=True, keeps_inputs=True),
    Case("gradients of the weights", "gradients flow back to the weights", 0, _sizes,
         gradients_of=("W_q", "W_k", "v"), note=weight_gradient_note("the weights")),
    Case("double precision", "works in float64", 0, lambda d: in_double(_padded(d, [2, 4], 4)), note=DOUBLE_NOTE),
)  # fmt: skip

MISCONCEPTIONS = (
    Misconception(
        "add_no_tanh",
        "The tanh is missing. Without it the query adds the same amount to every key and cancels in the softmax.",
        ("Do your weights move when the query changes?",
         "Between the sum of the projections and the product with v something is missing.",
         "torch.tanh(query part + key part) @ v"),
        ({"squash": lambda hidden: hidden},),
    ),
    Misconception(
        "add_tanh_outside",
        "tanh is applied to the finished score instead of to the vector before it.",
        ("Can your scores be larger than 1?",
         "tanh belongs on the vector, before the product with v.",
         "torch.tanh(...) @ v, not torch.tanh(... @ v)"),
        ({"squash": lambda hidden: hidden, "last": torch.tanh},),
    ),
    Misconception(
        "add_tanh_on_parts",
        "tanh is applied to each projection by itself. What the query adds is then the same for every key and cancels.",
        ("Do your weights move when the query changes?", "Which comes first in the formula, the sum or the tanh?",
         "torch.tanh(query part + key part) @ v: one tanh around the sum"),
        ({"project": lambda query, keys, W_q, W_k: (torch.tanh(query @ W_q), torch.tanh(keys @ W_k)),
          "squash": lambda hidden: hidden},
         {"project": lambda query, keys, W_q, W_k: (torch.tanh(query @ W_q), torch.tanh(keys @ W_k))},
         {"project": lambda query, keys, W_q, W_k: (query @ W_q, torch.tanh(keys @ W_k)),
          "squash": lambda hidden: hidden}),
    ),
    Misconception(
        "add_tanh_twice",
        "The finished score goes through another tanh.",
        ("Can your scores be larger than 1?", "Count the tanh in your code.", "Only one tanh, on the vector."),
        ({"last": torch.tanh},),
    ),
    Misconception(
        "add_mask_after_softmax",
        "The weights of hidden keys are set to zero after the softmax, so the rest does not sum to one.",
        ("What do the weights of a row with padding sum to?",
         "Which comes first in your code, mask or softmax?",
         hiding.HIDE_LINE),
        hiding.AFTER_SOFTMAX,
    ),
    Misconception(
        "add_mask_renormalised",
        "Hidden keys are removed after the softmax and the rest is divided by its sum, which can be 0.",
        ("What is left when a hidden key had all the weight?",
         "Try a hidden key whose score is far above the visible ones.",
         hiding.HIDE_LINE),
        hiding.RENORMALISED,
    ),
    Misconception(
        "add_mask_zero_score",
        "Hidden scores are set to 0, but exp(0) = 1: hidden keys still get weight.",
        ("Which number makes exp(.) equal to 0?",
         "Zero is an ordinary score.",
         hiding.HIDE_LINE),
        hiding.MULTIPLIED,
    ),
    hiding.filled_with_1e_9("add_mask_fill_1e-9"),
    Misconception(
        "add_mask_inverted",
        "The mask is used upside down: only padding is attended to.",
        ("Does True mean keep or hide?",
         "Print the mask beside your weights.",
         "masked_fill(~mask, ...): hide where the mask is False"),
        hiding.INVERTED,
    ),
    Misconception(
        "add_mask_minus_ten",
        "Hidden scores get a number that is not small enough: real scores can be smaller still.",
        ("How small can a real score be?",
         "Scale v until the real scores are near -30.",
         hiding.HIDE_LINE),
        tuple({"hide": fill(-x)} for x in (10, 1, 5, 20, 30, 50, 100, 1000, 1e4, 9999))
        + tuple({"hide": hiding.add_if_hidden(-x)} for x in (10, 5, 20, 100, 1000, 1e4)),
    ),
    Misconception(
        "add_repeat_mixes_batch",
        "The repeated query is in the wrong order: a sentence is scored with another sentence's query.",
        ("Do repeat and repeat_interleave give the same order?",
         "Repeat the queries 1 and 2 three times each and print.",
         "query.unsqueeze(1): broadcasting repeats for you"),
        ({"spread": _mixed}, {"spread": lambda q, T: q.flip(0).unsqueeze(1)}),
    ),
    Misconception(
        "add_context_of_projected_keys",
        "The context is the mean of the projected keys instead of the keys themselves.",
        ("The weights say where to look; what do you look at?",
         "Print the shape of the context: its last axis is D, not A.",
         "(weights.unsqueeze(-1) * keys).sum(1)"),
        ({"content": lambda keys, from_keys: from_keys},),
    ),
    Misconception(
        "add_projections_swapped",
        "W_q is applied to the keys and W_k to the query.",
        ("Which matrix belongs to which input?", "With W_q = 0 the query must not matter.",
         "query @ W_q + keys @ W_k"),
        ({"project": lambda query, keys, W_q, W_k: (query @ W_k, keys @ W_q)},),
    ),
    Misconception(
        "add_query_residual",
        "The query is added to the context.",
        ("From what is the context made?", "With all keys zero, the context must be zero.",
         "Return the weighted sum of the keys alone."),
        ({"after": lambda context, query: context + query},),
    ),
    hiding.no_effect("add_mask_ignored"),
    hiding.added_as_01("add_mask_added_as_01"),
    Misconception(
        "add_fully_masked_nan",
        "A row with nothing to attend to becomes NaN.",
        ("What does softmax make of a row of minus infinity?",
         "Try a mask with a row of False.",
         "Afterwards: weights.masked_fill(~mask, 0.0); or fill with torch.finfo(scores.dtype).min"),
        hiding.NOT_SETTLED,
    ),
    Misconception(
        "add_softmax_over_batch",
        "The softmax runs over the batch instead of over the keys.",
        ("Over which axis do the weights of a sentence sum to one?", "Print weights.sum(-1).",
         "softmax(dim=-1)"),
        ({"normalise": lambda scores: scores.softmax(0)},
         {"normalise": lambda scores: scores.softmax(0), "settle": lambda w, m: w}),
    ),
    Misconception(
        "add_scaled",
        "The scores are divided by a square root; additive attention does not do that.",
        ("Is there a scale in the formula?", "Compare your score with tanh(...) . v.", "No division."),
        ({"squash": lambda hidden: torch.tanh(hidden) / hidden.shape[-1] ** 0.5},),
    ),
    Misconception(
        "add_no_softmax",
        "The scores are used as weights: the softmax is missing.",
        ("Do your weights sum to one?", "Print weights.sum(-1).", "softmax(dim=-1)"),
        ({"normalise": lambda scores: scores},
         {"normalise": lambda scores: scores, "hide": hiding.when_masked(lambda s, m: s * m)}),
    ),
    Misconception(
        "add_results_exchanged",
        "The two results are returned in the other order.",
        ("Which result comes first in the docstring?", "Look at your last line.", "return context, weights"),
        ({"finish": lambda context, weights: (weights, context)},),
    ),
)  # fmt: skip

ADDITIVE_ATTENTION = Exercise(
    name="additive_attention",
    notebook="02",
    reference=reference.additive_attention,
    outputs=(Output("context", ("batch", "feature")), Output("weights", ("batch", "key"), weights=True)),
    cases=CASES,
    recipe=Recipe(_assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "Each key meets the one query of its sentence: project both, add, squash, and ask v for one number.",
        "(query @ W_q) needs an axis for the keys: unsqueeze(1). Hide before the softmax; softmax over the last axis.",
        "scores = torch.tanh((query @ W_q).unsqueeze(1) + keys @ W_k) @ v; "
        f"scores.masked_fill(~mask, {hiding.LOWEST}) ({hiding.WHY_LOWEST}); softmax(dim=-1); "
        "(weights.unsqueeze(-1) * keys).sum(1)",
    ),
)
