"""Sentences and hints are true of every answer that gets them: masks, arguments, lists of places, plain text."""

import functools
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from wrong_answers import readers
from wrong_answers.blocks import Block

from course_utils.checks import EXERCISES, check
from course_utils.checks.bench import bench
from course_utils.checks.model import Output
from course_utils.checks.telling import confined, in_words
from course_utils.multihead import MultiHeadAttention
from course_utils.recurrent import rnn_step as reference_rnn_step


def named(report):
    return [finding.misconception for finding in report.findings]


def refuses(*_):
    raise RuntimeError("no")


# --- masks


@pytest.mark.parametrize("hide", readers.WITHOUT_EFFECT)
@pytest.mark.parametrize("exercise", list(readers.MASKED))
def test_a_mask_without_effect_is_called_that(exercise, hide):
    """Whether it was forgotten, dropped, or far too small: nobody can tell, and the sentence fits all of them."""
    made, name, *_ = readers.MASKED[exercise]
    report = check(made(hide), exercise)
    assert named(report) == [name]
    (finding,) = report.findings
    assert finding.message.startswith("The mask has no effect")
    assert "masked_fill returns a new tensor" in finding.hints[0]
    assert "-1e-9" in finding.hints[1]
    assert "-1e9" in finding.hints[1]


@pytest.mark.parametrize("exercise", list(readers.MASKED))
def test_a_number_next_to_0_and_0_and_1_get_one_finding_each(exercise):
    made, _, tiny, added = readers.MASKED[exercise]
    assert named(check(made(readers.filled_tiny), exercise)) == [tiny]
    assert named(check(made(readers.added_as_01), exercise)) == [added]


@pytest.mark.parametrize(
    ("exercise", "name"), [("scaled_dot_product_attention", "sdpa_mask_multiplied"), ("MultiHeadAttention", None)]
)
@pytest.mark.parametrize("hide", [lambda s, m: s * m, lambda s, m: torch.where(m, s, 0.0)])
def test_hidden_scores_of_0_are_not_called_a_product(exercise, name, hide):
    (finding,) = check(readers.MASKED[exercise][0](hide), exercise).findings
    assert finding.misconception in (name, "mha_mask_multiplied")
    assert "multipl" not in finding.message
    assert "1e-9 " not in finding.message


def test_keys_that_ask_are_one_finding():
    assert named(check(readers.keys_ask, "self_attention")) == ["self_roles_swapped"]


def test_a_reset_gate_on_everything_is_not_said_to_leave_the_old_state_alone():
    (finding,) = check(readers.resets_all, "gru_step").findings
    assert finding.misconception == "gru_reset_on_input"
    assert "instead of" not in finding.message


def test_a_mask_without_a_head_axis_is_not_said_to_have_one():
    (finding,) = check(readers.NoHeadAxis, "MultiHeadAttention").findings
    assert finding.misconception == "mha_mask_head_axis"
    assert "has no axis of its own for the heads, or" in finding.message


@pytest.mark.parametrize("answer", [readers.LibraryLayer, readers.FirstMaskForAll])
def test_a_block_that_knows_square_masks_only_loses_a_point(answer):
    report = check(answer, "TransformerBlock")
    assert not report.passed
    assert report.points == report.max_points - 1
    assert "(2, 1, 4, 4)" in report.findings[0].message


def test_a_block_around_the_attention_of_the_course_takes_every_mask():
    class TransformerBlock(Block):
        def more(self, d_model, dropout):
            self.attn = MultiHeadAttention(d_model, self.attn.h)

        def first(self, x, mask):
            return x + self.drop(self.attn(self.ln1(x), None, mask))

    report = check(TransformerBlock)
    assert report.passed, str(report)


# --- the temperature


def sample(choose):
    def generate(model, idx, n, temperature=1.0, top_k=None):
        for _ in range(n):
            logits = model(idx[:, -model.block_size :])[:, -1]
            if top_k is not None:
                logits = logits.masked_fill(logits < logits.topk(top_k).values[:, -1:], float("-inf"))
            idx = torch.cat([idx, torch.multinomial(choose(logits.softmax(-1), temperature), 1)], dim=1)
        return idx

    return generate


@pytest.mark.parametrize("seed", [0, 5])
def test_a_temperature_on_probabilities_is_told_from_one_that_is_not_used(seed):
    """Both draw the same words; only an infinite temperature shows which it is."""
    for choose, name in (
        (lambda p, t: p, "sample_temp_ignored"),
        (lambda p, t: p / t, "sample_temp_on_probs"),
        (lambda p, t: (p / t) / (p / t).sum(-1, keepdim=True), "sample_temp_on_probs"),
    ):
        assert named(check(sample(choose), "generate", seed=seed)) == [name]


