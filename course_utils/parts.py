"""The student's own parts: `use` gives a function that passed its check, and keeps it for later notebooks.

A part is kept as source text, one JSON file an exercise, in the user's data folder. It never leaves the
computer.
"""

import difflib
import sys
import textwrap
import time
from collections.abc import Callable
from datetime import date
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from . import mode, notebook
from .part_source import PREFIX, CannotRemember, collect, load
from .store import data_folder, read_json, say_once, write_json

FORMAT = 1
TOO_SLOW = 3.0  # times the reference
NOISE_FLOOR = 2e-3  # seconds; below it nobody waits, and a ratio means little

_seen: dict[str, tuple[int, int, bool]] = {}  # exercise: points, of, passed; in this session
_kept: dict[str, dict[str, Any]] = {}  # what was stored in this session


def use(part: Callable[..., Any] | str, exercise: str | None = None, *, quiet: bool = False) -> Callable[..., Any]:
    """The student's own part if its check passes, else the reference; prints one line that says which.

    part: the function or class itself, or the name of an exercise whose remembered part is to be loaded.
    exercise: the name of the exercise, if neither the function nor the notebook's variable for it is called so.
    A right part that is more than three times slower than the reference is praised, and the reference used.
    """
    by_name = isinstance(part, str)
    name = part if by_name else exercise or name_of(part)
    entry = find_exercise(name)
    mine, line = _remembered(name) if by_name else (part, f"your {name}")
    if mine is not None or not by_name:
        mine, line = _judge(entry, mine, line)
    if not quiet:
        print(line)
    return entry.reference if mine is None else mine


def name_of(part: Any) -> str:
    """The exercise that a part is meant for: its own name, or that of the notebook's variable that holds it.

    So `layer_norm = my_ln`, a lambda and a forgotten `layer_norm = None` are known for what they are meant to be.
    Where that finds none or several, the part's own name, whatever it is.
    """
    own = getattr(part, "__name__", type(part).__name__)
    if own in exercises():
        return own
    variables = vars(sys.modules["__main__"])
    held = [name for name in exercises() if name in variables and variables[name] is part]
    return held[0] if len(held) == 1 else own


def _judge(entry: Any, mine: Callable[..., Any], whose: str) -> tuple[Callable[..., Any] | None, str]:
    """The part if it is right and fast enough, else None; and the line to print."""
    report = import_module("course_utils.checks").check(mine, exercise=entry.name)
    remember(mine, report)
    capital = whose[0].upper() + whose[1:]
    if report.state == "not done yet":
        return None, f"{entry.name} is not done yet: the reference stands in."
    if not report.passed:
        why = report.findings[0].message.rstrip(".") if report.findings else "see its check"
        why = textwrap.shorten(why, 140, placeholder=" …")
        return None, f"{capital} does not pass yet ({why}): the reference stands in."
    times = slowness(entry, mine)
    if times is not None and times > TOO_SLOW:
        return None, (
            f"{capital} is right, but {times:.0f} times slower than the reference: well done; "
            "training goes on with the reference."
        )
    return mine, f"Using {whose}."


def remember(part: Callable[..., Any], report: Any) -> None:
    """Note the result of a check, and keep the part for later notebooks if it passed.

    A part that cannot be kept is said so, once. Nothing is written where mode.remembering() is False.
    """
    name = report.exercise
    _seen[name] = (report.points, report.max_points, bool(report.passed))
    loaded = str(getattr(part, "__module__", "")).startswith(PREFIX)
    if loaded or not report.passed or not mode.remembering():
        return
    try:
        source = collect(part)
        if _kept.get(name) == source:
            return
        load(name, source)
    except CannotRemember as reason:
        say_once(f"{name} is not remembered for later notebooks: {reason}.")
        return
    record = {
        "format": FORMAT,
        "exercise": name,
        **source,
        "notebook": notebook.current_lesson(),
        "date": date.today().isoformat(),
        "course": _version("attention-course"),
        "torch": _version("torch"),
        "python": ".".join(map(str, sys.version_info[:3])),
    }
    if write_json(_file(name), record):
        _kept[name] = source


