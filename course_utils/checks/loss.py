"""Cases and misconceptions of `lm_loss`."""

import math

import torch
import torch.nn.functional as F

from course_utils import losses
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Output, Recipe


def _words(draw: Draw, lengths: list[int], V: int = 7, pad_id: int = 3, scale: float = 2.0) -> dict:
    """Targets padded with pad_id; 0 is an ordinary word. Logits at padding are loud."""
    B, T = len(lengths), max(lengths)
    words = draw.tokens(0, V - 1, B, T)
    words = words + (words >= pad_id)
    words[0, 0] = 0
    padding = torch.arange(T) >= torch.tensor(lengths).unsqueeze(1)
    logits = scale * draw.normal(B, T, V)
    logits = torch.where(padding.unsqueeze(-1), 30 * logits, logits)
    return {"logits": logits, "targets": torch.where(padding, pad_id, words), "pad_id": pad_id}


def _predicts_padding(draw: Draw) -> dict:
    """A model that is sure of padding at real words, and never predicts it on padding."""
    arguments = _words(draw, [4, 2])
    real = arguments["targets"] != 3
    arguments["logits"][..., 3] = torch.where(real, 9.0, -90.0)
    return arguments


def _sure_and_wrong(draw: Draw) -> dict:
    arguments = _words(draw, [3, 2], V=6)
    bonus = F.one_hot((arguments["targets"] + 1) % 6, 6)
    arguments["logits"] = arguments["logits"].clamp(-3, 3) + 300.0 * bonus
    return arguments


def _assemble_loss(s):
    def run(logits, targets, pad_id):
        logits, targets = s.align(logits, targets)
        log_p = s.log_p(s.prepare(logits))
        losses_ = -s.pick(log_p, targets)
        return s.finish(s.mean(losses_, s.real(logits, targets, pad_id)))

    return run


def _pick(log_p, targets):
    return log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def _total(losses_, real):
    return losses_.masked_fill(~real, 0.0).sum()


