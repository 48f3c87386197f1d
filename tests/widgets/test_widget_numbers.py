"""The widgets' own arithmetic, in JavaScript, against torch in float64; and that planted mistakes are noticed."""

import itertools

import numpy as np
import pytest

from course_utils.widgets import packing, page

from .entries import shared
from .entry import Case, Random
from .node import need_node, wrong_cases
from .registry import ENTRIES

FEWEST = 50
SHARED = list(itertools.islice(shared.cases(Random(0)), shared.COUNT))


def shared_module():
    return page.module_text("", ("numbers",))


def planted(text, fault):
    old, new = (page.compact(part) if part.endswith("\n") else part for part in (fault.old, fault.new))
    assert text.count(old) >= 1, f"the module does not hold {fault.old!r} any more: plant the fault anew"
    return text.replace(old, new)


def test_what_all_share(tmp_path):
    need_node()
    assert wrong_cases(shared_module(), SHARED, tmp_path) == []


@pytest.mark.parametrize("name", shared.FAULTS)
def test_a_fault_in_what_all_share_is_noticed(name, tmp_path):
    need_node()
    assert wrong_cases(planted(shared_module(), shared.FAULTS[name]), SHARED, tmp_path)


@pytest.mark.parametrize("name", ENTRIES)
def test_a_widget_agrees_with_torch(name, tmp_path):
    need_node()
    entry = ENTRIES[name]
    cases = entry.some_cases()
    assert len(cases) >= FEWEST
    assert wrong_cases(entry.make(0)._esm, cases, tmp_path) == []


@pytest.mark.parametrize(("name", "fault"), [(n, f) for n, e in ENTRIES.items() for f in e.faults])
def test_a_fault_in_a_widget_is_noticed(name, fault, tmp_path):
    need_node()
    entry = ENTRIES[name]
    assert wrong_cases(planted(entry.make(0)._esm, entry.faults[fault]), entry.some_cases(), tmp_path)


def test_packed_numbers_arrive(tmp_path):
    need_node()
    random = np.random.default_rng(0)
    probe = (
        "export const arrived = async (p) => decode({ ...p, bytes: new Uint8Array([255, ...p.bytes]).subarray(1) });"
    )
    cases = []
    for size, (low, high) in itertools.product((1, 7, 300), ((0, 1), (-3, 5))):
        values = random.uniform(low, high, size)
        for packed in (packing.pack(values, low, high), packing.pack_exact(values)):
            sent = {**packed, "bytes": list(packed["bytes"])}
            cases.append(Case("arrived", (sent,), packing.unpack(packed, (size,))))
    assert wrong_cases(f"{shared_module()}\n{probe}", cases, tmp_path) == []


def test_colours_only_grow_darker_or_lighter(tmp_path):
    need_node()
    probe = """
    export const steps = (theme) => Array.from({ length: 64 }, (_, i) => luminance(ramp(i / 63, theme)));
    export const signs = (theme) => steps(theme).slice(1).map((x, i) => Math.sign(x - steps(theme)[i]));
    export const reach = (theme) => (Math.max(...steps(theme)) + 0.05) / (Math.min(...steps(theme)) + 0.05) > 10;
    """
    cases = [Case("signs", ("light",), [-1] * 63), Case("signs", ("dark",), [1] * 63)]
    cases += [Case("reach", (theme,), True) for theme in ("light", "dark")]
    assert wrong_cases(f"{shared_module()}\n{probe}", cases, tmp_path) == []


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0, "0"), (0.25, "0.250"), (-0.25, "−0.250"), (1e-5, "1.0e−5"), (float("nan"), "NaN"), (1.0, "1.000")],  # noqa: RUF001
)
def test_numbers_are_written_so_that_nothing_and_little_differ(number, text, tmp_path):
    need_node()
    assert wrong_cases(shared_module(), [Case("fmt", (number,), text)], tmp_path) == []
