"""The students' notebooks, worked through from the first to the last: with right answers, and with wrong ones.

One run of a whole course remembers its parts as on a student's computer; training is cut short (smoke mode).
"""

import os
import re
from pathlib import Path

import nbformat
import pytest
from fixtures.right_sets import SETS
from nbclient import NotebookClient

from course_utils.checks import EXERCISES

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))
LATER = {  # parts that a later notebook takes from an earlier one
    "02": {"shift_right", "lm_loss"},
    "06": {"MultiHeadAttention", "shift_right", "lm_loss", "causal_mask", "generate"},
    "07": {"MultiHeadAttention", "TransformerBlock"},
}
WRONG = {
    "shift_right": "def shift_right(targets, bos_id):\n    return targets\n",
    "scaled_dot_product_attention": (
        "def scaled_dot_product_attention(q, k, v, mask=None):\n"
        "    weights = (q @ k.transpose(-2, -1)).softmax(dim=-1)\n"
        "    return weights @ v, weights\n"
    ),
    "sinusoidal_positions": (
        "import torch\n\n\ndef sinusoidal_positions(T, d):\n"
        "    angles = torch.arange(T).unsqueeze(1) / 10000 ** (torch.arange(d) / d)\n"
        "    return angles.sin()\n"
    ),
    "causal_mask": "import torch\n\n\ndef causal_mask(T):\n    return torch.ones(T, T, dtype=torch.bool).triu()\n",
    "MultiHeadAttention": SETS["einsum"]["MultiHeadAttention"].replace("if mask is not None:", "if False:"),
    "noam_lr": "def noam_lr(step, d_model, warmup):\n    return max((step + 1) ** -0.5, step * warmup**-1.5)\n",
    "patchify": "def patchify(images, p):\n    return images.reshape(len(images), -1, images.shape[1] * p * p)\n",
}
"""One wrong answer for each notebook: no shift, no scale, no cosine, the future, no mask, max for min, strips."""


def work_through(path: Path, answers: dict[str, str], folder: Path) -> tuple[dict[str, str], str]:
    """Run a student's notebook with these cells for its stubs: the report of each check, and all that was printed."""
    notebook = nbformat.read(path, as_version=4)
    mine = []
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if cell.metadata.get("nbgrader", {}).get("solution") and name in answers:
            cell.source = answers[name]
            mine.append(name)
    env = dict(os.environ, COURSE_SMOKE="1", COURSE_STRICT="1", COURSE_REMEMBER="1", COURSE_DATA=str(folder / "data"))
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        store_widget_state=False,
    )
    client.execute(env=env)
    texts = ["".join(_texts(cell)) for cell in notebook.cells if cell.cell_type == "code"]
    reports = {name: next(t for t in texts if t.lstrip().startswith(f"{name}:")) for name in mine}
    return reports, "\n".join(texts)


def _texts(cell):
    for output in cell.outputs:
        yield output.get("text", "") or output.get("data", {}).get("text/plain", "")
        yield "\n"


@pytest.mark.notebook
@pytest.mark.parametrize("style", SETS)
def test_right_answers_of_one_style_carry_the_whole_course(style, tmp_path):
    asked = set(EXERCISES)
    for path in NOTEBOOKS:
        reports, printed = work_through(path, SETS[style], tmp_path)
        asked -= set(reports)
        for name, report in reports.items():
            assert re.search(r"\b10 of 10 points", report), f"{path.stem}, {name}: {report}"
        used = set(re.findall(r"(?:Using your|Your) (\w+)(?: from notebook \d\d)?(?:\.| is right, but)", printed))
        assert "the reference stands in" not in printed, path.stem
        later = LATER.get(path.stem[:2], set())
        assert later <= used, f"{path.stem} does not use {later - used} of an earlier notebook"
        assert reports.keys() - used <= {"gru_step"} | ({"rnn_step"} if path.stem[:2] != "01" else set()), path.stem
    assert not asked, "no notebook asks for these exercises"


@pytest.mark.notebook
def test_a_wrong_part_is_named_and_the_course_goes_on_with_the_reference(tmp_path):
    answers = SETS["fused"] | WRONG
    for path in NOTEBOOKS:
        reports, printed = work_through(path, answers, tmp_path)
        wrong = reports.keys() & WRONG.keys()
        assert len(wrong) == 1, f"{path.stem}: one wrong answer for each notebook"
        for name in reports:
            assert ("10 of 10 points" in reports[name]) == (name not in wrong), reports[name]
        (name,) = wrong
        assert re.search(rf"Your {name} does not pass yet \(.+\): the reference stands in", printed), path.stem
    assert "No MultiHeadAttention of yours is remembered yet: the reference stands in." in printed, (
        "in the last notebook"
    )
