"""A progress bar that leaves one quiet line behind.

A widget's bar would be blank in a saved notebook, and a text bar writes to standard error, which reads like a fault;
this one updates a single HTML output in place, and prints the last line where there is no notebook.
"""

import html
import time

from . import mode


def _in_notebook() -> bool:
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class _Line:
    """What a notebook shows: a bar while it runs, a sentence afterwards. The text form is the sentence alone."""

    def __init__(self, text: str, step: int, steps: int, done: bool):
        self.text, self.step, self.steps, self.done = text, step, steps, done

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        text = html.escape(self.text)
        if self.done:
            return f"<div>{text}</div>"
        return f'<div><progress max="{self.steps}" value="{self.step}" aria-label="{text}"></progress> {text}</div>'


class ProgressBar:
    """Shows step, loss and remaining time, at most four times a second."""

    def __init__(self, steps: int, label: str):
        self.steps, self.label = steps, label
        self.started = self.shown = time.monotonic()
        self.handle = None
        if _in_notebook():
            from IPython.display import display

            self.handle = display(_Line(f"{label}: starting", 0, steps, False), display_id=True)

    def update(self, step: int, loss: float) -> None:
        """Say how far it is. Cheap enough to call at every step."""
        now = time.monotonic()
        if self.handle is None or now - self.shown < 0.25:
            return
        self.shown = now
        left = (now - self.started) / step * (self.steps - step)
        text = f"{self.label}: step {step:,} of {self.steps:,}, loss {loss:.3f}, about {left:.0f} s left"
        self.handle.update(_Line(text, step, self.steps, False))

    def close(
        self,
        loss: float,
        *,
        finished: bool = True,
        time_limit: float = 0.0,
        diverged: bool = False,
        step: int = 0,
        broken_off: str = "",
    ) -> None:
        """Leave one line that stays. broken_off: by what, if the training did not end by itself."""
        took = time.monotonic() - self.started
        text = f"{self.label}: {self.steps:,} steps in {took:.0f} s, final loss {loss:.3f}"
        if broken_off:
            text = f"{self.label}: {broken_off} after {step:,} of {self.steps:,} steps; the model is unfinished."
        elif diverged:
            text = (
                f"{self.label}: stopped after {step:,} of {self.steps:,} steps, because the loss is no longer a finite "
                "number."
            )
        elif not finished:
            text = (
                f"{self.label}: stopped at the time limit of {time_limit:.0f} s before all {self.steps:,} steps were "
                f"done; final loss {loss:.3f}. Results below are those of an unfinished model."
            )
        elif mode.smoke():
            text += " (smoke mode: training cut short, no claim is judged)"
        if self.handle is not None:
            self.handle.update(_Line(text, self.steps, self.steps, True))
        else:
            print(text)
