"""Full tables behind the lessons: all seeds and sizes, measured by `python -m course_utils.measured.make`.

A notebook runs one seed and the part of a table that fits; what it quotes beyond that is read from here.
"""

import json
from pathlib import Path

FOLDER = Path(__file__).parent
SEEDS = (0, 1, 2)


def load(name: str) -> dict:
    """The committed measurements of this name: how they were made, and the numbers of every seed.

    Raises ValueError, with the names there are, for an unknown one.
    """
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in FOLDER.glob("*.json")))
        raise ValueError(f"name: there are no measurements {name!r}; there are: {known}")
    return json.loads(path.read_text(encoding="utf-8"))


def spread(values: list[float], digits: int = 2) -> str:
    """Several seeds in one cell of a table: "0.98", or "0.91 … 0.99" where they differ."""
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} … {high}"
