"""Claims that a lesson measures: each says whether it held in this run."""

from typing import Any

from . import mode


class ClaimError(AssertionError):
    """A claim of the lesson did not hold, in a run that was asked to be strict."""


def claim(text: str, condition: Any, value: Any = None) -> None:
    """Say whether what was just measured bears out the claim.

    text: the claim, a sentence without its full stop.
    condition: a truth value, or an array or tensor of one.
    value: what was measured; told only where the claim fails, so that a claim that holds prints the same in
    every run.
    In smoke mode nothing is judged. In strict mode a claim that fails raises ClaimError.
    """
    holds = _truth(text, condition)
    if mode.smoke():
        print(f"Measured: {text} — not judged in smoke mode.")
        return
    if holds:
        print(f"Measured: {text} — holds.")
        return
    measured = "" if value is None else f" (measured: {_short(value)})"
    print(f"Measured: {text} — does not hold in this run{measured}.")
    if mode.strict():
        raise ClaimError(f"{text}{measured}")


def _truth(text: str, condition: Any) -> bool:
    if isinstance(condition, bool):
        return condition
    # numpy and torch both know how many elements they hold, under different names.
    count = condition.numel() if hasattr(condition, "numel") else getattr(condition, "size", None)
    if count != 1 or "bool" not in str(getattr(condition, "dtype", "")):
        shape = getattr(condition, "shape", None)
        got = type(condition).__name__ + (f" of shape {tuple(shape)}, {condition.dtype}" if shape is not None else "")
        raise TypeError(
            f"claim({text!r}): condition must be one truth value, got {got}; "
            "compare it with something, and reduce several with .all() or .any()"
        )
    return bool(condition.item())


def _short(value: Any) -> str:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(_short(v) for v in value)
    return str(value)
