"""Points: what the notebook gives, on more inputs; whose function is used; what the grader's own faults cost."""

import json
from pathlib import Path

import pytest
from fixtures.right_sets import SETS
from fixtures.school import autograde

from course_utils import questions
from course_utils.checks import EXERCISES
from course_utils.grading import choices, judge
from course_utils.grading.executor import Grader, digest_of
from course_utils.grading.lesson import lesson, lessons
from course_utils.grading.model import NEEDS_REVIEW, Result, Submission
from course_utils.grading.pool import grade_all
from grading import corpus
from grading.school import cell_of, raw, solved, stub

SECRET = b"a secret"


@pytest.fixture(scope="module")
def grader():
    with Grader(SECRET, 20.0) as grader:
        yield grader


def submission(raw, notebook=corpus.NOTEBOOK, student="ann"):
    return Submission(student, notebook, raw, f"{student}.ipynb")


def points(result):
    return {part.exercise: part.points for part in result.exercises}


@pytest.mark.parametrize("notebook", lessons())
def test_the_stub_gets_nothing_and_the_solution_everything(grader, notebook):
    nothing = grader.grade(submission(raw(stub(notebook)), notebook))
    assert set(points(nothing).values()) == {0} and {p.reason for p in nothing.exercises} == {"not done yet"}
    everything = grader.grade(submission(raw(solved(notebook)), notebook))
    assert not everything.notes
    for part in everything.exercises:
        by_hand = part.exercise.startswith("written_")
        assert part.points == (None if by_hand else part.max_points), part
    assert Result.from_dict(json.loads(json.dumps(everything.to_dict()))) == everything


@pytest.mark.slow
@pytest.mark.parametrize("notebook", lessons())
@pytest.mark.parametrize("style", SETS)
def test_right_answers_in_every_style_get_everything(grader, notebook, style):
    book = solved(notebook)
    for name in lesson(notebook).exercises:
        if name in SETS[style]:
            cell_of(book, name)["source"] = SETS[style][name]
    result = grader.grade(submission(raw(book), notebook))
    assert all(part.points in (part.max_points, None) for part in result.exercises), result.to_dict()


def test_hidden_inputs_count_and_are_not_shown(grader):
    """An answer that remembers the inputs of the notebook is right for them, and for nothing else."""
    exercise = EXERCISES[corpus.LAST]
    known = [round(float(case.call(number).arguments["q"].sum()), 3) for number, case in enumerate(exercise.cases)]
    right = corpus.RIGHT.replace(f"def {corpus.LAST}", "def right")
    source = (
        f"{right}\n\n\ndef {corpus.LAST}(q, k, v, mask=None):\n    out = right(q, k, v, mask)\n"
        f"    return out if round(float(q.detach().sum()), 3) in {known} else (0 * out[0], out[1])\n"
    )
    result = grader.grade(submission(corpus.with_cell(source)))
    (part,) = (part for part in result.exercises if part.exercise == corpus.LAST)
    assert part.points < 10 and "not shown" in part.reason
    assert str(judge.hidden_seed(SECRET, corpus.LAST)) not in str(result.to_dict())


def test_hidden_seeds_differ_by_secret_and_exercise():
    seeds = {judge.hidden_seed(secret, name) for secret in (b"a", b"b") for name in EXERCISES}
    assert len(seeds) == 2 * len(EXERCISES)
    assert judge.hidden_seed(b"a", "rnn_step") == judge.hidden_seed(b"a", "rnn_step")


def test_use_gives_the_reference_where_an_earlier_answer_is_wrong(grader):
    """TokenEmbedding of lesson 03 is built on `waves = use(sinusoidal_positions)`."""
    book = solved("03_self_attention")
    cell_of(book, "sinusoidal_positions")["source"] = "def sinusoidal_positions(T, d):\n    return torch.zeros(T, d)"
    found = points(grader.grade(submission(raw(book), "03_self_attention")))
    assert found["sinusoidal_positions"] < 10 and found["TokenEmbedding"] == 10


def test_an_answer_may_call_the_reference_of_another_exercise(grader):
    source = (
        f"from course_utils.attention import self_attention as f\ndef {corpus.LAST}(q, k, v, mask=None): return f(q)"
    )
    assert points(grader.grade(submission(corpus.with_cell(source))))[corpus.LAST] == 0
    book = solved("03_self_attention")
    source = "from course_utils.attention import scaled_dot_product_attention as attend\n"
    source += "def self_attention(x, W_q, W_k, W_v, mask=None):\n    return attend(x @ W_q, x @ W_k, x @ W_v, mask)"
    cell_of(book, "self_attention")["source"] = source
    assert points(grader.grade(submission(raw(book), "03_self_attention")))["self_attention"] == 10


