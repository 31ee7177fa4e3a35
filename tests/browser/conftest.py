"""One JupyterLab and one browser for all tests here; each test has a page of its own."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.lab import Lab, browser


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    running = Lab(tmp_path_factory.mktemp("lab"))
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="session")
def pages() -> Iterator[Any]:
    """Where pages are opened: what one has loaded and compiled of JupyterLab, the next finds."""
    with browser() as chromium:
        yield chromium.new_context(viewport={"width": 1280, "height": 900})


@pytest.fixture
def page(pages: Any) -> Iterator[Any]:
    page = pages.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    try:
        yield page
    finally:
        page.close()
    assert errors == []