def forget(name: str | None = None) -> None:
    """Remove one remembered part, or all of them."""
    names = list(exercises()) if name is None else [find_exercise(name).name]
    names = [one for one in names if _file(one).exists()]
    for one in names:
        _file(one).unlink()
        _kept.pop(one, None)
        sys.modules.pop(PREFIX + one, None)
    print(f"Forgotten: {', '.join(names)}." if names else "There was nothing to forget.")


def stored_parts() -> dict[str, dict[str, Any]]:
    """The readable records of all remembered parts, by exercise; empty where nothing is remembered."""
    if not mode.remembering():
        return {}
    records = {path.stem: read_json(path) for path in sorted((data_folder() / "parts").glob("*.json"))}
    return {name: record for name, record in records.items() if record is not None}


def session_results() -> dict[str, tuple[int, int, bool]]:
    """For each exercise that was checked since the kernel started: points, points possible, passed."""
    return dict(_seen)


def _remembered(name: str) -> tuple[Callable[..., Any] | None, str]:
    """The remembered part and how to call it, or None and the line that says why the reference stands in."""
    if not mode.remembering():
        return None, f"Using the reference {name}: nothing is remembered in this run."
    if not _file(name).exists():
        return None, f"No {name} of yours is remembered yet: the reference stands in."
    record = read_json(_file(name), say=False)
    whose, way_out = f"Your {name}", f"Check it again to renew it, or delete {_file(name)}."
    if record is None or record.get("format") != FORMAT:
        why = "its file is damaged" if record is None else "another version of the course stored it"
        return None, f"{whose} cannot be loaded ({why}): the reference stands in. {way_out}"
    if isinstance(record.get("notebook"), str):
        whose += f" from notebook {record['notebook']}"
    try:
        return load(name, record), f"y{whose[1:]}"
    except CannotRemember as reason:
        why = textwrap.shorten(str(reason), 140, placeholder=" …")
        return None, f"{whose} cannot be loaded ({why}): the reference stands in. {way_out}"


def exercises() -> dict[str, Any]:
    """The exercises of the course by name, in the order of the notebooks."""
    return import_module("course_utils.checks").EXERCISES


def find_exercise(name: str) -> Any:
    """The exercise of this name; ValueError with the nearest names if there is none."""
    known = exercises()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    way_out = f"did you mean {' or '.join(near)}?" if near else f"the exercises are {', '.join(known)}."
    raise ValueError(
        f'There is no exercise called "{name}": {way_out} A function of another name is passed as '
        'use(my_function, "the_exercise").'
    )


def _file(name: str) -> Path:
    return data_folder() / "parts" / f"{name}.json"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


# How fast a part is.


def slowness(entry: Any, mine: Callable[..., Any]) -> float | None:
    """How many times longer the part takes than the reference; None if fast anyway or not measurable."""
    make = TYPICAL.get(entry.name)
    if make is None or mine is entry.reference:
        return None
    torch = import_module("torch")
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        arguments = make(torch)
        try:
            own, other = mine, entry.reference
            if isinstance(other, type):  # a class is made once and called often
                made = TYPICAL_MODULES[entry.name]
                own, other = own(*made), other(*made)
            mine_first = _seconds(own, arguments)
            repeats = 7 if mine_first < 0.1 else 1
            pairs = [(_seconds(own, arguments), _seconds(other, arguments)) for _ in range(repeats)]
        except Exception:  # a size that no check asks for is no reason to stop a notebook
            return None
    # The least, not the middle: whatever else the computer does at the moment only ever adds time.
    mine_takes, reference_takes = (min(times) for times in zip(*pairs, strict=True))
    return None if mine_takes < NOISE_FLOOR else mine_takes / max(reference_takes, 1e-9)


