"""Cases and misconceptions of `decode_step`."""

import torch

from course_utils import attention as reference
from course_utils.checks import hiding
from course_utils.checks.hiding import fill, hide, normalise, settle
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Output, Recipe
from course_utils.checks.shared import DOUBLE_NOTE, in_double


def _source(draw: Draw, lengths: list[int], T: int, D: int = 3, H: int = 4, V: int = 6, hidden: float = 1e4) -> dict:
    """Hidden source words are huge."""
    B = len(lengths)
    mask = torch.arange(T) < torch.tensor(lengths).unsqueeze(1)
    return {
        "y_emb": draw.normal(B, D),
        "h": draw.normal(B, H),
        "enc_out": torch.where(mask.unsqueeze(-1), draw.normal(B, T, H), hidden * draw.normal(B, T, H)),
        "enc_mask": mask,
        "p": {
            "W_x": draw.normal(D + H, H) / 2,
            "W_h": draw.normal(H, H) / 2,
            "b": draw.normal(H),
            "W_o": draw.normal(2 * H, V) / 2,
            "b_o": draw.normal(V),
        },
    }


def _low_scores(draw: Draw) -> dict:
    """Visible scores near -60."""
    arguments = _source(draw, [2, 4], 5, D=2, H=3)
    mask = arguments["enc_mask"].unsqueeze(-1)
    h = arguments["h"].abs() + 1
    visible = -60 * h.unsqueeze(1) / h.square().sum(-1).view(-1, 1, 1) + arguments["enc_out"] / 10
    return arguments | {"h": h, "enc_out": torch.where(mask, visible, arguments["enc_out"])}


def _empty_row(arguments: dict):
    return tuple((~arguments["enc_mask"].any(1)).unsqueeze(1) for _ in range(3))


def _assemble(s):
    def run(y_emb, h, enc_out, enc_mask, p):
        query = s.query(h, enc_out, enc_mask)
        scores = s.scale(torch.einsum("bh,bth->bt", query, enc_out))
        weights = s.settle(s.normalise(s.hide(scores, enc_mask)), enc_mask)
        context = torch.einsum("bt,bth->bh", weights, enc_out)
        new = s.squash(s.step_input(y_emb, context) @ p["W_x"] + s.memory(h) @ p["W_h"] + p["b"])
        logits = s.output_input(new, context, h) @ p["W_o"] + p["b_o"]
        return s.finish(s.last(logits), new, weights, h)

    return run


def _last_real(h, enc_out, enc_mask):
    return enc_out[torch.arange(enc_out.shape[0]), enc_mask.sum(1).clamp(min=1) - 1]


def _asks_after_the_step(looks_first, steps_again):
    """The weights that count come from the new state; its step had a context of the old state, or zeros."""

    def run(y_emb, h, enc_out, enc_mask, p):
        def look(query):
            scores = torch.einsum("bh,bth->bt", query, enc_out)
            weights = settle(normalise(hide(scores, enc_mask)), enc_mask)
            return weights, torch.einsum("bt,bth->bh", weights, enc_out)

        def step(context):
            return torch.tanh(torch.cat([y_emb, context], -1) @ p["W_x"] + h @ p["W_h"] + p["b"])

        new = step(look(h)[1] if looks_first else torch.zeros_like(h))
        weights, context = look(new)
        new = step(context) if steps_again else new
        return torch.cat([new, context], -1) @ p["W_o"] + p["b_o"], new, weights

    return run


RIGHT = {
    "query": lambda h, enc_out, enc_mask: h,
    "scale": lambda scores: scores,
    "hide": hide,
    "normalise": normalise,
    "settle": settle,
    "step_input": lambda y, c: torch.cat([y, c], -1),
    "memory": lambda h: h,
    "squash": torch.tanh,
    "output_input": lambda new, c, h: torch.cat([new, c], -1),
    "last": lambda logits: logits,
    "finish": lambda logits, new, weights, h: (logits, new, weights),
}

