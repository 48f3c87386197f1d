"""Cases of `TiedLM`: with the matrix copied in, and by properties where that is not possible."""

import math

import torch

from course_utils import transformer as reference
from course_utils.checks.compare import close
from course_utils.checks.model import Case, Draw, Exercise, Output, Recipe
from course_utils.checks.modules import construction
from course_utils.checks.tied_mistakes import MISCONCEPTIONS, RIGHT, assemble
from course_utils.checks.values import Call, Construction, Inside, Outcome


def _made(vocab: int, d_model: int):
    return lambda draw: construction("TiedLM", draw, vocab=vocab, d_model=d_model)


def _bare(vocab: int, d_model: int):
    return lambda draw: Construction("TiedLM", {"vocab": vocab, "d_model": d_model})


def _idx(vocab: int, *shape: int):
    return lambda draw: {"idx": draw.tokens(0, vocab, *shape)}


def _zero_and_repeats(draw: Draw) -> dict:
    idx = draw.tokens(1, 6, 3, 4)
    idx[:, 1], idx[0] = 0, 2
    return {"idx": idx}


def _trained(inside: Inside) -> int:
    return sum(math.prod(shape) for name, shape in inside.parameters.items() if name not in inside.frozen)


def _number_of_weights(call: Call, got: Outcome, want: Outcome) -> str:
    mine, right = _trained(got.inside), _trained(want.inside)
    if mine == right:
        return ""
    sizes = call.construction.arguments
    return (
        f"Your module trains {mine} numbers; with vocab={sizes['vocab']} and d_model={sizes['d_model']} one matrix has "
        f"{right}, and nothing else is trained."
    )


def _gram(call: Call, got: Outcome, want: Outcome) -> str:
    """With one matrix, logit j of symbol i is the product of rows i and j, and so is logit i of symbol j."""
    logits = got.value[0]
    if not bool(close(logits, logits.T).all()):
        return "The logit of symbol j after symbol i is not that of i after j, as it is with one matrix for both."
    if not bool((logits.diagonal() > 0).all()):
        return "The logit of a symbol after itself must be positive: it is the product of a row with itself."
    return ""


def _by_itself(call: Call, got: Outcome, want: Outcome) -> str:
    moved, same = got.more[0][:, _ORDER.argsort()], got.value
    if bool(close(moved, same).all()) and not bool(close(same[:, 0], same[:, 1]).all()):
        return ""
    return "The logits of a symbol depend on its place or its neighbours, or are the same for all symbols."


_ORDER = torch.tensor([2, 0, 3, 1])


def _repeats(call: Call, got: Outcome, want: Outcome) -> str:
    same = got.second is None or (got.second.error is None and bool(close(got.second.value, got.value).all()))
    return "" if same else "Two calls with the same input give different results."


CASES = (
    Case("three sentences", "every place gets one logit for each symbol: the product of its vector with every row", 3,
         _idx(11, 3, 4), make=_made(11, 6)),
    Case("more features than symbols", "d_model may be larger than vocab", 1, _idx(5, 2, 7), make=_made(5, 9)),
    Case("a single symbol", "B = T = 1", 1, _idx(8, 1, 1), make=_made(8, 3)),
    Case("what is trained", "one matrix, and nothing else", 2, _idx(7, 2, 5), make=_made(7, 4),
         compare=_number_of_weights),
    Case("gradients", "the shared matrix learns from both of its uses", 2, _idx(9, 2, 3), make=_made(9, 4),
         gradients_of=("emb.weight",)),
    Case("symbol 0, and symbols that come again", "symbol 0 is one like the others; nothing is written to; no "
         "randomness", 1, _zero_and_repeats, make=_made(6, 5), gradients_of=("emb.weight",), repeat=True,
         keeps_inputs=True),
)  # fmt: skip

PROPERTIES = (
    Case("what is trained", "one matrix, and nothing else", 3, _idx(7, 2, 5), make=_bare(7, 4),
         compare=_number_of_weights),
    Case("every symbol after every symbol", "the same matrix looks symbols up and scores them", 4,
         lambda d: {"idx": torch.arange(8)[None]}, make=_bare(8, 5), compare=_gram),
    Case("symbols change places", "the logits of a symbol depend on nothing else", 2,
         lambda d: {"idx": d.distinct(0, 9, 4).expand(2, 4).clone()}, make=_bare(9, 3),
         more=lambda a: ({"idx": a["idx"][:, _ORDER]},), compare=_by_itself),
    Case("gradients, and tokens are kept", "gradients reach the matrix; nothing is written to; no randomness", 1,
         _idx(6, 3, 4), make=_bare(6, 5), gradients_of=("emb.weight",), repeat=True, keeps_inputs=True,
         compare=_repeats),
)  # fmt: skip


TIED_LM = Exercise(
    name="TiedLM",
    notebook="06",
    reference=reference.TiedLM,
    outputs=(Output("the logits", ("time", "vocabulary")),),
    cases=CASES,
    properties=PROPERTIES,
    recipe=Recipe(assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "A row for each symbol: once it is looked up, once it is compared with. Must these be two matrices?",
        "nn.Embedding and nn.Linear(d_model, vocab, bias=False) keep matrices of the same shape: let them be one.",
        "self.head.weight = self.emb.weight in __init__; return self.head(self.emb(idx))",
    ),
)
