"""A real JupyterLab with a real browser in front of it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat

from tests.browser import kernels

ROOT = Path(__file__).parents[2]

CHROMIUM = "/usr/bin/chromium"
CHROMIUM_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

# What takes longer, in seconds, never ends; a machine may be slow, and busy with other things.
PATIENCE = 90

# Of the widgets of the notebook that is shown, as a promise.
MANAGER = """window.jupyterapp.shell.currentWidget.content.rendermime
    .createRenderer("application/vnd.jupyter.widget-view+json")._manager.promise"""

_QUIET = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}
_THEMES = {False: "JupyterLab Light", True: "JupyterLab Dark"}


def _extensions(folder: Path) -> Path:
    """Where JupyterLab finds Flowbook's extension as it was built in this source."""
    found = folder / "labextensions"
    found.mkdir()
    (found / "flowbook").symlink_to(ROOT / "labextension" / "prebuilt")
    return found


def _use_kernels(folder: Path, asked: Path) -> None:
    """Have what `kernels` forks be the kernels of JupyterLab's notebooks."""
    found = folder / "kernels" / "python3"
    found.mkdir(parents=True)
    command = [sys.executable, "-S", kernels.__file__, str(asked), "{connection_file}"]
    described = {"argv": command, "display_name": "Python 3", "language": "python"}
    (found / "kernel.json").write_text(json.dumps(described), encoding="utf-8")


