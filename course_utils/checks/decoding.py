"""Cases and misconceptions of `greedy_decode`."""

import torch

from course_utils import decoding as reference
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Output, Recipe
from course_utils.checks.shared import calls_differ
from course_utils.checks.values import Double


def _memory(draw: Draw, B: int, T0: int, n: int, block_size: int, vocab: int = 23) -> dict:
    """A model whose next word depends on every word so far."""
    model = Double("language_model", {"vocab": vocab, "seed": draw.seed(), "block_size": block_size})
    return {"model": model, "idx": draw.tokens(1, vocab, B, T0), "n": n}


def _chains(draw: Draw, lengths: list[int], n: int, eos: int, pass_eos: bool = True) -> dict:
    """Row i comes to its end after lengths[i] tokens. After the end, a model goes on with other words."""
    names = [t for t in draw.distinct(1, 40, 39).tolist() if t != eos]
    follow = [names[-1]] * 40
    first = []
    for length in lengths:
        chain = [names.pop(0) for _ in range(length)]
        first.append([names.pop(0), chain[0]])
        for here, there in zip(chain, [*chain[1:], eos], strict=True):
            follow[here] = there
    model = Double("chain", {"follow": follow, "seed": draw.seed(), "block_size": 30})
    arguments = {"model": model, "idx": torch.tensor(first), "n": n}
    return arguments | {"eos_id": eos} if pass_eos else arguments


CASES = (
    Case("a model that remembers every word", "each new word depends on the whole sequence so far", 2,
         lambda d: _memory(d, B=3, T0=2, n=5, block_size=30)),
    Case("longer than the model can read", "the newest block_size tokens are fed, never more", 2,
         lambda d: _memory(d, B=2, T0=3, n=7, block_size=4)),
    Case("a prompt longer than the model can read", "also the prompt is cut to its newest tokens", 1,
         lambda d: _memory(d, B=2, T0=6, n=2, block_size=3)),
    Case("rows that end at different steps", "finished rows repeat the end token; decoding stops when all are done", 2,
         lambda d: _chains(d, [2, 4, 1], n=9, eos=9)),
    Case("rows that end together", "decoding stops at once when all rows end in the same step", 1,
         lambda d: _chains(d, [2, 2], n=6, eos=3)),
    Case("end token 0, and a row that does not end", "n tokens at most; 0 can be the end token", 1,
         lambda d: _chains(d, [1, 8], n=4, eos=0)),
    Case("one row, no end token given", "without eos_id all n tokens are appended; the prompt is left alone", 1,
         lambda d: _chains(d, [2], n=5, eos=6, pass_eos=False), repeat=True, keeps_inputs=True),
)  # fmt: skip


def _assemble(s):
    def run(model, idx, n, eos_id=None):
        prompt = idx
        done = torch.zeros(idx.shape[0], dtype=torch.bool)
        for _ in range(s.rounds(n)):
            if s.has_eos(eos_id) and s.stop(done):
                break
            token = s.choose(model(s.context(idx, model.block_size)))
            if s.has_eos(eos_id):
                token = s.freeze(token, done, eos_id)
                done = s.ended(done, (token == eos_id).any(1))
            idx = torch.cat([idx, token], dim=1)
        return s.finish(idx, prompt)

    return run


def _column(token):
    return token.unsqueeze(1)


def _same_for_all(pick):
    return lambda logits: torch.full((logits.shape[0], 1), int(pick(logits)))


def _prompt_overwritten(idx, prompt):
    prompt[:, -1] = idx[:, -1]
    return idx


RIGHT = {
    "rounds": lambda n: n,
    "has_eos": lambda eos_id: eos_id is not None,
    "stop": lambda done: bool(done.all()),
    "context": lambda idx, block_size: idx[:, -block_size:],
    "choose": lambda logits: _column(logits[:, -1].argmax(-1)),
    "freeze": lambda token, done, eos_id: token.masked_fill(done.unsqueeze(1), eos_id),
    "ended": lambda done, now: done | now,
    "finish": lambda idx, prompt: idx,
}


