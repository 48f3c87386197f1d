"""The recipe of `dropout`, and its misconceptions."""

import torch
from torch import Tensor

from course_utils.checks.model import Misconception
from course_utils.checks.shared import write_into


def assemble(s):
    """Inverted dropout from its steps."""

    def run(x, p, training):
        s.begin(p)
        if not s.active(training):
            return s.rest(x, p)
        kept = s.kept(s.noise(x), p)
        return s.finish(s.rescale(s.hide(x, kept), p, kept), x)

    return run


RIGHT = {
    "begin": lambda p: None,
    "active": lambda training: training,
    "rest": lambda x, p: x,
    "noise": torch.rand_like,
    "kept": lambda noise, p: noise >= p,
    "hide": lambda x, kept: x * kept,
    "rescale": lambda y, p, kept: y / (1 - p),
    "finish": lambda y, x: y,
}


def _not_rescaled(y, p, kept):
    return y


def _above_zero(p):
    assert p > 0


def _inside(p):
    assert 0 < p < 1


def _fixed_number(noise, p):
    """As many zeros in every row, in random places."""
    return noise.argsort(-1).argsort(-1) >= int(p * noise.shape[-1])


def _places(n):
    """Each place as a share of the whole length."""
    return torch.arange(n) / n


def _all_but_every_kth(places, p):
    return places % max(1, round(1 / p)) != 0 if p else places >= 0


def _survivors_only(got, want):
    """One axis where there were several, and not all of the entries."""
    both = isinstance(got.value, Tensor) and isinstance(want.value, Tensor)
    return both and got.value.dim() == 1 < want.value.dim() and got.value.numel() < want.value.numel()


_LINE = "torch.where(torch.rand_like(x) >= p, x / (1 - p), 0.0)"
_SHARE = "p is the probability that an entry is dropped."
_OWN_DRAW = "one random number for each entry: torch.rand_like(x)"

