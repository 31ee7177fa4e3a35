"""The documentation's search, where the site is opened from disk."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.browser.lab import ROOT

pytestmark = pytest.mark.browser

PAGE = """<!DOCTYPE html><title>A page</title><script src="iframe-worker.js"></script><body><script>
const worker = new Worker(new URL("worker.js", location.href));
const answers = [];
worker.addEventListener("message", (event) => answers.push(event.data));
for (const asked of [20, 21]) worker.postMessage(asked);
</script>"""
WORKER = """addEventListener("message", async (event) => {
    await importScripts("double.js");
    postMessage(double(event.data));
});"""


def test_a_worker_answers_on_a_page_from_disk(page: Any, tmp_path: Path) -> None:
    shutil.copy(ROOT / "docs" / "iframe-worker.js", tmp_path)
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    (tmp_path / "worker.js").write_text(WORKER, encoding="utf-8")
    (tmp_path / "double.js").write_text("var double = (n) => 2 * n;", encoding="utf-8")
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_function("answers.length === 2")
    # Each loads its script beside the other.
    assert sorted(page.evaluate("answers")) == [40, 42]
