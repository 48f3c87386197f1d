"""Class answers: how weights come in, what is said about what goes wrong, and that only values cross."""

import pickle

import pytest
import torch
from right_answers.modules import EinsumHeads, OtherNameEmbedding, PackedHeads, PackedWithoutCopy, PlainEmbedding
from torch import nn

from course_utils import parts
from course_utils.checks import EXERCISES, check
from course_utils.checks.answers import LocalAnswer
from course_utils.checks.bench import bench
from course_utils.progress import progress

CLASSES = [e for e in EXERCISES.values() if e.is_class]
each_class = pytest.mark.parametrize("exercise", CLASSES, ids=lambda e: e.name)


class Heads(EinsumHeads):
    """A right answer to change."""


def changed(base, **methods):
    return type(base.__name__, (base,), methods)


# --- what is passed


def test_new_exercises_are_shown_by_notebook():
    by_notebook = {n: [e.name for e in EXERCISES.values() if e.notebook == n] for n in ("03", "04", "05")}
    assert by_notebook["03"] == ["self_attention", "sinusoidal_positions", "apply_rope", "TokenEmbedding"]
    assert by_notebook["04"] == ["causal_mask", "padding_mask", "decoder_mask", "mean_pool", "generate"]
    assert by_notebook["05"] == ["MultiHeadAttention"]
    assert "TokenEmbedding" in repr(progress())


@each_class
def test_instance_function_and_text_are_told_apart_from_the_class(exercise):
    assert "Pass the class itself" in str(check(PlainEmbedding(3, 2)))
    assert "Pass the class itself" in str(check(PlainEmbedding(3, 2), exercise.name))
    assert "asks for a class" in str(check(lambda *_: None, exercise.name))
    assert "without quotes" in str(check(exercise.name))


def test_a_class_for_a_function_exercise():
    for passed in (PlainEmbedding, PlainEmbedding(3, 2)):
        said = str(check(passed, "causal_mask"))
        assert "asks for a function" in said
        assert "def causal_mask(" in said
        assert "Pass the class" not in said


@each_class
@pytest.mark.parametrize("where", ["__init__", "forward"])
def test_stub_is_not_done_yet(exercise, where):
    def stub(self, *_):
        raise NotImplementedError

    class Stub(nn.Module):
        def __init__(self, *_):
            super().__init__()

    setattr(Stub, where, stub)
    assert check(Stub, exercise.name).state == "not done yet"


@each_class
def test_class_without_forward_or_without_module(exercise):
    class NoForward(nn.Module):
        def __init__(self, *_):
            super().__init__()

    class NoModule:
        def __init__(self, *_):
            pass

    report = check(NoForward, exercise.name)
    assert report.state == "not right yet"
    assert "NoModule(nn.Module)" in str(check(NoModule, exercise.name))
    assert check(NoModule, exercise.name).points == 0


def test_wrong_arity_says_whether_of_the_class_or_of_forward():
    assert "(d_model, n_heads)" in str(check(changed(Heads, __init__=lambda self: None), "MultiHeadAttention"))
    report = str(check(changed(Heads, forward=lambda self: None), "MultiHeadAttention"))
    assert "`forward` cannot be called with the argument (x_q)" in report


def test_hostile_modules_do_not_stop_a_check():
    def fails(self, *_, **__):
        raise SystemExit("no")

    for name in ("eval", "named_parameters", "named_buffers", "copy_from", "__call__", "__getattr__"):
        report = check(changed(Heads, **{name: fails}), "MultiHeadAttention")
        assert not report.passed
        assert report.findings

    shapes = iter(range(10**6))
    report = check(
        changed(PackedWithoutCopy, forward=lambda self, x, *_: torch.zeros(2, 5, 8 + next(shapes))),
        "MultiHeadAttention",
    )
    assert not report.passed


# --- weights


def test_copy_from_is_preferred_and_its_errors_are_told():
    def copy_from(self, reference):
        raise KeyError("W_z")

    assert check(PackedHeads, "MultiHeadAttention").passed
    report = check(changed(PackedHeads, copy_from=copy_from), "MultiHeadAttention")
    assert "while weights are copied" in str(report)
    assert report.points == 0


