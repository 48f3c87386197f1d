"""A progress bar for the terminal, with an estimate; a plain line now and then where there is none."""

import sys
import time
from typing import TextIO

WIDTH = 30
ENOUGH = 5  # submissions, before there is an estimate
EVERY = 0.2  # seconds between two drawings; tenfold where lines cannot be drawn over


class Progress:
    """Counts submissions on standard error; `close` leaves the last line."""

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self.total, self.done = total, 0
        self.stream = stream if stream is not None else sys.stderr
        self.live = self.stream.isatty()
        self.started = time.monotonic()
        self.first = 0.0  # when the first was done: starting the graders says nothing about their speed
        self.shown = 0.0 if self.live else self.started

    def step(self, what: str = "") -> None:
        """One more is done."""
        self.done += 1
        now = time.monotonic()
        self.first = self.first or now
        if self.done < self.total and now - self.shown < (EVERY if self.live else 50 * EVERY):
            return
        self.shown = now
        self._draw(f"{self.done} of {self.total}, {self.left(now)}", what)

    def left(self, now: float) -> str:
        """The estimate in words."""
        if self.done >= self.total:
            return f"{now - self.started:.0f} s"
        if self.done < ENOUGH:
            return "estimating"
        seconds = (now - self.first) / (self.done - 1) * (self.total - self.done)
        return f"about {seconds:.0f} s left" if seconds < 90 else f"about {seconds / 60:.0f} min left"

    def _draw(self, text: str, what: str) -> None:
        if self.live:
            filled = WIDTH * self.done // max(1, self.total)
            line = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {text}  {what}"
            self.stream.write(f"\r{line[:110]:<110}")
        else:
            self.stream.write(f"graded {text}\n")
        self.stream.flush()

    def close(self) -> None:
        """End the line."""
        if self.live and self.done:
            self.stream.write("\n")
            self.stream.flush()
