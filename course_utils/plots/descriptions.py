"""The figures in words: alt text of the picture, and its plain-text form."""

from collections.abc import Mapping, Sequence

import numpy as np

from .tables import format_value


def describe_heatmap(
    array: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str],
    title: str,
    gold: list[int | None] | None,
    what: str,
) -> str:
    n_q, n_k = array.shape
    parts = [f"Heatmap. {title}. {n_q} queries in rows, {n_k} keys in columns."]
    filled = np.where(np.isfinite(array), array, -np.inf)
    best = filled.argmax(axis=1)
    top = filled.max(axis=1)
    if n_q <= 12:
        reads = [
            f"{quoted(queries, q)} → {quoted(keys, int(best[q]))} {top[q]:.2f}"
            if np.isfinite(top[q])
            else f"{quoted(queries, q)} → no number"
            for q in range(n_q)
        ]
        parts.append(f"Largest {what} of each query: {'; '.join(reads)}.")
    elif np.isfinite(top).all():
        parts.append(f"Largest {what} of a query: from {top.min():.2f} to {top.max():.2f}.")
    if gold is not None and (judged := [q for q, key in enumerate(gold) if key is not None]):
        hits = sum(int(best[q]) == gold[q] for q in judged)
        parts.append(f"The largest is on the gold key for {hits} of {len(judged)} queries.")
    if missing := int((~np.isfinite(array)).sum()):
        parts.append(f"{missing} entries are not finite numbers.")
    return " ".join(parts)


def describe_lines(
    xs: np.ndarray,
    data: Mapping[str, np.ndarray],
    texts: tuple[str, str, str],
    logx: bool,
    logy: bool,
    hline: float | tuple[float, str] | None,
) -> str:
    xlabel, ylabel, title = texts
    scale = {
        (True, True): ", both axes logarithmic",
        (True, False): ", x logarithmic",
        (False, True): ", y logarithmic",
    }
    parts = [f"Line plot. {title}. {ylabel} against {xlabel}{scale.get((logx, logy), '')}."]
    hidden = 0
    for name, values in data.items():
        ok = np.flatnonzero(np.isfinite(values))
        if not ok.size:
            parts.append(f"{name}: no values.")
            continue
        at = {
            "from": ok[0],
            "to": ok[-1],
            "lowest": ok[values[ok].argmin()],
            "highest": ok[values[ok].argmax()],
        }
        said = {
            word: f"{word} {format_value(float(values[i]))} at {xs[i]:.6g}"
            for word, i in at.items()
            if word in ("from", "to") or i not in (ok[0], ok[-1])
        }
        ends = f"{said.pop('from')} {said.pop('to')}"
        parts.append(f"{name}: {'; '.join([ends, *said.values()])}.")
        hidden += int(((values[ok] <= 0) & logy | (xs[ok] <= 0) & logx).sum())
    if hidden:
        parts.append(f"Not drawn, because a logarithmic axis has no zero: {hidden} of the values.")
    return " ".join(parts + describe_level(hline))


def describe_bars(
    labels: Sequence[str],
    data: Mapping[str, np.ndarray],
    texts: tuple[str, str],
    level: float | tuple[float, str] | None,
    digits: int,
) -> str:
    xlabel, title = texts
    parts = [f"Bars. {title}. {xlabel}:"]
    for name, numbers in data.items():
        items = "; ".join(f"{label} {format_value(float(v), digits)}" for label, v in zip(labels, numbers, strict=True))
        parts.append(f"{name}: {items}." if name else f"{items}.")
    return " ".join(parts + describe_level(level))


def describe_pair(
    sentences: tuple[Sequence[str], Sequence[str]],
    links: Sequence[int | None],
    texts: tuple[str, str, str],
) -> str:
    source, target = sentences
    source_label, target_label, title = texts
    said = [
        f"{quoted(target, t)} says {quoted(source, s)}" if s is not None else f"{quoted(target, t)} has no counterpart"
        for t, s in enumerate(links)
    ]
    order = [s for s in links if s is not None]
    crossing = sum(a > b for i, a in enumerate(order) for b in order[i + 1 :])
    return (
        f"{title}. {source_label}: {' '.join(source)}. {target_label}: {' '.join(target)}. "
        f"Alignment: {'; '.join(said)}. Pairs of links that cross: {crossing}."
    )


def describe_level(level: float | tuple[float, str] | None) -> list[str]:
    if level is None:
        return []
    value, name = level if isinstance(level, tuple) else (level, "")
    return [f"Dashed line{f', {name},' if name else ''} at {format_value(float(value))}."]


def quoted(words: Sequence[str], i: int) -> str:
    """A word in quotes, with its place (from 1) where the same word occurs more than once."""
    return f"'{words[i]}'" + (f" (word {i + 1})" if list(words).count(words[i]) > 1 else "")
