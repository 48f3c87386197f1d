"""What the weights of a ViTEmbedding tell by themselves, where the numbers of an answer cannot be reproduced."""

import math

import torch
from torch import Tensor

from course_utils.checks.shared import calls_differ
from course_utils.checks.values import Outcome
from course_utils.checks.vit_embedding_properties import trained


def tokens_of(outcome: Outcome) -> int | None:
    """How many tokens came back."""
    value = outcome.value
    return value.shape[1] if isinstance(value, Tensor) and value.dim() == 3 else None


def has_n_rows(got: Outcome, want: Outcome) -> bool:
    """The table of positions has a row for each patch, and none for the class token."""
    return _misfit(got, "pos_embed")[-2:-1] == (_table_of(want)[0] - 1,)


def has_n_tokens(got: Outcome, want: Outcome) -> bool:
    """One token for each patch came back, and none for the class."""
    return tokens_of(got) is not None and tokens_of(got) == tokens_of(want) - 1


def adds_n_rows(got: Outcome, want: Outcome) -> bool:
    """Its table has a row for each patch, and 1 + N tokens come out all the same."""
    return has_n_rows(got, want) and tokens_of(got) == tokens_of(want)


def starts_alike(got: Outcome) -> bool:
    """Whether token 0 is the same for all images of a batch; one image cannot tell."""
    first = got.value[:, 0]
    return len(first) > 1 and torch.equal(first, first[:1].expand_as(first))


def _table_of(want: Outcome) -> tuple[int, int]:
    """The sizes that the table of positions should have: 1 + N and d_model."""
    return want.inside.parameters["pos_embed"][1:]


def _misfit(got: Outcome, name: str) -> tuple[int, ...]:
    return () if got.inside is None else got.inside.misfits.get(name, ())


def _untrained(got: Outcome, want: Outcome) -> int:
    """How many numbers too few are trained."""
    return 0 if got.inside is None else trained(want.inside) - trained(got.inside)


def _missing(got: Outcome, name: str) -> bool:
    return got.inside is not None and name in got.inside.missing


def is_for_a_batch(got: Outcome, want: Outcome) -> bool:
    """A class token or a table with a first axis longer than 1."""
    rows, d = _table_of(want)
    shapes = () if got.inside is None else got.inside.parameters.values()
    return any(len(s) == 3 and s[0] > 1 and s[1] in (1, rows) and s[2] == d for s in shapes)


def has_one_row(got: Outcome, want: Outcome) -> bool:
    """The table has a single row."""
    shape = _misfit(got, "pos_embed")
    return bool(shape) and shape[-2:-1] in ((), (1,))


def thinks_of_squares(got: Outcome, want: Outcome) -> bool:
    """A pair of sizes makes an error, or the table has a square number of rows for patches."""
    if got.error is not None and got.error.stage == "make" and got.error.kind == "TypeError":
        return "'tuple'" in got.error.message
    rows, _ = _table_of(want)
    found = _misfit(got, "pos_embed")[-2:-1]
    return found > (1,) and found[0] not in (rows - 1, rows) and math.isqrt(found[0] - 1) ** 2 == found[0] - 1


def needs_two_sizes(got: Outcome, want: Outcome) -> bool:
    """A single number for the size makes an error."""
    error = got.error
    return error is not None and error.stage == "make" and error.kind == "TypeError" and (
        "non-iterable int" in error.message or "'int' object is not" in error.message
    )  # fmt: skip


def projects_per_channel(got: Outcome, want: Outcome) -> bool:
    """A projection of fewer numbers than a patch has, and yet it works."""
    shape, right = _misfit(got, "proj.weight"), want.inside.parameters["proj.weight"]
    return got.error is None and len(shape) == 2 and shape[0] == right[0] and 0 < shape[1] < right[1]


def has_another_projection(got: Outcome, want: Outcome) -> bool:
    """A projection of other sizes."""
    return bool(_misfit(got, "proj.weight")) and not projects_per_channel(got, want)


def draws_class_token(got: Outcome, want: Outcome) -> bool:
    """Only token 0 differs between two calls."""
    return calls_differ(got) and got.value.dim() == 3 and torch.equal(got.value[:, 1:], got.second.value[:, 1:])


def holds_no_class_token(got: Outcome, want: Outcome) -> bool:
    """There is a class token, but not among what is trained."""
    has_one = tokens_of(got) == tokens_of(want) is not None
    untrained = _untrained(got, want) == _table_of(want)[1]
    return has_one and _missing(got, "cls_token") and untrained and not draws_class_token(got, want)


def lost_class_token(got: Outcome, want: Outcome) -> bool:
    """The class token does not exist, or nothing reaches it."""
    return has_n_tokens(got, want) and (_missing(got, "cls_token") or "cls_token" in got.idle)


def _differs_between_places(got: Outcome) -> bool:
    """Images of zeros, the further call of the property about what is trained: patches differ by position alone."""
    tokens = got.more[0]
    if not isinstance(tokens, Tensor) or tokens.dim() != 3:
        return False
    return bool((tokens[:, 1:] != tokens[:, 1:2]).any())


def _holds_no_table(got: Outcome, want: Outcome) -> bool:
    return _missing(got, "pos_embed") and bool(got.more) and _untrained(got, want) == math.prod(_table_of(want))


def does_not_train_table(got: Outcome, want: Outcome) -> bool:
    """Places differ, by numbers that are not trained."""
    if _misfit(got, "pos_embed") and "pos_embed" in got.inside.buffers:
        return True
    return _holds_no_table(got, want) and _differs_between_places(got)


def has_no_places(got: Outcome, want: Outcome) -> bool:
    """No table is trained, and places do not differ."""
    return _holds_no_table(got, want) and not _differs_between_places(got)
