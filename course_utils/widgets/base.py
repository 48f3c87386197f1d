"""What every widget has: a module of its own, a prediction first, a still twin, a table, a description in words."""

from typing import TYPE_CHECKING, Any, ClassVar

import anywidget
import ipywidgets
import traitlets as t

from course_utils.plots import Figure, Table

from . import page

if TYPE_CHECKING:
    from course_utils.questions import Prediction

VIEW = "application/vnd.jupyter.widget-view+json"
LETTERS = "abcdefghij"


class CourseWidget(anywidget.AnyWidget):
    """The base of the course's widgets.

    A subclass gives `module`, the name of its .js file (and .css, if it has one), `uses`, the shared parts it needs
    ("numbers", "heatmap"), a default question with choices, and the methods `describe`, `static` and `table`. Its
    traits are inputs and selections only; what follows from them is computed in the browser, so that an exported
    page lives.

    Values appear once a prediction is marked: `prediction` is the letter of a choice, None before. A lesson reads it
    and compares it, w.compare("b", "why"); code that nobody clicks in sets it, w.prediction = "b".
    """

    module: ClassVar[str] = ""
    uses: ClassVar[tuple[str, ...]] = ()

    title = t.Unicode().tag(sync=True)
    question = t.Unicode().tag(sync=True)
    choices = t.List(t.Unicode()).tag(sync=True)
    prediction = t.Unicode(None, allow_none=True).tag(sync=True)

    def __init_subclass__(cls, **options: Any) -> None:
        if cls.__dict__.get("module"):
            cls._esm = page.module_text(cls.module, cls.uses)
            cls._css = page.style_text(cls.module)
        super().__init_subclass__(**options)
        # `keys`, `comm` and others mean something to Jupyter; a trait of that name breaks far from here.
        if taken := [
            n for n, x in cls.__dict__.items() if isinstance(x, t.TraitType) and hasattr(ipywidgets.DOMWidget, n)
        ]:
            raise TypeError(f"{cls.__name__}: the traits {taken} have names that ipywidgets uses; rename them")

    def __init__(
        self, *, title: str, predict: Any, prediction: str | None, default: tuple[str, list[str]], **traits: Any
    ):
        """predict: (question, choices), None for the widget's own, False for values that show at once."""
        question, choices = _prediction(type(self).__name__, predict, default)
        super().__init__(title=str(title), question=question, choices=choices, **traits)
        self.prediction = prediction

    @t.validate("prediction")
    def _a_choice(self, proposal: Any) -> str | None:
        letters = LETTERS[: len(self.choices)]
        if proposal["value"] is not None and proposal["value"] not in tuple(letters):
            allowed = ", ".join(f'"{letter}"' for letter in letters) or "no choice"
            raise t.TraitError(
                f"{type(self).__name__}: prediction is {proposal['value']!r}; it must be None or one of {allowed}"
            )
        return proposal["value"]

    def describe(self) -> str:
        """What is to be seen, with the most important numbers, in plain sentences."""
        raise NotImplementedError

    def static(self) -> Figure:
        """The still twin: a picture with the description."""
        raise NotImplementedError

    def table(self) -> Table:
        """Every number that the widget shows."""
        raise NotImplementedError

    def compare(self, right: str, why: str) -> "Prediction":
        """The prediction beside what is right, in words. right: the letter of a choice; why: what the numbers say.

        Tells nothing before a prediction is marked. Raises ValueError where `right` is no choice.
        """
        from course_utils.questions import Prediction

        return Prediction(self.choices, self.prediction, right, why)

    def __repr__(self) -> str:
        return self.describe()

    def page_state(self) -> dict[str, Any]:
        """Inputs and selections: every synchronised trait but those of Jupyter itself."""
        names = [n for n in self.trait_names(sync=True) if n[0] != "_" and not hasattr(ipywidgets.DOMWidget, n)]
        encoders = {name: self.trait_metadata(name, "to_json") for name in names}
        return {n: encoders[n](getattr(self, n), self) if encoders[n] else getattr(self, n) for n in sorted(names)}

    def to_html(self) -> str:
        """The widget as a page of its own, alive without kernel or network."""
        return page.live_page(self.title, self._esm, self._css, self.page_state())

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The live view; the picture with its description, followed by the page; and the description alone."""
        bundle = super()._repr_mimebundle_(**options) or ({}, {})
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        still = self.static()._repr_html_() + page.in_frame(self.title, self.to_html())
        return {**data, "text/plain": self.describe(), "text/html": still}, metadata


def _prediction(where: str, predict: Any, default: tuple[str, list[str]]) -> tuple[str, list[str]]:
    """The question and its choices; ("", []) if values are to be shown at once."""
    if predict is False:
        return "", []
    question, choices = default if predict is None else predict if _is_pair(predict) else (None, None)
    if not isinstance(question, str) or isinstance(choices, str) or not 2 <= len(choices) <= len(LETTERS):
        raise ValueError(
            f"{where}: predict is {predict!r}; it must be (question, [choice, choice, …]) with 2 to {len(LETTERS)} "
            "choices, None for the widget's own question, or False for none"
        )
    return question, [str(choice) for choice in choices]


def _is_pair(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 2
