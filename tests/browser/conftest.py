"""One JupyterLab and one browser for all tests here."""

from collections.abc import Iterator
from contextlib import contextmanager
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


# The page that shows JupyterLab; none before the first test of it, and after one that failed.
LOADED = pytest.StashKey[Any]()


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Let no test begin on a page where another one failed."""
    if call.excinfo and (page := item.session.stash.get(LOADED, None)):
        page.close()
        del item.session.stash[LOADED]


@pytest.fixture
def page(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page: for tests of JupyterLab the same, since loading it takes longer than most of them."""
    if "lab" not in request.fixturenames:
        yield request.getfixturevalue("own_page")
        return
    stash = request.session.stash
    if LOADED not in stash:
        stash[LOADED] = request.getfixturevalue("context").new_page()
    with without_errors(stash[LOADED]) as page:
        yield page
