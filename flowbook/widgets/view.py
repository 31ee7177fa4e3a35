"""What all views have in common: the forms of an output, and pages of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flowbook.widgets import front_end


@dataclass(frozen=True)
class Page:
    """What a page shows.

    Attributes:
        title: of the page, as text.
        picture: SVG, until the script has replaced it by the live view.
        renderer: what the front end calls the function that renders the payload.
        payload: what is shown.
        options: how it is shown at first.
    """

    title: str
    picture: str
    renderer: str
    payload: bytes
    options: Mapping[str, Any] | None = None


class View:
    """What a notebook shows live, and every other reader as a picture.

    A subclass says what a terminal shows (`__repr__`), the picture, the live view and the page.
    """

    def _svg(self) -> str:
        """The picture, as SVG."""
        raise NotImplementedError

    def _live(self) -> Any:
        """Make the live view; called where there is something to run it."""
        raise NotImplementedError

    def _page(self) -> Page:
        """What a page shows."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **_: Any) -> front_end.Forms:
        return self._forms(front_end.live_form(self._live))

    def _forms(self, live: Mapping[str, Any]) -> front_end.Forms:
        return front_end.forms(repr(self), self._svg, live)

    def export_html(self, path: Any) -> None:
        """Write what it shows now as a page of its own, which needs neither kernel nor network.

        Args:
            path: the file, such as "view.html". An existing one is replaced whole or not at all.

        Raises:
            FailedPreconditionError: if the front end has not been built, or nothing that draws the
                picture is installed.
            OSError: if the file cannot be written.
        """
        page = self._page()
        front_end.write_page(
            path, page.title, page.picture, page.renderer, page.payload, page.options
        )
