"""Cases and misconceptions of `shift_right`."""

import torch

from course_utils import decoding
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Output, Recipe


def _sentences(draw: Draw, B: int, T: int, bos_id: int, transposed: bool = False) -> dict:
    """All tokens differ, so that every wrong place shows."""
    tokens = draw.distinct(10, 10 + 3 * B * T, B * T)
    return {"targets": tokens.view(T, B).T if transposed else tokens.view(B, T), "bos_id": bos_id}


def _bos(targets, bos_id):
    return torch.full_like(targets[:, :1], bos_id)


def _shift_in_place(targets, bos_id):
    targets[:, 1:] = targets[:, :-1].clone()
    targets[:, 0] = bos_id
    return targets


def _wrong_shift(*functions):
    return tuple({"whole": function} for function in functions)


SHIFT_RIGHT = Exercise(
    name="shift_right",
    notebook="01",
    reference=decoding.shift_right,
    outputs=(Output("decoder input", ("batch", "time")),),
    hints=(
        "What does the decoder know when it predicts word t?",
        "Write targets and inputs under each other; the inputs are one step behind and begin with the start token.",
        "torch.cat([bos column, targets[:, :-1]], dim=1)",
    ),
    cases=(
        Case("several sentences", "the start token comes first, then every target but the last", 4,
             lambda d: _sentences(d, 3, 5, 7)),
        Case("another start token", "the start token is the one that was passed", 2,
             lambda d: _sentences(d, 2, 4, 3, transposed=True)),
        Case("one sentence", "the shift runs along time, also for a batch of one", 1, lambda d: _sentences(d, 1, 4, 5)),
        Case("one word", "a single target: the decoder sees the start token only", 1,
             lambda d: _sentences(d, 4, 1, 8)),
        Case("targets are kept", "the targets are still needed for the loss and stay as they are", 2,
             lambda d: _sentences(d, 4, 6, 2), repeat=True, keeps_inputs=True),
    ),
    recipe=Recipe(lambda s: s.whole, {"whole": decoding.shift_right}),
    misconceptions=(
        Misconception(
            "shift_none",
            "The decoder is fed exactly the sentence it must predict: it can copy the answer.",
            ("What may the decoder know at step t?",
             "Compare your result with the targets, column by column.",
             "Put the start token in front and drop the last target."),
            _wrong_shift(lambda t, bos: t.clone()),
        ),
        Misconception(
            "shift_roll",
            "The last word wraps round to the front, where the start token should be.",
            ("Which token stands in column 0 of your result?",
             "torch.roll moves in a circle; nothing from the end may appear at the front.",
             "Set column 0 to bos_id."),
            _wrong_shift(lambda t, bos: t.roll(1, 1), lambda t, bos: t.roll(1)),
        ),
        Misconception(
            "shift_left",
            "The shift goes the wrong way: the decoder sees the next word, which is the answer.",
            ("Who is ahead, input or target?",
             "Draw both under each other: input[1] must be target[0].",
             "targets[:, :-1] behind the start token, not targets[:, 1:]"),
            _wrong_shift(
                lambda t, bos: torch.cat([t[:, 1:], _bos(t, bos)], 1),
                lambda t, bos: t.roll(-1, 1),
                lambda t, bos: torch.cat([t[:, 1:], torch.zeros_like(t[:, :1])], 1),
                lambda t, bos: t[:, 1:],
                lambda t, bos: torch.cat([t[:, 1:], t[:, -1:]], 1),
            ),
        ),
        Misconception(
            "shift_batch_axis",
            "The shift runs along the batch: a sentence gets the words of its neighbour.",
            ("Which axis is time?",
             "Does row 1 of your result contain tokens of row 0?",
             "dim=1 in cat, and slices on the second axis: targets[:, :-1]"),
            _wrong_shift(
                lambda t, bos: torch.cat([torch.full_like(t[:1], bos), t[:-1]], 0),
                lambda t, bos: t.roll(1, 0),
            ),
        ),
        Misconception(
            "shift_overwrites_first",
            "The first target is replaced by the start token, but nothing is shifted.",
            ("Where did the first target go?",
             "The decoder input at position 1 must be target 0.",
             "targets[:, :-1] behind the start token, not targets[:, 1:]"),
            _wrong_shift(lambda t, bos: torch.cat([_bos(t, bos), t[:, 1:]], 1)),
        ),
        Misconception(
            "shift_too_long",
            "The start token is put in front, but the last target is not dropped: the result is one too long.",
            ("How many words does the decoder read while it predicts T words?",
             "Print the shapes of targets and result.",
             "targets[:, :-1]"),
            _wrong_shift(lambda t, bos: torch.cat([_bos(t, bos), t], 1)),
        ),
        Misconception(
            "shift_bos_fixed",
            "The start token is a fixed number; the argument bos_id is not used.",
            ("Is there an argument that you did not use?",
             "Call it with two different bos_id.",
             "torch.full_like(targets[:, :1], bos_id)"),
            _wrong_shift(*(
                lambda t, bos, fixed=fixed: torch.cat([_bos(t, fixed), t[:, :-1]], 1) for fixed in (0, 1, 2)
            )),
        ),
        Misconception(
            "shift_in_place",
            "The targets themselves are overwritten, and the loss will need them.",
            ("What do the targets look like after the call?",
             "Assigning to a slice writes into the caller's tensor.",
             "Make a new tensor first: torch.full_like, torch.cat, or clone()"),
            _wrong_shift(_shift_in_place),
            symptom=lambda got, want: "targets" in got.changed,
        ),
    ),
)  # fmt: skip
