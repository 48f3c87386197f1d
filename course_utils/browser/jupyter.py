"""JupyterLab and Notebook on this machine, with nothing kept, and notebooks opened in them."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from .chromium import PATIENCE

COURSE = Path(__file__).resolve().parents[2]
SECONDS = 90
APPS = {"lab": ("jupyterlab", "LabApp", "lab/tree"), "notebook": ("notebook", "JupyterNotebookApp", "notebooks")}
DARK = "JupyterLab Dark"

CURRENT = "window.jupyterapp?.shell?.currentWidget"
READY = f"""() => {CURRENT}?.sessionContext && window.jupyterapp.commands.hasCommand('notebook:run-all-cells')"""
PREPARE = f"""async () => {{
  const panel = {CURRENT};
  await panel.context.ready;
  await panel.sessionContext.ready;
  await panel.sessionContext.session.kernel.info;  // before, a dialogue asks for a kernel
}}"""
RUN_ALL = "() => window.jupyterapp.commands.execute('notebook:run-all-cells')"
IN_KERNEL = f"""async (code) => {{
  const run = {CURRENT}.sessionContext.session.kernel.requestExecute({{ code }});
  let text = '';
  run.onIOPub = (message) => {{ text += message.content.text ?? (message.content.evalue ?? ''); }};
  await run.done;
  return text.trim();
}}"""


def environment(folder: Path, *places: Path) -> dict[str, str]:
    """Variables for a server or a kernel. folder: for all that it writes; places: where it looks for modules."""
    path = os.pathsep.join(map(str, (*places, COURSE)))
    env = {**os.environ, "OMP_NUM_THREADS": "1", "COURSE_REMEMBER": "0", "PYTHONPATH": path}
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "MPLCONFIGDIR"):
        env[name] = str(folder / name.lower())
    return {**env, "JUPYTER_PREFER_ENV_PATH": "1"}


def write_notebook(file: Path, cells: list[str], outputs: list[list[dict]] | None = None) -> None:
    """A notebook of code cells; nobody has signed it, so its outputs are not trusted."""
    made = [
        {
            "cell_type": "code",
            "id": f"cell-{i}",
            "metadata": {},
            "source": source,
            "execution_count": None,
            "outputs": out,
        }
        for i, (source, out) in enumerate(zip(cells, outputs or [[]] * len(cells), strict=True))
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    file.write_text(json.dumps(notebook), encoding="utf-8")


def _settings(folder: Path, theme: str) -> None:
    """The theme, nothing from outside, and no cell taken off the page while it is out of sight."""
    chosen = {
        "apputils-extension/themes": {"theme": theme},
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
        "notebook-extension/tracker": {"windowingMode": "none"},
    }
    for name, values in chosen.items():
        file = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values), encoding="utf-8")


@contextmanager
def server(app: str, root: Path, folder: Path, theme: str = "JupyterLab Light", places: tuple[Path, ...] = ()):
    """A server on a free port with the notebooks of `root`; gives its address. folder, places: see `environment`."""
    module, name, _ = APPS[app]
    _settings(folder, theme)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [
        *("--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"),
        *("--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True", f"--ServerApp.root_dir={root}"),
        f"--{name}.expose_app_in_browser=True",
    ]
    if app == "lab":
        options += ["--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    address = f"http://127.0.0.1:{port}"
    # Both applications read these; Notebook does not heed the option for the settings.
    kept = {"JUPYTERLAB_SETTINGS_DIR": folder / "settings", "JUPYTERLAB_WORKSPACES_DIR": folder / "workspaces"}
    env = environment(folder, *places) | {key: str(value) for key, value in kept.items()}
    with (folder / "log.txt").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *options], env=env, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _wait(process, address, folder / "log.txt")
            yield address
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait(process: subprocess.Popen, address: str, log: Path) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(f"{address}/api", timeout=2)
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"the server did not start:\n{log.read_text(encoding='utf-8')[-3000:]}")


def open_notebook(page, address: str, app: str, file: str) -> None:
    """Show a notebook without running anything."""
    query = "?reset" if app == "lab" else ""
    page.goto(f"{address}/{APPS[app][2]}/{file}{query}", timeout=PATIENCE)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")


def wait_kernel(page) -> None:
    """Until the notebook that is shown has a kernel."""
    page.wait_for_function(READY)
    page.evaluate(PREPARE)


def run_all(page) -> None:
    wait_kernel(page)
    assert page.evaluate(RUN_ALL) is True


def in_kernel(page, code: str) -> str:
    """What this code prints in the notebook's kernel."""
    return page.evaluate(IN_KERNEL, code)


def stop_kernels(address: str) -> None:
    """A kernel outlives its page, with everything that it has imported."""
    with urllib.request.urlopen(f"{address}/api/kernels", timeout=SECONDS) as answer:
        running = json.load(answer)
    for kernel in running:
        request = urllib.request.Request(f"{address}/api/kernels/{kernel['id']}", method="DELETE")
        urllib.request.urlopen(request, timeout=SECONDS).close()