MISCONCEPTIONS = (
    Misconception(
        "gen_last_token_only",
        "Only the newest token is fed to the model, so it forgets the rest.",
        ("What does the model know when it chooses the next word?",
         "Print the shape of what you feed: it should grow.",
         "model(idx[:, -model.block_size:])"),
        ({"context": lambda idx, block_size: idx[:, -1:]},),
    ),
    Misconception(
        "gen_crop_front",
        "When the text is too long, its oldest part is kept instead of the newest.",
        ("Which end of the text matters for the next word?",
         "Generate past block_size: the same word comes again and again.",
         "idx[:, -model.block_size:], with the minus"),
        ({"context": lambda idx, block_size: idx[:, :block_size]},),
    ),
    Misconception(
        "gen_no_crop",
        "The text is never cut to block_size.",
        ("How much does the model accept at most?",
         "Generate more tokens than model.block_size.",
         "model(idx[:, -model.block_size:])"),
        ({"context": lambda idx, block_size: idx},),
    ),
    Misconception(
        "gen_argmax_batch",
        "The largest score is looked for over the batch instead of over the vocabulary.",
        ("Over which axis do words compete?",
         "Print the shape of what argmax returns: one word for each row.",
         "logits[:, -1].argmax(dim=-1)"),
        ({"choose": lambda logits: _column(logits[:, -1].argmax(0))},
         {"choose": lambda logits: logits[:, -1].argmax(0, keepdim=True)},
         {"choose": lambda logits: _column(logits[:, -1].argmax(0)[: logits.shape[0]])},
         {"choose": lambda logits: logits.argmax(0)[:, -1:]},
         {"choose": lambda logits: _column(logits.argmax(0)[-1])},
         {"choose": lambda logits: logits.argmax(0)[-1:]}),
    ),
    Misconception(
        "gen_argmax_flat",
        "argmax runs over the flattened scores (or .item() is used): that is right for a batch of one only.",
        ("How many words does your argmax choose for two rows?",
         "argmax without an axis looks at all numbers at once.",
         "logits[:, -1].argmax(dim=-1)"),
        ({"choose": _same_for_all(lambda logits: logits[:, -1].argmax())},
         {"choose": lambda logits: logits[:, -1].argmax().view(1, 1)},
         {"choose": lambda logits: _column(logits[:, -1].argmax())},
         {"choose": lambda logits: _column(logits[:, -1].argmax().unsqueeze(0))},
         {"choose": lambda logits: logits[:, -1].argmax().item()},
         {"choose": lambda logits: _column(torch.tensor(logits[:, -1].argmax(-1).item()))},
         {"choose": lambda logits: torch.tensor([[logits[:, -1].argmax(-1).item()]])},
         {"choose": lambda logits: _column(logits.argmax().reshape(1))},
         {"choose": _same_for_all(lambda logits: logits.argmax())},
         {"choose": _same_for_all(lambda logits: logits[:, -1].argmax() % logits.shape[-1])},
         {"choose": _same_for_all(lambda logits: logits[0, -1].argmax())}),
    ),
    Misconception(
        "gen_stops_on_any_eos",
        "Decoding stops for the whole batch as soon as one row has ended.",
        ("When is the batch finished?",
         "Try two rows that end at different steps.",
         "if finished.all(): break"),
        ({"stop": lambda done: bool(done.any())},),
    ),
    Misconception(
        "gen_returns_new_only",
        "Only the new tokens are returned.",
        ("What is to be returned?",
         "Compare the length of your result with T0 + n.",
         "Return idx, to which the new tokens were appended."),
        ({"finish": lambda idx, prompt: idx[:, prompt.shape[1]:]},),
        convention="the result is the prompt followed by the new tokens.",
    ),
    Misconception(
        "gen_one_too_many",
        "One token too many is generated.",
        ("How often does your loop run?", "Call it with n = 1.", "for _ in range(n)"),
        ({"rounds": lambda n: n + 1},),
    ),
    Misconception(
        "gen_one_too_few",
        "One token too few is generated.",
        ("How often does your loop run?", "Call it with n = 1.", "for _ in range(n)"),
        ({"rounds": lambda n: n - 1},),
    ),
    Misconception(
        "gen_argmax_time",
        "The largest score is looked for over time: the result is a position, not a word.",
        ("Which axis is the vocabulary?",
         "Can your function ever say a word with a number above the length of the text?",
         "logits[:, -1] first, then argmax(dim=-1)"),
        ({"choose": lambda logits: logits.argmax(1)[:, -1:]},
         {"choose": lambda logits: logits.argmax(1)},
         {"choose": lambda logits: logits.argmax(1)[:, :1]},
         {"choose": lambda logits: logits[:, :, -1].argmax(-1, keepdim=True)},
         {"choose": lambda logits: logits.max(-1).values.argmax(1, keepdim=True)}),
    ),
    Misconception(
        "gen_first_position",
        "The scores of the first position are used instead of the last.",
        ("Which position predicts the next word?", "The last position has read everything.", "logits[:, -1]"),
        ({"choose": lambda logits: logits[:, 0].argmax(-1, keepdim=True)},),
    ),
    Misconception(
        "gen_not_frozen",
        "A row that has ended goes on with other words until the others are done.",
        ("What should a finished row append?",
         "Look at the tokens behind the first end token.",
         "token = torch.where(finished, eos_id, token)"),
        ({"freeze": lambda token, done, eos_id: token},),
    ),
    Misconception(
        "gen_stops_only_together",
        "A row that has ended goes on talking; decoding stops only if all rows say the end token in the same step.",
        ("What do you know about a row that ended three steps ago?",
         "Try two rows that end at different steps, and look behind the first end token.",
         "finished = finished | (token == eos_id), and token = torch.where(finished, eos_id, token) in the next step"),
        ({"freeze": lambda token, done, eos_id: token, "ended": lambda done, now: now},),
    ),
    Misconception(
        "gen_never_stops",
        "Decoding runs to n tokens although all rows have ended.",
        ("When is there nothing left to say?", "Compare the length of your result with the longest row.",
         "if finished.all(): break"),
        ({"stop": lambda done: False},),
    ),
    Misconception(
        "gen_ignores_eos",
        "The end token has no effect: rows neither stop nor repeat it.",
        ("Is there an argument that you did not use?", "Give a model that ends early, and eos_id.",
         "Keep one flag per row: finished = finished | (token == eos_id)"),
        ({"has_eos": lambda eos_id: False},),
    ),
    Misconception(
        "gen_eos_zero",
        "`if eos_id` treats the end token 0 as no end token.",
        ("What is `bool(0)`?", "Call it with eos_id=0.", "if eos_id is not None"),
        ({"has_eos": bool},),
    ),
    Misconception(
        "gen_frozen_with_zero",
        "A row that has ended goes on with zeros instead of the end token.",
        ("What should a finished row append?", "Look at the tokens behind the first end token.",
         "token = torch.where(finished, eos_id, token)"),
        ({"freeze": lambda token, done, eos_id: token.masked_fill(done.unsqueeze(1), 0)},),
    ),
    Misconception(
        "gen_prompt_overwritten",
        "The caller's prompt is written to.",
        ("What does the prompt look like after the call?", "Look for assignments to a slice of idx.",
         "torch.cat makes a new tensor"),
        ({"finish": _prompt_overwritten},),
        symptom=lambda got, want: "idx" in got.changed,
    ),
    Misconception(
        "gen_samples",
        "Words are drawn at random; greedy decoding takes the most likely one.",
        ("Do two calls agree?", "Look for multinomial or random numbers.", "argmax(dim=-1)"),
        ({"choose": lambda logits: torch.multinomial(logits[:, -1].softmax(-1), 1)},),
        symptom=lambda got, want: calls_differ(got),
    ),
    Misconception(
        "gen_least_likely",
        "The least likely word is taken.",
        ("Largest or smallest?", "Look at argmin.", "argmax(dim=-1)"),
        ({"choose": lambda logits: logits[:, -1].argmin(-1, keepdim=True)},),
    ),
)  # fmt: skip


GREEDY_DECODE = Exercise(
    name="greedy_decode",
    notebook="01",
    reference=reference.greedy_decode,
    outputs=(Output("tokens", ("batch", "time")),),
    cases=CASES,
    recipe=Recipe(_assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "One word at a time: read what is there, choose, append, read again.",
        "In each round: cut to block_size, take the logits of the last position, argmax over the vocabulary, cat.",
        "token = model(idx[:, -model.block_size:])[:, -1].argmax(-1), then torch.cat([idx, token.unsqueeze(1)], dim=1)",
    ),
)
