"""Cases and misconceptions of `seq2seq_encode`."""

import torch

from course_utils import recurrent as reference
from course_utils.checks.model import Case, Draw, Exercise, Misconception, Output, Recipe
from course_utils.checks.shared import DOUBLE_NOTE, in_double, weight_gradient_note


def _batch(draw: Draw, lengths: list[int], T: int, D: int = 3, H: int = 4) -> dict:
    """Sentences with loud padding: whoever reads it is noticed."""
    lengths = torch.tensor(lengths)
    emb = draw.normal(len(lengths), T, D)
    padding = torch.arange(T) >= lengths.unsqueeze(1)
    return {
        "emb": torch.where(padding.unsqueeze(-1), 50 * emb, emb),
        "lengths": lengths,
        "W_xh": draw.normal(D, H) / 2,
        "W_hh": draw.normal(H, H) / 2,
        "b": draw.normal(H),
    }


def _assemble(s):
    def run(emb, lengths, W_xh, W_hh, b):
        order = s.order(lengths)
        emb, lengths = emb[order], lengths[order]
        h = emb.new_zeros(emb.shape[0], W_hh.shape[0])
        outputs, states = [], []
        for t in range(emb.shape[1]):
            real = (t < lengths).unsqueeze(-1)
            new = s.squash(emb[:, t] @ W_xh + s.before(h) @ W_hh + s.bias(b))
            h = s.carry(real, new, h)
            outputs.append(s.emit(real, new, h))
            states.append(h)
        outputs, states = torch.stack(outputs, 1), torch.stack(states, 1)
        final = s.summary(outputs, states, lengths)
        return s.restore(outputs, final, order)

    return run


def _at(states, position):
    return states[torch.arange(states.shape[0]), position]


def _keep(real, new, h):
    return torch.where(real, new, h)


def _run_on(real, new, h):
    return new


def _zero(real, new, h):
    return torch.where(real, new, 0.0)


def _one_after_the_other(through_padding):
    """Sentence by sentence, with the state of the sentence before as the first one."""

    def run(emb, lengths, W_xh, W_hh, b):
        h, outputs, finals = emb.new_zeros(W_hh.shape[0]), [], []
        for words, length in zip(emb, lengths.tolist(), strict=True):
            states = []
            for word in words if through_padding else words[:length]:
                h = torch.tanh(word @ W_xh + h @ W_hh + b)
                states.append(h)
            padding = emb.new_zeros(len(words) - length, len(h))
            outputs.append(torch.cat([torch.stack(states[:length]), padding]))
            finals.append(states[length - 1])
        return torch.stack(outputs), torch.stack(finals)

    return run


RIGHT = {
    "order": lambda lengths: torch.arange(len(lengths)),
    "before": lambda h: h,
    "bias": lambda b: b,
    "squash": torch.tanh,
    "carry": _keep,
    "emit": _zero,
    "summary": lambda outputs, states, lengths: _at(states, lengths - 1),
    "restore": lambda outputs, final, order: (outputs[order.argsort()], final[order.argsort()]),
}


def _sorted(descending):
    return lambda lengths: lengths.argsort(descending=descending)


CASES = (
    Case("no padding", "every state depends on the word and on the state before", 2,
         lambda d: _batch(d, [5, 5, 5], 5), through=(0, 1)),
    Case("short sentences behind long ones", "a finished sentence keeps its state; outputs on padding are zero", 2,
         lambda d: _batch(d, [5, 2], 5)),
    Case("lengths in any order", "row i of the result belongs to row i of the input", 3,
         lambda d: _batch(d, [2, 5, 1, 4], 6, D=5, H=3)),
    Case("one word", "a single step from the zero state", 1, lambda d: _batch(d, [1, 1], 1, D=2, H=3)),
    Case("arguments are kept", "the function leaves its arguments alone", 1,
         lambda d: _batch(d, [3, 4], 4, D=4, H=2), repeat=True, keeps_inputs=True),
    Case("gradients", "gradients flow back to every real word and to no padding", 1,
         lambda d: _batch(d, [2, 4, 3], 4, D=2), gradients_of=("emb",), through=(0, 1)),
    Case("gradients of the weights", "gradients flow back to the weights", 0,
         lambda d: _batch(d, [2, 4, 3], 4, D=2), gradients_of=("W_xh", "W_hh", "b"), through=(0, 1),
         note=weight_gradient_note("the weights")),
    Case("double precision", "works in float64", 0, lambda d: in_double(_batch(d, [2, 5, 1], 5)), note=DOUBLE_NOTE),
)  # fmt: skip

