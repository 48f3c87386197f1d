"""What is said between the grader and the student's process: JSON with the bytes of tensors behind it, never pickle.

Whoever reads trusts nothing: sizes, depth, types and shapes are checked, and whatever is odd is an InvalidMessage.
"""

import json
import math
import socket
import struct
import time
from dataclasses import MISSING, fields
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch
from torch import Tensor

from course_utils.checks.values import Call, Construction, Double, Foreign, Inside, Outcome, Probe, Raised

MAX_HEADER = 4 * 2**20
MAX_BYTES = 128 * 2**20
MAX_TENSORS = 512
MAX_DEPTH = 12
MAX_ITEMS = 20_000
MAX_TEXT = 4_000
MAX_AXES = 32
BIGGEST_INT = 2**63
FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
DTYPES = {name: getattr(torch, name) for name in ("bool", "uint8", "int8", "int16", "int32", "int64", *FLOATS)}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
_LENGTHS = struct.Struct("<II")

ASKED = (Call, Construction, Probe, Double)  # what the grader sends
TOLD = (Outcome, Raised, Inside, Foreign)  # what comes back
_RECORDS = {record.__name__: record for record in (*ASKED, *TOLD)}


def _empty_default(field: Any) -> Any:
    """The default of a field if it is empty; MISSING where there is none, or another."""
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return MISSING if default is MISSING or default else default


_FIELDS = {r: {f.name: _empty_default(f) for f in fields(r)} for r in _RECORDS.values()}


class InvalidMessage(Exception):
    """What arrived is no message, or one that nobody may send."""


# Values as JSON. A tensor stands in it as its place among the bytes behind.


def pack(value: Any) -> tuple[Any, list[bytes]]:
    """A value as something for JSON, and the bytes of its tensors. Types that have no form here become `Foreign`."""
    buffers: list[bytes] = []
    return _pack(value, buffers, 0), buffers


def _pack(value: Any, buffers: list[bytes], depth: int) -> Any:  # noqa: PLR0911  (one for each kind of value)
    kind = type(value)
    if value is None or kind in (bool, float):
        return value
    if depth > MAX_DEPTH:
        return _foreign("a value that is nested too deeply")
    if kind is str:
        return value[:MAX_TEXT]
    if kind is int:
        return value if abs(value) < BIGGEST_INT else _foreign("a whole number of more than 64 bits")
    if kind in (Tensor, torch.nn.Parameter):
        return _pack_tensor(value, buffers)
    if kind in (tuple, list):
        return {"u" if kind is tuple else "l": [_pack(item, buffers, depth + 1) for item in value]}
    if kind is dict:
        return {"d": {str(key)[:MAX_TEXT]: _pack(entry, buffers, depth + 1) for key, entry in value.items()}}
    if kind.__name__ in _RECORDS and kind is _RECORDS[kind.__name__]:
        given = {name: getattr(value, name) for name in _FIELDS[kind]}
        # What is empty by default, and is, need not cross: that is most fields of most records.
        inside = {n: _pack(v, buffers, depth + 1) for n, v in given.items() if not _is_default(v, _FIELDS[kind][n])}
        return {"r": [kind.__name__, inside]}
    return _foreign(f"{kind.__module__}.{kind.__name__}")


def _is_default(value: Any, empty: Any) -> bool:
    return type(value) is type(empty) and not value


def _foreign(description: str) -> Any:
    return {"r": ["Foreign", {"description": description[:100]}]}


def _pack_tensor(tensor: Tensor, buffers: list[bytes]) -> Any:
    if tensor.dtype not in NAMES or tensor.layout != torch.strided:
        return _foreign(f"a tensor of {tensor.dtype}")
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    buffers.append(flat.view(torch.uint8).numpy().tobytes())
    return {"t": [NAMES[tensor.dtype], list(tensor.shape), len(buffers) - 1]}


def unpack(packed: Any, buffers: list[bytes], records: tuple[type, ...] = ()) -> Any:
    """The value again; of the dataclasses only those in `records`. InvalidMessage for what `pack` does not make."""
    left = [MAX_ITEMS]
    try:
        return _unpack(packed, buffers, {record.__name__: record for record in records}, 0, left)
    except InvalidMessage:
        raise
    except (TypeError, ValueError, KeyError, IndexError, OverflowError, RuntimeError, RecursionError) as exc:
        raise InvalidMessage(f"{type(exc).__name__}: {exc}"[:200]) from None


