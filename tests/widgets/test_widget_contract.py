"""What every widget keeps on the Python side: words, picture, table, bundle, budgets, clear errors. No browser."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
import traitlets

from course_utils import masks, plots, widgets
from course_utils.widgets import AttentionViewer, CourseWidget, MaskEditor, packing
from course_utils.widgets.base import VIEW

from .entries import attention_viewer
from .registry import ENTRIES

SCRIPT_BYTES = 25_000
PAYLOADS = {16: 6_000, 64: 40_000, 256: 450_000}
every_widget = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)


class Page(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def first(self, tag):
        return next(attributes for name, attributes in self.tags if name == tag)


def test_every_widget_is_exported_and_has_an_entry():
    modules = {getattr(widgets, name).module for name in widgets.__all__ if name != "CourseWidget"}
    assert modules == set(ENTRIES)
    assert all(entry.name == name for name, entry in ENTRIES.items())


@every_widget
def test_words_picture_and_table_belong_together(entry):
    widget = entry.make(0)
    figure, table = widget.static(), widget.table()
    assert isinstance(widget, CourseWidget)
    assert isinstance(figure, plots.Figure)
    assert isinstance(table, plots.Table)
    assert repr(widget) == widget.describe() == figure.description
    assert re.search(r"\d", widget.describe()), "the description holds no number"
    assert "object at 0x" not in repr(widget)
    assert len(table.cells) > 1


@every_widget
def test_other_numbers_other_words_picture_and_table(entry):
    one, two = entry.make(0), entry.make(1)
    assert one.describe() != two.describe()
    assert one.static().png != two.static().png
    assert repr(one.table()) != repr(two.table())


@every_widget
def test_the_bundle_is_deterministic_and_complete(entry):
    bundles = [entry.make(0)._repr_mimebundle_()[0] for _ in range(2)]
    assert bundles[0]["text/plain"] == bundles[1]["text/plain"] == entry.make(0).describe()
    assert bundles[0]["text/html"] == bundles[1]["text/html"]
    assert bundles[0][VIEW]["model_id"] != bundles[1][VIEW]["model_id"]
    parsed = Page(bundles[0]["text/html"])
    tags = [tag for tag, _ in parsed.tags]
    assert tags.index("img") < tags.index("iframe")
    assert parsed.first("img")["alt"] == entry.make(0).describe()
    assert parsed.first("img")["src"].startswith("data:image/png;base64,")
    assert parsed.first("iframe")["srcdoc"] == entry.make(0).to_html()
    assert parsed.first("iframe")["title"]


@every_widget
def test_no_output_names_an_address(entry):
    bundle = entry.make(0)._repr_mimebundle_()[0]
    for text in (bundle["text/html"], bundle["text/plain"]):
        assert not re.search(r"\b(?:https?|wss?|ftp):|(?<![\w+/=])//[a-z]", text)


@every_widget
def test_scripts_stay_small_and_whole(entry):
    widget = entry.make(0)
    script = widget._esm
    assert len(script.encode()) <= SCRIPT_BYTES
    assert not re.search(r"^\s*import\b|\bimport\(|</script", script, re.M)
    assert script.count("`") % 2 == 0
    for line in script.splitlines():  # indentation is dropped on delivery, which would change such a text
        assert line.count("`") % 2 == 0, f"a template literal runs over several lines: {line}"
    assert "http" not in script
    for line in widget._css.splitlines():
        assert re.match(r"\.course-widget|@media|\}|\.course", line), f"this rule reaches beyond the widget: {line}"


@every_widget
def test_the_state_is_inputs_and_selections_that_survive_json(entry):
    widget = entry.make(0)
    state = widget.page_state()
    assert {"title", "question", "choices", "prediction"} < set(state)
    assert not {"layout", "_esm", "comm", "tabbable"} & set(state)
    json.dumps(packing.jsonable(state), allow_nan=False)


@every_widget
def test_a_prediction_comes_first_and_is_one_of_the_choices(entry):
    widget = entry.make(0)
    assert widget.prediction is None
    assert widget.question.endswith("?")
    assert len(widget.choices) >= 2
    widget.prediction = "b"
    assert widget.prediction == "b"
    widget.prediction = None
    for wrong in ("z", "B", "", "ab"):
        with pytest.raises(traitlets.TraitError, match=r'prediction is .*"a"'):
            widget.prediction = wrong
    assert widget.prediction is None


@every_widget
def test_what_the_browser_sends_arrives(entry):
    widget, seen = entry.make(0), []
    widget.observe(lambda change: seen.append(change["new"]), "prediction")
    data = {"method": "update", "state": {"prediction": "a"}, "buffer_paths": []}
    widget._handle_msg({"content": {"data": data}, "buffers": []})
    assert widget.prediction == "a"
    assert seen == ["a"]


def test_a_prediction_can_be_asked_in_other_words_or_not_at_all():
    other = MaskEditor(predict=("Who sees what?", ["all", "some"]), prediction="b")
    assert (other.question, other.choices, other.prediction) == ("Who sees what?", ["all", "some"], "b")
    none = MaskEditor(predict=False)
    assert none.choices == []
    for wrong in (True, "Who?", ("Who?", "ab"), ("Who?", ["one"]), (1, ["a", "b"]), ("Who?", ["x"] * 11)):
        with pytest.raises(ValueError, match="MaskEditor: predict is"):
            MaskEditor(predict=wrong)


def test_a_trait_with_a_name_of_jupyter_is_refused():
    with pytest.raises(TypeError, match="'keys'"):
        type("Bad", (CourseWidget,), {"keys": traitlets.List().tag(sync=True)})


@pytest.mark.parametrize("T", PAYLOADS)
def test_payload_of_trained_heads(T):
    viewer = attention_viewer.make(0, T)
    assert len(viewer.weights["bytes"]) + len(viewer.hidden["bytes"]) <= PAYLOADS[T]
    error = np.abs(viewer.arrays()[0] - attention_viewer.heads(T)).max()
    assert error < 1e-5


def test_packing_keeps_what_it_promises():
    values = np.random.default_rng(0).uniform(-2, 3, (4, 5))
    assert np.abs(packing.unpack(packing.pack(values, -2, 3), (4, 5)) - values).max() <= 5 / 131070 + 1e-12
    assert (packing.unpack(packing.pack_exact(values), (4, 5)) == values).all()
    ends = packing.unpack(packing.pack(np.array([0.0, 1.0])), (2,))
    assert list(ends) == [0, 1]


EYE = np.eye(3)
ONE = np.full((2, 3, 3), 1 / 3)


def editor(*arguments, **other):
    return lambda: MaskEditor(*arguments, **other)


def viewer(*arguments, **other):
    return lambda: AttentionViewer(*arguments, **other)


MISTAKES = {
    "a mask of another size": (editor("a b c", np.eye(2)), r"mask has shape \(2, 2\).*\(3, 3\)"),
    "an additive mask": (editor("a b c", EYE * -1e9), "mask must hold True and False"),
    "q alone": (editor("a b c", q=EYE), "q, k and v come together"),
    "k of another width": (editor("a b c", q=EYE, k=EYE[:, :2], v=EYE), r"k has shape \(3, 2\), but d must be 3"),
    "infinite v": (editor("a b c", q=EYE, k=EYE, v=np.full((3, 3), np.inf)), r"v\[0, 0\] is .*finite"),
    "no words": (editor([]), "words is empty"),
    "too many words": (editor(["w"] * 25), "words has 25 words; at most 24"),
    "no such word": (editor("a b c", changed=3), "changed is 3; it must be an index from 0 to 2"),
    "lengths for real": (editor("a b c", real=2), r"real has shape \(\).*\(3,\)"),
    "scores": (viewer(ONE * 9, "a b c"), "weights run from 3 to 3.*softmax"),
    "softmax over queries": (viewer([[1, 1], [0, 0]], "a b"), "head 0, query 0 sum to 2"),
    "a batch": (viewer(ONE[None], "a b c"), r"shape \(1, 2, 3, 3\); it must be \(heads, Tq, Tk\)"),
    "too few words": (viewer(ONE, "a b"), "weights has shape .*Tq must be 2"),
    "NaN": (viewer([[np.nan, 1]], "a", "a b"), r"weights\[0, 0, 0\] is nan"),
    "no such head": (viewer(ONE, "a b c", head=2), "head is 2; it must be an index from 0 to 1$"),
    "no such key": (viewer(ONE, "a b c", query=0, key=7), "key is 7"),
    "the opposite mask": (viewer(EYE, "a b c", mask=EYE == 0), "mask hides query 0, key 0, but head 0"),
    "words for weights": (viewer("a b", "a b"), "weights must hold numbers"),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_wrong_argument_is_named(name):
    make, message = MISTAKES[name]
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        make()
    assert str(caught.value).startswith(("MaskEditor: ", "AttentionViewer: "))


def test_a_selection_out_of_range_is_refused_later_too():
    viewer, editor = AttentionViewer(ONE, "a b c"), MaskEditor("a b c")
    for widget, name, value in ((viewer, "head", -1), (viewer, "query", 3), (editor, "changed", 5)):
        with pytest.raises(traitlets.TraitError, match=f"{name} is {value}"):
            setattr(widget, name, value)
    with pytest.raises(traitlets.TraitError, match=r"mask has shape \(2, 2\)"):
        editor.mask = np.ones((2, 2), bool)


def test_the_painted_mask_comes_back():
    editor, seen = MaskEditor("a b c"), []
    editor.observe(lambda change: seen.append(change["new"].tolist()), "mask")
    rows = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    data = {"method": "update", "state": {"mask": rows}, "buffer_paths": []}
    editor._handle_msg({"content": {"data": data}, "buffers": []})
    assert editor.mask.dtype == bool
    assert torch.equal(torch.tensor(editor.mask), masks.causal_mask(3))
    assert len(seen) == 1
    with pytest.raises(ValueError, match="read-only"):
        editor.mask[0, 1] = True


def test_the_mask_editor_says_what_leaks():
    editor = MaskEditor()
    assert (editor.reaches_back()[1:] > 0).all()
    editor.mask = masks.causal_mask(6)
    assert not editor.reaches_back().any()
    assert "No change reaches an output before it." in editor.describe()
    moves = editor.moves(3)
    assert not moves[:3].any()
    assert (moves[3:] > 0).all()
    editor.mask = editor.mask & (np.arange(6) != 4)[:, None]
    assert "May attend to nothing, which gives zeros: man." in editor.describe()
    assert not editor.attention()[0][4].any()
    editor.empty = "nan"
    assert np.isnan(editor.attention()[0][4]).all()
    assert not editor.reaches_back().any()


def test_the_viewer_takes_tensors_of_one_head_and_hides_what_a_mask_hides():
    weights = torch.full((3, 3), 1 / 3, requires_grad=True, dtype=torch.float32)
    viewer = AttentionViewer(weights, ["x", "y", "z"], "der Hund bellt")
    assert viewer.arrays()[0].shape == (1, 3, 3)
    assert viewer.typical_spread(0) == pytest.approx(3, rel=1e-3)
    causal = masks.causal_mask(3)
    hidden = AttentionViewer(causal / causal.sum(-1, keepdim=True), "x y z", mask=causal)
    assert "A mask hides 3 of 9 cells." in hidden.describe()
    assert repr(hidden.table()).count("hidden") == 3


def test_zero_weights_and_hidden_cells_look_different():
    weights = np.eye(4)
    plain, masked = (AttentionViewer(weights, "a b c d", mask=mask) for mask in (None, weights > 0))
    assert plain.static().png != masked.static().png
