"""What every test relies on: one thread, a data folder of its own, nothing remembered, shapes enforced."""

import os
import shutil
import tempfile

import pytest

# Before anything imports course_utils or torch: both read these once.
DATA = tempfile.mkdtemp(prefix="course-tests-")
os.environ.update(COURSE_REMEMBER="0", COURSE_DATA=DATA, OMP_NUM_THREADS="1", JUPYTER_PREFER_ENV_PATH="1")
for name in ("COURSE_SMOKE", "COURSE_STRICT", "COURSE_WORK", "COURSE_VENV"):
    os.environ.pop(name, None)

from hypothesis import settings  # noqa: E402
from jaxtyping import install_import_hook  # noqa: E402

# From here on a wrong shape annotation in these modules fails a test, as a wrong result would.
SHAPED = (
    "layers",
    "encoder_decoder",
    "vision",
    "image_baselines",
    *("recurrent", "attention", "positions", "masks", "multihead", "transformer"),
    *("losses", "decoding", "seq2seq", "baselines", "ngrams", "role_models", "evaluation"),
)
install_import_hook([f"course_utils.{name}" for name in SHAPED], "beartype.beartype")

# Times are never asserted, and in CI a failure must be the same on every run.
settings.register_profile("course", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("course")

MARKERS = {
    "notebook": "executes whole notebooks; left out by --fast",
    "slow": "takes many seconds; left out by --fast",
    "browser": "needs a browser; left out by --fast",
}


def pytest_addoption(parser):
    parser.addoption("--fast", action="store_true", help="leave out slow tests, notebooks and browsers")


def pytest_configure(config):
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--fast"):
        return
    slow = [item for item in items if any(item.get_closest_marker(name) for name in MARKERS)]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in set(slow)]


def pytest_unconfigure(config):
    shutil.rmtree(DATA, ignore_errors=True)


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    """An empty folder in place of the user's data folder, for tests that let parts be remembered."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("COURSE_DATA", str(folder))
    return folder


@pytest.fixture(scope="session")
def browser():
    """The one browser of this process."""
    from widgets.browser import why_not

    from course_utils.browser.chromium import launched

    if reason := why_not():
        pytest.skip(reason)
    with launched() as running:
        yield running