def _unpack(  # noqa: PLR0911  (one for each kind of value)
    packed: Any, buffers: list[bytes], records: dict[str, type], depth: int, left: list[int]
) -> Any:
    left[0] -= 1
    if left[0] < 0 or depth > 3 * MAX_DEPTH:
        raise InvalidMessage("too many values, or nested too deeply")
    if packed is None or isinstance(packed, bool | float):
        return packed
    if isinstance(packed, str):
        return packed[:MAX_TEXT]
    if isinstance(packed, int):
        _expect(abs(packed) < BIGGEST_INT, "a whole number of more than 64 bits")
        return packed
    _expect(isinstance(packed, dict) and len(packed) == 1, "no value")
    ((tag, inside),) = packed.items()

    def below(item: Any) -> Any:
        return _unpack(item, buffers, records, depth + 1, left)

    if tag == "t":
        return _unpack_tensor(inside, buffers)
    if tag in ("u", "l"):
        _expect(isinstance(inside, list), "no list")
        return (tuple if tag == "u" else list)(below(item) for item in inside)
    _expect(tag in ("d", "r"), "an unknown kind of value")
    if tag == "d":
        _expect(isinstance(inside, dict), "no dict")
        return {key[:MAX_TEXT]: below(entry) for key, entry in inside.items()}
    name, given = inside
    _expect(name in records and isinstance(given, dict), "an unknown kind of record")
    return records[name](**{key: below(entry) for key, entry in given.items()})


def _unpack_tensor(described: Any, buffers: list[bytes]) -> Tensor:
    name, shape, place = described
    _expect(name in DTYPES and type(place) is int and 0 <= place < len(buffers), "no tensor")
    _expect(isinstance(shape, list) and len(shape) <= MAX_AXES, "no shape")
    _expect(all(type(n) is int and 0 <= n < BIGGEST_INT for n in shape), "no shape")
    dtype, raw = DTYPES[name], buffers[place]
    _expect(math.prod(shape) * dtype.itemsize == len(raw), "a tensor with another number of bytes than its shape says")
    if not raw:
        return torch.empty(shape, dtype=dtype)
    flat = torch.from_numpy(np.frombuffer(raw, dtype=np.uint8).copy())
    # A byte that is neither 0 nor 1 is no bool, and torch would compute nonsense with it.
    return (flat != 0).reshape(shape) if dtype == torch.bool else flat.view(dtype).reshape(shape)


def _expect(condition: bool, otherwise: str) -> None:
    if not condition:
        raise InvalidMessage(otherwise)


# What a student's process may say of a call. The checks read these fields without looking twice.


def outcome_of(packed: Any, buffers: list[bytes]) -> Outcome:
    """The outcome in a reply; InvalidMessage unless every field has the type that it is declared with."""
    outcome = unpack(packed, buffers, TOLD)
    _expect(isinstance(outcome, Outcome) and _well_formed(outcome), "no outcome")
    return outcome


def _well_formed(record: Any) -> bool:
    return all(_fits(getattr(record, name), hint) for name, hint in _HINTS[type(record)].items())


def _fits(value: Any, hint: Any) -> bool:
    if hint is Any:
        return _is_plain(value)
    inner = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(item, inner[0]) for item in value)
    if get_origin(hint) is dict:
        return isinstance(value, dict) and all(_fits(entry, inner[1]) for entry in value.values())
    return type(value) is hint and (hint not in TOLD or _well_formed(value))


def _is_plain(value: Any, depth: int = 0) -> bool:
    """What `answers.plain` makes: nothing else is handed to the checks as a value."""
    if isinstance(value, tuple):
        return depth < 3 and all(_is_plain(item, depth + 1) for item in value)
    if isinstance(value, Foreign):
        return _well_formed(value)
    return value is None or isinstance(value, bool | int | float | str | Tensor)


_HINTS = {record: get_type_hints(record) for record in TOLD}


# Messages on a socket.


def send(sock: socket.socket, header: dict[str, Any], buffers: list[bytes] | None = None) -> None:
    """Send one message. OSError if the other side is gone."""
    buffers = buffers or []
    text = json.dumps(header).encode()
    lengths = struct.pack(f"<{len(buffers)}Q", *map(len, buffers))
    sock.sendall(b"".join((_LENGTHS.pack(len(text), len(buffers)), lengths, text, *buffers)))


def receive(sock: socket.socket, seconds: float | None = None) -> tuple[dict[str, Any], list[bytes]]:
    """The next message: a JSON object and buffers.

    EOFError where the other side is gone, TimeoutError where the whole message is not there after so many seconds,
    InvalidMessage for what is no message or too large.
    """
    until = None if seconds is None else time.monotonic() + seconds
    length, count = _LENGTHS.unpack(_read(sock, _LENGTHS.size, until))
    _expect(length <= MAX_HEADER and count <= MAX_TENSORS, "a message that is too large")
    lengths = struct.unpack(f"<{count}Q", _read(sock, 8 * count, until))
    _expect(sum(lengths) <= MAX_BYTES, "a message that is too large")
    text = _read(sock, length, until)
    buffers = [_read(sock, n, until) for n in lengths]
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidMessage("no JSON") from None
    _expect(isinstance(header, dict), "no JSON object")
    return header, buffers


def _read(sock: socket.socket, count: int, until: float | None) -> bytes:
    found = bytearray()
    while len(found) < count:
        if until is not None:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            sock.settimeout(left)
        piece = sock.recv(min(count - len(found), 2**20))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)
