"""The recipe of `generate`, and its misconceptions."""

import torch

from course_utils.checks.model import Misconception


def assemble(s):
    """Sampling from its steps."""

    def run(model, idx, n, temperature=1.0, top_k=None):
        prompt = idx
        for step in range(s.rounds(n)):
            s.seed(step)
            logits = s.temper(s.last(model(s.context(idx, model.block_size))), temperature)
            if top_k is not None:
                logits = s.restrict(logits, s.k(top_k))
            idx = torch.cat([idx, s.draw(s.soften(logits, temperature))], dim=1)
        return s.finish(idx, prompt)

    return run


def _below(logits, k, value=float("-inf")):
    return logits.masked_fill(logits < logits.topk(k).values[:, -1:], value)


def _strictly_above(logits, k):
    return logits.masked_fill(logits <= logits.topk(k).values[:, -1:], float("-inf"))


def _threshold_of(pick):
    """One threshold for all rows."""
    return lambda logits, k: logits.masked_fill(logits < pick(logits, k), float("-inf"))


def _one_draw(p):
    return torch.multinomial(p[0], 1).expand(len(p), 1)


def _argmax(p):
    return p.argmax(-1, keepdim=True)


def _draw(p):
    return torch.multinomial(p, 1)


def _all_at_once(replacement):
    def run(model, idx, n, temperature=1.0, top_k=None):
        logits = model(idx[:, -model.block_size :])[:, -1] / temperature
        if top_k is not None:
            logits = _below(logits, top_k)
        return torch.cat([idx, torch.multinomial(logits.softmax(-1), n, replacement=replacement)], dim=1)

    return {"whole": run}


def _prompt_overwritten(idx, prompt):
    prompt[:, -1] = idx[:, -1]
    return idx


RIGHT = {
    "rounds": lambda n: n,
    "seed": lambda step: None,
    "context": lambda idx, block_size: idx[:, -block_size:],
    "last": lambda logits: logits[:, -1],
    "temper": lambda logits, temperature: logits / temperature,
    "k": lambda top_k: top_k,
    "restrict": _below,
    "soften": lambda logits, temperature: logits.softmax(-1),
    "draw": _draw,
    "finish": lambda idx, prompt: idx,
}

NOT_TEMPERED = {"temper": lambda logits, temperature: logits}

