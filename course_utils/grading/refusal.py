"""What happens where a student's code calls a reference that is not there; the grader is told that it was called."""

from typing import Any

called: set[str] = set()


def refuse(name: str) -> Any:
    """Stands in the place of the function or class of this name."""
    called.add(name)
    raise RuntimeError(f"the course's own {name} is not there while yours is graded")