CASES = (
    Case("no padding", "scores, weights, context, next state and logits follow the formulas", 3,
         lambda d: _source(d, [5, 5], 5), through=(0, 1)),
    Case("padding with huge numbers", "padding in the source gets no weight, however large its numbers", 3,
         lambda d: _source(d, [2, 5, 3], 5, D=5, H=3)),
    Case("low scores", "padding gets no weight, also when every real score is near -60", 1, _low_scores),
    Case("one sentence, equal sizes", "the parts are concatenated in the order of the statement", 1,
         lambda d: _source(d, [3], 4, D=4, H=4)),
    Case("gradients, and arguments are kept", "gradients flow back to word, state and source; nothing is written to", 2,
         lambda d: _source(d, [2, 3, 1], 4, D=2, H=3, hidden=1.0), gradients_of=("y_emb", "h", "enc_out"),
         through=(0, 1), repeat=True, keeps_inputs=True),
    Case("a source without any word", "a fully hidden row gives finite numbers", 0,
         lambda d: _source(d, [3, 0], 4), loose=_empty_row,
         note="Passed. A source sentence that is all padding gives NaN: weights.masked_fill(~enc_mask, 0.0) after the "
              "softmax would prevent that."),
    Case("double precision", "works in float64", 0, lambda d: in_double(_source(d, [2, 4], 4)), note=DOUBLE_NOTE),
)  # fmt: skip

HIDE_LINE = hiding.HIDE_LINE.replace("mask,", "enc_mask,")

