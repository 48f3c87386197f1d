"""The instructor's page, and the search for submissions that are alike."""

import re

import pytest

from course_utils.checks import EXERCISES
from course_utils.grading.intake import UNKNOWN, Line
from course_utils.grading.model import GRADED, NEEDS_REVIEW, UNREADABLE, ExerciseResult
from course_utils.grading.records import Records, whole
from course_utils.grading.report import Run, report_page
from course_utils.grading.report_people import marking_guide
from course_utils.grading.results import Stored
from course_utils.grading.similarity import alike
from grading.school import LESSON, WORDS, result
from grading.test_feedback import EVIL, Tags

LONG = """\
def additive_attention(query, keys, W_q, W_k, v, mask=None):
    outputs, everything = [], []
    for index in range(keys.shape[0]):
        current, scores = keys[index], []
        for position in range(current.shape[0]):
            hidden = torch.tanh(query[index] @ W_q + current[position] @ W_k)
            scores.append((hidden * v).sum())
        stacked = torch.stack(scores)
        if mask is not None:
            stacked = torch.where(mask[index], stacked, torch.tensor(-1e9))
        exponentials = torch.exp(stacked - stacked.max())
        weights = exponentials / exponentials.sum()
        outputs.append(sum(weights[p] * current[p] for p in range(current.shape[0])))
        everything.append(weights)
    return torch.stack(outputs), torch.stack(everything)
"""
SHORT = "def shift_right(targets, bos_id):\n    return F.pad(targets[:, :-1], (1, 0), value=bos_id)\n"


def text_of(*results, run=None, **more):
    stored = tuple(r if isinstance(r, Stored) else Stored(r) for r in results)
    return report_page(Records(stored, **more), run or Run())


def with_misconception(student, name):
    return result(student, exercises=(ExerciseResult("decode_step", 0.0, 10.0, GRADED, "so", None, (name,)),))


def test_what_to_teach_again_is_said_in_the_words_of_the_catalogue():
    first, second = EXERCISES["decode_step"].misconceptions[:2]
    many = [with_misconception(student, first.id) for student in ("ann", "bo", "cy")]
    text = text_of(*many, with_misconception("dee", second.id))
    table = text[text.index("What the class holds") : text.index("Points by exercise")]
    assert table.index("3 <small>(75%)") < table.index("1 <small>(25%)")
    plain = re.sub(r"<[^>]+>", "", table).replace("&#x27;", "'")
    assert first.says.replace("`", "").split(".")[0] in plain
    assert "ann, bo, cy" in table


def test_everything_that_needs_a_person_is_named():
    run = Run([Line("m.zip/poem.ipynb", UNKNOWN, "no lesson")], ["m.zip: read as Moodle"], ["stranger_9"])
    text = text_of(
        result("ann"),
        whole("bo", LESSON, UNREADABLE, "The file is empty."),
        whole("cy", LESSON, NEEDS_REVIEW, "The grader failed, which is not the student's fault."),
        run=run,
        roster=("ann", "dee"),
    )
    for words in (
        "The file is empty.",
        "The grader failed",
        "poem.ipynb",
        "stranger_9",
        "dee",
        WORDS[:30],
        "marks.csv",
    ):
        assert words in text


def test_the_marking_guide_stands_with_the_answers():
    guide = marking_guide(LESSON, "written_02_W")
    assert guide and guide.split("\n")[0] in text_of(result("ann"))


def test_missing_isolation_is_loud_and_present_isolation_is_said():
    assert "Isolation: none, for 1 of 2" in text_of(result("ann", isolation="none"), result("bo"))
    quiet = text_of(result("ann"))
    assert "Isolation: bubblewrap" in quiet and "Isolation: none" not in quiet


def test_nothing_of_a_student_becomes_part_of_the_page():
    found = Stored(
        result(EVIL, notes=(EVIL,), written={"written_02_W": EVIL}, origin=EVIL), {"additive_attention": LONG + EVIL}
    )
    other = Stored(result("bo", written={"written_02_W": EVIL}), {"additive_attention": LONG + EVIL})
    run = Run([Line(EVIL, UNKNOWN, EVIL)], [EVIL], [EVIL])
    seen = Tags(text_of(found, other, whole(EVIL + "2", LESSON, UNREADABLE, EVIL), run=run, roster=(EVIL + "3",)))
    assert not {"script", "img", "b", "iframe", "link"} & set(seen.tags)


def test_nobody_is_a_class_too():
    assert "Report on nothing" in text_of()


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.replace("outputs", "o").replace("current", "row"),
        lambda s: s.replace("    ", "  "),
        lambda s: s + "# mine\n",
    ],
)
def test_a_long_copy_is_found_whatever_its_names_and_comments(change):
    (pair,) = alike({"ann": {"a": LONG}, "bo": {"a": change(LONG)}, "cy": {"a": SHORT}})
    assert (pair.first, pair.second) == ("ann", "bo")
    assert pair.share > 0.9


def test_short_answers_are_never_called_alike():
    assert alike({name: {"shift_right": SHORT} for name in ("ann", "bo")}) == []


def test_what_the_course_says_itself_is_not_the_students():
    assert alike({name: {"a": LONG} for name in ("ann", "bo")}, given=[LONG]) == []


def test_what_many_write_is_common():
    assert alike({f"s{i}": {"a": LONG} for i in range(12)}) == []


def test_unfinished_code_is_compared_as_far_as_it_can_be_read():
    assert alike({"ann": {"a": LONG + '"""'}, "bo": {"a": LONG + "((("}})