MISCONCEPTIONS = (
    # Before "last column": where padding is zero the two give the same numbers, and this one is true of both.
    Misconception(
        "enc_zeroes_state_on_pad",
        "On padding the state is set to zero instead of being kept: for a short sentence the final state is zero.",
        ("When a sentence is over, what should happen to its state?",
         "Look at the final state of the shortest sentence.",
         "h = torch.where(real, new, h): the old h where there is no word"),
        ({"carry": _zero, "summary": lambda outputs, states, lengths: states[:, -1]},),
    ),
    Misconception(
        "enc_last_column",
        "The final state is read from the last column, which is padding for a short sentence.",
        ("Which position holds the last real word of a short sentence?",
         "Compare the final state of the shorter sentence with its outputs: where does it come from?",
         "outputs[torch.arange(B), lengths - 1], or keep the state once a sentence is over"),
        ({"summary": lambda outputs, states, lengths: outputs[:, -1]},
         {"carry": _run_on, "summary": lambda outputs, states, lengths: states[:, -1]},
         {"carry": _run_on, "emit": _run_on, "summary": lambda outputs, states, lengths: states[:, -1]}),
    ),
    Misconception(
        "enc_resets_h0",
        "Every step starts again from the zero state, so nothing is carried along.",
        ("Which variable do you pass as the previous state inside the loop?",
         "Swap the first two words: the final state must change.",
         "h = torch.tanh(emb[:, t] @ W_xh + h @ W_hh + b) with the h of the step before; zeros only before the loop"),
        ({"before": torch.zeros_like},),
    ),
    Misconception(
        "enc_carried_over",
        "A sentence starts from the last state of the sentence before it; each must start from zero.",
        ("What does the state hold when the second sentence begins?",
         "Exchange the first sentence: the result for the second one must not change.",
         "h = zeros inside the loop over sentences, before the loop over words"),
        ({"whole": _one_after_the_other(False)}, {"whole": _one_after_the_other(True)}),
    ),
    Misconception(
        "enc_first_state",
        "The first state is returned as the summary instead of the last one.",
        ("Which state has seen the whole sentence?",
         "Change the last word: the final state must change.",
         "the state at position lengths - 1, not 0"),
        ({"summary": lambda outputs, states, lengths: states[:, 0]},),
    ),
    Misconception(
        "enc_sorted_not_restored",
        "The sentences are sorted by length and not put back in their old order.",
        ("Does row 0 of your result belong to row 0 of the input?",
         "Try lengths in increasing order: [2, 5].",
         "Undo the sort with order.argsort(), for outputs and final state; or enforce_sorted=False"),
        ({"order": _sorted(True), "restore": lambda outputs, final, order: (outputs, final)},
         {"order": _sorted(False), "restore": lambda outputs, final, order: (outputs, final)},
         {"order": _sorted(True), "restore": lambda outputs, final, order: (outputs[order.argsort()], final)},
         {"order": _sorted(True), "restore": lambda outputs, final, order: (outputs, final[order.argsort()])},
         {"order": _sorted(True), "restore": lambda outputs, final, order: (outputs[order], final[order])}),
    ),
    Misconception(
        "enc_outputs_not_zeroed",
        "The outputs on padding positions are not zero: they repeat or continue the states.",
        ("What should attention find at padding positions?",
         "Print the outputs beyond the length of a short sentence.",
         "torch.where(real, h, 0.0) for the outputs, while h itself is kept"),
        ({"emit": lambda real, new, h: h}, {"carry": _run_on, "emit": _run_on}, {"emit": _run_on}),
        convention="outputs on padding are zero.",
    ),
    Misconception(
        "enc_mean_as_summary",
        "The average of the states is returned instead of the final state.",
        ("From which state is the decoder to start?",
         "Compare your final state with the output at the last real word.",
         "the state at position lengths - 1; no mean"),
        ({"summary": lambda outputs, states, lengths: outputs.sum(1) / lengths.unsqueeze(1)},
         {"summary": lambda outputs, states, lengths: outputs.mean(1)},
         {"summary": lambda outputs, states, lengths: states.mean(1)},
         {"summary": lambda outputs, states, lengths: outputs.sum(1)}),
    ),
    Misconception(
        "enc_index_off_by_one",
        "The final state is read one position too early.",
        ("At which index is the last of n words?",
         "Positions count from 0: a sentence of length 2 ends at index 1.",
         "lengths - 1"),
        ({"summary": lambda outputs, states, lengths: _at(states, (lengths - 2).clamp(min=0))},
         {"summary": lambda outputs, states, lengths: _at(states, lengths - 2)}),
    ),
    Misconception(
        "enc_no_tanh",
        "The steps have no tanh.",
        ("What keeps the states bounded?", "Compare your step with the formula.", "torch.tanh(... )"),
        ({"squash": lambda inner: inner},),
    ),
    Misconception(
        "enc_no_bias",
        "The bias b is never added.",
        ("Is there an argument that you did not use?", "Compare your step with the formula.",
         "... + b inside the tanh"),
        ({"bias": torch.zeros_like},),
    ),
    Misconception(
        "enc_time_first",
        "The outputs are stacked with time as the first axis.",
        ("Along which axis do you stack the states?",
         "Print outputs.shape: the batch comes first.",
         "torch.stack(outputs, dim=1)"),
        ({"restore": lambda outputs, final, order: (outputs.transpose(0, 1), final)},),
    ),
    Misconception(
        "enc_results_exchanged",
        "The two results are returned in the other order.",
        ("Which result comes first in the docstring?",
         "Look at the last line of your function.",
         "return outputs, final"),
        ({"restore": lambda outputs, final, order: (final, outputs)},),
    ),
)  # fmt: skip

SEQ2SEQ_ENCODE = Exercise(
    name="seq2seq_encode",
    notebook="01",
    reference=reference.seq2seq_encode,
    outputs=(Output("outputs", ("batch", "time", "feature")), Output("final state", ("batch", "feature"))),
    cases=CASES,
    recipe=Recipe(_assemble, RIGHT),
    misconceptions=MISCONCEPTIONS,
    hints=(
        "Run the step once for each position, for all sentences at once. What happens to a sentence that is over?",
        "`t < lengths` says which sentences still have a word at position t.",
        "real = (t < lengths).unsqueeze(-1); h = torch.where(real, torch.tanh(emb[:, t] @ W_xh + h @ W_hh + b), h); "
        "outputs.append(torch.where(real, h, 0.0))",
    ),
)
