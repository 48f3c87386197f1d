"""Cases and misconceptions of `TokenEmbedding`."""

import math

import torch

from course_utils import positions as reference
from course_utils.checks.compare import close
from course_utils.checks.embedding_mistakes import MISCONCEPTIONS, RIGHT, assemble, table_is_plain
from course_utils.checks.model import Case, Draw, Exercise, Output, Recipe
from course_utils.checks.modules import construction
from course_utils.checks.values import Construction


def _made(vocab: int, d_model: int, **max_len: int):
    return lambda draw: construction("TokenEmbedding", draw, vocab=vocab, d_model=d_model, **max_len)


def _bare(vocab: int, d_model: int, max_len: int):
    return lambda draw: Construction("TokenEmbedding", {"vocab": vocab, "d_model": d_model, "max_len": max_len})


def _idx(low: int, vocab: int, *shape: int):
    return lambda draw: {"idx": draw.tokens(low, vocab, *shape)}


def _trained(inside) -> int:
    return sum(math.prod(shape) for name, shape in inside.parameters.items() if name not in inside.frozen)


def _number_of_weights(call, got, want) -> str:
    mine, right = _trained(got.inside), _trained(want.inside)
    if mine == right:
        return ""
    sizes = call.construction.arguments
    return (
        f"Your module trains {mine} numbers; with vocab={sizes['vocab']} and d_model={sizes['d_model']} the embedding "
        f"has {sizes['vocab'] * sizes['d_model']}, and nothing else is trained."
    )


def _where_it_is_kept(call, got, want) -> str:
    """A table in an ordinary attribute; one that is made anew in each call has no place to be told of."""
    mine, other = (table_is_plain(o.inside) for o in (got, want))
    if mine == other:
        return ""
    names = " and ".join(f"`{name}`" for name in got.inside.plain)
    return (
        f"The table stands in an ordinary attribute ({names}): model.to(device) leaves it behind on the CPU, and "
        "state_dict() does not know it."
    )


def _no_buffer(call, got, want) -> str:
    return "" if got.inside.buffers else "Your module has no buffer."


def _same_steps(call, got, want) -> str:
    """From place to place a word's vector changes as the table does, whatever the embedding holds."""
    mine, right = (o.value - o.value[:, :1] for o in (got, want))
    if bool(close(mine, right).all()):
        return ""
    return "The same word at two places does not differ by the difference of their rows in the table of sinusoids."


def _same_word(draw: Draw) -> dict:
    return {"idx": draw.tokens(0, 9, 3, 1).expand(3, 7).clone()}


CASES = (
    Case("sentences shorter than max_len", "scaled word vectors plus the first rows of the table", 2,
         _idx(0, 11, 3, 4), make=_made(11, 6, max_len=9)),
    Case("an odd d_model", "any d_model of at least 1 works", 1, _idx(0, 5, 2, 6), make=_made(5, 7, max_len=8)),
    Case("as long as max_len", "the table has max_len rows", 1, _idx(0, 4, 2, 80), make=_made(4, 6, max_len=80)),
    Case("max_len left out", "max_len is 64 if nothing else is said", 1, _idx(0, 6, 1, 64), make=_made(6, 4)),
    Case("a single word", "T = 1: the first row of the table", 1, _idx(0, 8, 5, 1), make=_made(8, 6, max_len=3)),
    Case("what is trained", "the word vectors are trained, the positions are not", 2, _idx(0, 7, 2, 5),
         make=_made(7, 4, max_len=6), compare=_number_of_weights),
    Case("gradients, and tokens are kept", "gradients reach the word vectors; nothing is written to; no randomness", 1,
         _idx(1, 9, 4, 3), make=_made(9, 4, max_len=5), gradients_of=("emb.weight",), repeat=True, keeps_inputs=True),
    Case("where the table is kept", "the table is a buffer, which moves with the model", 1, _idx(0, 7, 2, 5),
         make=_made(7, 4, max_len=6), compare=_where_it_is_kept),
    Case("a buffer", "the table is a buffer", 0, _idx(0, 7, 2, 5), make=_made(7, 4, max_len=6), compare=_no_buffer,
         note="Passed. The table is no buffer: model.to(device) would leave it behind on the CPU, where "
              'self.register_buffer("positions", table) takes it along.'),
)  # fmt: skip

PROPERTIES = (
    Case("what is trained", "the word vectors are trained, the positions are not", 3, _idx(0, 7, 2, 5),
         make=_bare(7, 4, 6), compare=_number_of_weights),
    Case("the same word at every place", "the table of sinusoids is added", 3, _same_word, make=_bare(9, 6, 8),
         compare=_same_steps),
    Case("an odd d_model, as long as max_len", "any d_model works; the table has max_len rows", 2,
         lambda d: {"idx": torch.full((1, 70), 2)}, make=_bare(5, 7, 70), compare=_same_steps),
    Case("where the table is kept", "the table is a buffer, which moves with the model", 1, _idx(0, 7, 2, 5),
         make=_bare(7, 4, 6), compare=_where_it_is_kept),
    Case("gradients, and tokens are kept", "gradients reach the word vectors; nothing is written to; no randomness", 1,
         _idx(1, 9, 4, 3), make=_bare(9, 4, 5), gradients_of=("emb.weight",), repeat=True, keeps_inputs=True,
         compare=_number_of_weights),
)  # fmt: skip


TOKEN_EMBEDDING = Exercise(
    name="TokenEmbedding",
    notebook="03",
    reference=reference.TokenEmbedding,
    outputs=(Output("vectors", ("time", "feature")),),
    cases=CASES,
    properties=PROPERTIES,
    recipe=Recipe(assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "What is multiplied by the root: the word vector, or the sum? How many rows does a sentence of T words need?",
        "self.emb = nn.Embedding(vocab, d_model); the table goes into self.register_buffer(name, table).",
        "return self.emb(idx) * math.sqrt(self.emb.embedding_dim) + self.positions[: idx.shape[1]]",
    ),
)