MISCONCEPTIONS = (
    Misconception(
        "drop_no_rescale",
        "The entries that survive are not divided by 1 - p: in training the average shrinks.",
        ("What is the mean of many results, if x is all ones?",
         "Evaluation does not scale: the layers behind would see other sizes there than in training.", "x / (1 - p)"),
        ({"rescale": _not_rescaled},),
    ),
    Misconception(
        "drop_scales_in_eval",
        "The scaling happens in evaluation; with inverted dropout it happens in training, and evaluation changes "
        "nothing.",
        ("What does training=False return?", "Divide the survivors by 1 - p in training instead.",
         "if not training: return x"),
        ({"rest": lambda x, p: x * (1 - p)},
         {"rest": lambda x, p: x * (1 - p), "rescale": _not_rescaled},
         {"rest": lambda x, p: x * p, "rescale": _not_rescaled}, {"rest": lambda x, p: x * p},
         {"rest": lambda x, p: x / (1 - p)}, {"rest": lambda x, p: x / (1 - p), "rescale": _not_rescaled}),
        convention="dropout is inverted: survivors are divided by 1 - p in training, evaluation returns x.",
    ),
    Misconception(
        "drop_divides_by_p",
        "The survivors are divided by p instead of by 1 - p.",
        ("Which share survives?", "p = 0.5 hides it: take p = 0.1 and the mean of the result for ones.",
         "x / (1 - p)"),
        ({"rescale": lambda y, p, kept: y / p}, {"rescale": lambda y, p, kept: y * (1 / p)},
         {"rescale": lambda y, p, kept: y / p if p else y}),
    ),
    Misconception(
        "drop_multiplies",
        "The survivors are multiplied by 1 - p (or by p) instead of divided: they should grow.",
        ("What is the mean of many results, if x is all ones?", "Survivors stand in for those that were dropped.",
         "x / (1 - p)"),
        ({"rescale": lambda y, p, kept: y * (1 - p)}, {"rescale": lambda y, p, kept: y * p}),
    ),
    Misconception(
        "drop_rescales_by_count",
        "The survivors are divided by the share that happened to survive instead of by 1 - p.",
        ("Does one entry's fate change the size of another?", "The mean is right on average, not in every draw.",
         "x / (1 - p)"),
        ({"rescale": lambda y, p, kept: y / kept.float().mean()},
         {"rescale": lambda y, p, kept: y / kept.float().mean(-1, keepdim=True)}),
        convention="survivors are divided by 1 - p.",
    ),
    Misconception(
        "drop_keeps_p",
        "p is taken for the probability of keeping an entry: the share 1 - p is dropped.",
        ("With p = 0.1, which share of the entries is zero?", "Look at your comparison with the random numbers.",
         _LINE),
        ({"kept": lambda noise, p: noise < p},
         {"kept": lambda noise, p: noise < p, "rescale": lambda y, p, kept: y / p},
         {"kept": lambda noise, p: noise < p, "rescale": lambda y, p, kept: y / p if p else y},
         {"kept": lambda noise, p: noise < p, "rescale": lambda y, p, kept: y * (1 / p)}),
        convention=_SHARE,
    ),
    Misconception(
        "drop_ignores_p",
        "Half of the entries are dropped, whatever p is.",
        ("Is there an argument that has no effect?", "Count the zeros with p = 0.1.", _LINE),
        ({"kept": lambda noise, p: noise >= 0.5},
         {"kept": lambda noise, p: noise >= 0.5, "rescale": lambda y, p, kept: y * 2}),
    ),
    Misconception(
        "drop_gaussian",
        "The random numbers come from a bell curve (randn), so the share below p is not p.",
        ("Which random numbers lie evenly between 0 and 1?", "Count the zeros with p = 0.1.", "torch.rand_like(x)"),
        ({"noise": torch.randn_like},
         {"noise": lambda x: torch.randn_like(x).abs()}, {"noise": lambda x: torch.randn_like(x).sigmoid()}),
    ),
    Misconception(
        "drop_no_threshold",
        "x is multiplied by the random numbers themselves: nothing becomes zero.",
        ("Which two values does a mask have?", "Print the mask.", "kept = torch.rand_like(x) >= p"),
        ({"kept": lambda noise, p: noise},
         {"kept": lambda noise, p: 1 + noise - noise.mean(), "rescale": _not_rescaled}),
    ),
    Misconception(
        "drop_by_value",
        "Which entries are dropped depends on their values: nothing is random.",
        ("Do two calls with the same x drop the same entries?", "Where is the random number in your comparison?",
         _OWN_DRAW),
        ({"noise": lambda x: x}, {"noise": torch.abs}),
    ),
    Misconception(
        "drop_by_position",
        "Which entries are dropped depends on their places: nothing is random.",
        ("Do two calls drop the same entries?", "Where is the random number in your mask?", _OWN_DRAW),
        ({"noise": lambda x: _places(x.numel()).view(x.shape)}, {"noise": lambda x: _places(x.shape[-1])},
         {"noise": lambda x: _places(len(x)).view(-1, *[1] * (x.dim() - 1))},
         {"noise": lambda x: torch.arange(x.numel()).view(x.shape), "kept": _all_but_every_kth}),
    ),
    Misconception(
        "drop_same_mask",
        "One mask is used for all sentences or all positions: the same features are dropped in each.",
        ("Which shape have your random numbers?", "Compare the zeros of two rows.", _OWN_DRAW),
        ({"noise": lambda x: torch.rand(x.shape[-1])}, {"noise": lambda x: torch.rand(x.shape[1:])},
         {"noise": lambda x: torch.rand_like(x[:1])}),
    ),
    Misconception(
        "drop_whole_rows",
        "Whole words or sentences are dropped: all features of a row share one draw.",
        ("Which shape have your random numbers?", "Print one row: are some of its entries zero, or all?", _OWN_DRAW),
        ({"noise": lambda x: torch.rand(x.shape[:-1]).unsqueeze(-1)},
         {"noise": lambda x: torch.rand(len(x), *[1] * (x.dim() - 1))},
         {"noise": lambda x: torch.rand(x.shape[0], 1, 1)}, {"noise": lambda x: torch.rand(x.shape[0], 1)}),
    ),
    Misconception(
        "drop_one_coin",
        "One draw decides for the whole tensor: all entries are dropped, or none.",
        ("How many random numbers do you draw?", "Call it a few times with ones.", _OWN_DRAW),
        ({"noise": lambda x: torch.rand(1)},),
    ),
    Misconception(
        "drop_fixed_number",
        "Exactly the same number of entries is dropped in every row; each should have its own draw.",
        ("Can your function drop nothing at all in a row?", "Count the zeros in each row.", _OWN_DRAW),
        ({"kept": _fixed_number},),
        convention="each entry is dropped with probability p, independently of all others.",
    ),
    Misconception(
        "drop_fixed_seed",
        "The random numbers are fixed, in your function or since its first call: every call drops the same entries.",
        ("Should two training steps drop the same entries?", "Look for manual_seed, a new Generator or a stored mask.",
         "Leave seeds to the caller."),
        ({"begin": lambda p: torch.manual_seed(0)},),
    ),
    Misconception(
        "drop_ignores_training",
        "Entries are dropped in evaluation, too: training has no effect.",
        ("Is there an argument that you did not use?", "Call it twice with training=False.",
         "if not training: return x"),
        ({"active": lambda training: True},),
    ),
    Misconception(
        "drop_training_inverted",
        "The condition is upside down: entries are dropped in evaluation, and not in training.",
        ("When should dropout act?", "Read your `if` aloud.", "if not training: return x"),
        ({"active": lambda training: not training},),
    ),
    Misconception(
        "drop_nothing",
        "x comes back as it is: nothing is ever dropped.",
        ("How many zeros has the result?", "Does the result of your mask reach the return line?", _LINE),
        ({"whole": lambda x, p, training: x},),
    ),
    Misconception(
        "drop_only_scales",
        "Everything is scaled, and nothing is ever dropped.",
        ("How many zeros has the result?", "Does your mask take part in the line that scales?", _LINE),
        ({"kept": lambda noise, p: noise >= 0},
         {"kept": lambda noise, p: noise >= 0, "rescale": lambda y, p, kept: y * (1 - p)}),
    ),
    Misconception(
        "drop_p_zero",
        "p = 0 is refused, or returns zeros: it should drop nothing.",
        ("What should come out if nothing is dropped?", "Call it with p = 0.",
         "torch.rand_like(x) >= 0 is always True: p = 0 needs no line of its own."),
        ({"begin": _above_zero}, {"begin": _inside},
         {"rescale": lambda y, p, kept: y / (1 - p) if p else y * 0}),
    ),
    Misconception(
        "drop_removes_entries",
        "The dropped entries are cut out of the tensor; they should become zero and keep their place.",
        ("Which shape has the result?", "x[mask] makes a shorter tensor.", _LINE),
        ({"hide": lambda x, kept: x[kept]},),
        symptom=_survivors_only,
    ),
    Misconception(
        "drop_detached",
        "The result is cut off from the graph: no gradient reaches x.",
        ("What is `result.requires_grad`?", "Look for detach, .data, numpy and no_grad.", _LINE),
        ({"finish": lambda y, x: y.detach()},),
    ),
    Misconception(
        "drop_in_place",
        "x is overwritten, and with it what the caller wanted to keep.",
        ("What does x look like after the call?", "Look for `x *=`, `x[...] = 0` and names that end in _.",
         "torch.where makes a new tensor."),
        ({"finish": lambda y, x: write_into(x, y)},),
        symptom=lambda got, want: "x" in got.changed,
    ),
)  # fmt: skip
