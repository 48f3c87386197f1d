"""Functions that make a module or change one: what is watched, that only values cross, and what is forgiven."""

import pickle

import pytest
import torch
import torch.nn.functional as F
from right_answers.modules import PackedHeads
from torch import nn

from course_utils.checks import EXERCISES, check
from course_utils.checks.answers import LocalAnswer
from course_utils.checks.bench import bench

PROBED = [e for e in EXERCISES.values() if any(case.probe for case in e.cases)]


def named(report):
    return [finding.misconception for finding in report.findings]


def stepping(*order, result=lambda loss: loss.item()):
    """A train_step that does these things in this order."""

    def train_step(model, optimizer, x, y, max_norm=None):
        model.train()
        loss = F.cross_entropy(model(x), y)
        for what in order:
            if what == "clip" and max_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            elif what != "clip":
                {"zero": optimizer.zero_grad, "backward": loss.backward, "step": optimizer.step}[what]()
        return result(loss)

    return train_step


@pytest.mark.parametrize("exercise", PROBED, ids=lambda e: e.name)
def test_only_values_cross(exercise):
    at = bench(exercise, 0)
    for call, wanted in zip(at.calls, at.wanted, strict=True):
        again = LocalAnswer(exercise.reference).call(pickle.loads(pickle.dumps(call)))
        again = pickle.loads(pickle.dumps(again))
        assert all(torch.equal(a, b) for a, b in zip(again.value, wanted.value, strict=True))


@pytest.mark.parametrize("exercise", PROBED, ids=lambda e: e.name)
def test_what_is_returned_instead_is_told(exercise):
    report = str(check(lambda *_: (1, 2, 3, 4), exercise.name))
    assert f"Expected {exercise.cases[0].call(0).probe.returns}" in report
    assert "a tuple of 4 items" in report


@pytest.mark.parametrize(
    ("order", "misconception"),
    [
        (("zero", "clip", "backward", "step"), "train_clip_before_backward"),
        (("zero", "backward", "step", "clip"), "train_clip_after_step"),
        (("zero", "backward", "step"), "train_no_clip"),
        (("zero", "backward", "clip"), "train_no_step"),
        (("zero", "clip", "step"), "train_no_backward"),
        (("backward", "clip", "zero", "step"), "train_zero_before_step"),
        (("backward", "clip", "step"), "train_no_zero_grad"),
    ],
)
def test_orders_that_leave_the_same_weights_are_told_apart(order, misconception):
    assert named(check(stepping(*order), "train_step")) == [misconception]


def test_clearing_at_the_end_only_is_right_and_gets_a_note():
    report = check(stepping("backward", "clip", "step", "zero"), "train_step")
    assert report.passed
    assert any("already" in note or "before the first step" in note for note in report.notes)


def test_three_mistakes_in_a_step_are_all_named():
    def train_step(model, optimizer, x, y, max_norm=None):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        return loss

    assert set(named(check(train_step))) == {"train_no_zero_grad", "train_keeps_graph", "train_no_train_mode"}


class Encoder(nn.Module):
    """Takes a mask, and hands it on or not."""

    def __init__(self, make_layer, n_layers, hands_on):
        super().__init__()
        self.layers, self.hands_on = nn.ModuleList(make_layer() for _ in range(n_layers)), hands_on

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask) if self.hands_on else layer(x)
        return x


def test_a_stack_need_not_take_a_mask_but_a_mask_it_takes_must_arrive():
    assert check(lambda make_layer, n: nn.Sequential(*(make_layer() for _ in range(n))), "build_encoder").passed
    assert check(lambda make_layer, n: Encoder(make_layer, n, True), "build_encoder").passed
    report = check(lambda make_layer, n: Encoder(make_layer, n, False), "build_encoder")
    assert named(report) == ["stack_mask_not_passed"]
    assert report.points == 9


def test_weights_come_into_a_block_by_the_copy_from_of_its_attention():
    """The attention of notebook 05 may keep its weights in a form of its own."""

    class Block(EXERCISES["TransformerBlock"].reference):
        def __init__(self, *sizes):
            super().__init__(*sizes, attention=PackedHeads)

    class Bent(Block):
        def forward(self, x, mask=None):
            x = x + self.drop(self.attn(self.ln1(x), mask=mask))
            return x + self.drop(self.ff2(F.gelu(self.ff1(self.ln2(x)))))

    report = check(Block, "TransformerBlock")
    assert report.passed, str(report)
    assert not report.notes
    assert named(check(Bent, "TransformerBlock")) == ["block_other_activation"]