def _seconds(function: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def _typical_generate(t: Any) -> tuple[Any, ...]:
    model = t.nn.Embedding(60, 60)
    model.block_size = 32
    return model, t.randint(0, 60, (16, 1)), 40


def _typical_decode_step(t: Any) -> tuple[Any, ...]:
    shapes = {"W_x": (96, 64), "W_h": (64, 64), "b": (64,), "W_o": (128, 200), "b_o": (200,)}
    weights = {name: 0.1 * t.randn(shape) for name, shape in shapes.items()}
    return t.randn(32, 32), t.randn(32, 64), t.randn(32, 40, 64), t.rand(32, 40) < 0.9, weights


# Sizes like those in the training loops of the lessons; t is torch.
TYPICAL: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "rnn_step": lambda t: (
        t.randn(64, 64),
        t.randn(64, 128),
        t.randn(64, 128),
        t.randn(128, 128),
        t.randn(128),
    ),
    "gru_step": lambda t: (
        t.randn(64, 64),
        t.randn(64, 128),
        t.randn(3, 64, 128),
        t.randn(3, 128, 128),
        t.randn(3, 128),
    ),
    "seq2seq_encode": lambda t: (
        t.randn(32, 40, 32),
        t.randint(1, 41, (32,)),
        0.1 * t.randn(32, 64),
        0.1 * t.randn(64, 64),
        t.randn(64),
    ),
    "shift_right": lambda t: (t.randint(3, 99, (64, 40)), 1),
    "lm_loss": lambda t: (t.randn(32, 40, 200), t.randint(0, 200, (32, 40)), 0),
    "greedy_decode": lambda t: (t.nn.Embedding(100, 100), t.randint(0, 100, (64, 1)), 40),
    "additive_attention": lambda t: (
        t.randn(32, 64),
        t.randn(32, 40, 64),
        t.randn(64, 64),
        t.randn(64, 64),
        t.randn(64),
        t.rand(32, 40) < 0.9,
    ),
    "decode_step": _typical_decode_step,
    "scaled_dot_product_attention": lambda t: (
        t.randn(8, 4, 40, 32),
        t.randn(8, 4, 40, 32),
        t.randn(8, 4, 40, 32),
    ),
    "self_attention": lambda t: (t.randn(32, 40, 64), *(0.1 * t.randn(64, 64) for _ in range(3))),
    "sinusoidal_positions": lambda t: (200, 64),
    "apply_rope": lambda t: (t.randn(8, 4, 40, 32),),
    "TokenEmbedding": lambda t: (t.randint(0, 99, (64, 40)),),
    "causal_mask": lambda t: (64,),
    "padding_mask": lambda t: (t.randint(1, 41, (64,)), 40),
    "decoder_mask": lambda t: (t.randint(0, 99, (32, 40)), 0),
    "mean_pool": lambda t: (t.randn(32, 40, 64), t.randint(1, 41, (32,))),
    "generate": _typical_generate,
    "MultiHeadAttention": lambda t: (t.randn(16, 40, 64), None, t.ones(40, 40, dtype=t.bool).tril()),
    "TransformerBlock": lambda t: (t.randn(16, 40, 64), t.ones(40, 40, dtype=t.bool).tril()),
    "TiedLM": lambda t: (t.randint(0, 99, (64, 40)),),
    "patchify": lambda t: (t.randn(64, 1, 28, 28), 7),
    "ViTEmbedding": lambda t: (t.randn(64, 1, 28, 28),),
    "vit_pool": lambda t: (t.randn(64, 17, 64),),
}

# For a class: what it is made with, before it is called with the above.
TYPICAL_MODULES: dict[str, tuple[Any, ...]] = {
    "TokenEmbedding": (99, 64),
    "MultiHeadAttention": (64, 4),
    "TransformerBlock": (64, 4, 256),
    "TiedLM": (99, 64),
    "ViTEmbedding": (28, 7, 1, 64),
}
