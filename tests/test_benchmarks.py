"""The benchmarks measure what they say; nothing here asserts a time."""

import pytest

from course_utils import cli
from course_utils.benchmarks import BENCHMARKS, hover, widgets
from course_utils.benchmarks import checks as benchmark
from course_utils.benchmarks.checks import BUDGET, PAIRS, Timing, row, summary, time_exercise
from course_utils.checks import EXERCISES

FAST = Timing("fast", [0.001, 0.003], [(0.002, "a"), (0.004, "b")], [(0.006, "a + b")])
SLOW = Timing("slow", [0.010], [(9.0, "c"), (0.5, "d")])


def test_every_exercise_is_measured_with_all_its_mistakes():
    exercise = EXERCISES["causal_mask"]
    timing = time_exercise(exercise, repeats=2)
    assert timing.name == exercise.name
    assert len(timing.right) == 2
    assert [name for _, name in timing.wrong] == [m.id for (m,), _ in exercise.singles()]
    assert len(timing.pairs) == min(PAIRS, len(list(exercise.pairs())))
    assert all(s >= 0 for s, _ in timing.wrong + timing.pairs)


def test_the_summary_looks_at_all_checks_together():
    assert summary([FAST, SLOW]) == {"right, median": 0.003, "wrong, median": 0.006, "slowest": 9.0}


def test_a_row_names_the_slowest_mistake():
    assert row(FAST) == ("fast", pytest.approx(2.0), 3, pytest.approx(4.0), pytest.approx(6.0), "a + b")
    assert row(SLOW)[-1] == "c"


@pytest.mark.parametrize(("timing", "code"), [(FAST, 0), (SLOW, 1)])
def test_a_budget_that_is_exceeded_is_said_and_returned(timing, code, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_REMEMBER", "0")
    monkeypatch.setattr(benchmark, "EXERCISES", {"one": None})
    monkeypatch.setattr(benchmark, "time_exercise", lambda exercise, repeats: timing)
    assert benchmark.main(1) == code
    out = capsys.readouterr().out
    assert timing.name in out
    assert ("OVER" in out) == bool(code)
    assert out.count("computing time") == len(BUDGET)


@pytest.mark.parametrize(("name", "about"), [("checks", "check"), ("widgets", "JupyterLab")])
def test_a_benchmark_is_listed(name, about):
    title, run = BENCHMARKS[name]
    assert about in title
    assert callable(run)


# ---------------------------------------------------------------- widgets


def test_the_example_is_what_a_causal_model_gives():
    weights, words = hover.example(9)
    assert weights.shape == (hover.HEADS, 9, 9)
    assert len(words) == 9
    assert weights.sum(-1) == pytest.approx(1)
    assert (weights[:, [0, 3], [1, 8]] == 0).all()


def test_a_row_has_kilobytes_and_quantiles():
    found = widgets.Measured(sent=2000, seconds=1.5, times=[1.0, 2.0, 3.0], each=500)
    assert widgets.row("a view", 16, found) == ("a view", 16, 2.0, 1.5, "0.5", 2.0, pytest.approx(2.9), "")
    assert widgets.row("a view", 16, widgets.Measured(10, None, [], note="shows nothing"))[-1] == "shows nothing"


def test_traffic_counts_bytes_of_text_and_of_binary_messages():
    class Page:
        def on(self, event, listen):
            self.listen = listen

    class Socket(Page):
        pass

    page, socket = Page(), Socket()
    traffic = widgets.Traffic(page)
    page.listen(socket)
    socket.listen("né")
    socket.listen(b"12345")
    assert traffic.bytes == 3 + 5


def test_without_a_browser_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(widgets, "missing", lambda: "no Chromium or Chrome is on the path")
    assert cli.main(["bench", "widgets"]) == 1
    assert "no Chromium" in capsys.readouterr().err


def test_a_browser_that_is_missing_is_noticed(monkeypatch):
    from course_utils.browser import chromium

    monkeypatch.setattr(chromium, "chromium", lambda: None)
    assert chromium.missing("pytest")
    assert "no_such_package" in chromium.missing("no_such_package")


@pytest.mark.browser
def test_the_viewer_is_measured_in_a_page_of_its_own(browser, tmp_path):
    sent, times, empty = hover.alone(browser, tmp_path, 16)
    assert sent > 16 * 16
    assert len(times) > 10
    assert len(empty) > 10
    assert min(times + empty) > 0


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("view", widgets.VIEWS[:2], ids=lambda view: view.name)
def test_a_view_is_measured_in_jupyterlab(browser, tmp_path, view):
    from course_utils.browser import jupyter

    (tmp_path / "notebooks").mkdir()
    (tmp_path / "server").mkdir()
    with jupyter.server("lab", tmp_path / "notebooks", tmp_path / "server") as address:
        found = widgets.measure(browser, address, tmp_path / "notebooks", view, T=8, moves=12)
        jupyter.stop_kernels(address)
    assert found.sent > 1000
    assert len(found.times) >= 4
    assert (found.each > 1000) == (view.act == "choose"), "only pictures from the kernel travel"
