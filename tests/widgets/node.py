"""Running the modules' pure functions in node."""

import json
import math
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from .entry import Case

RUNNER = Path(__file__).with_name("run_cases.mjs")
TOLERANCE = 1e-12
SECONDS = 120


@cache
def node() -> str | None:
    """node itself, or the one that comes with Playwright."""
    if found := shutil.which("node"):
        return found
    try:
        from playwright._impl._driver import compute_driver_executable

        return str(compute_driver_executable()[0])
    except (ImportError, TypeError, IndexError):
        return None


def need_node() -> None:
    if node() is None:
        pytest.skip("THE WIDGETS' NUMBERS ARE NOT TESTED: there is no node (Debian: apt-get install nodejs)")


def plain(value: Any) -> Any:
    """Arguments as JSON; tensors flat, row by row, as the modules take them."""
    if hasattr(value, "detach"):
        value = value.detach().reshape(-1).tolist() if value.ndim else value.item()
    elif hasattr(value, "tolist"):
        value = value.reshape(-1).tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"$number": {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")}
    return value


def masks_as_numbers(value: Any) -> Any:
    """Masks of the modules are 0 and 1."""
    if getattr(value, "dtype", None) is not None and "bool" in str(value.dtype):
        return value.int() if hasattr(value, "int") else value.astype(int)
    return value


def wrong_cases(module: str, cases: list[Case], folder: Path) -> list[str]:
    """Run the cases on a module's text; the differences from what is wanted. Raises if the module cannot run."""
    file, data = folder / "module.mjs", folder / "cases.json"
    file.write_text(module, encoding="utf-8")
    rows = [
        {
            "call": case.function,
            "arguments": [plain(masks_as_numbers(x)) for x in case.arguments],
            "want": plain(masks_as_numbers(case.want)),
        }
        for case in cases
    ]
    data.write_text(json.dumps({"tolerance": TOLERANCE, "list": rows}, allow_nan=False), encoding="utf-8")
    command = [node(), str(RUNNER), str(file), str(data)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=SECONDS, check=False)
    if done.returncode:
        raise AssertionError(f"the module does not run in node:\n{done.stderr[-2000:]}")
    result = json.loads(done.stdout)
    assert result["run"] == len(cases)
    return result["wrong"]
