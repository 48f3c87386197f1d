"""The block stepper: what is recorded of a stack, that the stream is a sum, and errors that name the way out."""

import numpy as np
import pytest
import torch
import traitlets
from torch import nn

from course_utils import masks
from course_utils.block_variants import ModernBlock, RMSNorm, SwiGLU
from course_utils.encoder_decoder import PostNormBlock
from course_utils.transformer import TransformerBlock
from course_utils.widgets import BlockStepper

from .browser import mark, settle
from .entries.block_stepper import WORDS, make, stack

X = torch.tensor(np.random.default_rng(0).standard_normal((5, 16)))
PRE, POST = (BlockStepper.trace(stack(norm, 0), X) for norm in ("pre", "post"))


@pytest.mark.parametrize(
    "make_block",
    [
        lambda: TransformerBlock(16, 4, 32, dropout=0.3),
        lambda: ModernBlock(16, 2, 24, make_norm=RMSNorm, make_ffn=SwiGLU),
    ],
)
def test_what_a_pre_norm_stack_adds_sums_up_to_its_output(make_block):
    blocks, mask = nn.ModuleList(make_block() for _ in range(3)), masks.causal_mask(5)
    trace = BlockStepper.trace(blocks, X[None].float(), mask)
    want = X[None].float()
    for block in blocks.eval():
        want = block(want, mask)
    assert np.abs(trace["stream"][-1] - want[0].detach().numpy()).max() < 1e-4
    assert trace["added"].shape == (6, 5, 16)
    stepper = BlockStepper(trace)
    assert stepper.differences().max() < 1e-12
    assert stepper.along().sum() == pytest.approx(np.linalg.norm(trace["stream"][-1, 0]))


def test_what_a_post_norm_stack_adds_does_not():
    blocks = nn.ModuleList(PostNormBlock(16, 4, 32) for _ in range(2)).double()
    trace = BlockStepper.trace(blocks, X)
    out = blocks[1](blocks[0](X[None]))[0].detach().numpy()
    assert np.abs(trace["stream"][-1] - out).max() < 1e-12
    stepper = BlockStepper({k: v[:4] for k, v in PRE.items() if k != "start"} | {"start": PRE["start"]}, trace)
    stepper.norm = "post"
    assert stepper.differences().min() > 0.01


def test_recording_leaves_the_blocks_as_they_were():
    blocks = nn.ModuleList(TransformerBlock(16, 4, 32, dropout=0.3) for _ in range(2)).train()
    BlockStepper.trace(blocks, X)
    assert all(block.training for block in blocks)
    assert next(blocks.parameters()).dtype == torch.float32
    assert not any(part._forward_hooks for part in blocks.modules())


def test_sub_layers_read_normalised_copies_or_the_stream():
    assert np.abs(PRE["read"].mean(-1)).max() < 1e-9
    assert np.allclose(POST["read"][0], POST["start"])
    assert np.allclose(POST["read"][1:], POST["stream"][:-1])


GRADIENTS = {"pre": [1.0, 2.0], "post": [0.1, 0.2, 0.3]}
MISTAKES = {
    "a tensor": ({"pre": X}, r"pre must map start, read, added and stream .*got Tensor"),
    "no stream": ({"pre": {"start": 1, "added": 2}}, r"got \['added', 'start'\]; BlockStepper.trace"),
    "an odd number": ({"pre": {k: v[:5] for k, v in PRE.items()}, "post": None}, "pre added has 5 sub-layers"),
    "post-norm as pre": ({"pre": POST}, "the stream after sub-layer .* post-norm stack\\? It goes into post"),
    "stacks of different depth": (
        {"post": {k: v[:4] for k, v in POST.items()}},
        r"post added has shape \(4, 5, 16\), but 2L must be 6",
    ),
    "a start of one position": (
        {"pre": PRE | {"start": PRE["start"][:1]}},
        r"pre start has shape \(1, 16\), but T must be 5",
    ),
    "too few words": ({"words": "a b"}, "words has 2 words, but the stream has 5 positions"),
    "no such step": ({"step": 18}, "step is 18; it must be an index from 0 to 17"),
    "gradients of others": ({"gradients": {"none": [1]}}, r'gradients must map "pre" and "post".*none'),
    "a negative norm": ({"gradients": {"pre": [-1, 1]}}, "holds -1; a norm is never negative"),
    "post that is not there": ({"post": None, "norm": "post"}, "nothing was given for post"),
    "too much": (
        {"pre": {k: np.zeros((*v.shape[:-1], 900)) for k, v in PRE.items()}, "post": None},
        "numbers, and at most 20,000",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_argument_is_named(name):
    changed, message = MISTAKES[name]
    good = {"pre": PRE, "post": POST, "words": WORDS, "gradients": GRADIENTS}
    with pytest.raises((ValueError, traitlets.TraitError), match=message) as caught:
        BlockStepper(**good | changed)
    assert str(caught.value).startswith("BlockStepper: ")


@pytest.mark.parametrize(
    ("blocks", "x", "message"),
    [
        ([nn.Linear(16, 16)], X, r"block 0 \(Linear\) has no ln1, attn, ln2, ffn"),
        ([], X, "blocks is empty"),
        (stack("pre", 0), X.expand(2, 5, 16), r"x has shape \(2, 5, 16\)"),
    ],
)
def test_blocks_that_cannot_be_recorded_are_named(blocks, x, message):
    with pytest.raises(ValueError, match=message):
        BlockStepper.trace(blocks, x)


def test_a_block_that_does_not_add_is_refused():
    class Replaces(TransformerBlock):
        def forward(self, x, mask=None):
            return self.ff2(self.ff1(self.ln2(self.attn(self.ln1(x), None, mask))))

    with pytest.raises(ValueError, match=r"block 0 \(Replaces\) is neither pre-norm"):
        BlockStepper.trace([Replaces(16, 4, 32)], X)


def test_a_selection_out_of_range_is_refused_later_too():
    stepper = make(0)
    for name, value in (("step", 18), ("position", -1)):
        with pytest.raises(traitlets.TraitError, match=f"{name} is {value}"):
            setattr(stepper, name, value)


@pytest.mark.browser
def test_walking_through_a_stack_says_what_is_in_the_stream(show):
    page, root = show(make(0))
    mark(page, root)
    status = root.locator(".cw-status p").first
    for norm in ("pre-norm", "post-norm"):
        root.get_by_role("button", name=norm).click()
        root.locator("select").first.select_option("0")
        root.locator(".cw-blocksteps button").first.click()
        told = []
        for _ in range(17):
            root.get_by_role("button", name="Next step").click()
            settle(page)
            told.append("): exactly 0" in status.inner_text())
        assert root.get_by_role("button", name="Next step").is_disabled()
        # The first sum of a post-norm stack has not met a norm yet.
        assert told == ([True] * 17 if norm == "pre-norm" else [True] + [False] * 16)


@pytest.mark.browser
def test_without_gradients_and_without_post_norm(show):
    page, root = show(BlockStepper(PRE, predict=False))
    settle(page)
    assert root.locator("canvas:visible").count() == 2
    assert root.get_by_role("button", name="post-norm").count() == 0