@contextmanager
def _chromium() -> Iterator[Any]:
    """What starts it; what is expected of pages gets the same patience as what is waited for."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=1000 * PATIENCE)

    with sync_playwright() as playwright:
        yield playwright.chromium


@contextmanager
def browser() -> Iterator[Any]:
    """Start Chromium."""
    with _chromium() as chromium:
        running = chromium.launch(executable_path=CHROMIUM, args=list(CHROMIUM_OPTIONS))
        try:
            yield running
        finally:
            running.close()


@contextmanager
def profile(folder: Path, **options: Any) -> Iterator[Any]:
    """Start Chromium where it keeps in a folder what pages load, and what it compiles of that.

    Args:
        options: those of the context in which pages are opened.
    """
    with _chromium() as chromium:
        context = chromium.launch_persistent_context(
            folder, executable_path=CHROMIUM, args=list(CHROMIUM_OPTIONS), **options
        )
        try:
            yield context
        finally:
            context.close()


class Lab:
    """A server on notebooks of its own; its settings are nobody else's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notebooks = folder / "notebooks"
        self.notebooks.mkdir()
        self._settings = folder / "settings" / "@jupyterlab" / "apputils-extension"
        self._settings.mkdir(parents=True)
        self.set("notification", _QUIET)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "JUPYTER_DATA_DIR": str(folder / "data"),
            "JUPYTER_PATH": str(folder / "first"),
            "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        }
        asked = folder / "kernels"
        _use_kernels(folder / "first", asked)
        with (folder / "log").open("w") as log, kernels.listening(str(asked)) as listener:
            self._kernels = subprocess.Popen(
                [sys.executable, kernels.__file__],
                env=environment,
                stdin=listener,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
                    f"--port={self.port}",
                    "--ServerApp.port_retries=0",
                    f"--ServerApp.root_dir={self.notebooks}",
                    "--IdentityProvider.token=",
                    "--LabApp.expose_app_in_browser=True",
                    f"--LabApp.extra_labextensions_path={_extensions(folder)}",
                ],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/status", timeout=5)
                return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                assert self._process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < deadline, "JupyterLab does not answer"
                time.sleep(0.1)  # Between two attempts to reach it.

    def close(self) -> None:
        """Stop the server and its kernels."""
        for process in (self._process, self._kernels):
            process.terminate()
            process.wait(timeout=PATIENCE)

    def use_theme(self, dark: bool) -> None:
        """Have pages that are opened from now on use a theme."""
        self.set("themes", {"theme": _THEMES[dark]})

    def set(self, plugin: str, values: dict[str, Any]) -> None:
        """Have pages that are opened from now on use settings of one of JupyterLab's plugins."""
        path = self._settings / f"{plugin}.jupyterlab-settings"
        path.write_text(json.dumps(values), encoding="utf-8")

    def write(self, name: str, *cells: str) -> Path:
        """Store a notebook of code cells."""
        notebook = nbformat.v4.new_notebook()
        notebook.metadata["kernelspec"] = {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        }
        notebook.cells = [nbformat.v4.new_code_cell(source) for source in cells]
        path = self.notebooks / f"{name}.ipynb"
        nbformat.write(notebook, path)
        return path

    def load(self, page: Any, name: str) -> Notebook:
        """Load JupyterLab anew in a page, on a notebook, and wait for its kernel."""
        page.goto(f"http://127.0.0.1:{self.port}/lab/tree/{name}.ipynb?reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        page.evaluate("() => window.jupyterapp.restored")
        return self._ready(page)

    def open(self, page: Any, name: str) -> Notebook:
        """Open a notebook in a page in place of the one that is open there; wait for its kernel.

        JupyterLab is loaded if the page does not show it yet.
        """
        if not page.evaluate("() => 'jupyterapp' in window"):
            return self.load(page, name)
        page.evaluate(
            """async (path) => {
                const { commands, shell } = window.jupyterapp;
                const before = [...shell.widgets("main")];
                const { id } = await commands.execute("docmanager:open", { path });
                shell.activateById(id);
                for (const widget of before) {
                    await widget.sessionContext?.shutdown();
                    widget.dispose();
                }
            }""",
            f"{name}.ipynb",
        )
        return self._ready(page)

    def _ready(self, page: Any) -> Notebook:
        """The notebook that was opened, once its kernel answers."""
        page.evaluate(
            """async () => {
                const session = window.jupyterapp.shell.currentWidget.sessionContext;
                await session.ready;
                // Lab's own first requests reconnect: a cell that is run before is never heard of.
                await session.session.kernel.info;
                await session.session.kernel.requestExecute({ code: "", silent: true }).done;
                await new Promise((done) => requestIdleCallback(done));
            }"""
        )
        return Notebook(page)


class Notebook:
    """A notebook that is open in a page."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def start(self, cell: int) -> float:
        """Begin to run a cell; return the time of the page's clock, in milliseconds."""
        started: float = self.page.evaluate(
            """async (cell) => {
                const notebook = window.jupyterapp.shell.currentWidget.content;
                notebook.activeCellIndex = cell;
                notebook.deselectAll();
                const now = performance.timeOrigin + performance.now();
                window.running = window.jupyterapp.commands.execute("notebook:run-cell");
                return now;
            }""",
            cell,
        )
        return started

    def finish(self) -> None:
        """Wait until the cell that was begun has ended."""
        self.page.evaluate("() => window.running")

    def run(self, cell: int) -> float:
        """Run a cell to its end; return when it began."""
        started = self.start(cell)
        self.finish()
        return started

    def select(self, cell: int) -> None:
        """Have commands be about a cell."""
        self.page.evaluate(
            """(cell) => {
                const notebook = window.jupyterapp.shell.currentWidget.content;
                notebook.activeCellIndex = cell;
                notebook.deselectAll();
                notebook.mode = "command";
            }""",
            cell,
        )

    def command(self, name: str) -> None:
        """Have JupyterLab do what a menu does."""
        self.page.evaluate("(name) => window.jupyterapp.commands.execute(name)", name)

    def edit(self, cell: int, source: str) -> None:
        """Change a cell's text."""
        self.page.evaluate(
            """([cell, source]) => {
                const notebook = window.jupyterapp.shell.currentWidget.content;
                notebook.widgets[cell].model.sharedModel.setSource(source);
            }""",
            [cell, source],
        )

    def cell(self, cell: int) -> Any:
        """A cell with its output, as the page has it."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(cell)

    def outputs(self, cell: int) -> Any:
        """What stands below a cell."""
        return self.cell(cell).locator(".jp-OutputArea-output")

    def shown(self, cell: int) -> str:
        """What a person reads below a cell."""
        texts = self.outputs(cell).all_inner_texts()
        return "\n".join(text.strip() for text in texts).strip()

    def wait_for(self, cell: int, text: str) -> None:
        """Wait until something is shown below a cell."""
        self.outputs(cell).get_by_text(text).first.wait_for()

    def restart(self) -> None:
        """Restart the kernel, as its button does, and wait until it answers."""
        self.page.evaluate(
            """async () => {
                const context = window.jupyterapp.shell.currentWidget.sessionContext;
                await context.session.kernel.restart();
                await context.session.kernel.info;
                await context.session.kernel.requestExecute({ code: "", silent: true }).done;
            }"""
        )

    @contextmanager
    def in_theme(self, dark: bool) -> Iterator[None]:
        """Have the page use a theme within a with block; it is light otherwise."""
        self._change_theme(dark)
        try:
            yield
        finally:
            self._change_theme(False)

    def _change_theme(self, dark: bool) -> None:
        self.page.evaluate(
            """(theme) => window.jupyterapp.commands.execute("apputils:change-theme", { theme })""",
            _THEMES[dark],
        )
        self.page.locator(f"body[data-jp-theme-name='{_THEMES[dark]}']").wait_for(state="attached")

    def comms_and_models(self) -> list[int]:
        """How many comms the page has to its kernel, and how many widgets' models."""
        counts: list[int] = self.page.evaluate(
            f"""async () => {{
                const {{ sessionContext }} = window.jupyterapp.shell.currentWidget;
                const comms = sessionContext.session.kernel._comms;
                return [comms.size, Object.keys((await {MANAGER})._models).length];
            }}"""
        )
        return counts

    def alive(self, prototype: str, count: str) -> int:
        """Count objects that the page has, in its document or held by its code.

        Args:
            prototype: what they inherit from, as an expression; promises are waited for.
            count: a function of the list of them.
        """
        protocol = self.page.context.new_cdp_session(self.page)
        asked = {"expression": prototype, "awaitPromise": True}
        known = protocol.send("Runtime.evaluate", asked)["result"]["objectId"]
        found = protocol.send("Runtime.queryObjects", {"prototypeObjectId": known})["objects"]
        asked = {
            "objectId": found["objectId"],
            "functionDeclaration": f"function () {{ return ({count})(this); }}",
        }
        counted: int = protocol.send("Runtime.callFunctionOn", asked)["result"]["value"]
        protocol.detach()
        return counted

    def save(self) -> None:
        """Store the notebook in its file."""
        self.page.evaluate('() => window.jupyterapp.commands.execute("docmanager:save")')

    def graph(self, cell: int) -> Any:
        """The live view in a cell's output, once it is drawn."""
        view = self.cell(cell).locator(".fb-graph[data-drawn]")
        view.wait_for()
        return view
