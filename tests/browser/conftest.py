"""One JupyterLab and one browser for all tests here."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.browser.lab import PATIENCE, Lab, profile

# What a test finds of a page, whatever the one before asked for.
VIEWPORT = {"width": 1280, "height": 900}


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    running = Lab(tmp_path_factory.mktemp("lab"))
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="session")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Where pages are opened: what one has loaded and compiled of JupyterLab, the next finds."""
    with profile(tmp_path_factory.mktemp("profile"), viewport=VIEWPORT) as context:
        context.set_default_timeout(1000 * PATIENCE)
        yield context


@contextmanager
def without_errors(page: Any) -> Iterator[Any]:
    """Hold that no program fails in a page."""
    errors: list[str] = []

    def note(error: object) -> None:
        errors.append(str(error))

    page.on("pageerror", note)
    try:
        yield page
    finally:
        page.remove_listener("pageerror", note)
    assert errors == []


@pytest.fixture
def own_page(context: Any) -> Iterator[Any]:
    """A page of its own for a test that changes what stays in a page, or counts it."""
    page = context.new_page()
    try:
        with without_errors(page):
            yield page
    finally:
        page.close()


# Those that tests share, by whether JupyterLab is in them; none after a test that failed.
PAGES = pytest.StashKey[dict[bool, Any]]()


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Let no test begin on a page where another one failed."""
    if call.excinfo and (pages := item.session.stash.get(PAGES, None)):
        for page in pages.values():
            page.close()
        pages.clear()


@pytest.fixture
def page(request: pytest.FixtureRequest, context: Any) -> Iterator[Any]:
    """The page of all tests of JupyterLab or that of all others: opening one takes long."""
    pages = request.session.stash.setdefault(PAGES, {})
    with_lab = "lab" in request.fixturenames
    if with_lab not in pages:
        pages[with_lab] = context.new_page()
    page = pages[with_lab]
    page.bring_to_front()  # One behind another draws nothing.
    page.set_viewport_size(VIEWPORT)
    page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    page.mouse.move(0, 0)
    with without_errors(page):
        yield page
