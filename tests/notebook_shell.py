"""The shells that cells run in: IPython's own, and what stands in for a kernel's."""

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@contextmanager
def interactive_shell() -> Iterator[InteractiveShell]:
    """IPython's shell, without colours and a history of its own."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell(config=config)
    try:
        yield shell
    finally:
        # It would stay, with all that its cells made, and collect garbage when the process ends:
        # with hundreds of them that took as long as the tests.
        atexit.unregister(shell.atexit_operations)
        shell.cleanup()


class Shell:
    """Enough of the shell of a kernel that a page asked to run a cell."""

    request: Any = {"msg_type": "execute_request", "metadata": {"cellId": "a"}}  # noqa: RUF012

    @property
    def kernel(self) -> Any:
        return self

    def get_parent(self, channel: str) -> Any:
        assert channel == "shell"
        if not self.request:
            raise LookupError
        return self.request