def test_copying_something_else_is_wrong():
    def copy_from(self, reference):
        self.out.load_state_dict(reference.W_o.state_dict())

    assert not check(changed(PackedHeads, copy_from=copy_from), "MultiHeadAttention").passed


def test_weights_of_other_sizes_are_named():
    def __init__(self, d_model, n_heads):
        EinsumHeads.__init__(self, d_model, n_heads)
        self.W_q = nn.Linear(d_model, d_model // n_heads)

    assert "`W_q.weight` has shape (2, 8), not (8, 8)" in str(
        check(changed(Heads, __init__=__init__), "MultiHeadAttention")
    )


def test_own_weights_are_checked_by_properties_and_that_is_said():
    report = check(PackedWithoutCopy, "MultiHeadAttention")
    assert report.passed
    assert report.points == 10
    assert "only its properties" in str(report)
    report = check(OtherNameEmbedding, "TokenEmbedding")
    assert report.passed
    assert "`emb.weight`" in str(report)


@each_class
def test_reference_has_the_properties(exercise):
    for seed in range(5):
        at = bench(exercise.by_properties, seed)
        assert all((w.error is not None) == c.must_raise for w, c in zip(at.wanted, at.exercise.cases, strict=True))


@pytest.mark.parametrize("threads", [1, 2])
def test_initialisation_does_not_matter(threads):
    """Whatever a module draws while it is made, the weights of the case decide."""

    def __init__(self, d_model, n_heads):
        EinsumHeads.__init__(self, d_model, n_heads)
        for p in reversed(list(self.parameters())):
            nn.init.normal_(p, std=3.0)

    assert check(changed(Heads, __init__=__init__), "MultiHeadAttention", seed=threads).passed


def test_a_missing_key_bias_gradient_is_no_mistake():
    class NoKeyBias(EinsumHeads):
        def __init__(self, d_model, n_heads):
            super().__init__(d_model, n_heads)
            self.W_k.bias.requires_grad_(False)

    assert check(NoKeyBias, "MultiHeadAttention").passed


def test_frozen_matrix_is_found():
    class Frozen(EinsumHeads):
        def __init__(self, d_model, n_heads):
            super().__init__(d_model, n_heads)
            self.W_v.weight.requires_grad_(False)

    assert "no gradient reaches `W_v.weight`" in str(check(Frozen, "MultiHeadAttention"))


def test_answer_that_always_fails_gets_no_point_for_refusing():
    def forward(self, *_):
        raise RuntimeError("no")

    assert check(changed(Heads, forward=forward), "MultiHeadAttention").points == 0


class PlainTable(PlainEmbedding):
    """The table is an ordinary attribute."""

    def __init__(self, vocab, d_model, max_len=64):
        super().__init__(vocab, d_model, max_len)
        table = self.pe
        del self._buffers["pe"]
        self.keep(table)

    def keep(self, table):
        self.pe = table


class OtherPlainTable(OtherNameEmbedding):
    """The same, where no weights can be copied."""

    def __init__(self, vocab, d_model, max_len=64):
        super().__init__(vocab, d_model, max_len)
        table = self.table
        del self._buffers["table"]
        self.table = table


@pytest.mark.parametrize("answer", [PlainTable, OtherPlainTable])
def test_a_table_in_an_ordinary_attribute_costs_a_point(answer):
    report = check(answer, "TokenEmbedding")
    assert not report.passed
    assert report.points == report.max_points - 1
    assert [f.misconception for f in report.findings] == ["emb_table_not_registered"]
    assert "state_dict()" in str(report)


def test_a_table_in_a_numpy_array_or_in_a_list_is_no_better():
    array = changed(
        PlainTable,
        keep=lambda self, table: setattr(self, "kept", table.numpy()),
        forward=lambda self, idx: self.scale * self.emb(idx) + torch.as_tensor(self.kept)[:, : idx.size(1)],
    )
    rows = changed(
        PlainTable,
        keep=lambda self, table: setattr(self, "kept", list(table[0])),
        forward=lambda self, idx: self.scale * self.emb(idx) + torch.stack(self.kept[: idx.size(1)]),
    )
    for answer in (array, rows):
        report = check(answer, "TokenEmbedding")
        assert report.points == report.max_points - 1
        assert "ordinary attribute" in str(report)


def test_a_buffer_that_is_not_saved_passes_and_a_table_made_in_each_call_is_a_note():
    volatile = changed(PlainTable, keep=lambda self, table: self.register_buffer("pe", table, persistent=False))
    report = check(volatile, "TokenEmbedding")
    assert report.passed
    assert not report.notes
    made_anew = changed(
        PlainTable,
        keep=lambda self, table: None,
        forward=lambda self, idx: (
            self.scale * self.emb(idx)
            + EXERCISES["sinusoidal_positions"].reference(idx.shape[1], self.emb.embedding_dim)
        ),
    )
    report = check(made_anew, "TokenEmbedding")
    assert report.passed
    assert any("no buffer" in note for note in report.notes)


def test_module_that_remembers_the_call_before():
    class Remembers(EinsumHeads):
        def forward(self, x_q, x_kv=None, mask=None):
            out = super().forward(x_q, x_kv, mask)
            self.sum = out if getattr(self, "sum", None) is None else self.sum + out
            return self.sum

    assert "Two calls" in str(check(Remembers, "MultiHeadAttention"))


@each_class
def test_only_values_cross(exercise):
    """Calls and outcomes must survive a process boundary."""
    for which in (exercise, exercise.by_properties):
        at = bench(which, 0)
        for call in at.calls:
            again = pickle.loads(pickle.dumps(call))
            outcome = LocalAnswer(exercise.reference).call(again)
            assert pickle.loads(pickle.dumps(outcome)).inside == outcome.inside


def test_random_state_is_left_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    for exercise in CLASSES:
        check(exercise.reference)
    check(PackedWithoutCopy, "MultiHeadAttention")
    check(changed(Heads, forward=lambda self, *_: torch.rand(3)), "MultiHeadAttention")
    assert torch.equal(before, torch.get_rng_state())


# --- sampling


@pytest.mark.parametrize("seed", range(20))
def test_sampling_is_not_rejected_by_chance(seed):
    """Other draws than the reference's, twenty times over."""

    def generate(model, idx, n, temperature=1.0, top_k=None):
        for _ in range(n):
            logits = model(idx[:, -model.block_size :])[:, -1] / temperature
            if top_k is not None:
                logits = logits.masked_fill(logits < logits.topk(top_k).values[:, -1:], float("-inf"))
            noise = torch.empty_like(logits).exponential_(generator=source)
            idx = torch.cat([idx, (logits.softmax(-1) / noise).argmax(-1, keepdim=True)], 1)
        return idx

    source = torch.Generator().manual_seed(seed)
    assert check(generate, seed=seed).passed


# --- use


def test_use_gives_the_class_or_the_reference(capsys):
    assert parts.use(EinsumHeads, "MultiHeadAttention") is EinsumHeads
    wrong = changed(Heads, forward=lambda self, x, *_: x)
    assert parts.use(wrong, "MultiHeadAttention") is EXERCISES["MultiHeadAttention"].reference
    assert "does not pass yet" in capsys.readouterr().out


def test_slow_class_is_measured_by_its_calls_not_by_its_making(monkeypatch):
    """With a clock of its own, so that a busy machine does not decide: making costs a minute, a call a second."""
    clock = [0.0]

    class SlowToMake(EinsumHeads):
        def __init__(self, d_model, n_heads):
            super().__init__(d_model, n_heads)
            clock[0] += 60

    class SlowToCall(EinsumHeads):
        def forward(self, *inputs):
            clock[0] += 1
            return super().forward(*inputs)

    def seconds():
        clock[0] += 0.02  # what a fast call seems to take
        return clock[0]

    entry = EXERCISES["MultiHeadAttention"]
    monkeypatch.setattr(parts.time, "perf_counter", seconds)
    assert parts.slowness(entry, SlowToCall) == pytest.approx(1.02 / 0.02)
    assert parts.slowness(entry, SlowToMake) == pytest.approx(1.0)
    assert set(parts.TYPICAL_MODULES) == {e.name for e in CLASSES}
