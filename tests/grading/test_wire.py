"""Messages: everything that a check sends and an answer returns crosses unchanged; everything else is refused."""

import contextlib
import json
import socket
import struct
import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_utils.checks import EXERCISES
from course_utils.checks.answers import LocalAnswer
from course_utils.checks.values import Foreign, Inside, Outcome, Raised
from course_utils.grading import wire


def shown(value):
    """Tensors with their dtype, and every number of them."""
    torch.set_printoptions(profile="full", precision=12)
    try:
        return repr(value)
    finally:
        torch.set_printoptions(profile="default")


@pytest.mark.parametrize("name", EXERCISES)
def test_calls_and_outcomes_cross_unchanged(name):
    exercise = EXERCISES[name]
    for number, case in enumerate((*exercise.cases, *exercise.properties)):
        call = case.call(number)
        assert shown(wire.unpack(*through_json(call), wire.ASKED)) == shown(call)
        outcome = LocalAnswer(exercise.reference).call(call)
        assert shown(wire.outcome_of(*through_json(outcome))) == shown(outcome)


def through_json(value):
    packed, buffers = wire.pack(value)
    return json.loads(json.dumps(packed)), buffers


PLAIN = ("", "é\n", False, True, 0, -1, 2**62, 0.0, float("inf"), None, (), ((1, 2.5), "x"), Foreign("a dict"))


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_values_cross_unchanged(value):
    assert repr(wire.outcome_of(*through_json(Outcome(value=value))).value) == repr(value)


@pytest.mark.parametrize("dtype", wire.DTYPES)
def test_tensors_of_every_kind_cross(dtype):
    for shape in ((), (0, 3), (2, 3)):
        tensor = torch.ones(shape).to(wire.DTYPES[dtype])
        back = wire.outcome_of(*through_json(Outcome(value=tensor))).value
        assert back.dtype == tensor.dtype and back.shape == tensor.shape and torch.equal(back, tensor)
        transposed = wire.outcome_of(*through_json(Outcome(value=tensor.mT if tensor.dim() > 1 else tensor))).value
        assert torch.equal(transposed, tensor.mT if tensor.dim() > 1 else tensor)


def test_a_type_without_a_form_becomes_its_description():
    for odd in (np.zeros(2), {1, 2}, object(), lambda: 0, 2**70, torch.zeros(2).to_sparse()):
        assert isinstance(wire.unpack(*wire.pack(odd), wire.TOLD), Foreign)


BAD = {
    "no outcome": ({"u": []}, []),
    "an unknown record": ({"r": ["Exercise", {}]}, []),
    "a record of the other direction": ({"r": ["Call", {"arguments": {"d": {}}}]}, []),
    "an unknown field": ({"r": ["Outcome", {"points": 10}]}, []),
    "a text for an error": ({"r": ["Outcome", {"error": "no"}]}, []),
    "a tensor among names": ({"r": ["Outcome", {"changed": {"u": [{"t": ["float32", [0], 0]}]}}]}, [b""]),
    "an outcome as a value": ({"r": ["Outcome", {"value": {"r": ["Outcome", {}]}}]}, []),
    "a tensor that is longer than its bytes": (
        {"r": ["Outcome", {"value": {"t": ["float32", [10**10], 0]}}]},
        [b"1234"],
    ),
    "a shape that overflows": ({"r": ["Outcome", {"value": {"t": ["float32", [2**62, 4, 0, 3], 0]}}]}, [b"1"]),
    "a negative size": ({"r": ["Outcome", {"value": {"t": ["uint8", [-1, -1], 0]}}]}, [b"1"]),
    "a buffer that is not there": ({"r": ["Outcome", {"value": {"t": ["uint8", [1], 7]}}]}, [b"1"]),
    "an unknown dtype": ({"r": ["Outcome", {"value": {"t": ["qint8", [1], 0]}}]}, [b"1"]),
    "a whole number without end": ({"r": ["Outcome", {"value": 10**400}]}, []),
    "a list as a value": ({"r": ["Outcome", {"value": {"l": [1]}}]}, []),
}


@pytest.mark.parametrize("packed, buffers", BAD.values(), ids=BAD)
def test_what_nobody_may_send_is_refused(packed, buffers):
    with pytest.raises(wire.InvalidMessage):
        wire.outcome_of(packed, buffers)


def test_deep_nesting_is_refused():
    packed = None
    for _ in range(500):
        packed = {"u": [packed]}
    with pytest.raises(wire.InvalidMessage):
        wire.outcome_of({"r": ["Outcome", {"value": packed}]}, [])


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["t", "u", "l", "d", "r", "x"]), inner),
)


@given(anything)
def test_whatever_arrives_is_an_outcome_or_refused(packed):
    with contextlib.suppress(wire.InvalidMessage):
        assert isinstance(wire.outcome_of(packed, [b"1234"]), Outcome)


@given(st.sampled_from([Outcome, Raised, Inside, Foreign]), st.dictionaries(st.text(max_size=8), anything, max_size=3))
def test_whatever_stands_in_a_record_is_checked(record, given_fields):
    with contextlib.suppress(wire.InvalidMessage):
        wire.outcome_of({"r": ["Outcome", {"error": {"r": [record.__name__, given_fields]}}]}, [])


def test_a_byte_that_is_no_bool_becomes_one():
    value = wire.outcome_of({"r": ["Outcome", {"value": {"t": ["bool", [3], 0]}}]}, [bytes([0, 1, 7])]).value
    assert value.tolist() == [False, True, True]
    assert int(value.sum()) == 2


def exchanged(raw, seconds=5.0):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        thread = threading.Thread(target=theirs.sendall, args=(raw,))
        thread.start()
        thread.join()
        theirs.shutdown(socket.SHUT_WR)
        return wire.receive(ours, seconds)


def test_messages_arrive_whole():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        thread = threading.Thread(target=wire.send, args=(theirs, {"x": "é"}, [b"", b"1" * 300_000]))
        thread.start()
        assert wire.receive(ours, 5) == ({"x": "é"}, [b"", b"1" * 300_000])
        thread.join()


@pytest.mark.parametrize(
    "raw",
    [
        struct.pack("<II", 2**31, 0),
        struct.pack("<II", 2, 2**20),
        struct.pack("<IIQ", 2, 1, 2**60),
        struct.pack("<II", 3, 0) + b"[1]",
        struct.pack("<II", 4, 0) + b"\xff" * 4,
        struct.pack("<II", 100_000, 0) + b"[" * 100_000,
    ],
)
def test_what_is_no_message_is_refused(raw):
    with pytest.raises(wire.InvalidMessage):
        exchanged(raw)


def test_a_message_that_stops_is_an_end_and_one_that_drips_is_late():
    with pytest.raises(EOFError):
        exchanged(struct.pack("<II", 100, 0) + b"half")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"\0")
        with pytest.raises(TimeoutError):
            wire.receive(ours, 0.05)
