"""One JupyterLab and one browser for all tests here.

Loading JupyterLab takes a page longer than most tests: those of notebooks have one page, in which
each opens its own. A test that needs a page that nobody has used asks for `own_page`.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.lab import PATIENCE, Lab, browser


class Pages:
    """Where pages are opened: what one has loaded and compiled of JupyterLab, the next finds."""

    def __init__(self, chromium: Any) -> None:
        self._context = chromium.new_context(viewport={"width": 1280, "height": 900})
        self._context.set_default_timeout(1000 * PATIENCE)
        self._kept: Any = None

    def new(self) -> Any:
        """A page that notes the errors of its programs, in `errors`."""
        page = self._context.new_page()
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        return page

    def kept(self) -> Any:
        """The page of those tests of notebooks that share one."""
        if self._kept is None:
            self._kept = self.new()
        return self._kept

    def drop_kept(self) -> None:
        """Have the next test of a notebook begin with a new page."""
        self._kept.close()
        self._kept = None


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    running = Lab(tmp_path_factory.mktemp("lab"))
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="session")
def pages() -> Iterator[Pages]:
    with browser() as chromium:
        yield Pages(chromium)


@pytest.fixture
def own_page(pages: Pages) -> Iterator[Any]:
    """A page that is closed after the test."""
    page = pages.new()
    try:
        yield page
    finally:
        page.close()
    assert page.errors == []


@pytest.fixture
def page(request: pytest.FixtureRequest, pages: Pages) -> Iterator[Any]:
    """For a test of notebooks the page that shows JupyterLab, for others one of their own."""
    if "lab" not in request.fixturenames:
        yield request.getfixturevalue("own_page")
        return
    page, failed = pages.kept(), request.session.testsfailed
    yield page
    errors = page.errors[:]
    page.errors.clear()
    if errors or request.session.testsfailed > failed:
        pages.drop_kept()  # Who knows how it was left.
    assert errors == []
