"""What is said of answers that call other parts, cut off the graph, or never return; and that timers are left alone."""

import signal
import threading
import time

import pytest
import torch
from torch import nn

from course_utils import parts
from course_utils.checks import EXERCISES, check, limit
from course_utils.checks.limit import DidNotReturnError
from course_utils.recurrent import rnn_step as reference_rnn_step

# --- an answer that calls what is not done yet


def rnn_step(x, h, W_xh, W_hh, b):
    raise NotImplementedError("your code here: replace this line")


def my_own_helper(*_):
    raise NotImplementedError


def sinusoidal_positions(n, d):
    raise NotImplementedError


def encode_with(step):
    def seq2seq_encode(emb, lengths, W_xh, W_hh, b):
        h = torch.zeros(len(emb), len(W_hh))
        for t in range(emb.shape[1]):
            h = step(emb[:, t], h, W_xh, W_hh, b)
        return emb, h

    return seq2seq_encode


def test_another_exercise_that_is_not_done_is_named(capsys):
    report = check(encode_with(rnn_step))
    assert report.state == "not right yet"
    assert report.points == 0
    (finding,) = report.findings
    assert "Your seq2seq_encode calls rnn_step, which is not done yet" in finding.message
    assert "use(rnn_step)" in finding.message
    parts.use(encode_with(rnn_step))
    assert "calls rnn_step, which is not done yet" in capsys.readouterr().out


def test_a_helper_that_is_not_done_is_named_and_not_given_to_use():
    report = str(check(encode_with(my_own_helper)))
    assert "calls my_own_helper, which is not done yet" in report
    assert "use(" not in report


def test_another_exercise_that_is_called_in_later_cases_only():
    def scaled_dot_product_attention(q, k, v, mask=None):
        if mask is not None:
            rnn_step(q, k, v, mask, mask)
        return EXERCISES["scaled_dot_product_attention"].reference(q, k, v)

    report = check(scaled_dot_product_attention)
    assert 0 < report.points < 10
    assert "calls rnn_step, which is not done yet" in str(report)


def test_a_class_that_calls_a_stub():
    class TokenEmbedding(nn.Module):
        def __init__(self, vocab, d_model, max_len=64):
            super().__init__()
            self.positions = sinusoidal_positions(max_len, d_model)

    assert "Your TokenEmbedding calls sinusoidal_positions, which" in str(check(TokenEmbedding))


def test_a_function_of_an_unfinished_class_is_named_by_its_class():
    class Cell(nn.Module):
        def forward(self, *_):
            raise NotImplementedError

    assert "calls Cell, which is not done yet" in str(check(encode_with(Cell())))


@pytest.mark.parametrize("inner", [False, True])
def test_an_unfinished_answer_itself_is_not_done_yet(inner):
    def rnn_step(x, h, W_xh, W_hh, b):
        def later():
            raise NotImplementedError

        return later() if inner else [later() for _ in x]

    assert check(rnn_step).state == "not done yet"


# --- cut off from the graph


def test_a_result_that_is_cut_off_is_not_blamed_on_single_arguments():
    def rnn_step(x, h, W_xh, W_hh, b):
        return reference_rnn_step(x, h, W_xh, W_hh, b).detach()

    report = str(check(rnn_step))
    assert "no gradient reaches the arguments" in report


def test_one_argument_that_gets_no_gradient_is_named():
    def rnn_step(x, h, W_xh, W_hh, b):
        return reference_rnn_step(x, h.detach(), W_xh, W_hh, b)

    assert "no gradient reaches `h`." in str(check(rnn_step))


# --- an answer that does not return

needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timer")


def endless(*_):
    while True:
        time.sleep(0.001)


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(limit, "SECONDS", 0.3)
    monkeypatch.setattr(limit, "AFTERWARDS", 0.1)


@needs_timer
def test_an_endless_loop_is_ended_and_named(short):
    before = signal.getsignal(signal.SIGALRM)
    report = check(endless, "rnn_step")
    assert report.points == 0
    assert "did not return within" in str(report)
    assert "time.sleep(0.001)" in str(report)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@needs_timer
def test_an_endless_loop_in_one_case_costs_that_case_only(short):
    def greedy_decode(model, idx, n, eos_id=None):
        if eos_id is None:
            return EXERCISES["greedy_decode"].reference(model, idx, n)
        return endless()

    report = check(greedy_decode)
    assert {c.name for c in report.cases if not c.points} == {
        c.name for c in EXERCISES["greedy_decode"].cases if "eos_id" in c.call(0).arguments
    }


@needs_timer
def test_an_except_of_the_students_does_not_hold_it(short):
    def rnn_step(*_):
        while True:
            try:
                time.sleep(0.001)
            except Exception:
                continue

    assert "did not return within" in str(check(rnn_step))


@needs_timer
def test_the_timer_of_somebody_else_is_left_alone(short):
    rang = []
    before = signal.signal(signal.SIGALRM, lambda *_: rang.append(True))
    try:
        signal.setitimer(signal.ITIMER_REAL, 30)
        assert check(reference_rnn_step).passed
        with limit.limit(0.001):
            time.sleep(0.02)
        left = signal.getitimer(signal.ITIMER_REAL)[0]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert 0 < left <= 30
    assert not rang


@needs_timer
def test_the_limit_ends_with_its_block():
    with limit.limit(0.02):
        pass
    time.sleep(0.05)  # would be interrupted
    with pytest.raises(DidNotReturnError), limit.limit(0.02):
        time.sleep(5)


def test_without_a_timer_or_outside_the_main_thread_everything_still_works(monkeypatch):
    reports = []
    thread = threading.Thread(target=lambda: reports.append(check(reference_rnn_step)))
    thread.start()
    thread.join()
    monkeypatch.delattr(signal, "setitimer", raising=False)
    reports.append(check(reference_rnn_step))
    assert [report.passed for report in reports] == [True, True]


@needs_timer
def test_keyboard_interrupt_passes_through_and_ends_the_timer():
    def rnn_step(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(rnn_step)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