MISCONCEPTIONS = (
    hiding.no_effect("dec_no_source_mask", "padding words of the source", HIDE_LINE),
    Misconception(
        "dec_returns_old_state",
        "The step returns the state it was given, so the decoder never moves.",
        ("Which state must the next step start from?",
         "Compare the returned state with h.",
         "return logits, new_h, weights"),
        ({"finish": lambda logits, new, weights, h: (logits, h, weights)},
         {"finish": lambda logits, new, weights, h: (logits, h, weights),
          "output_input": lambda new, c, h: torch.cat([h, c], -1)}),
    ),
    Misconception(
        "dec_query_from_encoder",
        "The query is a state of the encoder, so the attention is the same at every step.",
        ("Who is asking, the encoder or the decoder?",
         "Call it with two different h: the weights must differ.",
         "scores between h and every enc_out[:, t]"),
        ({"query": lambda h, enc_out, enc_mask: enc_out[:, -1]}, {"query": _last_real},
         {"query": lambda h, enc_out, enc_mask: enc_out[:, 0]},
         {"query": lambda h, enc_out, enc_mask: enc_out.mean(1)}),
    ),
    Misconception(
        "dec_query_is_new_state",
        "The query is the new state; the attention has to look back before the step, with the state that comes in.",
        ("Which state is there before the current word is read?",
         "The context goes into the new state. Can it be made from the new state?",
         "First scores between h and enc_out, then context, then new_h from [y_emb; context] and h"),
        tuple({"whole": _asks_after_the_step(*how)} for how in (
            (False, False), (True, False), (False, True), (True, True))),
        convention="the query is the incoming state h.",
    ),
    Misconception(
        "dec_softmax_over_batch",
        "The softmax runs over the batch instead of over the source positions.",
        ("Over which axis do the weights of a sentence sum to one?",
         "Print weights.sum(dim=-1).",
         "softmax(dim=-1)"),
        ({"normalise": lambda scores: scores.softmax(0)},
         {"normalise": lambda scores: scores.softmax(0), "settle": lambda w, m: w},
         {"normalise": lambda scores: scores.softmax(0), "hide": fill(-1e9), "settle": lambda w, m: w},
         {"normalise": lambda scores: scores.softmax(0).nan_to_num(0.0)},
         {"normalise": lambda scores: scores.softmax(0), "settle": lambda w, m: w.masked_fill(~m, 0.0)}),
    ),
    Misconception(
        "dec_concat_order",
        "Context and word embedding are concatenated in the other order, so W_x meets the wrong inputs.",
        ("In which order does the statement write the two parts?",
         "The shapes agree either way; the rows of W_x do not.",
         "torch.cat([y_emb, context], dim=-1)"),
        ({"step_input": lambda y, c: torch.cat([c, y], -1)},
         {"step_input": lambda y, c: torch.cat([c, y], -1), "output_input": lambda new, c, h: torch.cat([c, new], -1)}),
        convention="[embedding; context] goes into W_x.",
    ),
    Misconception(
        "dec_output_concat_order",
        "New state and context are concatenated in the other order before W_o.",
        ("In which order does the statement write the two parts?",
         "The first H rows of W_o belong to the state.",
         "torch.cat([new_h, context], dim=-1) @ W_o"),
        ({"output_input": lambda new, c, h: torch.cat([c, new], -1)},),
        convention="[new state; context] goes into W_o.",
    ),
    Misconception(
        "dec_logits_from_old_state",
        "The logits are computed from the incoming state instead of the new one.",
        ("Which state has read the current word?", "Look at what goes into W_o.",
         "torch.cat([new_h, context], dim=-1) @ W_o + b_o"),
        ({"output_input": lambda new, c, h: torch.cat([h, c], -1)},),
    ),
    Misconception(
        "dec_no_tanh",
        "The next state has no tanh.",
        ("What keeps the state bounded?", "Compare with rnn_step.", "torch.tanh(...)"),
        ({"squash": lambda inner: inner},),
    ),
    Misconception(
        "dec_forgets_state",
        "The next state does not use the incoming one.",
        ("Where does h @ W_h enter?", "Is p['W_h'] used in your code?", "... + h @ p['W_h'] + p['b']"),
        ({"memory": torch.zeros_like},),
    ),
    Misconception(
        "dec_scaled_scores",
        "The scores are divided by a square root; this decoder uses plain dot products.",
        ("Is there a scale in the statement?", "Compare one score with h . enc_out[t].", "No division."),
        ({"query": lambda h, e, m: h / h.shape[-1] ** 0.5},),
        convention="the dot scores are unscaled here.",
    ),
    Misconception(
        "dec_mask_inverted",
        "The mask is used upside down: only padding is attended to.",
        ("Does True mean keep or hide?", "Print the mask beside your weights.", "masked_fill(~enc_mask, ...)"),
        hiding.INVERTED,
    ),
    Misconception(
        "dec_mask_after_softmax",
        "The weights of padding are set to zero after the softmax, so the rest does not sum to one.",
        ("What do the weights of a sentence with padding sum to?", "Which comes first, mask or softmax?",
         HIDE_LINE),
        hiding.AFTER_SOFTMAX,
    ),
    Misconception(
        "dec_mask_zero_score",
        "Scores of padding are set to 0, but exp(0) = 1: padding still gets weight.",
        ("Which number makes exp(.) equal to 0?", "Zero is an ordinary score.",
         HIDE_LINE),
        hiding.MULTIPLIED,
    ),
    hiding.filled_with_1e_9("dec_mask_fill_1e-9", HIDE_LINE),
    hiding.added_as_01("dec_mask_added_as_01", "padding words", HIDE_LINE),
    Misconception(
        "dec_mask_not_small_enough",
        "Scores of padding get a number that is not small enough: real scores can be smaller still.",
        ("How small can a real score be?", "Try real scores near -60.", HIDE_LINE),
        tuple({"hide": fill(-x)} for x in (10, 1, 5, 20, 30, 50)),
    ),
    Misconception(
        "dec_softmax_on_logits",
        "The logits go through a softmax: probabilities are returned instead of scores.",
        ("What did the statement ask for, logits or probabilities?", "Do your logits sum to one?",
         "Return [new h; context] @ W_o + b_o as it is."),
        ({"last": lambda logits: logits.softmax(-1)}, {"last": lambda logits: logits.log_softmax(-1)}),
    ),
    Misconception(
        "dec_results_missing",
        "Not all of the three results are returned.",
        ("How many results does the docstring name?", "Look at your last line.", "return logits, new_h, weights"),
        ({"finish": lambda logits, new, weights, h: logits}, {"finish": lambda logits, new, weights, h: (logits, new)},
         {"finish": lambda logits, new, weights, h: (logits, weights)}, {"finish": lambda logits, new, weights, h: new},
         {"finish": lambda logits, new, weights, h: (new, logits)}),
    ),
    Misconception(
        "dec_results_order",
        "The three results are returned in another order.",
        ("Which result comes first in the docstring?", "Look at your last line.", "return logits, new_h, weights"),
        ({"finish": lambda logits, new, weights, h: (new, logits, weights)},
         {"finish": lambda logits, new, weights, h: (logits, weights, new)},
         {"finish": lambda logits, new, weights, h: (weights, new, logits)},
         {"finish": lambda logits, new, weights, h: (new, weights, logits)},
         {"finish": lambda logits, new, weights, h: (weights, logits, new)}),
    ),
)  # fmt: skip

DECODE_STEP = Exercise(
    name="decode_step",
    notebook="02",
    reference=reference.decode_step,
    outputs=(
        Output("logits", ("batch", "vocabulary")),
        Output("next state", ("batch", "feature")),
        Output("weights", ("batch", "key"), weights=True),
    ),
    cases=CASES,
    recipe=Recipe(_assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "First look back (attention with the incoming state as the query), then step, then predict.",
        "context (B, H) from the weights; then [y_emb; context] into W_x, and [new h; context] into W_o.",
        "new = torch.tanh(torch.cat([y_emb, context], dim=-1) @ p['W_x'] + h @ p['W_h'] + p['b']); "
        "logits = torch.cat([new, context], dim=-1) @ p['W_o'] + p['b_o']",
    ),
)