LM_LOSS = Exercise(
    name="lm_loss",
    notebook="01",
    reference=losses.lm_loss,
    outputs=(Output("the loss", ()),),
    hints=(
        "For each real word: minus the log of the probability that the model gave to it. Then one mean.",
        "F.cross_entropy wants the vocabulary as the second axis; flatten batch and time into one axis before.",
        "F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id)",
    ),
    cases=(
        Case("no padding", "the mean over all words of minus log probability", 2, lambda d: _words(d, [4, 4])),
        Case("sentences of lengths 1, 5 and 3", "padding does not count, and every real word counts the same", 3,
             lambda d: _words(d, [1, 5, 3])),
        Case("word 0 is a word", "padding is where the target is pad_id, whatever its number", 1,
             lambda d: _words(d, [2, 4], V=9, pad_id=5)),
        Case("a model that predicts padding", "the targets decide what is padding, not the model", 1,
             _predicts_padding),
        Case("a model that is sure and wrong", "logits in the hundreds give a large loss, not an infinite one", 1,
             _sure_and_wrong),
        Case("gradients", "the loss can be differentiated with respect to the logits", 2,
             lambda d: _words(d, [3, 2, 4]), gradients_of=("logits",), repeat=True, keeps_inputs=True),
        Case("double precision", "works in float64", 0,
             lambda d: (a := _words(d, [1, 4])) | {"logits": a["logits"].double()},
             note="Passed. With double precision (float64) your function gives an error or another result."),
    ),
    recipe=Recipe(
        _assemble_loss,
        {
            "align": lambda logits, targets: (logits, targets),
            "prepare": lambda logits: logits,
            "log_p": lambda logits: logits.log_softmax(-1),
            "pick": _pick,
            "real": lambda logits, targets, pad_id: targets != pad_id,
            "mean": lambda losses_, real: _total(losses_, real) / real.sum(),
            "finish": lambda loss: loss,
        },
    ),
    misconceptions=(
        Misconception(
            "loss_double_softmax",
            "Probabilities go into the cross-entropy, which applies softmax once more.",
            ("What does cross_entropy expect: scores or probabilities?",
             "Give it perfect logits (+50 on the answer): the loss should be near 0.",
             "Pass the raw logits to F.cross_entropy."),
            ({"prepare": lambda logits: logits.softmax(-1)},),
        ),
        Misconception(
            "loss_view_bvt",
            "The logits are re-read as (B, V, T) with view or reshape, which mixes the numbers of different words.",
            ("Does view swap axes?",
             "Give it perfect logits: the loss should be near 0.",
             "logits.transpose(1, 2), or flatten batch and time"),
            ({"prepare": lambda z: z.reshape(z.shape[0], z.shape[2], z.shape[1]).transpose(1, 2)},),
        ),
        Misconception(
            "loss_shifts_again",
            "Logits and targets are shifted against each other, which shift_right has done already.",
            ("Which word does logits[:, 0] predict?",
             "The decoder read shift_right(targets), so logits[:, t] belongs to targets[:, t].",
             "All logits and all targets, no [:, :-1] and [:, 1:]"),
            ({"align": lambda logits, targets: (logits[:, :-1], targets[:, 1:])},
             {"align": lambda logits, targets: (logits[:, 1:], targets[:, :-1])}),
            convention="logits[:, t] predicts targets[:, t].",
        ),
        Misconception(
            "loss_batch_time_mixed",
            "Batch and time are exchanged in the logits or in the targets, so each word is judged by another's scores.",
            ("In which order do your flattened logits and your flattened targets run through the batch?",
             "Look for a transpose, or a view with T before B, on one of the two only.",
             "logits.flatten(0, 1) and targets.flatten(), both as they come"),
            ({"align": lambda z, t: (z.transpose(0, 1).reshape(z.shape), t)},
             {"align": lambda z, t: (z, t.T.reshape(t.shape))}),
        ),
        Misconception(
            "loss_counts_padding",
            "Padding counts as words that have to be predicted.",
            ("Should the loss move when the logits at padding change?",
             "Which of your lines uses pad_id?",
             "ignore_index=pad_id, or a mean over targets != pad_id only"),
            ({"real": lambda logits, targets, pad_id: torch.ones_like(targets, dtype=torch.bool)},),
        ),
        Misconception(
            "loss_divides_by_all",
            "Padding is left out of the sum but still counted in the average.",
            ("By what do you divide?",
             "Adding padding to a batch must not change the loss.",
             "Divide by (targets != pad_id).sum()."),
            ({"mean": lambda losses_, real: _total(losses_, real) / real.numel()},),
        ),
        Misconception(
            "loss_mean_of_means",
            "Each sentence is averaged first and then the sentences, so the words of short sentences weigh more.",
            ("Does a word in a short sentence count more than one in a long sentence?",
             "Try sentences of length 1 and 5.",
             "One sum over all real words, one division."),
            ({"mean": lambda losses_, real: (losses_.masked_fill(~real, 0.0).sum(1) / real.sum(1)).mean()},),
            convention="one mean over all real tokens of the batch.",
        ),
        Misconception(
            "loss_softmax_time",
            "The softmax runs over time instead of over the vocabulary.",
            ("Over which axis do the probabilities of a word sum to 1?",
             "Adding one number to all logits of a position must not change the loss.",
             "log_softmax(dim=-1)"),
            ({"log_p": lambda logits: logits.log_softmax(1)},),
        ),
        Misconception(
            "loss_divides_by_batch",
            "The sum is divided by the number of sentences, not of words.",
            ("What is the loss of a model that gives every word the same probability?",
             "It should be log V, whatever the length of the sentences.",
             "Divide by (targets != pad_id).sum()."),
            ({"mean": lambda losses_, real: _total(losses_, real) / real.shape[0]},),
        ),
        Misconception(
            "loss_nll_on_logits",
            "Raw logits are used where log-probabilities are needed: log_softmax is missing.",
            ("Can your loss be negative?",
             "F.nll_loss expects log-probabilities; gather on logits picks scores.",
             "logits.log_softmax(-1) first"),
            ({"log_p": lambda logits: logits},),
        ),
        Misconception(
            "loss_probability_not_log",
            "The mean of minus the probability is taken, without the logarithm.",
            ("Can your loss be larger than 1?",
             "Equal logits must give log V.",
             "log_softmax instead of softmax"),
            ({"log_p": lambda logits: logits.softmax(-1)}, {"log_p": lambda logits: logits.softmax(-1) - 1}),
        ),
        Misconception(
            "loss_mask_by_prediction",
            "The words at which the model predicts padding are skipped: the mask comes from the logits.",
            ("Who decides what is padding, the data or the model?",
             "What is the loss of a model that always predicts padding?",
             "targets != pad_id"),
            ({"real": lambda logits, targets, pad_id: logits.argmax(-1) != pad_id},
             {"real": lambda logits, targets, pad_id: (logits.argmax(-1) != pad_id) & (targets != pad_id)}),
        ),
        Misconception(
            "loss_detached",
            "The loss is cut off from the graph, so backward does nothing.",
            ("What is `loss.requires_grad`?",
             "Look for .item(), .data, .detach(), float(...), torch.tensor(...) or no_grad.",
             "Return the tensor as it comes from the computation."),
            ({"finish": lambda loss: loss.detach()}, {"finish": lambda loss: loss.item()}),
        ),
        Misconception(
            "loss_sum",
            "The losses are summed, not averaged.",
            ("Is your loss twice as large for twice as many words?",
             "The statement asks for a mean.",
             "Divide by (targets != pad_id).sum()."),
            ({"mean": _total},),
        ),
        Misconception(
            "loss_perplexity",
            "The perplexity is returned: exp of the loss.",
            ("Is your result ever smaller than 1?",
             "A model that is sure and right has the loss 0 and the perplexity 1.",
             "Return the mean itself, without exp."),
            ({"finish": torch.exp},),
            convention="the loss is in nats; the perplexity is computed from it elsewhere.",
        ),
        Misconception(
            "loss_base_two",
            "The loss is in bits (log base 2) instead of nats.",
            ("Which logarithm do you take?", "Equal logits must give log V, the natural one.",
             "log_softmax uses the natural logarithm: no division by log 2"),
            ({"finish": lambda loss: loss / math.log(2)},),
        ),
        Misconception(
            "loss_sign",
            "The sign is missing: the loss is negative.",
            ("Is the logarithm of a probability positive or negative?", "A good model has a small positive loss.",
             "minus the log-probability"),
            ({"finish": lambda loss: -loss},),
        ),
        Misconception(
            "loss_pad_zero",
            "Padding is taken to be token 0; the argument pad_id is not used.",
            ("Is there an argument that you did not use?", "Try pad_id = 3 with 0 as an ordinary word.",
             "ignore_index=pad_id"),
            ({"real": lambda logits, targets, pad_id: targets != 0},),
        ),
        Misconception(
            "loss_mask_inverted",
            "The mask is upside down: only padding is averaged.",
            ("Print your mask: is it True at words?", "Without padding your mask is empty.", "targets != pad_id"),
            ({"real": lambda logits, targets, pad_id: targets == pad_id},),
        ),
        Misconception(
            "loss_log_of_softmax",
            "softmax and log are taken one after the other: a tiny probability becomes 0, and its log infinite.",
            ("What is log(0)?", "Try logits that differ by 300.", "logits.log_softmax(-1) does both safely"),
            ({"log_p": lambda logits: logits.softmax(-1).log()},
             {"log_p": lambda logits: logits - logits.exp().sum(-1, keepdim=True).log()},
             {"log_p": lambda logits: (logits.exp() / logits.exp().sum(-1, keepdim=True)).log()}),
        ),
        Misconception(
            "loss_not_averaged",
            "One loss for each word is returned, not their mean.",
            ("How many numbers are a loss?", "Print the shape of your result.", "a mean over the real words"),
            ({"mean": lambda losses_, real: losses_},
             {"mean": lambda losses_, real: losses_.masked_fill(~real, 0.0)},
             {"mean": lambda losses_, real: losses_.masked_fill(~real, 0.0).flatten()},
             {"mean": lambda losses_, real: losses_[real]}),
        ),
    ),
)  # fmt: skip
