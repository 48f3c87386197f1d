"""The training loop: what it does at each step, what it leaves behind, and what it says."""

import math
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_utils import mode, progress_bar, training
from course_utils.training import History, cosine_with_warmup, n_parameters, seed_everything, train


def batches(seed=0):
    generator = torch.Generator().manual_seed(seed)
    while True:
        x = torch.randn(16, 3, generator=generator)
        yield x, x.sum(dim=1, keepdim=True)


def squared_error(model, batch):
    return F.mse_loss(model(batch[0]), batch[1])


def run(steps=5, seed=0, model=None, **options):
    seed_everything(seed)
    model = model or nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 1))
    return model, train(model, options.pop("loss_of", squared_error), batches(seed), steps, **options)


def test_it_takes_exactly_the_steps_and_batches_it_was_told():
    drawn = []

    def counted():
        for batch in batches():
            drawn.append(batch)
            yield batch

    history = train(nn.Linear(3, 1), squared_error, counted(), 7)
    assert history.steps == len(history.losses) == len(drawn) == 7
    assert history.finished and history.seconds > 0


def test_it_learns_and_leaves_the_model_in_eval_mode():
    model, history = run(150, lr=2e-2)
    assert history.final_loss < history.losses[0] / 4
    assert not model.training


def test_the_same_seed_gives_the_same_losses_and_weights():
    (one, first), (two, second) = run(10, seed=4), run(10, seed=4)
    assert first.losses == second.losses
    assert all(a.equal(b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert run(10, seed=5)[1].losses != first.losses


def test_seeding_covers_python_numpy_and_torch():
    def draw():
        return random.random(), float(np.random.rand()), float(torch.rand(1))

    seed_everything(3)
    first = draw()
    seed_everything(3)
    assert draw() == first
    seed_everything(4)
    assert all(a != b for a, b in zip(draw(), first, strict=True))
    seed_everything(-1)  # numpy takes no negative seed


def test_smoke_mode_cuts_the_run_short_and_says_so(monkeypatch, capsys):
    monkeypatch.setenv("COURSE_SMOKE", "1")
    _, history = run(1000)
    assert history.steps == mode.SMOKE_STEPS
    assert "smoke mode" in capsys.readouterr().out
    assert run(1)[1].steps == 1


def test_measurements_are_taken_in_eval_mode_and_training_goes_on():
    seen, modes = [], []

    def measure(model):
        assert not torch.is_grad_enabled()
        seen.append(model.training)
        return len(modes)

    def loss_of(model, batch):
        modes.append(model.training)
        return squared_error(model, batch)

    _, history = run(7, loss_of=loss_of, measure=measure, measure_every=3)
    assert history.measured == [(0, 0), (3, 3), (6, 6), (7, 7)]
    assert not any(seen) and all(modes)


def test_a_measurement_does_not_change_the_training():
    assert run(9, measure=lambda model: 1, measure_every=2)[1].losses == run(9)[1].losses


@pytest.fixture
def slow_clock(monkeypatch):
    """Each look at the clock is a second later."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(training.time, "monotonic", lambda: float(next(ticks)))


def test_the_time_limit_aborts_with_a_message(slow_clock, capsys):
    model, history = run(50, time_limit=3, label="slow model")
    assert not history.finished
    assert 0 < history.steps < 50
    printed = capsys.readouterr().out
    assert "slow model: stopped at the time limit of 3 s before all 50 steps" in printed
    assert "unfinished model" in printed
    assert not model.training


def test_a_last_step_that_comes_late_is_a_finished_run(slow_clock):
    assert run(1, time_limit=0)[1].finished


@pytest.mark.parametrize("steps", [0, -3])
def test_no_step_is_an_error(steps):
    with pytest.raises(ValueError, match=f"steps: got {steps}, must be at least 1"):
        run(steps)


def test_a_model_without_parameters_is_an_error():
    frozen = nn.Linear(3, 1).requires_grad_(False)
    for model in (nn.Tanh(), frozen):
        with pytest.raises(ValueError, match=f"model: {type(model).__name__} has no parameter to train"):
            run(model=model)


def test_a_detached_loss_is_an_error():
    with pytest.raises(ValueError, match="loss_of: the loss does not depend on the model's parameters"):
        run(loss_of=lambda model, batch: squared_error(model, batch).detach())


def test_a_number_in_place_of_a_loss_is_an_error_that_names_loss_of():
    with pytest.raises(ValueError, match="loss_of: "):
        run(loss_of=lambda model, batch: squared_error(model, batch).item())


def test_gradients_are_clipped():
    """Adam hides the size of a gradient that is always the same, so the gradients themselves are looked at."""

    def longest_gradient(clip):
        model, found = nn.Linear(3, 1), []
        optimizer_step = torch.optim.AdamW.step

        def step(self, *arguments, **options):
            found.append(torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item())
            return optimizer_step(self, *arguments, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.optim.AdamW, "step", step)
            run(6, model=model, clip=clip, loss_of=lambda m, b: 1e4 * squared_error(m, b))
        assert len(found) == 6
        return max(found)

    assert longest_gradient(0.5) == pytest.approx(0.5, rel=1e-4)
    assert longest_gradient(1e9) > 100


def test_gradients_are_left_alone_without_clip():
    model = nn.Linear(3, 1)
    run(1, model=model, clip=None, loss_of=lambda m, b: 1e4 * squared_error(m, b))
    assert torch.cat([p.grad.flatten() for p in model.parameters()]).norm() > 100


def test_a_schedule_of_ones_own_and_the_betas_reach_the_optimizer(monkeypatch):
    rates, betas = [], []
    optimizer_step = torch.optim.AdamW.step

    def step(self, *arguments, **options):
        rates.append(self.param_groups[0]["lr"])
        betas.append(self.param_groups[0]["betas"])
        return optimizer_step(self, *arguments, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", step)
    run(3, lr=2.0, schedule=lambda step: 1 / (step + 1), betas=(0.5, 0.6))
    assert rates == pytest.approx([2.0, 1.0, 2 / 3]) and betas == [(0.5, 0.6)] * 3


def test_weights_decay_only_if_asked():
    sizes = {}
    for decay in (0.0, 0.5):
        seed_everything(0)
        model = nn.Linear(3, 1)
        run(20, model=model, lr=0.05, weight_decay=decay, loss_of=lambda m, b: 0 * squared_error(m, b))
        sizes[decay] = model.weight.norm().item()
    assert sizes[0.5] < sizes[0.0]


def test_a_loss_that_is_no_number_ends_the_run_with_a_message(capsys):
    calls = []

    def loss_of(model, batch):
        calls.append(1)
        return squared_error(model, batch) * (float("nan") if len(calls) == 3 else 1)

    model, history = run(10, loss_of=loss_of, label="hot model")
    assert history.diverged and not history.finished and history.steps == 3
    assert "hot model: stopped after 3 of 10 steps, because the loss is no longer a finite number." in (
        capsys.readouterr().out
    )
    assert not model.training


@pytest.mark.parametrize(
    ("error", "says"), [(KeyboardInterrupt, "interrupted"), (RuntimeError("odd"), "stopped by an error")]
)
def test_a_run_that_is_broken_off_leaves_a_usable_model_and_a_last_line(error, says, monkeypatch, capsys):
    handle, calls, model = Handle(), [], nn.Sequential(nn.Linear(3, 1), nn.Dropout(0.5))
    monkeypatch.setattr(progress_bar, "_in_notebook", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda line, display_id: handle.update(line) or handle)

    def loss_of(model, batch):
        calls.append(1)
        if len(calls) == 4:
            raise error
        return squared_error(model, batch)

    with pytest.raises(error if isinstance(error, type) else type(error)):
        run(9, model=model, loss_of=loss_of, label="long run")
    assert not model.training and not model[1].training
    assert repr(handle.shown[-1]) == f"long run: {says} after 3 of 9 steps; the model is unfinished."
    assert "<progress" not in handle.shown[-1]._repr_html_()


def test_an_interrupted_measurement_leaves_the_model_in_eval_mode():
    model = nn.Linear(3, 1)

    def measure(model):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(2, model=model, measure=measure)
    assert not model.training


def test_gradients_do_not_add_up_over_the_steps():
    """One parameter whose gradient is known at every step: the batch."""
    weight = nn.Parameter(torch.zeros(()))
    model = nn.Module()
    model.weight = weight
    signs = [0.5, -0.5, 0.5]
    seen = []

    def loss_of(model, batch):
        if weight.grad is not None:
            seen.append(weight.grad.item())
        return model.weight * batch

    train(model, loss_of, iter(signs), 3)
    assert seen == signs[:2] and weight.grad.item() == signs[2]


def test_parameters_that_do_not_learn_stay_as_they_are():
    model = nn.Sequential(nn.Linear(3, 4).requires_grad_(False), nn.Linear(4, 1))
    before = [p.clone() for p in model.parameters()]
    run(3, model=model)
    same = [a.equal(b) for a, b in zip(before, model.parameters(), strict=True)]
    assert same == [True, True, False, False]
    assert n_parameters(model) == 5


def test_the_learning_rate_rises_and_then_falls():
    factors = [cosine_with_warmup(step, 200, 20, floor=0.1) for step in range(201)]
    assert factors[:20] == sorted(factors[:20]) and factors[0] < 0.1
    assert factors[20:] == sorted(factors[20:], reverse=True)
    assert max(factors) <= 1 and factors[-1] == pytest.approx(0.1)
    assert cosine_with_warmup(0, 10, 0) == pytest.approx(1)


def test_the_final_loss_is_the_mean_of_the_last_twentieth():
    assert History(losses=[9.0] * 57 + [1.0, 2.0, 3.0]).final_loss == 2
    assert History(losses=[5.0, 4.0]).final_loss == 4
    assert math.isnan(History().final_loss)


def test_outside_a_notebook_the_bar_leaves_one_line(capsys):
    _, history = run(12, label="my model")
    printed = capsys.readouterr()
    (line,) = printed.out.splitlines()
    assert line.startswith("my model: 12 steps in ") and line.endswith(f"final loss {history.final_loss:.3f}")
    assert printed.err == ""


class Handle:
    """What display() gives back in a notebook."""

    def __init__(self):
        self.shown = []

    def update(self, line):
        self.shown.append(line)


def test_inside_a_notebook_the_bar_updates_one_output(monkeypatch, capsys):
    handle = Handle()
    monkeypatch.setattr(progress_bar, "_in_notebook", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda line, display_id: handle.update(line) or handle)
    ticks = iter(range(1000))
    monkeypatch.setattr(progress_bar.time, "monotonic", lambda: float(next(ticks)))
    bar = progress_bar.ProgressBar(10, "a < b")
    bar.update(5, 1.25)
    bar.close(0.5)
    start, middle, end = handle.shown
    assert 'max="10" value="0"' in start._repr_html_()
    assert 'max="10" value="5"' in middle._repr_html_() and "loss 1.250" in repr(middle)
    assert "<progress" not in end._repr_html_() and "a &lt; b: 10 steps" in end._repr_html_()
    assert repr(end).startswith("a < b: 10 steps")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "value, on", [("1", True), ("yes", True), ("0", False), ("off", False), (" ", None), (None, None)]
)
def test_the_switches_in_the_environment(monkeypatch, value, on):
    defaults = {"COURSE_SMOKE": False, "COURSE_STRICT": False, "COURSE_REMEMBER": True}
    monkeypatch.delenv("CI", raising=False)
    for (name, default), read in zip(defaults.items(), (mode.smoke, mode.strict, mode.remembering), strict=True):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
        assert read() is (default if on is None else on)


def test_nothing_is_remembered_in_ci_unless_asked(monkeypatch):
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv("COURSE_REMEMBER")
    assert not mode.remembering()
    monkeypatch.setenv("COURSE_REMEMBER", "1")
    assert mode.remembering()
