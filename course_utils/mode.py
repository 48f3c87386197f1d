"""How a run was asked to behave: three switches in the environment, read in one place.

COURSE_SMOKE=1     little data and a few steps of training: structure is tested, no claim is judged
COURSE_STRICT=1    a claim that does not hold stops the notebook (set by the build and the tests)
COURSE_REMEMBER=0  no finished part is kept or loaded (the default wherever CI is set)
"""

import os

SMOKE_STEPS = 3


def _flag(name: str, default: bool) -> bool:
    value = os.environ.get(name)
    if value is None or not value.strip():
        return default
    return value.strip().lower() not in {"0", "false", "no", "off"}


def smoke() -> bool:
    """True when training is to be cut to a few steps and claims are not to be judged."""
    return _flag("COURSE_SMOKE", False)


def strict() -> bool:
    """True when a claim that does not hold is to raise."""
    return _flag("COURSE_STRICT", False)


def remembering() -> bool:
    """True when finished parts may be kept in the user's data folder and loaded from it."""
    return _flag("COURSE_REMEMBER", not _flag("CI", False))


def size(full: int, small: int) -> int:
    """How much data to make, or how often to repeat a measurement: `full`, or at most `small` in smoke mode."""
    return min(full, small) if smoke() else full


def steps(full: int) -> int:
    """The number of training steps to run: `full`, or a handful in smoke mode."""
    return min(full, SMOKE_STEPS) if smoke() else full