def test_a_fault_of_the_grader_is_no_number(grader, monkeypatch):
    def broken(*_):
        raise RuntimeError("a fault")

    monkeypatch.setattr(judge, "judge", broken)
    result = grader.grade(submission(raw(solved())))
    assert result.state == NEEDS_REVIEW
    assert points(result)[corpus.LAST] is None and points(result)["questions_02"] == 20
    monkeypatch.undo()
    assert grader.grade(submission(raw(solved()))).state == "graded"


def test_the_digest_depends_on_file_and_secret_alone():
    one = submission(b"a")
    assert digest_of(one, b"s") == digest_of(Submission("bob", one.notebook, b"a", "elsewhere", late=True), b"s")
    assert len({digest_of(submission(b), s) for b in (b"a", b"b") for s in (b"s", b"t")}) == 4


def test_nothing_is_remembered_on_the_graders_computer(grader, data_folder, monkeypatch):
    monkeypatch.setenv("COURSE_REMEMBER", "1")
    grader.grade(submission(raw(solved())))
    assert not list(data_folder.iterdir()) and questions.last_points("02.1") is None


WRITTEN = {
    'answer("02.1", "b")': [("02.1", "b")],
    "answer('02.1', -0.5)\nanswer('02.2', None)": [("02.1", -0.5), ("02.2", None)],
    "# a remark\nx = answer('02.1', 'a')": [("02.1", "a")],
    "x = 1": [],
    'answer("02.1", 1 / 8)': None,
    'for c in "ab": answer("02.1", c)': None,
    'answer("02.1", choice="b")': None,
    'answer("02.1", ': None,
}


@pytest.mark.parametrize("source", WRITTEN)
def test_answers_are_read_where_they_stand(source):
    assert choices.written_choices(source) == WRITTEN[source]


def test_all_workers_give_the_same_results(grader):
    odd = [corpus.ORDINARY[i] for i in (0, 1, 3)]
    work = [submission(o.raw, student=f"{o.name} {i}") for i in range(2) for o in odd]
    results = {r.student: r for r in grade_all(work, 2, secret=SECRET, timeout=20.0)}
    assert len(results) == len(work)
    for one in work:
        assert points(results[one.student]) == points(grader.grade(one))


def test_a_worker_that_dies_costs_one_submission(monkeypatch, tmp_path):
    """What kills a grader is put into a module that every worker imports: a submission with this word in it."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "def watch(event, args):\n"
        "    if event == 'course.grade' and args[0] == 'deadly': os._exit(9)\n"
        "sys.addaudithook(watch)\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    work = [submission(raw(stub()), student=name) for name in ("ann", "deadly", "eve")]
    results = {r.student: r for r in grade_all(work, 1, secret=SECRET)}
    assert results["deadly"].state == NEEDS_REVIEW
    assert set(points(results["deadly"]).values()) == {None}
    assert points(results["ann"]) == points(results["eve"]) and results["eve"].state == "graded"


@pytest.mark.notebook
@pytest.mark.parametrize("notebook", ["02_attention"])
def test_agrees_with_nbgrader(grader, notebook, tmp_path, monkeypatch):
    """Cell by cell, with the same secret on both sides."""
    import nbformat

    monkeypatch.setenv("COURSE_SMOKE", "1")
    root = Path(corpus.__file__).parents[2]
    handed_out, right = (
        nbformat.read(root / p / f"{notebook}.ipynb", as_version=4) for p in ("notebooks", "solutions")
    )
    for cell in handed_out.cells:  # the instructor's own check cells, with the same hidden inputs
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if name.startswith("check_"):
            answer = f"LocalAnswer({name.removeprefix('check_')})"
            cell.source = (
                "from course_utils.checks import EXERCISES\n"
                "from course_utils.checks.answers import LocalAnswer\n"
                "from course_utils.grading.judge import judge\n"
                f"judge(EXERCISES[{name.removeprefix('check_')!r}], {answer}, {answer}, {SECRET!r}).points"
            )
    for cell in right.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name == "decode_step":
            cell.source = cell.source.replace("softmax", "sigmoid")
        if name == "answer_02_1":
            cell.source = 'answer("02.1", "c")'
    grades, _ = autograde(tmp_path, notebook, handed_out, right, monkeypatch)
    for student in ("stub", "done"):
        folder = tmp_path / "submitted" / student / "01" / f"{notebook}.ipynb"
        found = points(grader.grade(submission(folder.read_bytes(), notebook)))
        theirs = {
            name.removeprefix("check_"): (None if by_hand else p) for name, (p, _, by_hand) in grades[student].items()
        }
        assert found == theirs
