"""Claims: what they print, and when they stop a run."""

import numpy as np
import pytest
import torch

from course_utils.claims import ClaimError, claim


@pytest.fixture(autouse=True)
def ordinary_run(monkeypatch):
    for switch in ("COURSE_SMOKE", "COURSE_STRICT"):
        monkeypatch.delenv(switch, raising=False)


TRUE = [True, np.True_, torch.tensor(True), torch.tensor([True]), np.array([[True]])]
FALSE = [False, np.False_, torch.tensor(False), torch.tensor([False])]


@pytest.mark.parametrize("condition", TRUE)
@pytest.mark.parametrize("value", [None, 0.123, torch.rand(())])
def test_a_claim_that_holds_prints_the_same_in_every_run(condition, value, capsys):
    claim("attention wins", condition, value)
    assert capsys.readouterr().out == "Measured: attention wins — holds.\n"


@pytest.mark.parametrize("condition", FALSE)
def test_a_claim_that_fails_says_so_and_goes_on(condition, capsys):
    claim("attention wins", condition)
    assert capsys.readouterr().out == "Measured: attention wins — does not hold in this run.\n"


def test_what_was_measured_is_told_where_the_claim_fails(capsys):
    claim("attention wins", False, value=[torch.tensor(0.25), 3])
    assert "(measured: 0.25, 3)" in capsys.readouterr().out


def test_strict_runs_stop_at_a_claim_that_fails(monkeypatch):
    monkeypatch.setenv("COURSE_STRICT", "1")
    claim("attention wins", True)
    with pytest.raises(ClaimError, match=r"attention wins \(measured: 0.25\)"):
        claim("attention wins", False, value=0.25)


def test_smoke_runs_judge_nothing_even_if_strict(monkeypatch, capsys):
    monkeypatch.setenv("COURSE_SMOKE", "1")
    monkeypatch.setenv("COURSE_STRICT", "1")
    claim("attention wins", False)
    claim("attention wins", True)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["Measured: attention wins — not judged in smoke mode."] * 2


@pytest.mark.parametrize("condition", [None, "yes", 1, 0.5, torch.ones(2).bool(), torch.tensor(1.0), np.array([])])
def test_a_condition_that_is_no_truth_value_is_a_clear_error(condition):
    with pytest.raises(TypeError, match="condition must be one truth value"):
        claim("attention wins", condition)
