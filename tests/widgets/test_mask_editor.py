"""A mask to paint and to check: the goal of the mask editor."""

import numpy as np
import pytest
import traitlets

from course_utils import masks
from course_utils.widgets import MaskEditor

from .browser import mark, settle, tab_to

WORDS = "the dog bites <pad>"
STATE = "() => ['checked', 'solved'].map((name) => courseWidget.model.get(name))"


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("causal", masks.causal_mask(4).numpy()),
        ("padding", np.ones((4, 4), bool) & [True, True, True, False]),
        ("causal and padding", masks.causal_mask(4).numpy() & [True, True, True, False]),
    ],
)
def test_goals_by_name_are_the_masks_of_the_course(name, want):
    assert np.array_equal(MaskEditor(WORDS, goal=name).goal, want.astype(int))
    assert np.array_equal(MaskEditor(WORDS, goal=want).goal, want.astype(int))


@pytest.mark.parametrize("goal", ["future", np.ones((3, 3)), np.full((4, 4), -1e9)])
def test_a_goal_that_is_none_is_named(goal):
    with pytest.raises(ValueError, match="MaskEditor: goal"):
        MaskEditor(WORDS, goal=goal)


def test_without_a_goal_there_is_nothing_to_check():
    with pytest.raises(ValueError, match="has no goal; give it one"):
        MaskEditor(WORDS).wrong()


def test_no_mask_and_nothing_solved_without_a_goal():
    editor = MaskEditor(WORDS)
    with pytest.raises(traitlets.TraitError, match="MaskEditor: mask"):
        editor.mask = None
    editor.solved = True
    assert not editor.solved


def test_solved_is_true_only_for_the_goal_and_only_until_the_mask_changes():
    editor = MaskEditor(WORDS, goal="causal")
    assert editor.wrong().sum() == 6
    editor.checked = editor.solved = True
    assert editor.checked
    assert not editor.solved
    assert "6 of 16 cells wrong, the first: query “the”, key “dog”." in editor.describe()
    editor.mask = masks.causal_mask(4)
    assert not editor.checked
    editor.checked = editor.solved = True
    assert editor.solved
    editor.mask = masks.window_mask(4, 2)
    assert not editor.checked
    assert not editor.solved


def test_what_the_button_sends_arrives():
    editor = MaskEditor(WORDS, masks.causal_mask(4), goal="causal")
    state = {"checked": True, "solved": True}
    editor._handle_msg({"content": {"data": {"method": "update", "state": state, "buffer_paths": []}}, "buffers": []})
    assert editor.checked
    assert editor.solved
    assert "Checked against the goal: every cell is right." in editor.describe()


@pytest.mark.browser
def test_the_button_says_which_cells_are_wrong(show):
    page, root = show(MaskEditor(WORDS, masks.causal_mask(4), goal="causal and padding"))
    mark(page, root)
    status = root.locator(".cw-status")
    assert "Not checked yet." in status.inner_text()
    page.evaluate("() => document.activeElement.blur()")
    tab_to(page, root, "button:has-text('Check')")
    page.keyboard.press("Enter")
    settle(page)
    assert "1 of 16 cells wrong. The first: query “<pad>”, key “<pad>” should be hidden." in status.inner_text()
    assert page.evaluate(STATE) == [True, False]
    root.get_by_role("button", name="Hide padding").click()
    settle(page)
    assert "Not checked yet." in status.inner_text()
    assert page.evaluate(STATE) == [False, False]
    page.get_by_role("button", name="Check").click()
    settle(page)
    assert "Check 2: every cell is right." in status.inner_text()
    assert page.evaluate(STATE) == [True, True]


@pytest.mark.browser
def test_a_cell_that_is_hidden_too_much_is_told_as_well(show):
    page, root = show(MaskEditor(WORDS, np.eye(4), goal="causal", predict=False))
    root.get_by_role("button", name="Check").click()
    settle(page)
    told = root.locator(".cw-status").inner_text()
    assert "6 of 16 cells wrong. The first: query “dog”, key “the” should be shown." in told


@pytest.mark.browser
def test_without_a_goal_there_is_no_button(show):
    _, root = show(MaskEditor(WORDS, predict=False))
    assert root.get_by_role("button", name="Check").count() == 0
