"""Properties of `MultiHeadAttention` that hold for any weights, for answers into which none can be copied."""

import math

import torch

from course_utils.checks.model import Case
from course_utils.checks.multihead_inputs import bare, causal, made, one_sample_each
from course_utils.checks.values import Call, Outcome
from course_utils.checks.words import ORDER, changed_word, for_each_word, no_future, permuted, reach, repeats, same


def _number_of_weights(call: Call, got: Outcome, want: Outcome) -> str:
    mine, right = (sum(map(math.prod, o.inside.parameters.values())) for o in (got, want))
    if mine == right:
        return ""
    return (
        f"Your module has {mine} numbers to train. Four layers W_q, W_k, W_v and W_o, each d_model by d_model with a "
        f"bias, have {right} for d_model={call.construction.arguments['d_model']}."
    )


def _no_hidden(call: Call, got: Outcome, want: Outcome) -> str:
    return "" if same(got.more[0], got.value) else "Words that the mask hides in a sample still change its output."


def _hidden_changed(arguments: dict) -> tuple[dict, ...]:
    hidden = (~arguments["mask"]).all(1).unsqueeze(-1)
    return (arguments | {"x_kv": torch.where(hidden, arguments["x_kv"] * 20 + 7, arguments["x_kv"])},)


def _samples(call: Call, got: Outcome, want: Outcome) -> str:
    keys, query, both = got.more
    if same(keys[1], got.value[1]):
        return "Changing x_kv does not change the output."
    if same(query[1], got.value[1]):
        return "Changing x_q does not change the output."
    return "" if same(both[0], got.value[0]) else "Changing one sample changes the output of another."


PROPERTIES = (
    Case("the number of weights", "four layers from d_model to d_model, with biases", 1,
         lambda d: {"x_q": d.normal(2, 5, 8)}, make=made(8, 4), compare=_number_of_weights),
    Case("words change places", "the outputs change places with the words", 2, lambda d: {"x_q": d.normal(2, 5, 8)},
         make=bare(8, 4), more=lambda a: ({"x_q": a["x_q"][:, ORDER]},), compare=permuted),
    Case("every word reaches every word", "without a mask nothing is hidden", 1, lambda d: {"x_q": d.normal(2, 4, 8)},
         make=bare(8, 4), more=for_each_word("x_q", 0), compare=reach),
    Case("a causal mask (Tq, Tk)", "no head sees a later word", 2,
         lambda d: {"x_q": d.normal(2, 5, 6), "x_kv": None, "mask": causal(5)}, make=bare(6, 2),
         more=for_each_word("x_q", 1), compare=no_future),
    Case("a mask for each sample (B, Tq, Tk)", "the mask of a sample is used in all of its heads", 1,
         one_sample_each, make=bare(12, 3), more=_hidden_changed, compare=_no_hidden),
    Case("cross-attention", "x_q asks, x_kv answers, samples stay apart", 1,
         lambda d: {"x_q": d.normal(2, 3, 10), "x_kv": d.normal(2, 6, 10)}, make=bare(10, 2),
         more=lambda a: (changed_word(a, "x_kv", 0), changed_word(a, "x_q", slice(None)),
                         changed_word(changed_word(a, "x_kv", 1, sample=1), "x_q", 0, sample=1)),
         compare=_samples),
    Case("gradients, and arguments are kept", "gradients reach all weights; nothing is written to; no randomness", 1,
         lambda d: {"x_q": d.normal(2, 3, 6)}, make=bare(6, 3), gradients_of=("x_q",), repeat=True,
         keeps_inputs=True, compare=repeats),
    Case("d_model = 10 with 4 heads", "heads share the features evenly: where that is impossible, an error is raised",
         1, lambda d: {"x_q": d.normal(2, 3, 10)}, make=bare(10, 4), must_raise=True),
)  # fmt: skip
