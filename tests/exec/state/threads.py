"""Threads that begin at the same moment, and whose errors are the test's."""

import threading
from collections.abc import Callable
from typing import Any


def run_together(*functions: Callable[[], Any], seconds: float = 60.0) -> None:
    """Run each function on a thread of its own; raise the first error; none may hang."""
    start = threading.Barrier(len(functions))
    errors: list[BaseException] = []

    def run(function: Callable[[], Any]) -> None:
        try:
            start.wait(seconds)
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(f,), daemon=True) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
