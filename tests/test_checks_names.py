"""The names that mistakes get are true, nothing false is said besides, and what has no name is described well."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from wrong_answers.blocks import Block, Heads, Packed
from wrong_answers.models import Tied
from wrong_answers.training import Step
from wrong_answers.vision import Conv, Embedding, _conv_cls_unplaced

from course_utils.checks import EXERCISES, check
from course_utils.checks.bench import bench
from course_utils.checks.likeness import likeness
from course_utils.checks.observe import CaseRun
from course_utils.checks.values import Inside, Outcome


def named(report):
    return [finding.misconception for finding in report.findings]


def said(report):
    return " ".join(finding.message for finding in report.findings)


def variant(base, **methods):
    return type("Answer", (base,), methods)


def step(**methods):
    changed = type("Step", (Step,), methods)()
    return lambda model, optimizer, x, y, max_norm=None: changed(model, optimizer, x, y, max_norm)


# --- names that say what is there


def test_a_convolution_whose_class_token_gets_no_position():
    report = check(variant(Conv, forward=_conv_cls_unplaced), "ViTEmbedding")
    assert not report.passed
    assert "gradient that reaches `pos_embed`" in said(report)


def test_logits_in_another_order_are_not_called_flattened():
    report = check(variant(Tied, forward=lambda self, idx: Tied.forward(self, idx).mT), "TiedLM")
    assert named(report) == ["tie_vocabulary_before_time"]
    assert "(B, V, T)" in said(report)


def test_log_probabilities_are_not_called_probabilities():
    report = check(variant(Tied, forward=lambda self, idx: Tied.forward(self, idx).log_softmax(-1)), "TiedLM")
    assert named(report) == ["tie_log_softmax"]
    assert "Log-probabilities" in said(report)
    assert named(check(variant(Tied, forward=lambda self, idx: Tied.forward(self, idx).softmax(-1)), "TiedLM")) == [
        "tie_softmax"
    ]


def test_scaling_without_dropping_is_not_called_nothing():
    report = check(lambda x, p, training: x / (1 - p) if training else x, "dropout")
    assert named(report) == ["drop_only_scales"]
    assert "comes back as it is" not in said(report)
    assert named(check(lambda x, p, training: x, "dropout")) == ["drop_nothing"]


def test_positions_in_reverse_are_not_called_shifted():
    report = check(variant(Embedding, place=lambda self, x: x + self.pos_embed.flip(1)), "ViTEmbedding")
    assert named(report) == ["vit_pos_reversed"]
    rolled = check(variant(Embedding, place=lambda self, x: x + self.pos_embed.roll(1, 1)), "ViTEmbedding")
    assert named(rolled) == ["vit_pos_shifted"]


@pytest.mark.parametrize("interleaved", [False, True])
def test_channels_apart_are_not_called_mixed(interleaved):
    def patchify(images, p):
        H, W = images.shape[2:]
        if H % p or W % p:
            raise ValueError
        patches = images.unfold(2, p, p).unfold(3, p, p).flatten(2, 3).flatten(3)
        return (patches.transpose(1, 2) if interleaved else patches).flatten(1, 2)

    report = check(patchify)
    assert named(report) == ["patch_channels_apart"]
    assert "several squares" not in said(report)


@pytest.mark.parametrize("lr", [0.01, 0.3, 0.077])
def test_weights_moved_by_hand_are_not_called_a_new_optimizer(lr):
    def train_step(model, optimizer, x, y, max_norm=None):
        model.train()
        model.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        with torch.no_grad():
            for p in model.parameters():
                p.sub_(lr * p.grad)
        return loss.item()

    report = check(train_step)
    assert named(report) == ["train_other_optimizer"]
    assert "a loop of your own" in said(report)


@pytest.mark.parametrize("lr", [0.01, 0.077])
def test_a_new_optimizer_is_named_the_same_way(lr):
    def train_step(model, optimizer, x, y, max_norm=None):
        return step()(model, torch.optim.SGD(model.parameters(), lr=lr), x, y, max_norm)

    assert named(check(train_step)) == ["train_other_optimizer"]


def test_a_divided_loss_is_not_blamed_on_the_mode():
    report = check(step(result=lambda self, model, x, y, loss: loss.item() / len(x)), "train_step")
    assert named(report) == ["train_loss_divided"]
    other = check(step(result=lambda self, model, x, y, loss: loss.item() * 3 + 1), "train_step")
    assert named(other) == [None]
    assert "mode" not in other.findings[0].message
    assert "the loss" in other.findings[0].message


def test_a_wrong_loss_that_is_a_tensor_is_both():
    report = check(step(result=lambda self, model, x, y, loss: loss.detach() * 3 + 1), "train_step")
    assert "a tensor" in said(report)
    assert "the loss: the shape is right" in said(report)


def test_layers_that_are_cut_apart():
    class Cut(nn.Module):
        def __init__(self, make_layer, n_layers):
            super().__init__()
            self.layers = nn.ModuleList(make_layer() for _ in range(n_layers))

        def forward(self, x):
            for layer in self.layers:
                x = layer(x.detach())
            return x

    report = check(lambda make_layer, n: Cut(make_layer, n_layers=n), "build_encoder")
    assert named(report) == ["stack_cut_between"]
    assert "only the last layer learns" in said(report)


# --- a block whose attention gets another mask, or mixes what does not belong together


class InfiniteHeads(Heads):
    """Hides by minus infinity: a row that may see nothing is NaN."""

    def forward(self, x_q, x_kv=None, mask=None):
        q, k, v = (W(x_q).unflatten(-1, (self.h, -1)).transpose(1, 2) for W in (self.W_q, self.W_k, self.W_v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~(mask[:, None] if mask.dim() == 3 else mask), float("-inf"))
        return self.W_o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


def masking(change, heads=Heads):
    """A right block but for the mask that its attention gets."""

    def first(self, x, mask):
        return x + self.drop(self.attn(self.ln1(x), mask=change(x, mask)))

    def more(self, d_model, dropout):
        self.attn = heads(d_model, self.attn.h)

    return variant(Block, first=first, more=more)


def causal(x):
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()


@pytest.mark.parametrize("heads", [Heads, InfiniteHeads])
@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda x, mask: None if mask is None else ~mask, "block_mask_inverted"),
        (lambda x, mask: None if mask is None else mask.mT, "block_mask_transposed"),
        (lambda x, mask: causal(x), "block_always_causal"),
        (lambda x, mask: causal(x) if mask is None else mask & causal(x), "block_always_causal"),
        (lambda x, mask: None, "block_mask_not_passed"),
    ],
)
def test_a_mask_that_arrives_as_another_one(change, name, heads):
    report = check(masking(change, heads), "TransformerBlock")
    assert not report.passed
    assert named(report)[0] == name
    assert heads is InfiniteHeads or len(report.findings) == 1  # there NaN is found besides


def test_samples_that_attend_to_each_other():
    def first(self, x, mask):
        return x + self.drop(self.attn(self.ln1(x).transpose(0, 1)).transpose(0, 1))

    assert named(check(variant(Block, first=first), "TransformerBlock")) == ["block_sequence_first"]


def over_samples(norm, x, axes):
    centred = x - x.mean(axes, keepdim=True)
    return centred / (x.var(axes, keepdim=True, unbiased=False) + 1e-5).sqrt() * norm.weight + norm.bias


def test_statistics_over_the_batch():
    def forward(self, x, mask=None):
        x = x + self.drop(self.attn(over_samples(self.ln1, x, (0,)), mask=mask))
        return x + self.drop(self.ffn(over_samples(self.ln2, x, (0,))))

    assert named(check(variant(Block, forward=forward), "TransformerBlock")) == ["block_norm_axes"]


def test_unnamed_statistics_over_batch_and_time_are_pointed_out():
    def forward(self, x, mask=None):
        x = x + self.drop(self.attn(over_samples(self.ln1, x, (0, 1)).tanh(), mask=mask))
        return x + self.drop(self.ffn(self.ln2(x)))

    report = check(variant(Block, forward=forward), "TransformerBlock")
    assert named(report) == [None]
    assert "samples must not mix" in said(report)


def test_samples_that_mix_are_found_without_weights_too():
    def forward(self, x, mask=None):
        x = x + self.attend(over_samples(self.norms[0], x, (0,)), mask)
        return x + self.mlp(over_samples(self.norms[1], x, (0,)))

    report = check(variant(Packed, forward=forward), "TransformerBlock")
    assert "samples must not mix" in said(report)


def test_patches_that_are_averaged_over_the_batch():
    def join(self, token, x):
        return torch.cat([token, x.mean(0, keepdim=True).expand_as(x)], dim=1)

    assert named(check(variant(Embedding, join=join), "ViTEmbedding")) == ["vit_batch_averaged"]


def test_properties_tell_where_to_look_when_no_name_fits():
    def place(self, x):
        return x + self.pos_embed + 0.1 * x.roll(1, 1)

    report = check(variant(Embedding, place=place), "ViTEmbedding")
    assert named(report) == [None]
    assert "Token 0 changes with the images" in said(report) or "Token 0 is not the same" in said(report)


# --- likeness


def test_outcomes_whose_weights_did_not_fit_are_compared_with_their_like_only():
    """Where weights could not be copied, numbers are those of the initialisation, and alike by chance."""
    at = bench(EXERCISES["ViTEmbedding"], 0)
    case = at.exercise.cases[0]
    value = torch.zeros(4, 7, 10)
    other = Outcome(value=value, inside=Inside(misfits={"pos_embed": (1, 6, 10)}))
    for misfits, degree in (({}, 0), ({"proj.weight": (10, 4)}, 0), ({"pos_embed": (1, 6, 10)}, 3)):
        student = CaseRun(case, Outcome(value=value, inside=Inside(misfits=misfits)), None)
        assert likeness(at, student, 0, lambda number, forward_only: other) == degree


# --- two mistakes at once


def test_most_pairs_of_mistakes_are_named_both():
    """Only the most promising pairs are tried: the others must be few."""
    both, tried = 0, 0
    for exercise in EXERCISES.values():
        pairs = list(exercise.pairs())
        for a, b in pairs[3 :: max(1, len(pairs) // 2)]:
            report = check(exercise.pair(a, b), exercise.name)
            visible = set(named(report)) - {None}
            both += {a.id, b.id} <= visible
            tried += not report.passed
    assert tried > 40
    assert both > 0.6 * tried, f"{both} of {tried}"


# --- NaN is no dropout


@pytest.mark.parametrize("exercise", ["scaled_dot_product_attention", "self_attention"])
def test_nan_in_every_call_is_not_taken_for_dropout(exercise):
    def attention(q, k, v, mask=None, *more):
        reference = EXERCISES[exercise].reference
        result, weights = reference(q, k, v, mask, *more)
        return result / 0 * 0, weights / 0 * 0

    assert not any("dropout" in (name or "") for name in named(check(attention, exercise)))


def test_a_block_of_nan_is_not_taken_for_dropout():
    report = check(variant(Block, first=lambda self, x, mask: x * float("nan")), "TransformerBlock")
    assert "Dropout" not in said(report)
    assert "NaN" in said(report)
