"""Cases of `generate`: what is random is compared by frequencies over thousands of rows, the rest exactly."""

import math

import torch
from torch import Tensor

from course_utils import decoding as reference
from course_utils.checks.model import Case, Draw, Exercise, Output, Recipe
from course_utils.checks.sampling_mistakes import MISCONCEPTIONS, RIGHT, assemble
from course_utils.checks.values import Call, Double, Outcome

# Over 2000 rows a right answer is off by 0.03, half the sum of all differences; the mistakes by 0.17 and more.
FAR = 0.1
FAR_IN_PAIRS = 0.15
ROWS = 4000
LOGITS = (2.0, 1.2, 0.5, -0.2, -1.0)


def _model(draw: Draw, block_size: int, logits: tuple[float, ...] = LOGITS) -> Double:
    """The same logits in every state, in another order; so every mistake shows equally well for every seed."""
    return Double("ranked", {"logits": list(logits), "seed": draw.seed(), "block_size": block_size})


def _many_rows(draw: Draw, n: int = 1, prompts: int = 2, **options: float) -> dict:
    """Thousands of rows, of two prompts in turn."""
    first = torch.tensor([[0, 1], [2, 3]])[:prompts]
    arguments = {"model": _model(draw, 9), "idx": first.repeat(ROWS // prompts, 1), "n": n}
    return arguments | options


def _few_rows(draw: Draw, B: int, T0: int, n: int, block_size: int, **options: float | int | None) -> dict:
    """Logits far apart, so that the likeliest word is certain at a low temperature."""
    model = _model(draw, block_size, tuple(0.6 * i for i in range(12)))
    return {"model": model, "idx": draw.tokens(0, 12, B, T0), "n": n} | options


def _frequencies(call: Call, tokens: Tensor) -> Tensor:
    """How often each continuation follows each prompt: (prompts, V^n), rows sum to one."""
    idx, V = call.arguments["idx"], len(call.arguments["model"].params["logits"])
    new = tokens[:, idx.shape[1] :]
    code = (new * V ** torch.arange(new.shape[1])).sum(1)
    _, group = idx[:, 0].unique(return_inverse=True)  # the prompts differ in their first word
    prompts, continuations = int(group.max()) + 1, V ** new.shape[1]
    counts = (group * continuations + code).bincount(minlength=prompts * continuations)
    counts = counts.view(prompts, continuations).float()
    return counts / counts.sum(1, keepdim=True)


def _tokens_problem(call: Call, got: Outcome, want: Outcome) -> str:
    """What must be right before frequencies make sense, or the difference in it from another outcome."""
    T0, V = call.arguments["idx"].shape[1], len(call.arguments["model"].params["logits"])
    if not torch.equal(got.value[:, :T0], want.value[:, :T0]):
        return "The first columns of the result are not the prompt."
    outside = ((o.value < 0) | (o.value >= V) for o in (got, want))
    if any(bool(where.any()) for where in outside):
        return f"The result contains numbers that are no words: the model knows the words 0 to {V - 1}."
    return ""


def _compare(far: float = FAR):
    def compare(call: Call, got: Outcome, want: Outcome) -> str:
        problem = _tokens_problem(call, got, want)
        if problem:
            return problem
        mine, right = _frequencies(call, got.value), _frequencies(call, want.value)
        n, seen = call.arguments["n"], int((mine[0] > 0).sum())
        if "top_k" in call.arguments and not torch.equal(mine > 0, right > 0):
            k = call.arguments["top_k"]
            return f"With top_k = {k}, {_words(seen)} drawn after the same prompt" + (
                ", but not the likeliest ones." if seen == k else "."
            )
        if float((mine - right).abs().sum(1).max()) / 2 <= far:
            return ""
        temperature = call.arguments.get("temperature", 1.0)
        if seen == 1:
            return f"Over {ROWS // len(mine)} rows with the same prompt, only one continuation was ever drawn."
        what = "words" if n == 1 else "words of two steps"
        return (
            f"Over {ROWS} rows at temperature {temperature:g}, the {what} do not appear as often as the model's "
            "logits say."
        )

    return compare


def _words(count: int) -> str:
    return "one word was" if count == 1 else f"{count} different words were"


def _another_time(call: Call, got: Outcome, want: Outcome) -> str:
    """Whether two calls draw differently, as they should."""
    problem = _tokens_problem(call, got, want)
    if not problem and _repeats(got) and not _repeats(want):
        problem = "Two calls in a row give exactly the same words: a draw should be another one every time."
    return problem


def _repeats(outcome: Outcome) -> bool:
    second = outcome.second
    return second is not None and isinstance(second.value, Tensor) and torch.equal(outcome.value, second.value)


CASES = (
    Case("thousands of draws", "each row draws for itself, as often as the model's probabilities say", 2,
         _many_rows, compare=_compare()),
    Case("temperature 0.5", "the logits are divided by the temperature: likely words become likelier", 2,
         lambda d: _many_rows(d, temperature=0.5), compare=_compare()),
    Case("top_k = 3", "the three likeliest words are drawn, and no other", 1,
         lambda d: _many_rows(d, temperature=1.0, top_k=3), compare=_compare()),
    Case("two steps", "every step draws anew, and reads what was drawn before", 1,
         lambda d: _many_rows(d, n=2, prompts=1, temperature=1.5), compare=_compare(FAR_IN_PAIRS)),
    Case("a temperature near zero", "nearly always the likeliest word", 1,
         lambda d: _few_rows(d, B=3, T0=2, n=5, block_size=20, temperature=0.01)),
    Case("top_k = 1", "only the likeliest word is left; the whole text is read", 1,
         lambda d: _few_rows(d, B=4, T0=3, n=4, block_size=20, temperature=1.0, top_k=1)),
    Case("longer than the model can read", "the newest block_size tokens are fed, never more", 1,
         lambda d: _few_rows(d, B=2, T0=6, n=5, block_size=4, temperature=0.01, top_k=1)),
    Case("again, and the prompt is kept", "another call draws other words; the prompt is not written to", 1,
         lambda d: {"model": _model(d, 30), "idx": d.tokens(0, 5, 3, 4), "n": 12}, repeat=True, keeps_inputs=True,
         compare=_another_time),
    # Tells, where the temperature has no effect, whether it is used at all: probabilities divided by it are all 0.
    Case("an infinite temperature", "all words are equally likely", 0, lambda d: _many_rows(d, temperature=math.inf),
         compare=_compare(), note="Passed. At temperature=math.inf your function gives an error, or its words are not "
         "all equally likely: logits / temperature would be 0 for all of them."),
)  # fmt: skip

GENERATE = Exercise(
    name="generate",
    notebook="04",
    reference=reference.generate,
    outputs=(Output("tokens", ("batch", "time")),),
    cases=CASES,
    recipe=Recipe(assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "It is greedy decoding with one line changed. And where does the temperature act: on logits or probabilities?",
        "torch.multinomial(probabilities, 1) draws one word for each row. For top-k, everything below the k-th "
        "largest logit must get the probability zero: you know how.",
        "logits = model(idx[:, -model.block_size:])[:, -1] / temperature; kth = logits.topk(top_k).values[:, -1:]; "
        "masked_fill(logits < kth, float('-inf')); softmax; multinomial; cat",
    ),
)
