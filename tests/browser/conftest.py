"""One JupyterLab and one browser for all tests here."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.lab import PATIENCE, Lab, browser


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    running = Lab(tmp_path_factory.mktemp("lab"))
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="session")
def context() -> Iterator[Any]:
    """Where pages are opened: what one has loaded and compiled of JupyterLab, the next finds."""
    with browser() as chromium:
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(1000 * PATIENCE)
        yield context


@pytest.fixture
def page(context: Any) -> Iterator[Any]:
    """A page of its own for each test, in which no program fails."""
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    try:
        yield page
    finally:
        page.close()
    assert errors == []