MISCONCEPTIONS = (
    Misconception(
        "sample_temp_on_probs",
        "The probabilities are divided by the temperature instead of the logits; after normalising, nothing is left "
        "of that.",
        ("What does dividing all probabilities by the same number change?",
         "Compare the words at temperature 0.1 and at 1.",
         "(logits / temperature).softmax(-1)"),
        (NOT_TEMPERED | {"soften": lambda logits, temperature: logits.softmax(-1) / temperature},
         NOT_TEMPERED | {"soften": lambda logits, temperature: (logits.softmax(-1) / temperature).softmax(-1)}),
    ),
    Misconception(
        "sample_temp_ignored",
        "The temperature has no effect.",
        ("Is there an argument that you did not use?", "Compare the words at temperature 0.1 and at 1.",
         "logits / temperature, before the softmax"),
        (NOT_TEMPERED,),
    ),
    Misconception(
        "sample_temp_squared",
        "The temperature is applied twice.",
        ("How often is there a division by the temperature?", "Temperature 1 hides it: try 0.5.",
         "One division of the logits."),
        ({"temper": lambda logits, temperature: logits / temperature**2},),
    ),
    Misconception(
        "sample_temp_multiplied",
        "The logits are multiplied by the temperature instead of divided.",
        ("Does a low temperature make the draw bolder or more even?", "Compare the words at temperature 0.1 and at 1.",
         "logits / temperature"),
        ({"temper": lambda logits, temperature: logits * temperature},),
    ),
    Misconception(
        "sample_greedy",
        "The most likely word is always taken.",
        ("Should the same prompt always go on in the same way?", "Look for argmax.", "torch.multinomial(probs, 1)"),
        ({"draw": _argmax},),
    ),
    Misconception(
        "sample_uniform",
        "All words are drawn equally often, whatever the model says.",
        ("Which probabilities does your draw use?", "Look for randint, choice and ones.",
         "torch.multinomial(probs, 1)"),
        ({"draw": lambda p: torch.randint(p.shape[1], (len(p), 1))},
         {"soften": lambda logits, temperature: logits.softmax(0)},
         {"draw": lambda p: torch.multinomial((p > 0).float(), 1)}),
    ),
    Misconception(
        "sample_softmax_twice",
        "The softmax is taken twice, which makes all words nearly equally likely.",
        ("What is the input of your softmax: logits or probabilities?", "Count the softmaxes.", "One softmax."),
        ({"soften": lambda logits, temperature: logits.softmax(-1).softmax(-1)},),
    ),
    Misconception(
        "sample_no_softmax",
        "Something other than probabilities goes into the draw: the softmax is missing.",
        ("Can a probability be negative?", "Print what you pass to multinomial.", "logits.softmax(-1)"),
        ({"soften": lambda logits, temperature: logits},
         {"soften": lambda logits, temperature: logits.clamp(min=0)},
         {"soften": lambda logits, temperature: logits.abs()}),
    ),
    Misconception(
        "sample_one_for_all",
        "One word is drawn for all rows, instead of one for each.",
        ("Do two rows with the same prompt go on alike?", "Print the shape of what multinomial returns.",
         "torch.multinomial(probs, 1) with probs of shape (B, V)"),
        ({"draw": _one_draw}, {"draw": lambda p: torch.full((len(p), 1), torch.multinomial(p[0], 1).item())},
         {"draw": lambda p: torch.full((len(p), 1), torch.multinomial(p, 1).item())},
         {"draw": lambda p: torch.multinomial(p, 1)[:1].expand(len(p), 1)},
         {"draw": lambda p: torch.multinomial(p.mean(0), 1).expand(len(p), 1)}),
    ),
    Misconception(
        "sample_fixed_seed",
        "The random numbers are fixed inside your function: every call, or every step, draws the same.",
        ("Should two calls give the same text?", "Look for manual_seed or a new Generator.",
         "Leave seeds to the caller."),
        ({"seed": lambda step: torch.manual_seed(0)}, {"seed": lambda step: torch.manual_seed(42)},
         {"seed": torch.manual_seed},
         {"seed": lambda step: step or torch.manual_seed(0)}),
    ),
    Misconception(
        "sample_topk_off_by_one",
        "One word too many or too few survives top_k.",
        ("Which comparison keeps the k-th largest logit itself?", "With top_k = 1 only the likeliest word may be left.",
         "logits.masked_fill(logits < kth, float('-inf')) with kth = logits.topk(top_k).values[:, -1:]"),
        ({"k": lambda top_k: top_k + 1}, {"k": lambda top_k: top_k - 1}, {"restrict": _strictly_above},
         {"restrict": lambda logits, k: logits.masked_fill(
             logits < logits.sort(-1).values[:, -k - 1].unsqueeze(1), float("-inf"))}),
    ),
    Misconception(
        "sample_topk_ignored",
        "top_k has no effect.",
        ("Is there an argument that you did not use?", "With top_k = 1 only the likeliest word may be left.",
         "logits.masked_fill(logits < kth, float('-inf'))"),
        ({"restrict": lambda logits, k: logits},),
    ),
    Misconception(
        "sample_topk_zero",
        "The logits of the other words are set to 0, which is an ordinary logit.",
        ("What is exp(0)?", "With top_k = 1 only the likeliest word may be left.", "float('-inf')"),
        ({"restrict": lambda logits, k: _below(logits, k, 0.0)}, {"restrict": lambda logits, k: logits
          * (logits >= logits.topk(k).values[:, -1:])}),
    ),
    Misconception(
        "sample_topk_smallest",
        "The least likely words survive top_k instead of the likeliest.",
        ("Which words are to stay?", "Print the logits after top_k.", "masked_fill(logits < kth, float('-inf'))"),
        ({"restrict": lambda logits, k: logits.masked_fill(logits > logits.topk(k, largest=False).values[:, -1:],
                                                           float("-inf"))},
         {"restrict": lambda logits, k: logits.masked_fill(logits >= logits.topk(k).values[:, -1:], float("-inf"))}),
    ),
    Misconception(
        "sample_topk_rank_not_word",
        "What is drawn among the k largest is a rank from 0 to k-1, and it is taken for a word.",
        ("What does topk return besides the values?", "Can your function ever say the last word of the vocabulary?",
         "indices.gather(-1, drawn); or keep all V logits and set the others to float('-inf')"),
        ({"restrict": lambda logits, k: logits.topk(k).values},
         {"temper": lambda logits, temperature: (logits / temperature).sort(-1, descending=True).values}),
    ),
    Misconception(
        "sample_topk_one_threshold",
        "One threshold is used for all rows; every row has a k-th largest logit of its own.",
        ("Which shape has the threshold?", "Try two rows with very different logits.",
         "logits.topk(top_k, dim=-1).values[:, -1:]"),
        ({"restrict": _threshold_of(lambda logits, k: logits[0].topk(k).values[-1])},
         {"restrict": _threshold_of(lambda logits, k: logits.flatten().topk(k).values[-1])},
         {"restrict": _threshold_of(lambda logits, k: logits.topk(k, dim=0).values[-1:])}),
    ),
    Misconception(
        "sample_no_crop",
        "The text is never cut to block_size.",
        ("How much does the model accept at most?", "Generate more tokens than model.block_size.",
         "model(idx[:, -model.block_size:])"),
        ({"context": lambda idx, block_size: idx},),
    ),
    Misconception(
        "sample_crop_front",
        "When the text is too long, its oldest part is kept instead of the newest.",
        ("Which end of the text matters for the next word?", "Generate past block_size.",
         "idx[:, -model.block_size:], with the minus"),
        ({"context": lambda idx, block_size: idx[:, :block_size]},),
    ),
    Misconception(
        "sample_last_token_only",
        "Only the newest token is fed to the model, so it forgets the rest.",
        ("What does the model know when the next word is drawn?", "Print the shape of what you feed: it should grow.",
         "model(idx[:, -model.block_size:])"),
        ({"context": lambda idx, block_size: idx[:, -1:]},),
    ),
    Misconception(
        "sample_first_position",
        "The logits of another position than the last are used.",
        ("Which position predicts the next word?", "The last position has read everything.", "logits[:, -1]"),
        ({"last": lambda logits: logits[:, 0]}, {"last": lambda logits: logits.mean(1)},
         {"last": lambda logits: logits[:, -2]}),
    ),
    Misconception(
        "sample_not_fed_back",
        "All words are drawn at once from the first distribution: what was drawn is never read.",
        ("What does the model know when the second word is drawn?", "How often is the model called?",
         "One loop: read, draw one word, append."),
        (_all_at_once(True), _all_at_once(False)),
    ),
    Misconception(
        "sample_returns_new_only",
        "Only the new tokens are returned.",
        ("What is to be returned?", "Compare the length of your result with T0 + n.",
         "Return idx, to which the new tokens were appended."),
        ({"finish": lambda idx, prompt: idx[:, prompt.shape[1]:]},),
        convention="the result is the prompt followed by the new tokens.",
    ),
    Misconception(
        "sample_one_too_many",
        "One token too many is generated.",
        ("How often does your loop run?", "Call it with n = 1.", "for _ in range(n)"),
        ({"rounds": lambda n: n + 1},),
    ),
    Misconception(
        "sample_one_too_few",
        "One token too few is generated.",
        ("How often does your loop run?", "Call it with n = 1.", "for _ in range(n)"),
        ({"rounds": lambda n: n - 1},),
    ),
    Misconception(
        "sample_prompt_overwritten",
        "The caller's prompt is written to.",
        ("What does the prompt look like after the call?", "Look for assignments to a slice of idx.",
         "torch.cat makes a new tensor"),
        ({"finish": _prompt_overwritten},),
        symptom=lambda got, want: "idx" in got.changed,
    ),
)  # fmt: skip