# --- arguments


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=list(EXERCISES))
def test_the_line_def_of_a_hint_takes_every_call(exercise):
    if exercise.is_class:
        made = type("Answer", (nn.Module,), {"__init__": lambda self: None})
        hints = check(made, exercise.name).findings[0].hints
        assert hints[2].startswith("def __init__(self, ")
        made = type("Answer", (nn.Module,), {"__init__": lambda self, *_: nn.Module.__init__(self),
                                             "forward": lambda self: None})  # fmt: skip
        findings = [f for f in check(made, exercise.name).findings if "cannot be called" in f.message]
        line, first = findings[0].hints[2], ["self"]
        assert line.startswith("def forward(self, ")
    else:
        line, first = check(lambda: 1, exercise.name).findings[0].hints[2], []
        assert line.startswith(f"def {exercise.name}(")
    names = {}
    exec(f"{line} pass", names)
    for call in bench(exercise, 0).calls:
        names[line.partition("(")[0].removeprefix("def ")](*first, *call.arguments.values())


def test_the_hint_on_a_wrong_number_of_arguments_asks_about_them():
    for answer in (lambda x, h: x, lambda x, h, W_xh, W_hh, b, more: x):
        (finding,) = check(answer, "rnn_step").findings
        assert "parameters" in finding.hints[0]
        assert "shape" not in finding.hints[0]


def test_the_hint_on_a_call_with_wrong_arguments_asks_about_that_call():
    class TransformerBlock(Block):
        def first(self, x, mask):
            return x + self.attn(x, None, None, mask, 3, 4)

    finding = check(TransformerBlock).findings[0]
    assert "TypeError" in finding.message
    assert "called in that line" in finding.hints[0]


# --- lists of places and names


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([1], "Only batch 1 is affected."),
        ([1, 2], "Only batches 1 and 2 are affected."),
        ([0, 1, 4], "Only batches 0, 1 and 4 are affected."),
        ([0, 1, 2, 3, 5, 6], "Nothing at batch 4 is affected."),
        ([0, 1, 2, 3, 4], "Nothing at batches 5 and 6 is affected."),
    ],
)
def test_places_are_listed_in_good_english(rows, said):
    wrong = torch.zeros(7, 3, dtype=torch.bool)
    wrong[rows] = True
    assert confined(Output("result", ("batch", "feature")), wrong) == [said]


def test_places_of_an_axis_without_a_name():
    wrong = torch.zeros(7, dtype=torch.bool)
    wrong[[1, 2]] = True
    assert confined(Output("result", ("query", "feature")), wrong) == ["Only places 1 and 2 of axis 0 are affected."]


def test_words_in_a_row():
    assert [in_words("a"), in_words("ab"), in_words("abc", "or")] == ["a", "a and b", "a, b or c"]


# --- plain text shows one hint, and the next when it is asked for


def test_plain_text_shows_the_first_hint_only_and_says_how_to_see_the_next():
    report = check(lambda x, h, W_xh, W_hh, b: x @ W_xh + h @ W_hh + b, "rnn_step")
    (finding,) = report.findings
    text, html = str(report), report._repr_html_()
    assert finding.hints[0] in text
    assert not any(hint in text for hint in finding.hints[1:])
    assert "check(...).hint(2)" in text
    assert html.count("<details") == 3
    for number, hint in enumerate(finding.hints, 1):
        assert str(report.hint(number)) == repr(report.hint(number)) == f"hint {number}: {hint}"


def test_hints_of_several_findings_stand_beside_what_they_are_about():
    report = check(lambda *_: torch.zeros(2, 5), "rnn_step")
    assert len(report.findings) > 1
    for finding in report.findings:
        assert finding.message in report.hint(2)
        assert finding.hints[1] in report.hint(2)


@pytest.mark.parametrize("number", [0, 4, -1, "2", None, 1.5])
def test_a_hint_that_does_not_exist_is_a_clear_error(number):
    with pytest.raises(ValueError, match=r"there are 3 hints, hint\(1\) to hint\(3\)"):
        check(refuses, "rnn_step").hint(number)


def test_there_is_nothing_to_hint_at_where_nothing_is_wrong():
    assert "passed" in check(reference_rnn_step).hint(2)
    assert "hint(" not in str(check(reference_rnn_step))


# --- names


def my_norm(x, gamma, beta, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], gamma, beta, eps)


@pytest.mark.parametrize("part", [my_norm, lambda x, gamma, beta, eps=1e-5: my_norm(x, gamma, beta, eps)])
def test_a_part_under_another_name_is_known_by_the_variable_that_holds_it(monkeypatch, part):
    monkeypatch.setattr(sys.modules["__main__"], "layer_norm", part, raising=False)
    report = check(part)
    assert report.exercise == "layer_norm"
    assert report.passed


def test_a_part_that_nothing_names_is_told_how_to_be_named():
    assert 'check(my_norm, "' in str(check(my_norm))
    assert "no exercise's" in str(check(my_norm))
    assert "A lambda has no name" in str(check(lambda x: x))
    assert "no name that says" in str(check(functools.partial(my_norm)))
    assert "You passed None" in str(check(None))


def test_none_in_the_place_of_a_part_is_none_of_that_exercise(monkeypatch):
    monkeypatch.setattr(sys.modules["__main__"], "layer_norm", None, raising=False)
    report = check(None)
    assert report.exercise == "layer_norm"
    assert "You passed None" in str(report)
